import Testing

@testable import Ledger

/// The invariants of the lifecycle reference, 3.3, on random facts.
@Suite struct FoldInvariantTests {
    private static let seeds = 0..<400

    /// A random life: not one that Apple would write, but every register is hit.
    private static func randomLife(_ seed: UInt64) -> Life {
        var random = SeededGenerator(seed: seed)
        var life = Life()
        life.rules.gracePeriodDays = Bool.random(using: &random) ? 16 : nil
        let products: [Symbol] = ["gold.month", "silver.month", "gold.year"]
        for _ in 0..<Int.random(in: 1...14, using: &random) {
            let number = UInt64.random(in: 1...5, using: &random)
            let from = Life.day(Double(number) * 28 + Double.random(in: 0...4, using: &random))
            let at = Life.day(Double.random(in: 0...200, using: &random))
            let transaction = Life.transaction(
                number,
                from: from,
                until: from.adding(.days(30)),
                product: products.randomElement(using: &random) ?? "gold.month",
                reason: Bool.random(using: &random) ? .purchase : .renewal
            ) {
                if Int.random(in: 0..<6, using: &random) == 0 { $0.revocationDate = at }
                if Int.random(in: 0..<12, using: &random) == 0 { $0.isUpgraded = true }
            }
            let renewal = Life.renewal {
                $0.autoRenewStatus = Int32.random(in: 0...1, using: &random)
                $0.isInBillingRetryPeriod = Bool.random(using: &random) ? true : nil
                if Bool.random(using: &random) { $0.gracePeriodExpiresDate = at.adding(.days(9)) }
                if Int.random(in: 0..<4, using: &random) == 0 { $0.expirationIntent = 2 }
            }
            let types: [(NotificationType, Subtype?)] = [
                (.subscribed, .resubscribe), (.didRenew, nil), (.didRenew, .billingRecovery),
                (.didFailToRenew, nil), (.didFailToRenew, .gracePeriod),
                (.gracePeriodExpired, nil), (.expired, .billingRetry), (.expired, .voluntary),
                (.refund, nil), (.refundReversed, nil), (.didChangeRenewalPref, .upgrade),
                (.didChangeRenewalStatus, .autoRenewDisabled),
            ]
            let (type, subtype) = types.randomElement(using: &random) ?? (.didRenew, nil)
            life.notify(
                type,
                subtype,
                at: at,
                Bool.random(using: &random) || type == .refund ? transaction : nil,
                Bool.random(using: &random) ? renewal : nil
            )
        }
        return life
    }

    @Test func anyOrderAndAnyDuplicationGiveTheSameHistory() {
        for seed in Self.seeds {
            let life = Self.randomLife(UInt64(seed))
            var fold = SubscriptionFold(rules: life.rules)
            let expected = fold.history(of: life.events)
            var random = SeededGenerator(seed: UInt64(seed) ^ 0xABCD)
            for _ in 0..<4 {
                var shuffled = life.events + life.events.filter { _ in Bool.random(using: &random) }
                shuffled.shuffle(using: &random)
                #expect(fold.history(of: shuffled) == expected, "seed \(seed)")
            }
        }
    }

    @Test func theTimelineHasNoHoleAndNoOverlap() {
        for seed in Self.seeds {
            let timeline = Self.randomLife(UInt64(seed)).history.timeline
            for (left, right) in zip(timeline, timeline.dropFirst()) {
                #expect(left.until == right.from, "seed \(seed)")
                #expect(left.from < right.from, "seed \(seed)")
            }
            if let last = timeline.last { #expect(last.until == nil, "seed \(seed)") }
        }
    }

    @Test func accessNeverLastsBeyondWhatWasPaidOrPromised() {
        var checked = 0
        for seed in Self.seeds {
            let life = Self.randomLife(UInt64(seed))
            let ends = life.events.compactMap(\.fact.transaction?.expiresDate)
            let graces = life.events.compactMap(\.fact.renewal?.gracePeriodExpiresDate)
            // Grace without a date is bounded by the longest that Apple offers.
            let bound = max(
                ends.max().map { $0.adding(.days(28)) } ?? .earliest,
                graces.max() ?? .earliest
            )
            for interval in life.history.timeline where interval.entitled {
                checked += 1
                #expect(interval.until.map { $0 <= bound } ?? false, "seed \(seed)")
            }
        }
        #expect(checked > 200)
    }

    @Test func activeMeansThatALiveTransactionCovers() {
        for seed in Self.seeds {
            let life = Self.randomLife(UInt64(seed))
            let transactions = life.events.compactMap(\.fact.transaction)
            for interval in life.history.timeline where interval.state == .active {
                #expect(
                    transactions.contains {
                        ($0.purchaseDate ?? .latest) <= interval.from
                            && ($0.expiresDate ?? .earliest) > interval.from
                    },
                    "seed \(seed)"
                )
            }
        }
    }

