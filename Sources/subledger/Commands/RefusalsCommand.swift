internal import Ledger
internal import LedgerService

/// `subledger refusals`.
enum RefusalsCommand {
    static let command = Command(
        name: "refusals",
        summary: "List the latest deliveries that the webhook turned away, the newest first.",
        options: [
            .database, .config, .json,
            .value("--limit", "N", "at most so many (default 50)"),
        ],
        details: """
            What a refused delivery says of itself is unverified, so anybody may have written it.
            In Sandbox Apple does not send a refused notification again; in Production it does, for
            some six days.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let limit = try arguments.integer("--limit", in: 1...100_000) ?? 50
        let database = try Database.open(arguments, Configuration.find(arguments))
        let refusals = try RefusedDelivery.latest(limit, database.connect(as: .auditor))
        let output = Output.standard()
        if arguments.has("--json") {
            var json = JSONWriter(pretty: true)
            json.beginArray()
            for refusal in refusals { refusal.write(to: &json) }
            json.endArray()
            try output.line(json.text)
        } else {
            var table = TextTable("refused", "reason", "#bytes", "peer", "~claims", "environment")
            for refusal in refusals {
                table.add(
                    second(refusal.at),
                    refusal.reason,
                    "\(refusal.sizeBytes)",
                    refusal.peer ?? "–",
                    printable(refusal.notificationType ?? "–"),
                    printable(refusal.environment ?? "–")
                )
            }
            try output.table(table)
        }
        try output.flush()
        return .done
    }
}
