internal import EventLog
internal import Ledger
internal import LedgerService
internal import Postgres

/// `subledger audit extensions`.
enum AuditExtensionsCommand {
    static let command = Command(
        name: "audit extensions",
        summary: "Show who had what extended, when, why, and what became of it.",
        options: [
            .database, .config, .json,
            .flag("--csv", "print comma-separated values"),
            .value("--operator", "WHO", "only what this one asked for"),
            .value("--ticket", "REF", "only on this ticket"),
            .value("--reason", "REASON", "only for this reason of Apple's"),
            .value("--from", "INSTANT", "only from then on"),
            .value("--to", "INSTANT", "only before then"),
            .value("--outcome", "WORD", "only with this outcome"),
            .value("--subscription", "ID", "only of this originalTransactionId"),
            .value("--environment", "Sandbox|Production", "only this environment"),
        ],
        details: """
            Refused requests and extensions that nobody here asked for have rows too. All columns
            are in --csv and --json, and taking them out is recorded as an event;
            docs/read-models.md says what they mean.
            """,
        run: run
    )

    private static let pageCount = 1000

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let query = try query(arguments)
        guard !arguments.has("--csv") || !arguments.has("--json") else {
            throw CommandFailure.usage("--csv and --json exclude each other")
        }
        let database = try Database.open(arguments, Configuration.find(arguments))
        let connection = try database.connect(as: .auditor)
        try recordExport("extensions", arguments, database, connection)
        let output = Output.standard()
        var table = TextTable(
            "at",
            "subscription",
            "~environment",
            "outcome",
            "#days",
            "before",
            "after",
            "~operator",
            "~ticket",
            "reason"
        )
        var json = JSONWriter(pretty: true)
        if arguments.has("--csv") { try output.line(CommaSeparated.line(ExtensionAuditRow.names)) }
        json.beginArray()
        var place: ExtensionQuery.Place?
        while true {
            let rows = try query.rows(after: place, limit: pageCount, connection)
            for row in rows {
                if arguments.has("--csv") {
                    try output.line(CommaSeparated.line(row.fields))
                } else if arguments.has("--json") {
                    row.write(to: &json)
                } else {
                    table.add(cells(row))
                }
            }
            place = rows.last?.position
            if rows.count < pageCount { break }
        }
        json.endArray()
        if arguments.has("--json") { try output.line(json.text) }
        if !arguments.has("--csv"), !arguments.has("--json") { try output.table(table) }
        try output.flush()
        return .done
    }

    /// Records as an event that somebody took the audit out, as --csv or --json.
    static func recordExport(
        _ what: String,
        _ arguments: Arguments,
        _ database: Database,
        _ connection: Connection
    ) throws {
        guard arguments.has("--csv") || arguments.has("--json") else { return }
        try RecordedRows.recordExport(
            of: what,
            filter: arguments.options.map { "\($0.name) \($0.value)" }.joined(separator: " "),
            by: OperatorAccount.actor(claimed: OperatorAccount.userName(), database.connect()),
            now: .now,
            connection,
            through: Appender(database.connect(as: .appender))
        )
    }

    private static func cells(_ row: ExtensionAuditRow) -> [String] {
        func short(_ name: String) -> String {
            row[name].flatMap { Timestamp(parsing: $0) }.map { minute($0) } ?? "–"
        }
        let outcome = row["outcome"] ?? ""
        return [
            short("at"), row["original_transaction_id"] ?? "", row["environment"] ?? "",
            row["refusal_rule"].map { "\(outcome): \($0)" } ?? outcome,
            row["days_requested"] ?? row["days_effective"] ?? "–", short("expires_before"),
            row["expires_confirmed"] == nil ? short("expires_acked") : short("expires_confirmed"),
            row["operator_claimed"] ?? row["operator_authenticated"] ?? "–",
            row["ticket_id"] ?? "–", row["apple_reason"] ?? "–",
        ]
    }

    private static func query(_ arguments: Arguments) throws -> ExtensionQuery {
        var query = ExtensionQuery()
        query.operatorName = arguments.value("--operator")
        query.ticket = arguments.value("--ticket")
        query.reason = try arguments.value("--reason").map { word in
            guard let reason = ExtensionReason(name: word) else {
                let names = ExtensionReason.allCases.map(\.name).joined(separator: ", ")
                throw CommandFailure.usage("--reason is one of \(names), not “\(word)”")
            }
            return reason
        }
        query.outcome = try arguments.value("--outcome").map { word in
            guard let outcome = ExtensionRecord.Outcome(rawValue: word) else {
                let words = ExtensionRecord.Outcome.allCases.map(\.rawValue)
                throw CommandFailure.usage(
                    "--outcome is one of \(words.joined(separator: ", ")), not “\(word)”"
                )
            }
            return outcome
        }
        query.since = try arguments.instant("--from")
        query.until = try arguments.instant("--to")
        query.subscription = arguments.value("--subscription")
        query.environment = try EntitlementsCommand.environment(arguments)
        return query
    }
}
