public import EventLog
public import Postgres
internal import Synchronization

/// Fills `ledger.fact` anew from the evidence, some slices at a time.
public final class Redecode: Sendable {
    private let workerCount: Int
    private let source: FactSource
    private let connect: @Sendable () throws -> Connection

    /// Prepares it.
    ///
    /// - Parameters:
    ///   - workers: how many slices are filled at a time.
    ///   - connect: opens a session of the log's owner.
    public convenience init(
        workers: Int = 2,
        connect: @escaping @Sendable () throws -> Connection
    ) {
        self.init(workers: workers, source: .current, connect: connect)
    }

    init(
        workers: Int = 2,
        source: FactSource,
        connect: @escaping @Sendable () throws -> Connection
    ) {
        workerCount = max(1, workers)
        self.source = source
        self.connect = connect
    }

    /// Fills every row that another decoder has filled.
    ///
    /// - Parameters:
    ///   - shouldStop: asked now and then from any of the workers' threads.
    ///   - progress: told now and then, by one thread at a time.
    /// - Returns: what was done.
    /// - Throws: `.unreadableEvent` at the first event that cannot be read, `.rebuildRuns` while
    ///   another one or a migration runs, `.stopped` when asked to stop; what was filled before
    ///   stays and is right.
    public func run(
        shouldStop: @escaping @Sendable () -> Bool = { false },
        progress: @escaping @Sendable (Rebuild.Progress) -> Void = { _ in }
    ) throws(ReadModelError) -> Redecoding.Report {
        try readModels("redecode") {
            let connection = try connect()
            try Self.lock(connection)
            let build = Build(
                generations: [],
                registry: try AppRegistry(connection),
                eventsTotal: try Redecoding(connection, source: source).pending(),
                start: .now,
                shouldStop: shouldStop,
                progress: progress
            )
            try build.enter(.redecode)
            let reader = LogReader(connection)
            let skipped = try reader.skippedPositions()
            let slices = try reader.slices(of: "ledger.fact")
            let total = Mutex(Redecoding.Report())
            try build.onThreads(min(workerCount, slices.count), jobs: slices.count) { next in
                let redecoding = Redecoding(try self.connect(), source: self.source)
                while let job = next() {
                    var failure: ReadModelError?
                    let report = try redecoding.run(
                        slice: slices[job].index,
                        skipping: skipped,
                        shouldStop: { failure != nil }
                    ) { count in
                        do throws(ReadModelError) {
                            try build.add(events: Int64(count), streams: 0)
                        } catch {
                            failure = error
                        }
                    }
                    if let failure { throw failure }
                    total.withLock {
                        $0.rows += report.rows
                        $0.skipped += report.skipped
                    }
                }
            }
            try connection.execute("commit")
            return total.withLock { $0 }
        }
    }

    /// Keeps migrations and a second one away until the session ends.
    private static func lock(_ connection: Connection) throws {
        try connection.execute("set idle_in_transaction_session_timeout = 0; begin")
        let rows = try connection.query("select from ledger.schema_lock for update skip locked")
        guard rows.count == 1 else {
            throw ReadModelError(
                .rebuildRuns,
                "another redecode or a migration runs; wait until it is done"
            )
        }
    }
}
