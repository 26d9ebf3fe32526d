import Ledger
import Testing

@testable import Projections

/// What must hold for every life, on random ones.
@Suite struct ChurnBalanceTests {
    private static let seeds: Range<UInt64> = 1..<1500

    @Test func theMomentsAddUpToTheStatesAtEveryInstant() {
        var seen: [String: Int] = [:]
        for seed in Self.seeds {
            let life = ChurnRandomLife.life(seed: seed)
            let (history, moments) = (life.history, life.moments)
            let oracle = ChurnOracle(history)
            for moment in moments { seen[moment.kind.rawValue, default: 0] += 1 }
            var instants = history.timeline.map(\.from) + moments.map(\.at)
            instants += instants.map { Timestamp(milliseconds: $0.milliseconds - 1) }
            for instant in instants {
                let expected = oracle.key(at: instant).map { [$0: 1] } ?? [:]
                let told = ChurnLife.balance(moments, at: instant)
                if told != expected {
                    Issue.record("seed \(seed) at \(instant): \(told), not \(expected)")
                    return
                }
            }
        }
        // Every kind of moment was there to be added up.
        for kind in [
            "new_paid", "trial_started", "trial_converted", "trial_lost", "reactivated",
            "recovered", "access_churn", "final_churn", "lapsed_unconfirmed", "switched_out",
            "switched_in", "price_changed", "churn_corrected", "charge", "refund",
            "refund_reversed", "cohort",
        ] { #expect(seen[kind, default: 0] > 10, "\(kind)") }
    }

    @Test func whatIsHeldAndWhatItIsWorthGoTogether() {
        for seed in Self.seeds {
            var worth: Int64 = 0
            var active: Int32 = 0
            var last = Timestamp.earliest
            for moment in ChurnRandomLife.life(seed: seed).moments {
                #expect(moment.at >= last, "seed \(seed)")
                last = moment.at
                worth += moment.monthlyDelta
                active += moment.delta
                #expect(active == 0 || active == 1, "seed \(seed)")
                #expect(active == 1 || worth == 0, "seed \(seed)")
                #expect(worth >= 0, "seed \(seed)")
                #expect((moment.movement == nil) == (moment.delta == 0 && moment.monthlyDelta == 0))
            }
        }
    }

    /// By that a level may be read from behind (`level_edge`).
    @Test func whoeverComesIsForetoldToGoAndWhatPutsAtRiskToBeOver() {
        for seed in Self.seeds {
            var sums: [String: Int64] = [:]
            for moment in ChurnRandomLife.life(seed: seed).moments {
                let holding = moment.holding
                let held = "\(holding?.productID?.text ?? "") \(holding?.currency?.text ?? "")"
                sums["held \(held)", default: 0] += Int64(moment.delta)
                sums["worth \(held)", default: 0] += moment.monthlyDelta
                sums["standard \(held)", default: 0] += moment.standardDelta
                if moment.riskDelta != 0 {
                    let risk = "risk \(moment.cause ?? "") \(held)"
                    sums[risk, default: 0] += Int64(moment.riskDelta)
                }
            }
            for (what, sum) in sums { #expect(sum == 0, "seed \(seed): \(what)") }
        }
    }

    @Test func oneLossIsOneLossAndComesToOneEnd() {
        for seed in Self.seeds {
            let moments = ChurnRandomLife.life(seed: seed).moments
            let losses = moments.filter { $0.kind == .accessChurn }.map(\.at)
            let finals = moments.filter { $0.kind == .finalChurn }
            #expect(Set(losses).count == losses.count, "seed \(seed)")
            for final in finals {
                #expect(final.relatedAt.map(losses.contains) ?? false, "seed \(seed)")
            }
            #expect(Set(finals.compactMap(\.relatedAt)).count == finals.count, "seed \(seed)")
            let trials = moments.filter { $0.kind == .trialStarted }
            let outcomes = moments.filter { $0.kind == .trialLost || $0.kind == .trialConverted }
            #expect(trials.filter { $0.cause != nil }.count == outcomes.count, "seed \(seed)")
        }
    }

    @Test func theOrderOfArrivalChangesNothing() {
        for seed in Self.seeds where seed % 10 == 0 {
            let life = ChurnRandomLife.life(seed: seed)
            var fold = SubscriptionFold(rules: life.rules)
            var random = ChurnNumbers(seed: seed)
            let shuffled = (life.events + life.events).shuffled(using: &random)
            let told = MomentBuilder.moments(of: fold.history(of: shuffled), life.rules)
            let expected = life.moments
            #expect(told.map(\.kind) == expected.map(\.kind), "seed \(seed)")
            #expect(told.map(\.at) == expected.map(\.at), "seed \(seed)")
            #expect(told.map(\.positions) == expected.map(\.positions), "seed \(seed)")
        }
    }
}