    /// Case A06 and case C05 for any facts: the newest signature of a transaction decides.
    @Test func noTransactionGrantsAccessOnceItIsTakenBack() {
        var checked = 0
        for seed in Self.seeds {
            let life = Self.randomLife(UInt64(seed))
            let newest = Dictionary(
                life.events.compactMap(\.fact.transaction).map { ($0.transactionID, $0) },
                uniquingKeysWith: { $1.signedDate > $0.signedDate ? $1 : $0 }
            )
            for interval in life.history.timeline where interval.state == .active {
                guard let id = interval.transactionID, let revoked = newest[id]?.revocationDate
                else { continue }
                checked += 1
                #expect(interval.until.map { $0 <= revoked } ?? false, "seed \(seed)")
            }
        }
        #expect(checked > 50)
    }

    @Test func everySurpriseIsAStepThatTheTableLacks() {
        var steps = 0
        for seed in Self.seeds {
            let life = Self.randomLife(UInt64(seed))
            let history = life.history
            let places = Dictionary(
                uniqueKeysWithValues: life.events.indices.map {
                    (life.events[$0].position, $0)
                }
            )
            let outside = history.transitions.filter { step in
                guard let place = places[step.position] else { return true }
                steps += 1
                return !TransitionTable.allows(
                    from: step.from.map(StateKind.init),
                    Trigger(EventHead(life.events, place)),
                    to: StateKind(step.to)
                )
            }
            let surprises = history.anomalies.filter { $0.kind == .unexpectedTransition }
            #expect(outside.map(\.position) == surprises.map(\.position), "seed \(seed)")
        }
        #expect(steps > 1000)
    }

    @Test func anOlderFactNeverChangesTheOpenEnd() {
        for seed in Self.seeds {
            var life = Self.randomLife(UInt64(seed))
            guard
                let newest = life.events.compactMap({ $0.fact.transaction }).max(by: {
                    $0.signedDate < $1.signedDate
                }), let before = life.history.latestTransaction,
                before.transactionID == newest.transactionID
            else { continue }
            let old = Life.transaction(
                1,
                from: Life.day(-400),
                until: Life.day(-370),
                product: "old.month"
            )
            let id = before.transactionID
            life.notify(
                .didRenew,
                at: Life.day(-400),
                Life.transaction(
                    99,
                    from: old.purchaseDate ?? Life.t0,
                    until: old.expiresDate ?? Life.t0
                )
            )
            #expect(life.history.latestTransaction?.transactionID == id, "seed \(seed)")
            #expect(life.history.latestTransaction == before, "seed \(seed)")
        }
    }

    @Test func aRefundAndItsReversalLeaveTheStates() {
        for seed in Self.seeds {
            var life = Self.randomLife(UInt64(seed))
            guard let last = life.history.latestTransaction, last.revocationDate == nil else {
                continue
            }
            let before = life.history.timeline.map { "\($0.from) \($0.state)" }
            var refunded = last
            refunded.revocationDate = Life.day(300)
            refunded.digest = Life.digest(of: refunded)
            life.notify(.refund, at: Life.day(300), refunded)
            life.notify(.refundReversed, at: Life.day(301), last)
            #expect(
                life.history.timeline.map { "\($0.from) \($0.state)" } == before,
                "seed \(seed)"
            )
        }
    }

    @Test func aLongStreamIsFoldedInOneGo() {
        var life = Life()
        for month in 0..<5000 {
            let from = Life.day(Double(month))
            life.notify(
                .didRenew,
                at: from,
                Life.transaction(
                    UInt64(month + 1),
                    from: from,
                    until: from.adding(.days(1)),
                    reason: .renewal
                ),
                Life.renewal()
            )
            life.notify(
                .didChangeRenewalStatus,
                .autoRenewDisabled,
                at: from.adding(.hours(1)),
                nil,
                Life.renewal { $0.autoRenewStatus = Int32(month % 2) }
            )
        }
        let history = life.history
        #expect(history.timeline.count > 5000)
        #expect(history.knownToPosition == 10_000)
    }
}
