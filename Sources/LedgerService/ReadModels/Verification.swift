public import EventLog
public import Ledger
public import Postgres
internal import Projections
internal import Synchronization

/// Folds the log anew and compares each subscription's rows with the live ones; nothing is written.
public final class Verification: Sendable {
    /// A subscription whose live rows are not those that its events give.
    public struct Difference: Hashable, Sendable {
        /// The subscription.
        public var key: SubscriptionKey
        /// The app; nil where the log knows none of that number.
        public var app: AppKey?
        /// The read model.
        public var readModel: String
        /// The digest of the rows that the events give.
        public var fresh: Digest
        /// The digest of the rows that the views show.
        public var live: Digest
    }

    /// What was compared.
    public struct Report: Hashable, Sendable {
        /// How many events were read.
        public var events: Int64 = 0
        /// How many subscriptions were compared, in how many read models.
        public var streams: Int64 = 0
        /// The read models.
        public var readModels: [String] = []
        /// How many subscriptions were left out: they have news, or cannot be folded.
        public var stale: Int64 = 0
        /// How many differ; one that does in two read models counts twice.
        public var different: Int64 = 0
        /// How long it took.
        public var seconds: Double = 0
    }

    private struct State {
        var compared: Int64 = 0
        var stale: Int64 = 0
        var different: Int64 = 0
    }

    /// How many subscriptions a worker compares at a time.
    static let batchSize = 500

    private let projections: [any Projection.Type]
    private let workerCount: Int
    private let connect: @Sendable () throws -> Connection

    /// Checks the names and prepares a comparison.
    ///
    /// - Parameters:
    ///   - names: the read models; all of them where none is named.
    ///   - workers: how many slices of the log are folded at a time.
    ///   - connect: opens a session that may read the log and the read models.
    /// - Throws: `.unknownProjection` with the names that there are.
    public init(
        _ names: [String] = [],
        workers: Int = 2,
        connect: @escaping @Sendable () throws -> Connection
    ) throws(ReadModelError) {
        projections = try ReadModels.projections(named: names)
        workerCount = max(1, workers)
        self.connect = connect
    }

    /// Compares everything, as of one snapshot of the database.
    ///
    /// - Parameters:
    ///   - shouldStop: asked now and then from any of the workers' threads.
    ///   - progress: told now and then, by one thread at a time.
    ///   - body: told each difference, by one thread at a time and in no particular order.
    /// - Returns: the counts.
    /// - Throws: `.outOfDate` where the live rows are of another version of this program,
    ///   `.unreadableEvent` at the first event that cannot be read, `.stopped` when asked to stop.
    public func run(
        shouldStop: @escaping @Sendable () -> Bool = { false },
        progress: @escaping @Sendable (Rebuild.Progress) -> Void = { _ in },
        _ body: @escaping @Sendable (Difference) -> Void
    ) throws(ReadModelError) -> Report {
        try readModels("verify the read models") {
            let watch = ContinuousClock.now
            let connection = try connect()
            return try connection.transaction(Self.begin) { connection in
                let snapshot = try connection.query("select pg_export_snapshot()").text(0, 0) ?? ""
                let build = Build(
                    generations: try live(connection),
                    registry: try AppRegistry(connection),
                    eventsTotal: try Rebuild.head(connection),
                    start: watch,
                    shouldStop: shouldStop,
                    progress: progress
                )
                let state = Mutex(State())
                let stale = try Self.stale(connection)
                let tell: @Sendable ([Difference]) -> Void = { differences in
                    state.withLock { state in
                        state.different += Int64(differences.count)
                        for difference in differences { body(difference) }
                    }
                }
                try build.enter(.verify)
                let withdrawals = try Withdrawals(connection)
                let slices = try LogReader(connection).stretches()
                try build.onThreads(min(workerCount, slices.count), jobs: slices.count) { next in
                    let sessions = (try self.joined(snapshot), try self.joined(snapshot))
                    var batch = FoldedBatch(build, withdrawals, stale, sessions.1)
                    while let job = next() {
                        try LogReader(sessions.0).forEachStream(
                            in: slices[job],
                            atMost: Projector.streamEventsMax + 1
                        ) { key, events in
                            if try batch.add(events, of: key) { tell(try batch.differences()) }
                        }
                    }
                    tell(try batch.differences())
                    state.withLock {
                        $0.compared += batch.compared
                        $0.stale += batch.skipped
                    }
                }
                tell(try Self.unfounded(build, except: stale, connection))
                let report = build.report(seconds: 0)
                return state.withLock {
                    Report(
                        events: report.events,
                        streams: $0.compared,
                        readModels: build.generations.map(\.projection),
                        stale: $0.stale,
                        different: $0.different,
                        seconds: (ContinuousClock.now - watch).seconds
                    )
                }
            }
        }
    }

    private static let begin = "begin isolation level repeatable read read only"

    private func joined(_ snapshot: String) throws -> Connection {
        let connection = try connect()
        try connection.execute("\(Self.begin); set transaction snapshot '\(snapshot)'")
        return connection
    }

