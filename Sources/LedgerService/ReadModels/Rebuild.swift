internal import Dispatch
internal import EventLog
public import Ledger
public import Postgres
internal import Projections
internal import Synchronization

/// Makes the rows of read models anew from the log, beside the live ones, and swaps them in.
///
/// Readers never wait and never see a mixture: the views look the generation up, and the swap is
/// one UPDATE of that. Killed at any moment it leaves the live generation as it was; what it left
/// half-made, the next rebuild removes.
public final class Rebuild: Sendable {
    /// What a rebuild did.
    public struct Report: Hashable, Sendable {
        /// How many events were read.
        public var events: Int64 = 0
        /// How many streams were folded.
        public var streams: Int64 = 0
        /// How long it took.
        public var seconds: Double = 0
        /// What was built, by read model.
        public var readModels: [ReadModel] = []
        /// The subscriptions that are too long to be folded: they have no rows and are parked.
        public var tooLong: [SubscriptionKey] = []
        /// Where the time went.
        public var times = Times()

        /// One read model that was built.
        public struct ReadModel: Hashable, Sendable {
            /// Its name.
            public var name: String
            /// The generation that the views show now.
            public var generation: Int32
            /// The digest of its rows, which also counts them.
            public var digest: Digest
        }
    }

    /// Where a rebuild's time went, in seconds; where workers share a part, those of all of them.
    public struct Times: Hashable, Sendable {
        /// Waiting for facts and decoding them.
        public var read: Double = 0
        /// Sorting and folding them, and encoding the rows.
        public var fold: Double = 0
        /// Writing rows, with their digest.
        public var write: Double = 0
        /// Reading, folding and writing, by the clock on the wall.
        public var load: Double = 0
        /// Building keys, by the clock on the wall.
        public var keys: Double = 0
        /// Folding what came meanwhile, by the clock on the wall.
        public var catchUp: Double = 0
        /// The swap, with projectors shut out.
        public var swap: Double = 0

        /// Adds a worker's.
        mutating func add(_ other: Times) {
            read += other.read
            fold += other.fold
            write += other.write
            load += other.load
            keys += other.keys
            catchUp += other.catchUp
            swap += other.swap
        }
    }

    /// How far a rebuild has come.
    public struct Progress: Hashable, Sendable {
        /// What it does.
        public var phase: Phase
        /// How many events were read.
        public var events: Int64
        /// How many there are to read.
        public var eventsTotal: Int64
        /// How long it has run.
        public var seconds: Double

        /// The phases, in order.
        public enum Phase: String, Hashable, Sendable {
            /// Reading, folding and writing.
            case fold
            /// Building keys.
            case keys
            /// Folding what came meanwhile.
            case catchUp = "catch_up"
            /// Comparing with the live rows.
            case verify
            /// Filling `ledger.fact` anew.
            case redecode
        }

        /// Events read a second.
        public var rate: Double { seconds > 0 ? Double(events) / seconds : 0 }
        /// How long the reading will still take; nil at the beginning.
        public var secondsLeft: Double? {
            rate > 0 ? Double(max(0, eventsTotal - events)) / rate : nil
        }
    }

    /// With at most so many streams behind, the swap is made.
    static let swapBehindMax = 200

    /// How many bytes of rows a worker gathers before it writes them, unless memory is short.
    static let flushBytesMax = 4 << 20

    let projections: [any Projection.Type]
    let workerCount: Int
    /// How many bytes of rows a worker gathers before it writes them.
    let flushBytes: Int
    let connect: @Sendable () throws -> Connection
    /// Whether a rebuild that fails removes what it made; one that is killed cannot.
    let cleansUp: Bool

    /// Checks the names and prepares a rebuild.
    ///
    /// - Parameters:
    ///   - names: the read models to build; all of them where none is named.
    ///   - workers: how many slices of the log are folded at a time.
    ///   - memoryBytes: how much memory the workers' rows may take together; a subscription's rows
    ///     are never divided.
    ///   - connect: opens a session that may write the read models; each worker has two.
    /// - Throws: `.unknownProjection` with the names that there are.
    public convenience init(
        _ names: [String] = [],
        workers: Int = 2,
        memoryBytes: Int = 256 << 20,
        connect: @escaping @Sendable () throws -> Connection
    ) throws(ReadModelError) {
        try self.init(
            names,
            workers: workers,
            memoryBytes: memoryBytes,
            cleansUp: true,
            connect: connect
        )
    }

