public import Ledger
public import Postgres

/// The question "who came, stayed and left", over calendar months.
public struct ChurnQuery: Hashable, Sendable {
    /// What the answer has a row for.
    public enum Grouping: String, Hashable, Sendable, CaseIterable {
        /// Each month.
        case month
        /// Each month, product and currency.
        case product
        /// Each month, cause and currency.
        case cause
    }

    /// The columns of an answer and its rows, as text; nil is null.
    public struct Answer: Hashable, Sendable {
        /// The names of the columns.
        public var names: [String]
        /// The rows in order.
        public var rows: [[String?]] = []

        /// The columns that are words; all others are numbers or truth values.
        public static let words: Set<String> = ["month", "product_id", "currency", "cause"]

        /// A row's field by the name of its column.
        public func value(_ row: Int, _ name: String) -> String? {
            names.firstIndex(of: name).flatMap { rows[row][$0] }
        }

        /// Writes an array with an object for each row.
        public func write(to json: inout JSONWriter) {
            json.beginArray()
            for row in rows {
                json.beginObject()
                for (name, value) in zip(names, row) {
                    if Self.words.contains(name) {
                        json.member(name, value)
                    } else {
                        json.key(name)
                        if let value { json.raw(value.utf8) } else { json.null() }
                    }
                }
                json.endObject()
            }
            json.endArray()
        }
    }

    /// The first day, `2026-01-31` in the zone; its whole month counts.
    public var since: String
    /// The first day after the last, in the zone.
    public var until: String
    /// What the answer has a row for.
    public var grouping: Grouping
    /// The zone in which months begin, by its name in the IANA time zone database.
    public var zone: String
    /// The environment; the two are never mixed.
    public var environment: Environment
    /// Nothing that takes effect after this instant counts.
    public var asOf: Timestamp
    /// Convert amounts to this currency; nil leaves each in its own.
    public var currency: String?

    /// Asks about Production by month in UTC.
    public init(
        since: String,
        until: String,
        grouping: Grouping = .month,
        zone: String = "UTC",
        environment: Environment = .production,
        asOf: Timestamp,
        currency: String? = nil
    ) {
        self.since = since
        self.until = until
        self.grouping = grouping
        self.zone = zone
        self.environment = environment
        self.asOf = asOf
        self.currency = currency
    }

    /// The subscribers; for `.cause` the losses, with what they were worth.
    ///
    /// - Throws: `ReadModelError`, with SQLSTATE 22… for a day or a zone that does not exist, and
    ///   P0002 for a missing exchange rate.
    public func subscribers(_ connection: Connection) throws(ReadModelError) -> Answer {
        switch grouping {
        case .month:
            let sums = Self.counts.map { "sum(\($0))" }
            return try ask(
                ["month"] + Self.counts + ["gross_churn_rate", "net_churn_rate"]
                    + ["known_to_position"] + Self.risks,
                ["month"] + sums + [
                    "round(sum(churned_of_start_any) / nullif(sum(active_start), 0), 6)",
                    """
                    round((sum(access_churn) - sum(reactivated) - sum(recovered)
                        - sum(corrections)) / nullif(sum(active_start), 0), 6)
                    """,
                    "min(known_to_position)",
                ] + Self.risks.map { "sum(\($0))" },
                from: "churn_monthly($1::date, $2::date, $3, $4, $5)",
                "group by month order by month",
                connection
            )
        case .product:
            let names =
                ["month", "product_id", "currency"] + Self.counts
                + ["gross_churn_rate", "net_churn_rate", "known_to_position"] + Self.risks
            return try ask(
                names,
                names,
                from: "churn_monthly($1::date, $2::date, $3, $4, $5)",
                "",
                connection
            )
        case .cause:
            let names = [
                "month", "cause", "currency", "access_churn", "final_churn", "final_unconfirmed",
                "price_influenced", "extended", "tenure_days_mean", "mrr_lost",
                "known_to_position",
            ]
            return try ask(
                names,
                names,
                from: "churn_by_cause($1::date, $2::date, $3, $4, $5, $6)",
                "",
                connection
            )
        }
    }

    /// The monthly value and its movements, by currency, and for `.product` by product too.
    public func value(_ connection: Connection) throws(ReadModelError) -> Answer {
        let keys =
            grouping == .product ? ["month", "product_id", "currency"] : ["month", "currency"]
        let list = keys.joined(separator: ", ")
        return try ask(
            keys + Self.movements + ["known_to_position", "standard_mrr_end"],
            keys + Self.movements.map { "sum(\($0))" }
                + ["min(known_to_position)", "sum(standard_mrr_end)"],
            from: "mrr_monthly($1::date, $2::date, $3, $4, $5, $6)",
            "group by \(list) order by \(list)",
            connection
        )
    }

    private static let counts = [
        "active_start", "new_paid", "trial_converted", "reactivated", "recovered", "switched_in",
        "churn_voluntary", "churn_involuntary", "churn_price", "churn_product", "churn_refund",
        "churn_other", "lapsed_unconfirmed", "switched_out", "corrections", "active_end",
        "access_churn",
    ]

    private static let risks = [
        "at_risk_intent", "at_risk_billing", "at_risk_grace", "at_risk_price",
    ]

    private static let movements = [
        "mrr_start", "mrr_new", "mrr_reactivation", "mrr_expansion", "mrr_contraction",
        "mrr_churn", "mrr_lapsed_unconfirmed", "mrr_correction", "mrr_currency", "mrr_fx",
        "mrr_end",
    ]

    private func ask(
        _ names: [String],
        _ expressions: [String],
        from call: String,
        _ rest: String,
        _ connection: Connection
    ) throws(ReadModelError) -> Answer {
        var binds: [Bind] = [
            .text(since), .text(until), .text(zone), .text(environment.description),
            .instant(milliseconds: asOf.milliseconds),
        ]
        if call.contains("$6") { binds.append(.text(currency)) }
        do {
            try ZoneName.check(zone, connection)
            let columns = expressions.map { "(\($0))::text" }.joined(separator: ", ")
            let rows = try connection.query(
                "select \(columns) from read_model.\(call) \(rest)",
                binds
            )
            var answer = Answer(names: names)
            for row in 0..<rows.count {
                answer.rows.append(names.indices.map { rows.text(row, $0) })
            }
            return answer
        } catch {
            throw ReadModelError(error, doing: "compute churn")
        }
    }
}
