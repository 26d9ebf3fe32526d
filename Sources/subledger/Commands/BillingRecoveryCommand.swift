internal import Ledger
internal import LedgerService
internal import Postgres

/// `subledger billing-recovery`.
enum BillingRecoveryCommand {
    static let command = Command(
        name: "billing-recovery",
        summary: "Show whose payment has failed, or which share of failed payments is recovered.",
        options: [
            .database, .config, .json,
            .flag("--csv", "print comma-separated values"),
            .at,
            .value("--owner", "TOKEN", "only what this appAccountToken owned then"),
            .value("--environment", "Sandbox|Production", "which of the two; default Production"),
            .flag("--rate", "show how failed payments ended, by when they began to fail"),
            .value("--from", "DAY", "with --rate: the first day, 2026-01-31"),
            .value("--to", "DAY", "with --rate: the first day after the last"),
            .value("--by", "week|month", "with --rate: how long a cohort is; default week"),
            .value("--zone", "ZONE", "with --rate: where days begin; default UTC"),
        ],
        details: """
            Without --rate: one row for each purchased subscription whose payment had failed at the
            instant and could still be recovered. Remind those whose renewal intent is on; who
            turned it off has cancelled.
            With --rate: recovered ÷ failed. A cohort has matured when none of its payments can be
            recovered any more, 60 days (12-month commitments: 90) after the last one was due.
            Amounts stand per currency; nothing after --at counts.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        if arguments.has("--json"), arguments.has("--csv") {
            throw CommandFailure.usage("--json and --csv exclude each other")
        }
        let isRate = arguments.has("--rate")
        for name in ["--from", "--to", "--by", "--zone"] where arguments.has(name) && !isRate {
            throw CommandFailure.usage("\(name) goes with --rate")
        }
        if isRate, arguments.has("--owner") {
            throw CommandFailure.usage("--owner does not go with --rate")
        }
        let rate = isRate ? try rateQuery(arguments) : nil
        let list = try listQuery(arguments)
        let database = try Database.open(arguments, Configuration.find(arguments))
        let connection = try database.connect(as: .reader)
        let output = Output.standard()
        if let rate {
            try show(rate, arguments, connection, to: output)
        } else {
            try show(list, arguments, connection, to: output)
        }
        try output.flush()
        try EntitlementsCommand.reportStaleness(connection, isJSON: arguments.has("--json"))
        return .done
    }

    private static func listQuery(_ arguments: Arguments) throws -> BillingRecoveryQuery {
        var query = BillingRecoveryQuery(at: try arguments.instant("--at") ?? .now)
        query.environment = try EntitlementsCommand.environment(arguments) ?? .production
        query.owner = try arguments.uuid("--owner")
        return query
    }

    private static func rateQuery(_ arguments: Arguments) throws -> RecoveryRateQuery {
        let days = try arguments.days(for: "--rate")
        let text = arguments.value("--by") ?? "week"
        guard let step = RecoveryRateQuery.Step(rawValue: text) else {
            throw CommandFailure.usage("--by is week or month, not “\(text)”")
        }
        return RecoveryRateQuery(
            since: days.since,
            until: days.until,
            step: step,
            zone: arguments.value("--zone") ?? "UTC",
            environment: try EntitlementsCommand.environment(arguments) ?? .production,
            asOf: try arguments.instant("--at") ?? .now
        )
    }

    // MARK: - Who is in trouble

    private static func show(
        _ query: BillingRecoveryQuery,
        _ arguments: Arguments,
        _ connection: Connection,
        to output: Output
    ) throws {
        if arguments.has("--json") {
            var count = 0
            try output.write("[")
            try query.forEach(connection) { trouble in
                var json = JSONWriter()
                trouble.write(to: &json)
                try output.write(count == 0 ? "\n" : ",\n")
                try output.write(json.bytes)
                count += 1
            }
            return try output.line(count == 0 ? "]" : "\n]")
        }
        if arguments.has("--csv") {
            try output.line(CommaSeparated.line(BillingTroubleTable.csvNames))
            return try query.forEach(connection) {
                try output.line(CommaSeparated.line(BillingTroubleTable.csvFields($0)))
            }
        }
        var table = BillingTroubleTable()
        try query.forEach(connection) { table.add($0) }
        if table.count > 0 {
            try output.table(table.table)
            try output.line()
            if Terminal.isOutput {
                for line in barChart(table.counts, width: Terminal.columns) {
                    try output.line(line)
                }
                try output.line()
            }
        }
        let noun = table.count == 1 ? "failed payment" : "failed payments"
        try output.line("\(grouped(table.count)) \(noun) in \(query.environment) at \(query.at)")
    }

    // MARK: - The rate

    private static func show(
        _ query: RecoveryRateQuery,
        _ arguments: Arguments,
        _ connection: Connection,
        to output: Output
    ) throws {
        let rows = try askingForDays { () throws(ReadModelError) in try query.rows(connection) }
        if arguments.has("--json") {
            try output.line(json(rows))
        } else if arguments.has("--csv") {
            try output.line(CommaSeparated.line(RecoveryRate.names))
            for row in rows { try output.line(CommaSeparated.line(row.fields.map(\.value))) }
        } else {
            try output.table(table(rows))
            try output.line()
            try output.line(
                "failures of \(query.environment) by \(query.step.rawValue) in \(query.zone), "
                    + "as of \(query.asOf)"
            )
        }
    }

    private static func json(_ rows: [RecoveryRate]) -> String {
        var json = JSONWriter(pretty: true)
        json.beginArray()
        for row in rows {
            json.beginObject()
            for (name, value) in row.fields {
                if ["cohort_start", "cohort_until", "currency"].contains(name) {
                    json.member(name, value)
                } else {
                    json.key(name)
                    if let value { json.raw(value.utf8) } else { json.null() }
                }
            }
            json.endObject()
        }
        json.endArray()
        return json.text
    }

    private static func table(_ rows: [RecoveryRate]) -> TextTable {
        var table = TextTable(
            "from",
            "to",
            "currency",
            "#failed",
            "#open",
            "#recovered",
            "#in grace",
            "#cancelled",
            "#expired",
            "#unknown",
            "#rate",
            Terminal.isOutput ? "" : "matured",
            Terminal.isOutput ? "matured" : "",
            "#at risk",
            "#recovered amount"
        )
        for row in rows {
            let share = row.recoveryRate.flatMap { Double($0) } ?? 0
            let matured = row.isMatured ? "yes" : "not yet"
            table.add(
                row.isTotal ? row.since : "",
                row.isTotal ? row.until : "",
                row.isTotal ? "all" : row.currency ?? "none",
                grouped(row.failures),
                grouped(row.open),
                grouped(row.recovered),
                grouped(row.recoveredInGrace),
                grouped(row.cancelled),
                grouped(row.expired),
                grouped(row.unknown),
                "\(fixed(share * 100, 1)) %",
                Terminal.isOutput ? bar(share, columns: 10) : matured,
                Terminal.isOutput ? matured : "",
                row.amountAtRisk.flatMap { Int64($0) }.map { amountText($0, nil) } ?? "",
                row.amountRecovered.flatMap { Int64($0) }.map { amountText($0, nil) } ?? ""
            )
        }
        return table
    }
}

/// Failed payments as a table.
struct BillingTroubleTable {
    private(set) var table = TextTable(
        "subscription",
        "~product",
        "~owner",
        "state",
        "access",
        "cause",
        "intent",
        "failed",
        "grace until",
        "retry until",
        "#at risk"
    )
    private var states: [String: Int] = [:]

    /// How many there are.
    var count: Int { table.count }

    /// How many there are in each state.
    var counts: [(label: String, count: Int)] {
        states.sorted { $0.key < $1.key }.map { (label: $0.key, count: $0.value) }
    }

    /// Adds a failed payment.
    mutating func add(_ trouble: BillingTrouble) {
        states[trouble.state ?? "unknown", default: 0] += 1
        table.add(
            trouble.originalTransactionID,
            trouble.productID ?? "–",
            trouble.appAccountToken?.description ?? "–",
            trouble.state ?? "–",
            trouble.entitled ? "yes" : "no",
            trouble.cause,
            trouble.renewalIntent,
            minute(trouble.openedAt),
            trouble.graceUntil.map { minute($0) + (trouble.graceSource == "estimated" ? "?" : "") }
                ?? "–",
            minute(trouble.retryDeadline),
            amountText(trouble.amountAtRisk, trouble.currency)
        )
    }

    /// The headings of the comma-separated values.
    static let csvNames: [String?] = [
        "original_transaction_id", "environment", "bundle_id", "product_id", "app_account_token",
        "state", "entitled", "entitled_apple", "access_until", "cause", "renewal_intent",
        "opened_at", "expires_date", "grace_until", "grace_source", "grace_exhausted_at",
        "retry_deadline", "days_unpaid_access", "amount_at_risk", "currency",
        "was_trial_conversion", "known_to_position",
    ]

    /// A failed payment as comma-separated values.
    static func csvFields(_ trouble: BillingTrouble) -> [String?] {
        [
            trouble.originalTransactionID, trouble.environment, trouble.bundleID,
            trouble.productID, trouble.appAccountToken?.description, trouble.state,
            "\(trouble.entitled)", "\(trouble.entitledApple)", trouble.accessUntil?.description,
            trouble.cause, trouble.renewalIntent, "\(trouble.openedAt)",
            "\(trouble.expiresDate)", trouble.graceUntil?.description, trouble.graceSource,
            trouble.graceExhaustedAt?.description, "\(trouble.retryDeadline)",
            trouble.daysUnpaidAccess, trouble.amountAtRisk.map { "\($0)" }, trouble.currency,
            "\(trouble.wasTrialConversion)", "\(trouble.knownToPosition)",
        ]
    }
}
