public import Ledger
public import Postgres

/// The question "which share of failed payments is recovered", by when they began to fail.
public struct RecoveryRateQuery: Hashable, Sendable {
    /// How long a cohort is.
    public enum Step: String, Hashable, Sendable, CaseIterable {
        /// From Monday on.
        case week
        /// A calendar month.
        case month
    }

    /// The first day, `2026-01-31` in the zone.
    public var since: String
    /// The first day after the last, in the zone.
    public var until: String
    /// How long a cohort is.
    public var step: Step
    /// The zone in which days begin, by its name in the IANA time zone database.
    public var zone: String
    /// The environment; the two are never mixed.
    public var environment: Environment
    /// Nothing that happens after this instant counts.
    public var asOf: Timestamp
    /// Only this app.
    public var bundleID: String?

    /// Asks about cohorts of weeks in UTC.
    public init(
        since: String,
        until: String,
        step: Step = .week,
        zone: String = "UTC",
        environment: Environment = .production,
        asOf: Timestamp,
        bundleID: String? = nil
    ) {
        self.since = since
        self.until = until
        self.step = step
        self.zone = zone
        self.environment = environment
        self.asOf = asOf
        self.bundleID = bundleID
    }

    /// The cohorts in order, each with a row for all currencies and one for each.
    ///
    /// - Throws: `ReadModelError`, with the server's SQLSTATE for a day or a zone that does not exist.
    public func rows(_ connection: Connection) throws(ReadModelError) -> [RecoveryRate] {
        do {
            try ZoneName.check(zone, connection)
            let rows = try connection.query(
                """
                select cohort_start::text, cohort_until::text, all_currencies, currency, failures,
                    open, recovered, recovered_in_grace, recovered_after_grace, cancelled, expired,
                    unknown, recovery_rate::text, in_grace_share::text, trial_failures,
                    trial_recovered, amount_at_risk::text, amount_recovered::text,
                    amount_recovery_rate::text, matured, known_to_position
                from read_model.billing_recovery_rate(
                    $1::date, $2::date, $3, $4, $5, $6, $7)
                """,
                [
                    .text(since), .text(until), .text(step.rawValue), .text(zone),
                    .text(environment.description), .instant(milliseconds: asOf.milliseconds),
                    .text(bundleID),
                ]
            )
            return (0..<rows.count).map { RecoveryRate(rows, $0) }
        } catch {
            throw ReadModelError(error, doing: "compute the recovery rate")
        }
    }
}

/// How the failures of one cohort ended.
public struct RecoveryRate: Hashable, Sendable {
    /// The cohort's first day.
    public var since: String
    /// The first day after it.
    public var until: String
    /// Whether the row is of all currencies; it then has no amounts.
    public var isTotal: Bool
    /// The currency of the row; nil where none is known.
    public var currency: String?
    /// How many payments failed.
    public var failures: Int64
    /// How many of them may still be recovered.
    public var open: Int64
    /// How many were recovered.
    public var recovered: Int64
    /// How many of those before access was lost.
    public var recoveredInGrace: Int64
    /// How many of those after it.
    public var recoveredAfterGrace: Int64
    /// How many customers cancelled meanwhile.
    public var cancelled: Int64
    /// How many Apple gave up.
    public var expired: Int64
    /// Of how many nobody knows how they ended.
    public var unknown: Int64
    /// Recovered ÷ failures.
    public var recoveryRate: String?
    /// Recovered in grace ÷ recovered.
    public var inGraceShare: String?
    /// How many were the first charge after a free trial.
    public var trialFailures: Int64
    /// How many of those were recovered.
    public var trialRecovered: Int64
    /// What the charges would have brought, milliunits of `currency`.
    public var amountAtRisk: String?
    /// What those that were recovered brought.
    public var amountRecovered: String?
    /// Amount recovered ÷ amount at risk.
    public var amountRecoveryRate: String?
    /// Whether no charge of the cohort can be recovered any more.
    public var isMatured: Bool
    /// The highest position that was known of any of them.
    public var knownToPosition: Int64

    init(_ rows: Rows, _ row: Int) {
        since = rows.text(row, 0) ?? ""
        until = rows.text(row, 1) ?? ""
        isTotal = rows.bool(row, 2) ?? false
        currency = rows.text(row, 3)
        failures = rows.int(row, 4) ?? 0
        open = rows.int(row, 5) ?? 0
        recovered = rows.int(row, 6) ?? 0
        recoveredInGrace = rows.int(row, 7) ?? 0
        recoveredAfterGrace = rows.int(row, 8) ?? 0
        cancelled = rows.int(row, 9) ?? 0
        expired = rows.int(row, 10) ?? 0
        unknown = rows.int(row, 11) ?? 0
        recoveryRate = rows.text(row, 12)
        inGraceShare = rows.text(row, 13)
        trialFailures = rows.int(row, 14) ?? 0
        trialRecovered = rows.int(row, 15) ?? 0
        amountAtRisk = rows.text(row, 16)
        amountRecovered = rows.text(row, 17)
        amountRecoveryRate = rows.text(row, 18)
        isMatured = rows.bool(row, 19) ?? false
        knownToPosition = rows.int(row, 20) ?? 0
    }

    /// The names of the fields in order.
    public static let names: [String?] = [
        "cohort_start", "cohort_until", "all_currencies", "currency", "failures", "open",
        "recovered", "recovered_in_grace", "recovered_after_grace", "cancelled", "expired",
        "unknown", "recovery_rate", "in_grace_share", "trial_failures", "trial_recovered",
        "amount_at_risk", "amount_recovered", "amount_recovery_rate", "matured",
        "known_to_position",
    ]

    /// The names of the fields, as JSON and CSV have them, with the values as text; nil is null.
    public var fields: [(name: String, value: String?)] {
        [
            ("cohort_start", since), ("cohort_until", until),
            ("all_currencies", isTotal ? "true" : "false"), ("currency", currency),
            ("failures", "\(failures)"), ("open", "\(open)"), ("recovered", "\(recovered)"),
            ("recovered_in_grace", "\(recoveredInGrace)"),
            ("recovered_after_grace", "\(recoveredAfterGrace)"),
            ("cancelled", "\(cancelled)"), ("expired", "\(expired)"), ("unknown", "\(unknown)"),
            ("recovery_rate", recoveryRate), ("in_grace_share", inGraceShare),
            ("trial_failures", "\(trialFailures)"), ("trial_recovered", "\(trialRecovered)"),
            ("amount_at_risk", amountAtRisk), ("amount_recovered", amountRecovered),
            ("amount_recovery_rate", amountRecoveryRate),
            ("matured", isMatured ? "true" : "false"),
            ("known_to_position", "\(knownToPosition)"),
        ]
    }
}
