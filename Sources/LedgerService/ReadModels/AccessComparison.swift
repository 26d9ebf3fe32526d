public import EventLog
public import Ledger
public import Postgres

/// Folds the whole log anew and says whose access would differ from the live rows; nothing is
/// written.
///
/// The rules are those that the log holds, or others that are only thought of: a change of policy
/// can be looked at before it is recorded.
public struct AccessComparison {
    /// Other rules to fold with, by app; the others keep theirs.
    public var rules: [AppKey: AppRules] = [:]
    /// Another policy to fold with, by app; the others keep theirs.
    public var policies: [AppKey: [AccessPolicy]] = [:]
    /// Whether subscriptions with news that the live rows do not hold yet are compared too; what
    /// the news changes cannot be told from what the rules change.
    public var comparesStale = false
    /// The instant for which the summary says how many are concerned at it.
    public var at: Timestamp

    /// How many subscriptions are compared at a time.
    static let batchSize = 1000

    private let connect: () throws -> Connection

    /// Prepares a comparison over two sessions that may read the log and the read models.
    public init(at instant: Timestamp, connect: @escaping () throws -> Connection) {
        at = instant
        self.connect = connect
    }

    /// Compares every subscription; both sides are of one snapshot of the database.
    ///
    /// - Parameters:
    ///   - shouldStop: asked now and then.
    ///   - progress: told how many subscriptions were compared, and of how many.
    ///   - body: told each difference, in no particular order of subscriptions.
    /// - Returns: the counts.
    /// - Throws: `ReadModelError`, and what `body` throws.
    public func run(
        shouldStop: () -> Bool = { false },
        progress: (Int64, Int64) -> Void = { _, _ in },
        _ body: (AccessDifference) throws -> Void
    ) throws -> AccessDifferenceSummary {
        let events = try connect()
        let rows = try connect()
        return try events.transaction("begin isolation level repeatable read read only") { events in
            let snapshot = try events.query("select pg_export_snapshot()").text(0, 0) ?? ""
            return try rows.transaction("begin isolation level repeatable read read only") {
                rows in
                try rows.execute("set transaction snapshot '\(snapshot)'")
                return try compare(events, rows, shouldStop, progress, body)
            }
        }
    }

    private func compare(
        _ events: Connection,
        _ rows: Connection,
        _ shouldStop: () -> Bool,
        _ progress: (Int64, Int64) -> Void,
        _ body: (AccessDifference) throws -> Void
    ) throws -> AccessDifferenceSummary {
        let reader = LogReader(events)
        var apps = try AppRegistry(events).apps
        for id in apps.keys {
            if let rules = apps[id].flatMap({ rules[$0.key] }) { apps[id]?.rules = rules }
            if let policies = apps[id].flatMap({ policies[$0.key] }) {
                apps[id]?.rules.policies = policies
            }
        }
        let withdrawals = try Withdrawals(events)
        var folds = apps.mapValues { SubscriptionFold(rules: $0.rules) }
        let total = try Self.count(rows)
        var summary = AccessDifferenceSummary()
        var batch: [SubscriptionKey: Fresh] = [:]
        func flush() throws {
            let live = try LiveAccess(of: Array(batch.keys), rows)
            for (key, fresh) in batch.sorted(by: { $0.key < $1.key }) {
                guard let app = apps[key.appID]?.key else { continue }
                if live.stale.contains(key) {
                    summary.stale += 1
                    if !comparesStale { continue }
                }
                let differences = AccessStretch.differences(
                    old: live.stretches[key] ?? [],
                    new: fresh.stretches
                )
                .map { AccessDifference(key, app, fresh.owner, $0) }
                summary.add(differences, at: at)
                for difference in differences { try body(difference) }
            }
            batch.removeAll(keepingCapacity: true)
            progress(comparesStale ? summary.compared : summary.compared + summary.stale, total)
            if shouldStop() { throw ReadModelError(.stopped, "the comparison was stopped") }
        }
        for slice in try reader.slices(of: "ledger.fact") {
            try reader.forEachStream(
                in: slice,
                atMost: Projector.streamEventsMax + 1
            ) { key, facts in
                // What is too long is not folded by anybody.
                guard facts.count <= Projector.streamEventsMax else { return }
                guard
                    let history = folds[key.appID]?.history(
                        of: facts,
                        withdrawals: withdrawals.concerning(facts, of: key)
                    )
                else { return }
                guard !history.timeline.isEmpty else { return }
                batch[key] = Fresh(history)
                if batch.count >= Self.batchSize { try flush() }
            }
        }
        try flush()
        return summary
    }

    private static func count(_ connection: Connection) throws -> Int64 {
        try connection.query(
            """
            select count(*) from read_model.subscription where generation = (
                select generation from read_model.current where projection = 'entitlement')
            """
        ).int(0, 0) ?? 0
    }
}

/// What a fresh fold says of one subscription.
private struct Fresh {
    var stretches: [AccessStretch]
    var owner: UniqueID?

    init(_ history: History) {
        stretches = history.timeline.map { AccessStretch($0) }.filter { stretch in
            stretch.until.map { stretch.from < $0 } ?? true
        }
        owner = history.ownership.last?.owner
    }
}

/// What the live rows say of some subscriptions.
private struct LiveAccess {
    var stretches: [SubscriptionKey: [AccessStretch]] = [:]
    /// Those that have events which the rows do not hold yet.
    var stale: Set<SubscriptionKey> = []

    init(of keys: [SubscriptionKey], _ connection: Connection) throws {
        guard !keys.isEmpty else { return }
        let streams: [Bind] = [.textArray(Set(keys.map(\.stream)).sorted())]
        let rows = try connection.query(
            """
            select app_id, stream, valid_from, valid_until, entitled, state, cause
            from read_model.entitlement_interval
            where stream = any($1) and generation = (
                select generation from read_model.current where projection = 'entitlement')
            order by valid_from
            """,
            streams
        )
        for row in 0..<rows.count {
            stretches[Self.key(rows, row), default: []].append(
                AccessStretch(
                    from: rows.timestamp(row, 2) ?? .earliest,
                    until: rows.timestamp(row, 3),
                    entitled: rows.bool(row, 4) ?? false,
                    state: rows.text(row, 5) ?? "",
                    cause: rows.text(row, 6)
                )
            )
        }
        let marks = try connection.query(
            "select distinct app_id, stream from ledger.mark where stream = any($1)",
            streams
        )
        for row in 0..<marks.count { stale.insert(Self.key(marks, row)) }
    }

    private static func key(_ rows: Rows, _ row: Int) -> SubscriptionKey {
        SubscriptionKey(appID: Int32(rows.int(row, 0) ?? 0), stream: rows.text(row, 1) ?? "")
    }
}

extension AccessDifference {
    fileprivate init(
        _ key: SubscriptionKey,
        _ app: AppKey,
        _ owner: UniqueID?,
        _ stretch: AccessStretch.Difference
    ) {
        originalTransactionID = key.stream
        self.app = app
        self.owner = owner
        gains = stretch.gains
        state = stretch.state
        cause = stretch.cause
        from = stretch.from
        until = stretch.until
    }
}
