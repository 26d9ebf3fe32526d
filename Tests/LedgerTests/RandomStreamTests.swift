import Testing

@testable import Ledger

/// The generator reaches what it should, and a failure really is made small.
@Suite struct RandomStreamTests {
    private static let streams = (0..<3000).map { RandomStream(seed: UInt64($0)) }

    @Test func everyStateAndEveryCauseIsReached() {
        var states: [String: Int] = [:]
        var confidences: [Confidence: Int] = [:]
        var anomalies: [Anomaly.Kind: Int] = [:]
        var (transitions, failures, reversals, seats, owners) = (0, 0, 0, 0, 0)
        for stream in Self.streams {
            let history = stream.history
            for interval in history.timeline {
                let name = interval.state.name + (interval.state.cause.map { " " + $0 } ?? "")
                states[name, default: 0] += 1
                confidences[interval.confidence, default: 0] += 1
            }
            for anomaly in history.anomalies { anomalies[anomaly.kind, default: 0] += 1 }
            transitions += history.transitions.count
            failures += history.failures.count
            reversals += history.reversals.count
            seats += history.seatRefunds.count
            owners += history.ownership.count
        }
        for name in ["active", "renewal_pending", "grace_period", "billing_retry"] {
            #expect(states[name, default: 0] > 300, "\(name)")
        }
        for cause in ExpirationCause.allCases {
            #expect(states["expired \(cause.rawValue)", default: 0] > 50, "\(cause)")
        }
        // Nothing in a transaction tells of a guardian's consent withdrawn.
        for cause in RevocationCause.allCases where cause.rawValue != "rescinded_consent" {
            #expect(states["revoked \(cause.rawValue)", default: 0] > 30, "\(cause)")
        }
        for confidence in Confidence.allCases {
            #expect(confidences[confidence, default: 0] > 15, "\(confidence)")
        }
        for kind in Anomaly.Kind.allCases {
            #expect(anomalies[kind, default: 0] > 50, "\(kind)")
        }
        #expect(transitions > 5000)
        #expect(failures > 500)
        #expect(reversals > 100)
        #expect(seats > 500)
        #expect(owners > 1000)
    }

    @Test func aFactKnowsWhatItCountsAsAndWhatIsUnknownInIt() {
        var unknown = 0
        for fact in Self.streams.flatMap(\.events).map(\.fact) {
            #expect(fact.trigger == Trigger(fact.kind, fact.notificationType, fact.subtype))
            let transaction = fact.transaction
            let words: [Symbol?] = [
                fact.notificationType?.unknownText, fact.subtype?.unknownText,
                transaction?.ownership?.unknownText, transaction?.reason?.unknownText,
                transaction?.revocationType?.unknownText, transaction?.productType?.unknownText,
                transaction?.offerDiscountType?.unknownText,
                fact.consumptionRequestReason?.unknownText,
            ]
            let isOdd =
                words.contains { $0 != nil } || !(1...5).contains(fact.status ?? 1)
                || !(1...4).contains(transaction?.offerType ?? 1)
            #expect(fact.hasUnknownValue == isOdd)
            unknown += isOdd ? 1 : 0
        }
        #expect(unknown > 500)
    }

    @Test func aFactForgetsWhatIsTakenOutOfItAgain() {
        var fact = Fact(kind: .transaction, provenance: .jws, factAt: .earliest)
        let empty = fact
        fact.kind = .notification
        fact.notificationType = .unknown("SHINY")
        fact.subtype = .unknown("SHINY")
        fact.status = 9
        fact.linkedOwner = UniqueID(bits: 1)
        fact.extensionAnswer = ExtensionAnswer(success: true, effectiveDate: nil)
        var transaction = TransactionFact(
            transactionID: AppleID(1),
            signedDate: .earliest,
            digest: 1
        )
        transaction.ownership = .unknown("SHINY")
        transaction.offerType = 9
        fact.transaction = transaction
        #expect(fact.hasUnknownValue && fact.hasOwnWord)
        transaction.ownership = .purchased
        transaction.offerType = 1
        fact.transaction = transaction
        fact.status = nil
        fact.subtype = nil
        fact.notificationType = .refund
        #expect(!fact.hasUnknownValue && fact.trigger == .refunded)
        fact.kind = .transaction
        fact.notificationType = nil
        fact.transaction = nil
        fact.linkedOwner = nil
        fact.extensionAnswer = nil
        #expect(fact == empty && !fact.hasOwnWord)
    }

