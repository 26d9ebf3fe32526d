internal import Benchmarks
internal import EventLog
internal import LedgerService
internal import Postgres

/// `subledger bench …`: measurements against bounds taken in the same run.
enum BenchCommands {
    static let ingest = Command(
        name: "bench ingest",
        summary: "Measure ingest against verification alone and raw COPY.",
        options: [
            .value("--subscriptions", "N", "how many are simulated (default 2000)")
        ],
        details: "It works in a database of its own on the embedded server and drops it.",
        run: { arguments in
            _ = try arguments.operands()
            let count = try arguments.integer("--subscriptions", in: 1...1_000_000) ?? 2000
            try inScratchDatabase { sessions, output in
                let result = try IngestBenchmark { try sessions.open() }
                    .run(subscriptions: Int(count)) { say($0) }
                try output.write(IngestBenchmark.text(result))
            }
            return .done
        }
    )

    /// Says what is done next.
    static func say(_ step: String) { printError(Terminal.dim("bench: \(step)")) }

    /// Runs `body` with an empty, migrated database on the embedded server.
    static func inScratchDatabase(_ body: (Sessions, Output) throws -> Void) throws {
        let server = try Database.embedded(directory: EmbeddedServer.defaultDirectory)
        defer { server.close() }
        let maintenance = try Connection(server.conninfo(database: "postgres"))
        // Roles belong to the whole server and are named after the database: one name, one set.
        let name = "\(EmbeddedServer.database)_bench"
        try maintenance.execute("drop database if exists \(name) with (force)")
        try maintenance.execute("create database \(name) template template0")
        defer { try? maintenance.execute("drop database \(name) with (force)") }
        let conninfo = server.conninfo(database: name)
        try Migrator(Connection(conninfo), extra: ReadModels.migrations).migrate()
        let output = Output.standard()
        try body(Sessions(conninfo: conninfo, role: nil), output)
        try output.flush()
    }
}
