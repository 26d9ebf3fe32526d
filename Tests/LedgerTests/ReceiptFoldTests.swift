import Testing

@testable import Ledger

/// What receipts tell fills what nothing signed tells, and outranks nothing.
@Suite struct ReceiptFoldTests {
    /// A fact of a receipt.
    private static func receipt(
        at: Timestamp,
        _ transaction: TransactionFact? = nil,
        _ renewal: RenewalFact? = nil
    ) -> Fact {
        var fact = Fact(kind: .receipt, provenance: .receipt, factAt: at)
        fact.transaction = transaction
        fact.transaction?.signedDate = at
        fact.transaction?.productType = nil
        fact.transaction?.reason = nil
        fact.renewal = renewal
        fact.renewal?.signedDate = at
        return fact
    }

    private static func month(
        _ number: Int,
        change: (inout TransactionFact) -> Void = { _ in }
    ) -> TransactionFact {
        Life.transaction(
            UInt64(7000 + number),
            from: Life.day(Double(30 * number)),
            until: Life.day(Double(30 * number + 30)),
            change: change
        )
    }

    @Test func receiptsAloneMakeAHistoryThatSaysThatNobodySignedIt() {
        var life = Life()
        for number in 0..<3 { life.add(Self.receipt(at: Life.day(75), Self.month(number))) }
        life.add(Self.receipt(at: Life.day(75), nil, Life.renewal { $0.autoRenewStatus = 0 }))
        let history = life.history
        #expect(life.at(Life.day(70))?.state == .active)
        #expect(life.at(Life.day(70))?.confidence == .provisional)
        #expect(life.at(Life.day(80))?.renewalIntent == .off)
        #expect(history.timeline.last?.state == .expired(.voluntary))
        #expect(history.timeline.allSatisfy { $0.confidence != .confirmed })
        #expect(!history.anomalies.contains { $0.kind == .unexpectedTransition })
    }

    @Test func aSignedVersionOfATransactionTakesEverythingOver() {
        let claims: [(inout TransactionFact) -> Void] = [
            { $0.expiresDate = Life.day(900) }, { $0.revocationDate = Life.day(5) },
            { $0.isUpgraded = true }, { $0.productID = "other" }, { $0.offerType = 1 },
        ]
        for claim in claims {
            for at in [Life.day(-1), Life.day(20), Life.day(400)] {
                var signed = Life()
                signed.notify(.subscribed, .initialBuy, at: Life.t0, status: 1, Self.month(0))
                var both = signed
                both.add(Self.receipt(at: at, Self.month(0, change: claim)))
                #expect(
                    both.history.timeline.map(\.withoutPositions)
                        == signed.history.timeline.map(\.withoutPositions)
                )
                #expect(both.history.charges.map(\.until) == signed.history.charges.map(\.until))
                #expect(both.history.reversals == signed.history.reversals)
            }
        }
    }

    @Test func renewalInfoOfAReceiptIsNoNewsOnceOneWasSigned() {
        var signed = Life()
        signed.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            status: 1,
            Self.month(0),
            Life.renewal()
        )
        var both = signed
        both.add(
            Self.receipt(
                at: Life.day(10),
                nil,
                Life.renewal {
                    $0.autoRenewStatus = 0
                    $0.isInBillingRetryPeriod = true
                    $0.expirationIntent = 2
                    $0.gracePeriodExpiresDate = Life.day(46)
                }
            )
        )
        #expect(
            both.history.timeline.map(\.withoutPositions)
                == signed.history.timeline.map(\.withoutPositions)
        )
        #expect(both.history.failures.isEmpty)
    }

    @Test func aReceiptsTokenNeverTakesAPurchaseFromItsSignedOwner() {
        let (mine, theirs) = (UniqueID(bits: 1), UniqueID(bits: 2))
        for at in [Life.day(-1), Life.day(20)] {
            var life = Life()
            life.notify(
                .subscribed,
                .initialBuy,
                at: Life.t0,
                Self.month(0) { $0.appAccountToken = mine }
            )
            life.add(Self.receipt(at: at, Self.month(0) { $0.appAccountToken = theirs }))
            life.add(Self.receipt(at: at, Self.month(1) { $0.appAccountToken = theirs }))
            #expect(life.history.ownership.map(\.owner) == [mine])
        }
        var alone = Life()
        alone.add(Self.receipt(at: Life.day(3), Self.month(0) { $0.appAccountToken = theirs }))
        #expect(alone.history.ownership.map(\.owner) == [theirs])
        alone.notify(.didRenew, at: Life.day(30), Self.month(1) { $0.appAccountToken = theirs })
        #expect(alone.history.ownership.map(\.from) == [Life.t0])
    }

    @Test func oldPeriodsThatOnlyAReceiptTellsStandBeforeTheSignedOnes() {
        var life = Life()
        life.notify(.didRenew, at: Life.day(60), status: 1, Self.month(2), Life.renewal())
        life.add(Self.receipt(at: Life.day(70), Self.month(0)))
        life.add(Self.receipt(at: Life.day(70), Self.month(1)))
        life.add(Self.receipt(at: Life.day(70), Self.month(2)))
        #expect(life.at(Life.day(10))?.state == .active)
        #expect(life.at(Life.day(10))?.confidence == .provisional)
        #expect(life.at(Life.day(65))?.confidence == .confirmed)
        #expect(life.history.charges.count == 3)
    }

    /// For any facts: those that are signed decide each transaction that they have.
    @Test func addedReceiptsNeverChangeASignedTransaction() {
        let seed = UInt64.random(in: .min ... .max)
        var random = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            var signed = Life()
            for number in 0..<Int.random(in: 1...4, using: &random) {
                signed.notify(
                    .didRenew,
                    at: Life.day(Double(30 * number)),
                    Self.month(number),
                    Life.renewal()
                )
            }
            var both = signed.events.map(\.fact)
            for _ in 0..<Int.random(in: 1...5, using: &random) {
                let at = Life.day(Double.random(in: 0...200, using: &random))
                let end = Life.day(Double.random(in: 0...400, using: &random))
                let isRevoked = Bool.random(using: &random)
                both.append(
                    Self.receipt(
                        at: at,
                        Self.month(
                            Int.random(in: 0..<signed.events.count, using: &random)
                        ) {
                            $0.expiresDate = end
                            if isRevoked { $0.revocationDate = at }
                        },
                        Life.renewal { $0.autoRenewStatus = 0 }
                    )
                )
            }
            both.shuffle(using: &random)
            var mixed = Life()
            for fact in both { mixed.add(fact) }
            #expect(
                mixed.history.timeline.map(\.withoutPositions)
                    == signed.history.timeline.map(\.withoutPositions),
                "seed \(seed)"
            )
        }
    }
}

extension Interval {
    fileprivate var withoutPositions: Interval {
        var interval = self
        interval.deciding = DecidingPositions()
        return interval
    }
}
