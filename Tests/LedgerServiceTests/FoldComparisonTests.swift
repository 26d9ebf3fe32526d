import Benchmarks
import Testing

/// The fold against an evaluator that shares nothing with it but the documents.
@Suite struct FoldComparisonTests {
    @Test func theFoldAndTheNaiveEvaluatorAgreeOnEveryInterval() {
        let comparison = FoldComparison(subscriptions: 5000, seed: 20_261_130)
        // The comparison proves something only where there is something to compare.
        #expect(comparison.subscriptions == 5000)
        #expect(comparison.lost > 1000)
        #expect(comparison.disordered > 3000)
        for state in [
            "active", "renewal_pending", "grace_period", "billing_retry", "expired", "revoked",
        ] {
            #expect(comparison.intervals[state, default: 0] > 300, "\(state)")
        }
        for (kind, least) in Self.leastIntervals {
            #expect(comparison.intervalsOfKind[kind, default: 0] >= least, "\(kind)")
        }
        for (event, least) in Self.leastEvents {
            #expect(comparison.lifeEvents[event, default: 0] >= least, "\(event)")
        }
        #expect(
            comparison.differing == 0,
            "seed 20261130: \(comparison.differences.joined(separator: "\n"))"
        )
    }

    /// Where no notification of an ordinary life is lost, every step is an expected one.
    @Test func aLifeOfWhichNothingIsLostHasNoAnomaly() {
        let seed: UInt64 = 20_261_130
        let lives = FaultlessLives(subscriptions: 1000, seed: seed)
        #expect(lives.steps > 2000)
        #expect(lives.anomalies.isEmpty, "seed \(seed)")
    }

    private static let leastIntervals: KeyValuePairs = [
        "FAMILY_SHARED/active": 200, "FAMILY_SHARED/revoked": 30, "FAMILY_SHARED/expired": 100,
        "FAMILY_SHARED/grace_period": 5, "FAMILY_SHARED/billing_retry": 20,
        "ASSIGNED/active": 100, "ASSIGNED/revoked": 20, "ASSIGNED/expired": 60,
        "COMMITMENT/active": 500, "COMMITMENT/billing_retry": 100, "COMMITMENT/expired": 300,
        "COMMITMENT/revoked": 25, "SEATS/active": 60, "SEATS/revoked": 6, "SEATS/expired": 40,
        "MIGRATED/active": 50, "MIGRATED/expired": 25, "ORGANIZATION/active": 50,
    ]

    private static let leastEvents: KeyValuePairs = [
        "upgradeReadAgain": 200, "refundedUpgraded": 8, "crossgradedUnannounced": 100,
        "graceDateMissing": 40, "graceDatePersisted": 40, "statusRead": 200, "historyRead": 100,
        "additionRefunded": 25, "seatsAdded": 60, "paidAfterCancelling": 300, "migrated": 30,
        "unknownStatus": 100, "unknownSubtype": 100, "unknownType": 100, "tokenReplaced": 100,
        "refundReversed": 100, "extended": 60, "resubscribed": 300,
    ]
}