    private func live(_ connection: Connection) throws -> [Generation] {
        let current = try Current.read(connection)
        return try projections.map { projection in
            let row = current.first { $0.projection == projection.name }
            guard let row, row.version == projection.version,
                row.decoder == FactSource.current.version
            else {
                throw ReadModelError(
                    .outOfDate,
                    "the rows of \(projection.name) were not made by this version of the program; "
                        + "`subledger rebuild` makes new ones"
                )
            }
            return Generation(projection, row.generation)
        }
    }

    /// The subscriptions of which the live rows need not show the newest event.
    private static func stale(_ connection: Connection) throws -> Set<SubscriptionKey> {
        let marked = try connection.query(
            """
            select stream, app_id from ledger.mark
            union select stream, app_id from read_model.parked
            """
        )
        return Set(keys(marked) + keys(try Withdrawals.marked(connection)))
    }

    /// Rows of subscriptions of which the log has no event that could be folded.
    private static func unfounded(
        _ build: Build,
        except stale: Set<SubscriptionKey>,
        _ connection: Connection
    ) throws -> [Difference] {
        var differences: [Difference] = []
        for generation in build.generations {
            var surplus: Set<SubscriptionKey> = []
            for table in generation.tables {
                let rows = try connection.query(
                    """
                    select distinct t.stream, t.app_id from \(generation.partition(table)) t
                    where not exists (
                        select from ledger.fact f where f.stream = t.stream
                            and f.app_id = t.app_id and f.fact_at is not null
                    )
                    """
                )
                surplus.formUnion(keys(rows))
            }
            for key in surplus.subtracting(stale).sorted() {
                differences.append(
                    Difference(
                        key: key,
                        app: build.registry.apps[key.appID]?.key,
                        readModel: generation.projection,
                        fresh: Digest(),
                        live: try FoldedBatch.liveDigests([key], generation, connection)[key]
                            ?? Digest()
                    )
                )
            }
        }
        return differences
    }

    private static func keys(_ rows: Rows) -> [SubscriptionKey] {
        (0..<rows.count).map {
            SubscriptionKey(appID: Int32(rows.int($0, 1) ?? 0), stream: rows.text($0, 0) ?? "")
        }
    }
}

/// Some subscriptions that were folded and are to be compared.
private struct FoldedBatch {
    private(set) var compared: Int64 = 0
    private(set) var skipped: Int64 = 0

    private let build: Build
    private let stale: Set<SubscriptionKey>
    private let connection: Connection
    private var folder: StreamFolder
    private var keys: [SubscriptionKey] = []
    private var events: Int64 = 0

    init(
        _ build: Build,
        _ withdrawals: Withdrawals,
        _ stale: Set<SubscriptionKey>,
        _ connection: Connection
    ) {
        self.build = build
        self.stale = stale
        self.connection = connection
        folder = StreamFolder(build.generations, build.registry, withdrawals)
    }

    /// Folds a subscription; true where the batch is full.
    mutating func add(_ read: [Event], of key: SubscriptionKey) throws -> Bool {
        events += Int64(read.count)
        // What is too long is parked with the next news, and has no rows or old ones until then.
        guard !stale.contains(key), read.count <= Projector.streamEventsMax else {
            skipped += 1
            return false
        }
        folder.add(read, of: key)
        keys.append(key)
        return keys.count >= Verification.batchSize
            || folder.byteCount >= Rebuild.flushBytesMax
    }

    /// Compares what was folded and begins anew.
    mutating func differences() throws -> [Verification.Difference] {
        var differences: [Verification.Difference] = []
        for (index, generation) in build.generations.enumerated() {
            let fresh = Self.digests(of: folder.rows[index], generation)
            let live = try Self.liveDigests(keys, generation, connection)
            for key in keys where fresh[key] != live[key] {
                differences.append(
                    Verification.Difference(
                        key: key,
                        app: build.registry.apps[key.appID]?.key,
                        readModel: generation.projection,
                        fresh: fresh[key] ?? Digest(),
                        live: live[key] ?? Digest()
                    )
                )
            }
        }
        try build.add(events: events, streams: Int64(keys.count))
        compared += Int64(keys.count)
        events = 0
        keys.removeAll(keepingCapacity: true)
        folder.removeAll()
        return differences
    }

    private static func digests(
        of rows: ProjectedRows,
        _ generation: Generation
    ) -> [SubscriptionKey: Digest] {
        var digests: [SubscriptionKey: Digest] = [:]
        for (place, table) in rows.tables.enumerated() {
            for row in table.starts.indices {
                let bytes = table.buffer.bytes[table.range(row)]
                let key = RowKey(bytes, of: generation.tables[place]).decoded.key
                digests[key, default: Digest()].add(bytes, table: place)
            }
        }
        return digests
    }

    static func liveDigests(
        _ keys: [SubscriptionKey],
        _ generation: Generation,
        _ connection: Connection
    ) throws -> [SubscriptionKey: Digest] {
        var digests: [SubscriptionKey: Digest] = [:]
        guard !keys.isEmpty else { return digests }
        for (place, table) in generation.tables.enumerated() {
            let stored = try RowDifference.stored(table, of: Set(keys), in: generation, connection)
            for (row, bytes) in stored {
                digests[row.decoded.key, default: Digest()].add(bytes[...], table: place)
            }
        }
        return digests
    }
}
