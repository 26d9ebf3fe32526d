internal import Ledger
internal import LedgerService

/// `subledger audit monthly`.
enum AuditMonthlyCommand {
    static let command = Command(
        name: "audit monthly",
        summary: "Report the extensions of each month by reason, operator and days granted.",
        options: [
            .database, .config, .json,
            .flag("--csv", "print comma-separated values"),
            .value("--from", "DAY", "the first day, 2026-01-31"),
            .value("--to", "DAY", "the first day after the last"),
            .value("--zone", "ZONE", "where months begin; default UTC"),
            .value("--environment", "Sandbox|Production", "which of the two; default Production"),
        ],
        details: """
            A month is that of the request, or of Apple's notice where nobody here asked; those
            rows have neither reason nor operator. The operator is who it was known to be, not who
            it was said to be. Taking the report out is recorded as an event.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        if arguments.has("--json"), arguments.has("--csv") {
            throw CommandFailure.usage("--json and --csv exclude each other")
        }
        let days = try arguments.days(for: "the report")
        let query = ExtensionMonthlyQuery(
            since: days.since,
            until: days.until,
            zone: arguments.value("--zone") ?? "UTC",
            environment: try EntitlementsCommand.environment(arguments) ?? .production
        )
        let database = try Database.open(arguments, Configuration.find(arguments))
        let connection = try database.connect(as: .auditor)
        try AuditExtensionsCommand.recordExport(
            "extensions by month",
            arguments,
            database,
            connection
        )
        let rows = try askingForDays { () throws(ReadModelError) in try query.rows(connection) }
        let output = Output.standard()
        if arguments.has("--json") {
            var json = JSONWriter(pretty: true)
            json.beginArray()
            for row in rows { row.write(to: &json) }
            json.endArray()
            try output.line(json.text)
        } else if arguments.has("--csv") {
            try output.line(CommaSeparated.line(ExtensionMonth.names))
            for row in rows { try output.line(CommaSeparated.line(row.words + row.counts)) }
        } else {
            try show(rows, query, to: output)
        }
        try output.flush()
        return .done
    }

    private static func show(
        _ rows: [ExtensionMonth],
        _ query: ExtensionMonthlyQuery,
        to output: Output
    ) throws {
        var table = TextTable(
            "month",
            "reason",
            "~operator",
            "#asked",
            "#granted",
            "#days",
            "#refused by us",
            "#by Apple",
            "#unsettled",
            "#external"
        )
        for row in rows {
            table.add(
                [String(row.month.prefix(7)), row.reason ?? "–", row.operatorName ?? "–"]
                    + row.counts
            )
        }
        if !rows.isEmpty {
            try output.table(table)
            try output.line()
        }
        let granted = rows.reduce(0) { $0 + $1.granted }
        try output.line(
            "\(grouped(granted)) extensions in \(query.environment) from "
                + "\(query.since) to \(query.until), which is not in it, in \(query.zone)"
        )
    }
}
