internal import Ledger
internal import LedgerService

/// `subledger forwards`.
enum ForwardsCommand {
    static let command = Command(
        name: "forwards",
        summary: "Show how far notifications were forwarded to each destination.",
        options: [.database, .config, .json],
        details: """
            A subscription whose notification was not taken waits, and is tried again for ever; the
            others go on. A destination that is no longer in the configuration keeps its row: where
            it comes back, it goes on from there.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let database = try Database.open(arguments, Configuration.find(arguments))
        let standings = try ForwardStanding.all(database.connect(as: .auditor))
        let output = Output.standard()
        if arguments.has("--json") {
            var json = JSONWriter(pretty: true)
            json.beginArray()
            for standing in standings { standing.write(to: &json) }
            json.endArray()
            try output.line(json.text)
        } else {
            var table = TextTable(
                "~destination",
                "#position",
                "#behind",
                "oldest it lacks",
                "#waiting",
                "#delivered",
                "~trouble"
            )
            for standing in standings {
                table.add(
                    printable(standing.destination),
                    "\(standing.position)",
                    "\(standing.lagEvents)",
                    standing.oldestAt.map { second($0) } ?? "–",
                    "\(standing.waitingStreams)",
                    "\(standing.delivered)",
                    standing.failure.map { printable($0) }
                        ?? (standing.isForwarding ? "–" : "nobody forwards")
                )
            }
            try output.table(table)
        }
        try output.flush()
        return .done
    }
}