    @Test func everyTriggerAndEveryFormOfAFactIsDrawn() {
        let facts = Self.streams.flatMap(\.events).map(\.fact)
        var triggers: [Trigger: Int] = [:]
        var kinds: [String: Int] = [:]
        for stream in Self.streams {
            for place in stream.events.indices {
                let head = EventHead(stream.events, place)
                triggers[head.trigger, default: 0] += 1
                kinds["\(stream.events[place].fact.kind) \(head.provenance)", default: 0] += 1
            }
        }
        for trigger in Trigger.allCases {
            #expect(triggers[trigger, default: 0] > 100, "\(trigger)")
        }
        #expect(kinds.count > 9)
        for (kind, count) in kinds { #expect(count > 100, "\(kind)") }
        let transactions = facts.compactMap(\.transaction)
        func share(_ name: String, _ isSo: (TransactionFact) -> Bool) {
            #expect(transactions.filter(isSo).count > 100, "\(name)")
        }
        share("upgraded") { $0.isUpgraded }
        share("revoked") { $0.revocationDate != nil }
        share("seats") { $0.additionalReason != nil }
        share("commitment") { $0.billingPlanType == .monthly }
        share("family") { $0.ownership == .familyShared }
        share("assigned") { $0.ownership == .assigned }
        share("no start") { $0.purchaseDate == nil }
        share("no end") { $0.expiresDate == nil }
        share("negative") { ($0.purchaseDate ?? .earliest) > ($0.expiresDate ?? .latest) }
        share("year 1 or 9999") {
            $0.expiresDate == .latest || ($0.signedDate < .earliest) || $0.signedDate == .latest
        }
        let coincident = Self.streams.filter { stream in
            Set(stream.events.map(\.fact.factAt)).count < stream.events.count
        }
        #expect(coincident.count > 500)
    }

    /// Two refunds of one transaction within a stream: known to need two events and no more.
    @Test func aFalsePropertyIsShrunkToTheLeastThatBreaksIt() throws {
        let isFalse = Property { stream, _ in
            stream.events.filter { $0.fact.transaction?.revocationDate != nil }.count < 2
        }
        var shrunk = 0
        for seed in Property.seeds(200) {
            let stream = RandomStream(seed: seed, events: 10...30)
            guard let report = isFalse.failure(stream, seed: seed) else { continue }
            shrunk += 1
            #expect(report.contains("shrunk to 2:"), "seed \(seed): \(report)")
            #expect(report.contains("SUBLEDGER_SEED=\(seed)"))
            let lines = report.split(separator: "\n").map { $0.drop { $0 == " " } }
            #expect(lines.filter { $0.hasPrefix("stream.add") }.count == 2, "\(report)")
            // Nothing is left but what the property is about.
            for line in lines where line.contains("transaction?.") {
                #expect(
                    line.hasPrefix("fact.transaction?.revocationDate = Life.day(")
                        || line.hasPrefix("fact.transaction?.productType"),
                    "seed \(seed): \(report)"
                )
            }
            #expect(!report.contains("renewal"), "seed \(seed): \(report)")
        }
        #expect(shrunk > 100 || Property.onlySeed != nil)
    }

    @Test func instantsBecomeOneWhereTheirOrderDoesNotMatter() {
        let stream = RandomStream(seed: 11, events: 20...20)
        let smallest = Shrinker.shrink(stream) { stream in
            stream.events.filter { $0.fact.renewal != nil }.count > 2
        }
        #expect(smallest.events.count == 3)
        #expect(smallest.instants == [Life.t0])
        #expect(smallest.events.map(\.position) == [1, 2, 3])
        #expect(smallest.rules == AppRules(environment: .production))
    }

    @Test func aPropertyThatHoldsIsNotReported() {
        let holds = Property { stream, _ in !stream.events.isEmpty }
        for seed: UInt64 in 0..<50 {
            #expect(holds.failure(RandomStream(seed: seed), seed: seed) == nil)
        }
    }
}
