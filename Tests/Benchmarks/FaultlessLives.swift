internal import AppStoreSimulator
internal import Ledger

/// Simulated lives of which every notification arrives: nothing in them may surprise the fold.
///
/// They are ordinary ones, without unknown words and missing dates, which are anomalies by name.
public struct FaultlessLives {
    /// How many steps of the state machine the lives took.
    public private(set) var steps = 0
    /// What was odd, as "what: notification", each with how often.
    public private(set) var anomalies: [String: Int] = [:]

    /// Draws so many lives and folds them.
    public init(subscriptions: Int, seed: UInt64) {
        var options = Simulation.Options(subscriptions: subscriptions, seed: seed)
        options.rareFactor = 0
        let simulation = Simulation(options)
        var fold = SubscriptionFold(rules: AppRules(environment: .sandbox))
        for number in 0..<subscriptions {
            let life = simulation.life(number)
            let notices = life.notices
            let events = notices.enumerated().compactMap { place, notice in
                Fact(notice, of: life.chain).map { Event(position: Int64(place + 1), fact: $0) }
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