    init(
        _ names: [String] = [],
        workers: Int = 2,
        memoryBytes: Int = 256 << 20,
        cleansUp: Bool,
        connect: @escaping @Sendable () throws -> Connection
    ) throws(ReadModelError) {
        self.cleansUp = cleansUp
        projections = try ReadModels.projections(named: names)
        workerCount = max(1, workers)
        // A buffer grows by doubling, and what it grew from is there until it has.
        flushBytes = min(Self.flushBytesMax, max(1 << 16, memoryBytes / workerCount / 4))
        self.connect = connect
    }

    /// Runs the rebuild to its end.
    ///
    /// - Parameters:
    ///   - shouldStop: asked now and then from any of the workers' threads.
    ///   - progress: told now and then, by one thread at a time.
    /// - Returns: what was done.
    /// - Throws: `.rebuildRuns` when another rebuild of one of the read models runs,
    ///   `.unreadableEvent` at the first event that cannot be read, `.stopped` when asked to stop.
    ///   The live rows are then as they were.
    public func run(
        shouldStop: @escaping @Sendable () -> Bool = { false },
        progress: @escaping @Sendable (Progress) -> Void = { _ in }
    ) throws(ReadModelError) -> Report {
        try readModels("rebuild") {
            let watch = ContinuousClock.now
            let lock = try RebuildLock(projections.map { $0.name }, connect())
            let connection = try connect()
            try Retirement.dropUnfinished(projections, connection)
            let registry = try AppRegistry(connection)
            let from = try Self.head(connection)
            let build = Build(
                generations: try start(from: from, in: "read_model", connection),
                registry: registry,
                eventsTotal: from,
                start: watch,
                shouldStop: shouldStop,
                progress: progress
            )
            do {
                try fold(build, connection)
                try buildKeys(build)
                try catchUp(build, from: from, connection)
            } catch {
                // Best effort: what stays is removed by the next rebuild.
                if cleansUp { try? Retirement.dropUnfinished(projections, connect()) }
                throw error
            }
            lock.release()
            try? Retirement.dropRetired(connection, attempts: 10)
            return build.report(seconds: (ContinuousClock.now - watch).seconds)
        }
    }

    static func head(_ connection: Connection) throws -> Int64 {
        try connection.query("select position from ledger.head").int(0, 0) ?? 0
    }

    /// Gives every read model a new generation, empty and shown by no view.
    func start(
        from position: Int64,
        in schema: String,
        _ connection: Connection
    ) throws -> [Generation] {
        try projections.map { projection in
            let rows = try connection.query(
                """
                insert into \(schema).generation
                    (projection, generation, version, decoder, state, from_position)
                select $1, coalesce(max(generation), 0) + 1, $2, $3, 'building', $4
                from \(schema).generation where projection = $1
                returning generation
                """,
                [
                    .text(projection.name), .int(Int64(projection.version)),
                    .int(Int64(FactSource.current.version)), .int(position),
                ]
            )
            let number = Int32(rows.int(0, 0) ?? 0)
            let generation = Generation(projection, number, in: schema)
            try generation.createTables(connection)
            return generation
        }
    }

    /// Builds the keys of all tables, some at a time.
    func buildKeys(_ build: Build) throws {
        try build.enter(.keys)
        let start = ContinuousClock.now
        defer { build.add(Times(keys: (ContinuousClock.now - start).seconds)) }
        let tables = build.generations.flatMap { generation in
            generation.tables.map { (generation, $0) }
        }
        try build.onThreads(min(workerCount, tables.count), jobs: tables.count) { jobs in
            let connection = try self.connect()
            while let job = jobs() {
                let (generation, table) = tables[job]
                try generation.attach(table, connection)
            }
        }
    }
}

extension Duration {
    /// The duration in seconds.
    var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
