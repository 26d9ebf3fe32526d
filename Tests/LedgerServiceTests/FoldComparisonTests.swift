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
        #expect(
            comparison.differing == 0,
            "seed 20261130: \(comparison.differences.joined(separator: "\n"))"
        )
    }

    /// Where no notification is lost, every step is in the table of expected ones.
    @Test func aLifeOfWhichNothingIsLostHasNoAnomaly() {
        let seed: UInt64 = 20_261_130
        let lives = FaultlessLives(subscriptions: 1000, seed: seed)
        #expect(lives.steps > 2000)
        #expect(lives.anomalies.isEmpty, "seed \(seed)")
    }
}
