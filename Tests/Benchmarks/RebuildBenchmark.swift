internal import EventLog
internal import Ledger
public import LedgerService
public import Postgres
internal import Projections

/// How fast read models are rebuilt and projected, against raw COPYs of the same tables.
///
/// The bound is what moving the bytes and building the keys costs and nothing else: COPY of all
/// facts out to nobody, COPY of as many result rows into tables without keys, and the same indexes
/// once more, with as many sessions and in the same run. The log is made by SQL (`SyntheticLog`),
/// since only its facts are read.
public struct RebuildBenchmark: Sendable {
    /// What is measured.
    public struct Options: Hashable, Sendable {
        /// How many subscriptions the log has, with ten events each.
        public var subscriptions = 20_000
        /// How the events lie on the streams.
        public var shape = SyntheticLog.Shape.even
        /// How many rebuilds are made.
        public var runs = 3
        /// How many slices are folded at a time.
        public var workers = 2
        /// Whether the database folds the same log itself, with window functions.
        public var foldsWithWindows = false
        /// Whether a rebuild follows after every fact was replaced, as `redecode` does.
        public var replacesFacts = false

        /// A small log.
        public init() {}
    }

    /// What one part of the work took.
    public struct Cost: Hashable, Sendable {
        /// Seconds on the wall.
        public var seconds = 0.0
        /// Seconds of processor time of this program.
        public var own = 0.0
        /// Seconds of processor time of the server.
        public var server = 0.0

        static func + (left: Cost, right: Cost) -> Cost {
            Cost(
                seconds: left.seconds + right.seconds,
                own: left.own + right.own,
                server: left.server + right.server
            )
        }
    }

    /// What was measured.
    public struct Result: Hashable, Sendable {
        /// How many events the log has.
        public var events: Int64 = 0
        /// How many subscriptions the log has.
        public var subscriptions: Int64 = 0
        /// How many rows the read models have.
        public var rows: Int64 = 0
        /// How many subscriptions were too long to be folded.
        public var tooLong = 0
        /// The rebuilds, in the order in which they were made.
        public var rebuilds: [Cost] = []
        /// Where the time of the last of them went.
        public var times: Rebuild.Times?
        /// A rebuild after every fact was replaced.
        public var afterReplacing: Cost?
        /// COPY of the facts out, as they lie.
        public var copyOut = Cost()
        /// The same in the order of the streams.
        public var copyInOrder = Cost()
        /// The same, decoded.
        public var decoding = Cost()
        /// COPY of the rows in.
        public var copyIn = Cost()
        /// The indexes of the read models.
        public var keys = Cost()
        /// The database's own fold.
        public var windows: Cost?
        /// Folding streams live, one transaction for some hundreds of them.
        public var project = Cost()
        /// How many streams were folded live.
        public var projected = 0
        /// Whether the live rows had the digest of the rebuilt ones.
        public var digestsAgree = false
        /// The most memory that the process had up to the end of the rebuilds, in MiB.
        public var peakMebibytes = 0
        /// What facts take on disk, with their indexes.
        public var factBytes: Int64 = 0
        /// What the rows of the read models take on disk, with their indexes.
        public var rowBytes: Int64 = 0

        /// The quickest of the rebuilds.
        public var best: Cost { rebuilds.min { $0.seconds < $1.seconds } ?? Cost() }
        /// What nothing can be quicker than.
        public var bound: Cost { copyOut + copyIn + keys }
    }

    let options: Options
    let connect: @Sendable () throws -> Connection

    /// Prepares a benchmark in a database of its own, which has the schema and no events.
    public init(_ options: Options, connect: @escaping @Sendable () throws -> Connection) {
        self.options = options
        self.connect = connect
    }

    /// Makes a log and measures.
    public func run(progress: (String) -> Void = { _ in }) throws -> Result {
        let connection = try connect()
        var result = Result()
        progress("making \(options.subscriptions * 10) events")
        try SyntheticLog.fill(
            connection,
            subscriptions: options.subscriptions,
            shape: options.shape
        )
        var report = try rebuild(&result, connection, progress)
        progress("raw COPY out, in order, decoded")
        try measureReading(&result, connection)
        progress("raw COPY in")
        result.copyIn = try copyIn(connection)
        progress("building the same keys")
        result.keys = try keys(connection)
        try measureSizes(&result, connection)
        if options.foldsWithWindows {
            progress("folding with window functions")
            result.windows = try cost {
                try connection.transaction { try WindowFold.fold(in: $0) }
            }
        }
        if options.replacesFacts {
            progress("replacing every fact")
            try SyntheticLog.replace(connection)
            progress("rebuilding")
            result.afterReplacing = try cost {
                report = try Rebuild(workers: options.workers, connect: connect).run()
            }
        }
        progress("projecting live")
        try project(connection, &result, expecting: report)
        return result
    }

