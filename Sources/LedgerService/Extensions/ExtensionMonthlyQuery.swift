public import Ledger
public import Postgres

/// The question "how many days were granted, for which reason and by whom", by month.
public struct ExtensionMonthlyQuery: Hashable, Sendable {
    /// The first day, `2026-01-31` in the zone.
    public var since: String
    /// The first day after the last, in the zone.
    public var until: String
    /// The zone in which months begin, by its name in the IANA time zone database.
    public var zone: String
    /// The environment; the two are never mixed.
    public var environment: Environment

    /// Asks about Production in UTC.
    public init(
        since: String,
        until: String,
        zone: String = "UTC",
        environment: Environment = .production
    ) {
        self.since = since
        self.until = until
        self.zone = zone
        self.environment = environment
    }

    /// The months in order, each with a row for every reason and operator.
    ///
    /// - Parameter connection: a session of the auditor's.
    /// - Returns: the rows; none where nothing was asked for or extended.
    /// - Throws: `ReadModelError`, with the server's SQLSTATE for a day or a zone that does not exist.
    public func rows(_ connection: Connection) throws(ReadModelError) -> [ExtensionMonth] {
        do {
            try ZoneName.check(zone, connection)
            let rows = try connection.query(
                """
                select month::text, apple_reason, operator, requests, granted, trim_scale(days_granted)::text,
                    refused_locally, refused_by_apple, unsettled, external
                from read_model.extension_monthly($1::date, $2::date, $3, $4)
                """,
                [.text(since), .text(until), .text(zone), .text(environment.description)]
            )
            return (0..<rows.count).map { ExtensionMonth(rows, $0) }
        } catch {
            throw ReadModelError(error, doing: "report the extensions of each month")
        }
    }
}

/// What one operator asked for in one month for one of Apple's reasons.
public struct ExtensionMonth: Hashable, Sendable {
    /// The month's first day.
    public var month: String
    /// Apple's reason by its name; nil where nobody here asked.
    public var reason: String?
    /// Who asked: what is known of them without their word, or else what they said; nil where
    /// nobody here asked.
    public var operatorName: String?
    /// How many extensions were asked for.
    public var requests: Int64
    /// How many were made, those that nobody here asked for included.
    public var granted: Int64
    /// How many days those moved the ends by, a decimal: a day of Sandbox is shorter.
    public var daysGranted: String
    /// How many our own rules refused.
    public var refusedLocally: Int64
    /// How many Apple refused.
    public var refusedByApple: Int64
    /// Of how many nobody knows yet what became of them.
    public var unsettled: Int64
    /// How many nobody here asked for.
    public var external: Int64

    init(_ rows: Rows, _ row: Int) {
        month = rows.text(row, 0) ?? ""
        reason = rows.text(row, 1)
        operatorName = rows.text(row, 2)
        requests = rows.int(row, 3) ?? 0
        granted = rows.int(row, 4) ?? 0
        daysGranted = rows.text(row, 5) ?? "0"
        refusedLocally = rows.int(row, 6) ?? 0
        refusedByApple = rows.int(row, 7) ?? 0
        unsettled = rows.int(row, 8) ?? 0
        external = rows.int(row, 9) ?? 0
    }

    /// The names of the words, the fields before the numbers.
    private static let wordNames = ["month", "apple_reason", "operator"]

    /// The names of the numbers.
    private static let countNames = [
        "requests", "granted", "days_granted", "refused_locally", "refused_by_apple", "unsettled",
        "external",
    ]

    /// The names of the fields in order.
    public static let names: [String] = wordNames + countNames

    /// The fields before the numbers, in the order of `names`.
    public var words: [String?] { [month, reason, operatorName] }

    /// The numbers as decimals, in the order of `names`.
    public var counts: [String] {
        [
            "\(requests)", "\(granted)", daysGranted, "\(refusedLocally)", "\(refusedByApple)",
            "\(unsettled)", "\(external)",
        ]
    }

    /// Writes the row as one JSON object.
    public func write(to json: inout JSONWriter) {
        json.beginObject()
        for (name, word) in zip(Self.wordNames, words) { json.member(name, word) }
        for (name, count) in zip(Self.countNames, counts) {
            json.key(name)
            json.raw(count.utf8)
        }
        json.endObject()
    }
}
