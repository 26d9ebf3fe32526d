internal import AppStore
internal import AppStoreSimulator
internal import EventLog
internal import FoundationEssentials
internal import Ledger
internal import LedgerService
public import Postgres

/// How fast a file of notifications becomes events, against two bounds measured in the same run:
/// verifying the same lines and doing nothing with them, and COPY of the same rows into tables
/// without keys.
///
/// Nothing can be faster than both together on the cores that there are; what is missing to that
/// is what the append protocol costs.
public struct IngestBenchmark {
    /// What was measured; seconds unless said otherwise.
    public struct Result: Hashable, Sendable {
        /// How many lines were read.
        public var lines = 0
        /// How many of them became events.
        public var events = 0
        /// How many bytes the file has.
        public var fileBytes = 0
        /// Reading, verifying and appending.
        public var ingest = 0.0
        /// Reading and verifying alone, on the same number of threads.
        public var verify = 0.0
        /// COPY of the same events, evidence and facts into tables without keys.
        public var copy = 0.0
        /// Reading the same file again, when everything is there already.
        public var again = 0.0

        /// What the log and the read models came to take on disk with it, by part, in bytes.
        public var disk: [String: Int64] = [:]

        /// How near the ingest comes to verification alone, 1 being as fast.
        public var ratioToVerify: Double { verify / ingest }
        /// How near the ingest comes to the two bounds one after the other.
        public var ratioToBoth: Double { (verify + copy) / ingest }
    }

    private let connect: @Sendable () throws -> Connection

    /// Prepares a benchmark in a database of its own, which has the schema and no events.
    public init(connect: @escaping @Sendable () throws -> Connection) { self.connect = connect }

    /// Simulates so many subscriptions, ingests them and measures.
    ///
    /// - Parameters:
    ///   - subscriptions: how many; each has about seven notifications.
    ///   - progress: told what is done next.
    /// - Returns: what was measured.
    /// - Throws: what the database or the file system refuses.
    public func run(
        subscriptions: Int,
        progress: (String) -> Void = { _ in }
    ) throws -> Result {
        let empty = try Self.sizes(connect())
        progress("simulating \(subscriptions) subscriptions")
        let simulation = Simulation(.init(subscriptions: subscriptions))
        let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString).ndjson"
        defer { try? FileManager.default.removeItem(atPath: path) }
        var result = Result()
        result.fileBytes = try Self.write(simulation, to: path)

        progress("verifying alone")
        let verifier = try Self.verifier(simulation)
        result.verify = try Self.seconds { result.lines = try Self.verify(path, verifier) }

