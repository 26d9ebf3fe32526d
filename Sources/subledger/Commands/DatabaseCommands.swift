internal import Ledger
internal import LedgerService
internal import Postgres

/// `subledger db …`: the embedded server.
enum DatabaseCommands {
    static let start = Command(
        name: "db start",
        summary: "Start the embedded PostgreSQL server and leave it running.",
        details: """
            Every command starts the server when it needs it and stops it when it was the last
            one to use it. After `db start` it stays up until `db stop`.
            """,
        run: { arguments in
            _ = try arguments.operands()
            let server = try EmbeddedServer.open { printError("subledger: \($0)") }
            try server.keepRunning()
            let output = Output.standard()
            try output.line("running; connect with: psql \"\(server.conninfo)\"")
            try output.flush()
            server.close()
            return .done
        }
    )

    static let stop = Command(
        name: "db stop",
        summary: "Stop the embedded PostgreSQL server.",
        options: [.flag("--force", "stop it even while other commands use it")],
        run: { arguments in
            _ = try arguments.operands()
            let wasRunning = try EmbeddedServer.stop(isForced: arguments.has("--force"))
            let output = Output.standard()
            try output.line(wasRunning ? "stopped" : "it was not running")
            try output.flush()
            return .done
        }
    )

    static let status = Command(
        name: "db status",
        summary: "Say whether the embedded PostgreSQL server runs, and where it is.",
        options: [.json],
        run: { arguments in
            _ = try arguments.operands()
            let status = try EmbeddedServer.status()
            let output = Output.standard()
            try output.line(arguments.has("--json") ? json(status) : text(status))
            try output.flush()
            return .done
        }
    )

    static let psql = Command(
        name: "db psql",
        summary: "Open psql on the embedded database.",
        operands: "[PSQL-ARGUMENT]…",
        details: "Whatever follows goes to psql: subledger db psql -c 'table ledger.head'",
        passesEverything: true,
        run: { arguments in
            let database = try Database.open(Arguments([], allowing: []))
            guard let server = database.server else {
                throw CommandFailure.input(
                    "DATABASE_URL or subledger.json names another server; "
                        + "connect to it with psql itself"
                )
            }
            let status = try server.psql(arguments.operands)
            return ExitCode(rawValue: status) ?? .someRejected
        }
    )

    private static func text(_ status: EmbeddedServer.Status) -> String {
        var lines = [status.isRunning ? "running" : "not running"]
        func add(_ name: String, _ value: String?) {
            guard let value else { return }
            lines.append("  \(name)\(String(repeating: " ", count: 12 - name.count))\(value)")
        }
        add("folder", status.directory)
        add("data", status.dataFolder ?? "none yet")
        add("PostgreSQL", status.majorVersion.map { "\($0)" })
        add("process", status.process.map { "\($0)" })
        add("since", status.startedAt.map { "\(Timestamp(milliseconds: $0))" })
        if status.isRunning {
            add("stays up", status.isKept ? "yes, until db stop" : "no, stops with its last user")
        }
        add("connect", status.conninfo.map { "psql \"\($0)\"" })
        add("messages", status.logFile)
        return lines.joined(separator: "\n")
    }

    private static func json(_ status: EmbeddedServer.Status) -> String {
        var json = JSONWriter(pretty: true)
        json.beginObject()
        json.member("running", status.isRunning)
        json.member("directory", status.directory)
        json.member("data", status.dataFolder)
        json.member("version", status.majorVersion)
        json.member("process", status.process)
        let since = status.startedAt.map { "\(Timestamp(milliseconds: $0))" }
        json.member("started_at", since)
        json.member("kept", status.isKept)
        json.member("in_use", status.isInUse)
        json.member("conninfo", status.conninfo)
        json.member("log", status.logFile)
        json.endObject()
        return json.text
    }
}
