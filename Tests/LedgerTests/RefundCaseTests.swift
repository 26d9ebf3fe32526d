import Testing

@testable import Ledger

/// What a customer's wish for a refund leaves behind, beside the refund itself.
@Suite struct RefundCaseTests {
    private static func month(_ id: UInt64 = 1, revoked: Double? = nil) -> TransactionFact {
        let from = Double(id - 1) * 30
        return Life.transaction(id, from: Life.day(from), until: Life.day(from + 30)) {
            $0.revocationDate = revoked.map { Life.day($0) }
        }
    }

    private static func paid() -> Life {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, month(), Life.renewal())
        return life
    }

    @Test func aRequestOpensACaseThatRepetitionsLengthen() {
        var life = Self.paid()
        for day in [9, 9.25, 9.5] {
            life.notify(.consumptionRequest, at: Life.day(day), Self.month(), Life.renewal())
        }
        let cases = life.history.refundCases
        #expect(cases.count == 1)
        #expect(cases.first?.transactionID == AppleID(1))
        #expect(cases.first?.askedAt == Life.day(9))
        #expect(cases.first?.lastAskedAt == Life.day(9.5))
        #expect(cases.first?.answerBy == Life.day(10))
        #expect(cases.first?.requests == 3)
        #expect(cases.first?.position == 2)
        #expect(cases.first?.decision == nil && cases.first?.decidedAt == nil)
    }

    @Test func aDeclinedRefundClosesTheCaseAndTheNextRequestIsAnother() {
        var life = Self.paid()
        life.notify(.consumptionRequest, at: Life.day(9), Self.month())
        life.notify(.refundDeclined, at: Life.day(10), Self.month())
        life.notify(.consumptionRequest, at: Life.day(20), Self.month())
        let cases = life.history.refundCases
        #expect(cases.map(\.decision) == [.declined, nil])
        #expect(cases.map(\.decidedAt) == [Life.day(10), nil])
        #expect(cases.map(\.decisionPosition) == [3, nil])
        #expect(life.at(Life.day(21))?.state == .active)
    }

    @Test func aRefundClosesTheCaseOfItsChargeAlone() {
        var life = Self.paid()
        life.notify(.didRenew, at: Life.day(30), Self.month(2), Life.renewal())
        life.notify(.consumptionRequest, at: Life.day(40), Self.month(1))
        life.notify(.consumptionRequest, at: Life.day(40.1), Self.month(2))
        life.notify(.refund, at: Life.day(41), Self.month(2, revoked: 41))
        let cases = life.history.refundCases
        #expect(cases.map(\.transactionID) == [AppleID(1), AppleID(2)])
        #expect(cases.map(\.decision) == [nil, .refunded])
        #expect(life.at(Life.day(42))?.state == .revoked(.refund))
    }

    @Test func aRefundOfSeatsAnswersTheWishToo() {
        var life = Self.paid()
        life.notify(.consumptionRequest, at: Life.day(9), Self.month())
        var seats = Self.month()
        seats.revokedSeatQuantity = 2
        life.notify(.refund, .seats, at: Life.day(10), seats)
        #expect(life.history.refundCases.map(\.decision) == [.refunded])
        #expect(life.at(Life.day(11))?.state == .active)
    }

    /// The notice of the refund was lost; the charge was read from Apple's API later.
    @Test func aChargeThatIsReadAsTakenBackClosesTheCaseIfItWasTakenBackAfterwards() {
        for (revoked, decision) in [(9.5, RefundCase.Decision.refunded), (5, nil)] {
            var life = Self.paid()
            life.notify(.consumptionRequest, at: Life.day(9), Self.month())
            var read = Fact(kind: .transaction, provenance: .jws, factAt: Life.day(12))
            read.transaction = Self.month(revoked: revoked)
            read.transaction?.signedDate = Life.day(12)
            life.add(read)
            #expect(life.history.refundCases.map(\.decision) == [decision], "day \(revoked)")
        }
    }

    @Test func withoutARequestThereIsNoCase() {
        var life = Self.paid()
        life.notify(.refundDeclined, at: Life.day(9), Self.month())
        life.notify(.refund, at: Life.day(10), Self.month(revoked: 10))
        #expect(life.history.refundCases.isEmpty)
    }

    @Test func theOrderOfArrivalAndRepeatsChangeNoCase() {
        var life = Self.paid()
        life.notify(.consumptionRequest, at: Life.day(9), Self.month())
        life.notify(.consumptionRequest, at: Life.day(9.3), Self.month())
        life.notify(.refundDeclined, at: Life.day(10), Self.month())
        life.notify(.consumptionRequest, at: Life.day(12), Self.month())
        life.notify(.refund, at: Life.day(13), Self.month(revoked: 13))
        let expected = life.history.refundCases
        #expect(expected.map(\.decision) == [.declined, .refunded])
        #expect(expected.map(\.requests) == [2, 1])
        let repeated = life.events.map { Event(position: $0.position + 10, fact: $0.fact) }
        var fold = SubscriptionFold(rules: life.rules)
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<50 {
            let events = (life.events + repeated).shuffled(using: &generator)
            #expect(fold.history(of: events).refundCases == expected)
        }
        // What one stream left behind is not the next one's.
        #expect(fold.history(of: Self.paid().events).refundCases.isEmpty)
    }

    /// Of two requests of one instant, one of which gives a reason, the one without opens the case.
    @Test func aRequestWithoutAReasonComesBeforeOneOfTheSameInstantThatGivesOne() {
        for isReasonFirst in [true, false] {
            var life = Self.paid()
            for hasReason in [isReasonFirst, !isReasonFirst] {
                var fact = Fact(kind: .notification, provenance: .jws, factAt: Life.day(9))
                fact.notificationType = .consumptionRequest
                fact.signedAt = Life.day(9)
                fact.transaction = Self.month()
                fact.transaction?.signedDate = Life.day(9)
                if hasReason { fact.consumptionRequestReason = .legal }
                life.add(fact)
            }
            #expect(life.history.refundCases.map(\.position) == [isReasonFirst ? 3 : 2])
            #expect(life.history.refundCases.map(\.reason) == [.legal])
            #expect(life.history.refundCases.map(\.requests) == [1])
        }
    }

    /// The notice may be lost; what the transaction says was taken back since the request decides,
    /// where Apple signed it.
    @Test(
        arguments: [
            (Provenance.jws, 9.0, RefundCase.Decision.refunded), (.jws, 8.9, nil),
            (.receipt, 9, nil),
        ] as [(Provenance, Double, RefundCase.Decision?)]
    )
    func aChargeThatWasTakenBackAtTheRequestIsRefunded(
        _ provenance: Provenance,
        _ revoked: Double,
        _ decision: RefundCase.Decision?
    ) {
        var life = Self.paid()
        life.notify(.consumptionRequest, at: Life.day(9), Self.month())
        life.read(at: Life.day(12), Self.month(revoked: revoked), provenance: provenance)
        #expect(life.history.refundCases.map(\.decision) == [decision])
    }
}
