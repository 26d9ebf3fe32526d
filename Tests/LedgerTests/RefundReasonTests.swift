import Testing

@testable import Ledger

/// A refund case keeps why the customer wishes for it.
@Suite struct RefundReasonTests {
    private static func month(_ id: UInt64 = 1) -> TransactionFact {
        let from = Double(id - 1) * 30
        return Life.transaction(id, from: Life.day(from), until: Life.day(from + 30))
    }

    private static func paid() -> Life {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, month(), Life.renewal())
        return life
    }

    private static func request(
        _ reason: ConsumptionRequestReason?,
        _ day: Double,
        of id: UInt64 = 1
    ) -> Fact {
        var fact = Fact(kind: .notification, provenance: .jws, factAt: Life.day(day))
        fact.notificationType = .consumptionRequest
        fact.signedAt = Life.day(day)
        fact.consumptionRequestReason = reason
        fact.transaction = month(id)
        fact.transaction?.signedDate = Life.day(day)
        return fact
    }

    @Test func aFactKeepsEveryReasonInTheRoomThatWasThere() {
        var fact = Fact(kind: .notification, provenance: .jws, factAt: Life.t0)
        #expect(fact.consumptionRequestReason == nil)
        for (text, reason) in ConsumptionRequestReason.known {
            fact.consumptionRequestReason = reason
            #expect(fact.consumptionRequestReason == reason && reason.description == text)
            #expect(!fact.hasUnknownValue)
        }
        fact.consumptionRequestReason = .unknown("GIFT_NOT_WANTED")
        #expect(fact.consumptionRequestReason == .unknown("GIFT_NOT_WANTED"))
        #expect(fact.hasUnknownValue)
        fact.consumptionRequestReason = nil
        #expect(fact.consumptionRequestReason == nil && !fact.hasUnknownValue)
        // What folding costs hangs on it: it had 592 bytes before there was a reason.
        #expect(MemoryLayout<Event>.stride <= 592)
    }

    @Test func theLastRequestThatGivesAReasonSaysIt() {
        var life = Self.paid()
        life.add(Self.request(nil, 8))
        #expect(life.history.refundCases.map(\.reason) == [nil])
        life.add(Self.request(.legal, 9))
        #expect(life.history.refundCases.map(\.reason) == [.legal])
        life.add(Self.request(.fulfillmentIssue, 9.25))
        #expect(life.history.refundCases.map(\.reason) == [.fulfillmentIssue])
        // A request that says nothing takes nothing back.
        life.add(Self.request(nil, 9.5))
        let cases = life.history.refundCases
        #expect(cases.map(\.reason) == [.fulfillmentIssue])
        #expect(cases.map(\.requests) == [4])
        #expect(cases.map(\.lastAskedAt) == [Life.day(9.5)])
    }

    @Test func everyCaseHasItsOwnReason() {
        var life = Self.paid()
        life.notify(.didRenew, at: Life.day(30), Self.month(2), Life.renewal())
        life.add(Self.request(.legal, 31, of: 1))
        life.add(Self.request(.other, 32, of: 2))
        life.notify(.refundDeclined, at: Life.day(33), Self.month(2))
        life.add(Self.request(nil, 34, of: 2))
        life.add(Self.request(.unintendedPurchase, 35, of: 1))
        let cases = life.history.refundCases
        #expect(cases.map(\.transactionID) == [AppleID(1), AppleID(2), AppleID(2)])
        #expect(cases.map(\.reason) == [.unintendedPurchase, .other, nil])
        #expect(cases.map(\.decision) == [nil, .declined, nil])
    }

    @Test func anUnknownReasonIsKeptAndNotedAndMovesNothing() {
        var known = Self.paid()
        known.add(Self.request(.other, 9))
        var unknown = Self.paid()
        unknown.add(Self.request(.unknown("GIFT_NOT_WANTED"), 9))
        #expect(unknown.history.refundCases.map(\.reason) == [.unknown("GIFT_NOT_WANTED")])
        #expect(known.history.anomalies.isEmpty)
        #expect(unknown.history.anomalies == [Anomaly(kind: .unknownValue, position: 2)])
        #expect(unknown.history.timeline == known.history.timeline)
    }

    @Test func neitherArrivalNorRepetitionDecidesWhichReasonCounts() {
        let facts = [
            Self.request(.unsatisfiedWithPurchase, 8), Self.request(nil, 9),
            // Of one instant: the later one in the alphabet counts, whichever came first.
            Self.request(.other, 9), Self.request(.legal, 9), Self.request(.unknown("A"), 9),
            Self.request(.other, 9),
        ]
        var generator = SeededGenerator(seed: 11)
        for round in 0..<50 {
            var life = Self.paid()
            for fact in facts.shuffled(using: &generator) { life.add(fact) }
            let cases = life.history.refundCases
            #expect(cases.map(\.reason) == [.other], "round \(round)")
            #expect(cases.map(\.requests) == [2], "round \(round)")
        }
    }

    @Test func factsThatDifferInTheReasonAloneHaveAnOrder() {
        let facts = [Self.request(.legal, 9), Self.request(.other, 9)]
        for order in [facts, facts.reversed()] {
            let events = order.enumerated().map { Event(position: Int64($0), fact: $1) }
            let sorted = events.sorted { left, right in
                var isFirst = false
                Events.lend([left, right]) { isFirst = EventOrder.precedes($0, 0, 1) }
                return isFirst
            }
            #expect(sorted.map(\.fact.consumptionRequestReason) == [.legal, .other])
        }
    }
}
