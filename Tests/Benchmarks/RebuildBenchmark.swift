internal import AppStore
internal import Dispatch
internal import Glibc
internal import Ledger
internal import LedgerService
public import Postgres
internal import Projections
internal import Synchronization

/// How fast read models are rebuilt and projected, against raw COPYs of the same tables.
///
/// The bound is what moving the bytes costs and nothing else: COPY of all facts out to nobody,
/// then COPY of as many result rows into tables without keys, with as many sessions and in the
/// same run. The log is made by SQL (`SyntheticLog`), since only its facts are read.
public struct RebuildBenchmark: Sendable {
    /// What was measured; seconds unless said otherwise.
    public struct Result: Hashable, Sendable {
        /// How many events the log has.
        public var events: Int64 = 0
        /// How many subscriptions the log has.
        public var subscriptions: Int64 = 0
        /// How many rows the read models have.
        public var rows: Int64 = 0
        /// The whole rebuild, keys and swap included.
        public var rebuild = 0.0
        /// COPY of the facts out.
        public var copyOut = 0.0
        /// COPY of the rows in.
        public var copyIn = 0.0
        /// Folding the same streams live, one transaction for some hundreds of them.
        public var project = 0.0
        /// How many streams were folded live.
        public var projected = 0
        /// Whether the live rows had the digest of the rebuilt ones.
        public var digestsAgree = false
        /// The most memory that the process ever had, in MiB.
        public var peakMebibytes = 0

        /// How near the rebuild comes to the bound, 1 being the bound itself.
        public var ratio: Double { (copyOut + copyIn) / rebuild }
    }

    private let connect: @Sendable () throws -> Connection
    private let workers: Int

    /// Prepares a benchmark in a database of its own, which has the schema and no events.
    public init(workers: Int = 2, connect: @escaping @Sendable () throws -> Connection) {
        self.workers = workers
        self.connect = connect
    }

    /// Makes a log of ten events for each subscription, and measures.
    public func run(
        subscriptions: Int,
        progress: (String) -> Void = { _ in }
    ) throws -> Result {
        let connection = try connect()
        var result = Result()
        progress("making \(subscriptions * 10) events")
        try SyntheticLog.fill(connection, subscriptions: subscriptions)
        progress("rebuilding")
        let report = try Rebuild(workers: workers, connect: connect).run()
        result.events = report.events
        result.subscriptions = report.streams
        result.rows = report.readModels.reduce(0) { $0 + $1.digest.rows }
        result.rebuild = report.seconds
        result.peakMebibytes = Self.peakMebibytes()
        progress("raw COPY out and in")
        result.copyOut = try copyOut(connection)
        result.copyIn = try copyIn(connection)
        progress("projecting live")
        try project(connection, &result, expecting: report)
        return result
    }

    /// The result in lines for people.
    public static func text(_ result: Result) -> String {
        func rate(_ count: Int64, _ seconds: Double) -> String {
            "\(Int(Double(count) / max(seconds, 1e-9)))/s"
        }
        func fixed(_ value: Double) -> String {
            let hundredths = Int((value * 100).rounded())
            let digits = hundredths % 100
            return "\(hundredths / 100).\(digits < 10 ? "0" : "")\(digits)"
        }
        return """
            events \(result.events), subscriptions \(result.subscriptions), rows \(result.rows)
            rebuild        \(fixed(result.rebuild)) s  \(rate(result.events, result.rebuild)) events
            raw COPY out   \(fixed(result.copyOut)) s  \(rate(result.events, result.copyOut)) events
            raw COPY in    \(fixed(result.copyIn)) s  \(rate(result.rows, result.copyIn)) rows
            rebuild / (COPY out + in)  \(fixed(1 / result.ratio)) of the time, \
            \(Int((result.ratio * 100).rounded())) % of the rate
            live           \(fixed(result.project)) s  \
            \(rate(Int64(result.projected), result.project)) streams
            digests of live and rebuilt rows \(result.digestsAgree ? "agree" : "DIFFER")
            peak memory    \(result.peakMebibytes) MiB

            """
    }
}