    private func rebuild(
        _ result: inout Result,
        _ connection: Connection,
        _ progress: (String) -> Void
    ) throws -> Rebuild.Report {
        var last: Rebuild.Report?
        for run in 1...options.runs {
            progress("rebuilding, \(run) of \(options.runs)")
            // What the steps before have left to write is not the rebuild's.
            try connection.execute("checkpoint")
            let cost = try cost {
                last = try Rebuild(workers: options.workers, connect: connect).run()
            }
            result.rebuilds.append(cost)
        }
        guard let report = last else { preconditionFailure("a benchmark runs at least once") }
        result.peakMebibytes = ProcessorTime.peakMebibytes
        result.events = report.events
        result.subscriptions = report.streams
        result.rows = report.readModels.reduce(0) { $0 + $1.digest.rows }
        result.tooLong = report.tooLong.count
        result.times = report.times
        return report
    }

    private func project(
        _ connection: Connection,
        _ result: inout Result,
        expecting report: Rebuild.Report
    ) throws {
        // Some are marked again, with rows that are missing, wrong, or as they shall be.
        try connection.execute(
            """
            insert into ledger.mark (stream, app_id, position)
            select stream, app_id, max(position) from ledger.fact
            where fact_at is not null
            group by stream, app_id order by stream, app_id limit 5000
            """
        )
        for name in Catalogue.all.flatMap({ $0.tables }).map(\.name) {
            try connection.execute(
                "delete from read_model.\(name) where stream in (select stream from ledger.mark)"
            )
        }
        result.project = try cost {
            result.projected = try Projector(connection).project().streams
        }
        result.digestsAgree = try report.readModels.allSatisfy {
            try Digest(ofLive: $0.name, connection) == $0.digest
        }
    }
}

extension RebuildBenchmark {
    /// The result in lines for people.
    public static func text(_ result: Result) -> String {
        var lines = [
            "events \(result.events), subscriptions \(result.subscriptions), rows \(result.rows)"
        ]
        func line(_ name: String, _ cost: Cost, _ count: Int64 = 0, _ unit: String = "") {
            let rate =
                count > 0 ? "  \(Int(Double(count) / max(cost.seconds, 1e-9)))/s \(unit)" : ""
            lines.append(
                "\(padded(name))\(fixed(cost.seconds)) s, processor time: program "
                    + "\(fixed(cost.own)) s, server \(fixed(cost.server)) s\(rate)"
            )
        }
        for rebuild in result.rebuilds { line("rebuild", rebuild, result.events, "events") }
        if let again = result.afterReplacing {
            line("facts replaced", again, result.events, "events")
        }
        if let times = result.times {
            lines.append(
                "  of the last: load \(fixed(times.load)) s (its workers: read "
                    + "\(fixed(times.read)), fold \(fixed(times.fold)), write "
                    + "\(fixed(times.write))), keys \(fixed(times.keys)) s, catch-up "
                    + "\(fixed(times.catchUp)) s, of that the swap \(fixed(times.swap)) s"
            )
        }
        if result.tooLong > 0 {
            lines.append("  \(result.tooLong) subscription too long to be folded, and parked")
        }
        line("raw COPY out", result.copyOut, result.events, "events")
        line("  in order", result.copyInOrder, result.events, "events")
        line("  and decoded", result.decoding, result.events, "events")
        line("raw COPY in", result.copyIn, result.rows, "rows")
        line("keys alone", result.keys, result.rows, "rows")
        let (best, bound) = (result.best, result.bound)
        lines.append(
            "rebuild / (COPY out + in + keys)  \(fixed(best.seconds / bound.seconds)) of the time, "
                + "\(fixed((best.own + best.server) / (bound.own + bound.server))) of the processor "
                + "time"
        )
        if let windows = result.windows {
            line("window fold", windows, result.events, "events")
            lines.append(
                "  the rebuild is \(fixed(windows.seconds / best.seconds)) times as fast, its rows "
                    + "and keys included"
            )
        }
        line("live", result.project, Int64(result.projected), "streams")
        lines.append("digests of live and rebuilt rows \(result.digestsAgree ? "agree" : "DIFFER")")
        let events = max(result.events, 1)
        lines.append(
            "disk per event: facts \(result.factBytes / events) bytes, read models "
                + "\(result.rowBytes / events) bytes, indexes included"
        )
        lines.append("peak memory \(result.peakMebibytes) MiB")
        return lines.joined(separator: "\n") + "\n"
    }

    private static func padded(_ name: String) -> String {
        name + String(repeating: " ", count: max(1, 15 - name.count))
    }

    private static func fixed(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        let digits = hundredths % 100
        return "\(hundredths / 100).\(digits < 10 ? "0" : "")\(digits)"
    }
}
