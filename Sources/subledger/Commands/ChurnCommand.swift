internal import Ledger
internal import LedgerService
internal import Postgres

/// `subledger churn`.
enum ChurnCommand {
    static let command = Command(
        name: "churn",
        summary: "Show who came, stayed and left in each month, and what it was worth.",
        options: [
            .database, .config, .json,
            .flag("--csv", "print comma-separated values"),
            .value("--from", "DAY", "the first day, 2026-01-31; its whole month counts"),
            .value("--to", "DAY", "the first day after the last"),
            .value("--by", "month|product|cause", "what to have a row for; default month"),
            .value("--zone", "ZONE", "where months begin; default UTC"),
            .value("--currency", "CODE", "convert amounts; needs rates from `subledger fx import`"),
            .value("--environment", "Sandbox|Production", "which of the two; default Production"),
            .value("--as-of", "INSTANT", "nothing that takes effect later counts; default now"),
        ],
        details: """
            end = start + new + converted + returned + recovered + in - losses by cause - lapsed
            (known from the clock only) - out + corrected, where in and out are switches of product
            or currency; “risk” are those at the end who may leave, each by one reason. Amounts
            stand per currency and are never added across; --csv prints the subscribers without
            amounts, except --by cause. docs/read-models.md has every formula.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        if arguments.has("--json"), arguments.has("--csv") {
            throw CommandFailure.usage("--json and --csv exclude each other")
        }
        let query = try query(arguments)
        let database = try Database.open(arguments, Configuration.find(arguments))
        let connection = try database.connect(as: .reader)
        let subscribers: ChurnQuery.Answer
        var value: ChurnQuery.Answer?
        do {
            subscribers = try query.subscribers(connection)
            if query.grouping != .cause { value = try query.value(connection) }
        } catch {
            if error.sqlState == "P0002" { throw CommandFailure.input(error.message) }
            guard error.sqlState?.hasPrefix("22") == true else { throw error }
            throw CommandFailure.usage("a day or the zone does not exist: \(error.message)")
        }
        let output = Output.standard()
        if arguments.has("--json") {
            var json = JSONWriter(pretty: true)
            json.beginObject()
            json.key("subscribers")
            subscribers.write(to: &json)
            if let value {
                json.key("mrr")
                value.write(to: &json)
            }
            json.endObject()
            try output.line(json.text)
        } else if arguments.has("--csv") {
            try output.line(CommaSeparated.line(subscribers.names))
            for row in subscribers.rows { try output.line(CommaSeparated.line(row)) }
        } else {
            try show(subscribers, value, query, to: output)
        }
        try output.flush()
        try EntitlementsCommand.reportStaleness(connection, isJSON: arguments.has("--json"))
        return .done
    }

    private static func query(_ arguments: Arguments) throws -> ChurnQuery {
        let days = try arguments.days(for: "churn")
        let text = arguments.value("--by") ?? "month"
        guard let grouping = ChurnQuery.Grouping(rawValue: text) else {
            throw CommandFailure.usage("--by is month, product or cause, not “\(text)”")
        }
        return ChurnQuery(
            since: days.since,
            until: days.until,
            grouping: grouping,
            zone: arguments.value("--zone") ?? "UTC",
            environment: try EntitlementsCommand.environment(arguments) ?? .production,
            asOf: try arguments.instant("--as-of") ?? .now,
            currency: arguments.value("--currency")
        )
    }

    // MARK: - Tables

    private static func show(
        _ subscribers: ChurnQuery.Answer,
        _ value: ChurnQuery.Answer?,
        _ query: ChurnQuery,
        to output: Output
    ) throws {
        try show(subscribers, to: output)
        if Terminal.isOutput, query.grouping == .month, !subscribers.rows.isEmpty {
            let counts = subscribers.rows.indices.map { row in
                (
                    label: cell("month", subscribers.value(row, "month")),
                    count: Int(subscribers.value(row, "access_churn") ?? "") ?? 0
                )
            }
            try output.line("subscribers lost, known from the clock only left out")
            for line in barChart(counts, width: Terminal.columns) { try output.line(line) }
            try output.line()
        }
        if let value { try show(value, to: output) }
        try output.line(
            "\(query.environment) by \(query.grouping.rawValue) in \(query.zone), as of "
                + "\(query.asOf)"
        )
    }

    /// Shows the columns that say anything; the position is for machines.
    private static func show(_ answer: ChurnQuery.Answer, to output: Output) throws {
        guard !answer.rows.isEmpty else { return }
        let columns = answer.names.indices.filter { column in
            let name = answer.names[column]
            if name == "known_to_position" { return false }
            if ChurnQuery.Answer.words.contains(name) { return true }
            return answer.rows.contains { $0[column] != nil && $0[column] != "0" }
        }
        var table = TextTable(
            columns.map { column in
                let name = answer.names[column]
                return TextTable.Column(
                    title: title(name),
                    isNumeric: !ChurnQuery.Answer.words.contains(name),
                    mayShrink: name == "product_id"
                )
            }
        )
        for row in answer.rows {
            table.add(columns.map { cell(answer.names[$0], row[$0]) })
        }
        try output.table(table)
        try output.line()
    }

    /// Headings that say it in less room; columns with nothing in them are left out anyway.
    private static let titles = [
        "active_start": "start", "new_paid": "new", "trial_converted": "converted",
        "reactivated": "returned", "switched_in": "in", "lapsed_unconfirmed": "lapsed",
        "switched_out": "out", "corrections": "corrected", "active_end": "end",
        "access_churn": "lost", "gross_churn_rate": "gross", "net_churn_rate": "net",
        "at_risk_intent": "risk: intent", "at_risk_billing": "risk: billing",
        "at_risk_grace": "risk: grace", "at_risk_price": "risk: price",
        "mrr_lapsed_unconfirmed": "lapsed", "mrr_reactivation": "returned",
        "standard_mrr_end": "end, no offers",
    ]

    private static func title(_ name: String) -> String {
        if let title = titles[name] { return title }
        var words = name.split(separator: "_").map(String.init)
        if words.count > 1, ["mrr", "churn"].contains(words[0]) { words.removeFirst() }
        return words.filter { $0 != "id" }.joined(separator: " ")
    }

    private static func cell(_ name: String, _ value: String?) -> String {
        guard let value else { return "–" }
        if name == "month" { return String(value.prefix(7)) }
        if name.hasSuffix("_rate") { return "\(fixed((Double(value) ?? 0) * 100, 1)) %" }
        if name.contains("mrr_") { return Int64(value).map { amountText($0, nil) } ?? value }
        if ChurnQuery.Answer.words.contains(name) { return value }
        return Int64(value).map { grouped($0) } ?? value
    }
}
