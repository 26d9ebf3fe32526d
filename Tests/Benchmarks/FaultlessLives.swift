internal import AppStoreSimulator
internal import Ledger

/// Simulated lives of which every notification arrives: nothing in them may surprise the fold.
public struct FaultlessLives {
    /// How many steps of the state machine the lives took.
    public private(set) var steps = 0
    /// What was odd, as "what: notification", each with how often.
    public private(set) var anomalies: [String: Int] = [:]

    /// Draws so many lives and folds them.
    public init(subscriptions: Int, seed: UInt64) {
        let simulation = Simulation(
            Simulation.Options(subscriptions: subscriptions, seed: seed)
        )
        var fold = SubscriptionFold(rules: AppRules(environment: .sandbox))
        for number in 0..<subscriptions {
            let notices = simulation.life(number).notices
            let events = notices.enumerated().map { place, notice in
                Event(position: Int64(place + 1), fact: Fact(notice))
            }
            let history = fold.history(of: events)
            steps += history.transitions.count
            for anomaly in history.anomalies {
                let notice = notices[Int(anomaly.position) - 1]
                let what = "\(anomaly.kind.rawValue): \(notice.type) \(notice.subtype ?? "")"
                anomalies[what, default: 0] += 1
            }
        }
    }
}
