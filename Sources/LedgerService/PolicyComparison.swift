internal import EventLog
public import Ledger
public import Postgres

/// What different answers to “serve a subscriber in billing retry?” would mean for the
/// subscriptions of the log: folded anew under each, beside the read models and without changing
/// them.
public struct PolicyComparison: Hashable, Sendable {
    /// The subscriptions that are in one state.
    public struct Line: Hashable, Sendable {
        /// The state's word.
        public var state: String
        /// How many subscriptions are in it.
        public var subscriptions = 0
        /// How many of them Apple's line grants access.
        public var entitledApple = 0
        /// How many of them each policy grants access, in the order of `policies`.
        public var entitled: [Int]
    }

    /// The policies that were compared.
    public let policies: [BillingRetryAccess]
    /// One line for each state that a subscription is in, the most frequent first.
    public private(set) var lines: [Line] = []

    /// Folds every subscription under every policy and looks at an instant.
    ///
    /// - Throws: `EventLogError`, `ReadModelError`.
    public init(
        _ policies: [BillingRetryAccess],
        at instant: Timestamp,
        _ connection: Connection
    ) throws {
        self.policies = policies
        let registry = try AppRegistry(connection)
        let withdrawals = try Withdrawals(connection)
        let reader = LogReader(connection)
        var found: [String: Line] = [:]
        for slice in try reader.slices() {
            try reader.forEachStream(in: slice) { key, events in
                let withdrawn = withdrawals.concerning(events, of: key)
                let answers = policies.compactMap { policy in
                    var rules = registry.rules(of: key.appID)
                    rules.policies = [AccessPolicy(billingRetryAccess: policy)]
                    var fold = SubscriptionFold(rules: rules)
                    return fold.history(of: events, withdrawals: withdrawn).timeline.first {
                        $0.contains(instant)
                    }
                }
                guard let first = answers.first else { return }
                let empty = Line(
                    state: first.state.name,
                    entitled: Array(repeating: 0, count: policies.count)
                )
                var line = found[first.state.name] ?? empty
                line.subscriptions += 1
                if first.entitledApple { line.entitledApple += 1 }
                for (index, answer) in answers.enumerated() where answer.entitled {
                    line.entitled[index] += 1
                }
                found[first.state.name] = line
            }
        }
        lines = found.values.sorted {
            ($1.subscriptions, $0.state) < ($0.subscriptions, $1.state)
        }
    }
}
