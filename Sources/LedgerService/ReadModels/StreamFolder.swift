internal import Ledger
internal import Projections

/// Folds streams and adds their rows: the one function behind live projecting and rebuilding.
struct StreamFolder {
    /// The generations that rows are made for.
    let generations: [Generation]
    /// What guardians withdrew of the customers whose streams are folded.
    var withdrawals: Withdrawals
    /// The rows made so far, one entry for each generation.
    private(set) var rows: [ProjectedRows]

    private let projections: [any Projection]
    private let registry: AppRegistry
    private var folds: [Int32: SubscriptionFold] = [:]
    /// Of the stream folded last; its memory serves the next one.
    private var history = History()

    init(
        _ generations: [Generation],
        _ registry: AppRegistry,
        _ withdrawals: Withdrawals = Withdrawals()
    ) {
        self.withdrawals = withdrawals
        self.generations = generations
        self.registry = registry
        rows = generations.map { ProjectedRows($0.tables) }
        projections = generations.compactMap {
            Catalogue.projection(named: $0.projection)?.init()
        }
    }

    /// How many bytes of rows wait.
    var byteCount: Int { rows.reduce(0) { $0 + $1.byteCount } }

    /// Folds a whole stream, in whatever order its events are, and adds its rows.
    mutating func add(_ events: [Event], of key: SubscriptionKey) {
        let rules = registry.rules(of: key.appID)
        folds[key.appID, default: SubscriptionFold(rules: rules)].fold(
            events,
            withdrawals: withdrawals.concerning(events, of: key),
            into: &history
        )
        let subject = Subject(appID: key.appID, stream: key.stream, rules: rules)
        for index in projections.indices {
            projections[index].write(history, of: subject, into: &rows[index])
        }
    }

    /// Empties the rows and keeps their memory.
    mutating func removeAll() {
        for index in rows.indices { rows[index].removeAll() }
    }
}