extension RebuildBenchmark {
    private func copyOut(_ connection: Connection) throws -> Double {
        let rows = try connection.query("select part from ledger.slices('ledger.fact')")
        let parts = (0..<rows.count).map { rows.text($0, 0) ?? "" }
        return try timed(jobs: parts.count) { job, connection in
            try connection.copyOut("copy \(parts[job]) to stdout (format binary)") {
                (_: inout BinaryRow) throws(PostgresError) in
            }
        }
    }

    /// Sends a sample of a table's rows again and again, until there are as many as it has.
    private func copyIn(_ connection: Connection) throws -> Double {
        var seconds = 0.0
        for projection in Catalogue.all {
            let current = try connection.query(
                "select generation from read_model.current where projection = $1",
                [.text(projection.name)]
            )
            let generation = current.int(0, 0) ?? 0
            for table in projection.tables {
                let source = "read_model.\(table.name)_g\(generation)"
                let sink = "read_model.benchmark_\(table.name)"
                let columns = table.columns.joined(separator: ", ")
                let total = try connection.query("select count(*) from \(source)").int(0, 0) ?? 0
                let sample = try sampleRows(of: source, columns, connection)
                guard sample.rowCount > 0 else { continue }
                try connection.execute(
                    "create table \(sink) (like \(source) including defaults)"
                )
                let rounds = Int(total) / sample.rowCount + 1
                let share = Double(total) / Double(rounds * sample.rowCount)
                seconds +=
                    share
                    * (try timed(jobs: rounds) { _, connection in
                        try connection.copyIn(
                            "copy \(sink) (\(columns)) from stdin (format binary)"
                        ) { try $0.write(sample) }
                    })
                try connection.execute("drop table \(sink)")
            }
        }
        return seconds
    }

    private func sampleRows(
        of source: String,
        _ columns: String,
        _ connection: Connection
    ) throws -> RowBuffer {
        let rows = try connection.query("select \(columns) from \(source) limit 10000")
        var sample = RowBuffer()
        for row in 0..<rows.count { sample.row(encoded: rows.copyBytes(row)[...]) }
        return sample
    }

    private func project(
        _ connection: Connection,
        _ result: inout Result,
        expecting report: Rebuild.Report
    ) throws {
        // Everything is marked again, with rows that are missing, wrong, or as they shall be.
        try connection.execute(
            """
            insert into ledger.mark (stream, app_id, position)
            select stream, app_id, max(position) from ledger.fact
            group by stream, app_id order by stream, app_id limit 20000
            """
        )
        for name in Catalogue.all.flatMap({ $0.tables }).map(\.name) {
            try connection.execute(
                "delete from read_model.\(name) where stream in (select stream from ledger.mark)"
            )
        }
        let start = ContinuousClock.now
        result.projected = try Projector(connection).project().streams
        result.project = Self.seconds(since: start)
        result.digestsAgree = try report.readModels.allSatisfy {
            try Digest(ofLive: $0.name, connection) == $0.digest
        }
    }

    /// How long some sessions take to do the jobs together.
    private func timed(
        jobs count: Int,
        _ job: @Sendable (Int, Connection) throws -> Void
    ) throws -> Double {
        let next = Atomic(0)
        let failure = Mutex<(any Error)?>(nil)
        let start = ContinuousClock.now
        DispatchQueue.concurrentPerform(iterations: workers) { _ in
            do {
                let connection = try connect()
                while true {
                    let number = next.add(1, ordering: .relaxed).oldValue
                    guard number < count else { return }
                    try job(number, connection)
                }
            } catch {
                failure.withLock { $0 = $0 ?? error }
            }
        }
        if let failure = failure.withLock({ $0 }) { throw failure }
        return Self.seconds(since: start)
    }

    private static func peakMebibytes() -> Int {
        var usage = rusage()
        guard unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0 else { return 0 }
        return usage.ru_maxrss / 1024
    }

    private static func seconds(since start: ContinuousClock.Instant) -> Double {
        let parts = (ContinuousClock.now - start).components
        return Double(parts.seconds) + Double(parts.attoseconds) / 1e18
    }
}
