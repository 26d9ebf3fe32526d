internal import AppStoreSimulator
internal import Ledger
internal import LedgerService
internal import Postgres

/// `subledger demo`.
enum DemoCommand {
    static let command = Command(
        name: "demo",
        summary: "Run a made-up company through the whole ledger, and show what comes out.",
        options: [
            .value("--subscriptions", "N", "how many subscriptions (default 2000)"),
            .value("--seed", "S", "equal seeds give equal companies (default 1)"),
            .value("--directory", "DIR", "where the demo lives (default .subledger/demo)"),
        ],
        details: """
            Two years of notifications up to this minute, delivered twice, late, out of order and
            not at all, are verified, appended, folded, and compared with the truth. The folder
            has an embedded database of its own and is made anew by each run.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let start = monotonicNanoseconds()
        let count = try arguments.integer("--subscriptions", in: 1...1_000_000) ?? 2000
        let seed = try arguments.integer("--seed", in: 0...Int64.max) ?? 1
        var options = Simulation.Options(subscriptions: Int(count), seed: UInt64(seed))
        // Up to now, so that the commands tried afterwards find something alive.
        options.until = Timestamp.now.milliseconds / 60_000 * 60_000
        options.configuredGraceDays = DemoCompany.gracePeriodDays

        let folder = try DemoFolder(arguments.value("--directory") ?? ".subledger/demo")
        let output = Output.standard()
        let company = try DemoCompany(options, folder: folder, output: output)
        let database = try folder.database()
        try ingest(company, folder, database, output)
        guard !Interruption.isRequested else { return .someRejected }
        let rebuilt = try RebuildCommand.rebuild(.init(), database)
        try heading("Rebuild: the read models made anew from the log", output)
        try output.line(RebuildCommand.text(rebuilt))

        let report = DemoReport(company: company, database: database, output: output)
        try report.write()
        let seconds = Double(monotonicNanoseconds() - start) / 1e9
        try output.line(
            "\nDone in \(duration(seconds)). \(folder.whatToTryNext(report.explainedID))"
        )
        try output.flush()
        return report.isTrue ? .done : .integrity
    }

    private static func ingest(
        _ company: DemoCompany,
        _ folder: DemoFolder,
        _ database: Database,
        _ output: Output
    ) throws {
        let configuration = try Configuration(path: folder.configurationPath)
        try IngestCommand.storeRules(configuration, in: database)
        let start = monotonicNanoseconds()
        let report = try IngestCommand.ingest(
            LineReader(path: folder.notificationsPath),
            Acceptance(configuration),
            database,
            Refusals(path: nil)
        )
        if report.isStopped { return }
        let seconds = Double(monotonicNanoseconds() - start) / 1e9
        try heading("Ingest: every signature verified, every event appended once", output)
        try IngestCommand.project(database)
        let rate = grouped(Int(Double(report.read) / max(seconds, 1e-9)))
        try output.line("\(report.text)\nin \(duration(seconds)), \(rate) notifications/s")
        try output.flush()
    }

    /// Writes a heading with an empty line before it.
    static func heading(_ text: String, _ output: Output) throws {
        try output.line("\n\(Terminal.bold(text))")
    }
}

/// The folder of a demo: a working folder like any other, with a database of its own.
struct DemoFolder {
    /// Where it is.
    let path: String

    /// Makes the folder where there is none.
    init(_ path: String) throws {
        self.path = path
        try makeFolder(path)
    }

    var notificationsPath: String { "\(path)/notifications.ndjson" }
    var truthPath: String { "\(path)/truth.ndjson" }
    var rootPath: String { "\(path)/root.pem" }
    var configurationPath: String { "\(path)/\(Configuration.defaultPath)" }

    /// The folder's database, emptied.
    func database() throws -> Database {
        let directory = "\(path)/\(EmbeddedServer.defaultDirectory)"
        let server = try Database.embedded(directory: directory)
        let maintenance = try Connection(server.conninfo(database: "postgres"))
        let name = EmbeddedServer.database
        try maintenance.execute("drop database if exists \(name) with (force)")
        try maintenance.execute("create database \(name) template template0")
        return try Database.migrated(server)
    }

    /// What to do with the folder.
    func whatToTryNext(_ id: String?) -> String {
        """
        What to try next:

          cd \(path)
          subledger entitlements | head -20        who has access to what, now
          subledger entitlements --at 2026-01-01   … and at any other instant
          subledger explain \(id ?? "ID")       one subscription, with its evidence
          subledger evidence 1 | subledger verify --root root.pem -
          subledger ingest notifications.ndjson    again: nothing but duplicates
          subledger audit verify                   every event against its hashes
          subledger db psql                        the tables themselves
        """
    }
}