        progress("ingesting")
        // A verifier of its own, so that chains are met for the first time here too.
        let ingest = Ingest(verifier: try Self.verifier(simulation), connect: connect)
        result.ingest = try Self.seconds {
            result.events = try ingest.run(LineReader(path: path), now: Self.now).appended
        }
        progress("ingesting again")
        result.again = try Self.seconds {
            _ = try ingest.run(LineReader(path: path), now: Self.now)
        }
        progress("raw COPY of the same rows")
        let rows = try Self.tables.map { ($0, try copyOut($0)) }
        result.copy = try Self.seconds {
            for (table, buffers) in rows { try copyIn(table, buffers) }
        }
        progress("projecting, for what it all takes on disk")
        _ = try Projector(connect()).project()
        let full = try Self.sizes(connect())
        result.disk = full.merging(empty) { $0 - $1 }.filter { $0.value > 0 }
        return result
    }

    /// What the parts of the database take on disk, indexes included.
    private static func sizes(_ connection: Connection) throws -> [String: Int64] {
        let rows = try connection.query(
            """
            select
                case
                    when n.nspname = 'read_model' then 'read models'
                    when c.relname ~ '^(event|evidence|fact)_[0-9]+$'
                        then split_part(c.relname, '_', 1)
                    else 'the rest of the log'
                end,
                sum(pg_total_relation_size(c.oid))::bigint
            from pg_class c
            join pg_namespace n on n.oid = c.relnamespace
            where n.nspname in ('ledger', 'read_model') and c.relkind in ('r', 'm')
            group by 1
            """
        )
        var sizes: [String: Int64] = [:]
        for row in 0..<rows.count { sizes[rows.text(row, 0) ?? ""] = rows.int(row, 1) }
        return sizes
    }

    /// The result in lines for people.
    public static func text(_ result: Result) -> String {
        func line(_ name: String, _ seconds: Double, _ count: Int, _ unit: String) -> String {
            let padding = String(repeating: " ", count: 15 - name.count)
            return "\(name)\(padding)\(hundredths(seconds)) s  \(Int(Double(count) / seconds)) "
                + "\(unit)/s"
        }
        let events = Int64(max(1, result.events))
        let parts = result.disk.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value / events)" }
        let total = result.disk.values.reduce(0, +) / events
        return """
            lines \(result.lines), events \(result.events), \(result.fileBytes >> 20) MiB
            \(line("ingest", result.ingest, result.lines, "lines"))
            \(line("again", result.again, result.lines, "lines, all duplicates"))
            \(line("verify alone", result.verify, result.lines, "lines"))
            \(line("raw COPY", result.copy, result.events, "events"))
            ingest reaches \(Int(result.ratioToVerify * 100)) % of verifying alone, \
            \(Int(result.ratioToBoth * 100)) % of verifying and then copying
            disk \(total) bytes an event: \(parts.joined(separator: ", "))

            """
    }

    private static let tables = ["ledger.event", "ledger.evidence", "ledger.fact"]

    /// Later than everything that is simulated.
    private static let now = Timestamp(milliseconds: 1_767_225_600_000)

    private static func hundredths(_ value: Double) -> String {
        let whole = Int((value * 100).rounded())
        return "\(whole / 100).\(whole % 100 < 10 ? "0" : "")\(whole % 100)"
    }

    private static func seconds(_ body: () throws -> Void) rethrows -> Double {
        let time = try ContinuousClock().measure(body)
        return Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18
    }

    private static func write(_ simulation: Simulation, to path: String) throws -> Int {
        guard FileManager.default.createFile(atPath: path, contents: nil) else {
            throw InputError(code: .unreadable, message: "cannot write \(path)")
        }
        var bytes: [UInt8] = []
        _ = try simulation.write(
            deliveries: { piece throws(any Error) in bytes += piece },
            truth: { _ throws(any Error) in }
        )
        try Data(bytes).write(to: URL(filePath: path))
        return bytes.count
    }

    private static func verifier(_ simulation: Simulation) throws -> Verifier {
        var anchors = TrustAnchors()
        try anchors.add(simulation.authority.rootDER, name: "test root")
        let app = AcceptedApp(
            bundleID: simulation.life(0).chain.bundleID,
            appAppleID: nil,
            environments: [.sandbox]
        )
        return Verifier(anchors: anchors, apps: [app])
    }

    private static func verify(_ path: String, _ verifier: Verifier) throws -> Int {
        let reader = try LineReader(path: path)
        let now = now
        let pipeline = OrderedPipeline<[LineReader.Line], Int>(depth: 24) { lines in
            var count = 0
            for case .text(_, let bytes) in lines {
                guard case .success(let text) = SignedInput.signedText(ofLine: bytes),
                    case .trusted = verifier.verify(text, now: now)
                else { continue }
                count += 1
            }
            return count
        }
        var count = 0
        while true {
            while !pipeline.isFull, let lines = try reader.lines(max: 64) { pipeline.give(lines) }
            guard let verified = pipeline.take() else { return count }
            count += verified
        }
    }
}

extension IngestBenchmark {
    /// The rows of a table as COPY's binary format has them, in pieces.
    private func copyOut(_ table: String) throws -> [RowBuffer] {
        let connection = try connect()
        let columns = Int(
            try connection.query(
                "select count(*) from pg_attribute where attrelid = $1::text::regclass"
                    + " and attnum > 0 and not attisdropped",
                [.text(table)]
            ).int(0, 0) ?? 0
        )
        var buffers = [RowBuffer()]
        try connection.copyOut("copy (select * from \(table)) to stdout (format binary)") {
            (row: inout BinaryRow) throws(PostgresError) in
            if buffers[buffers.count - 1].bytes.count > 1 << 20 { buffers.append(RowBuffer()) }
            let last = buffers.count - 1
            buffers[last].beginRow(columns: columns)
            // A field of any type is a length and its bytes.
            for _ in 0..<columns { buffers[last].bytea(row.byteArray()) }
        }
        return buffers
    }

    private func copyIn(_ table: String, _ buffers: [RowBuffer]) throws {
        let connection = try connect()
        try connection.execute("create table public.bench_copy (like \(table))")
        try connection.copyIn("copy public.bench_copy from stdin (format binary)") { writer in
            for buffer in buffers { try writer.write(buffer) }
        }
        try connection.execute("drop table public.bench_copy")
    }
}
