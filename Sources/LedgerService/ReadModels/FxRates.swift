internal import Ledger
public import Postgres

/// Exchange rates of a CSV file: `date,from,to,rate`, with or without that heading.
public struct FxRates: Hashable, Sendable {
    /// One rate: 1 `from` is worth so many `to` on that day.
    public struct Rate: Hashable, Sendable {
        /// `2026-01-31`.
        public var date: String
        /// ISO 4217.
        public var from: String
        /// ISO 4217.
        public var to: String
        /// An exact decimal number as it was written.
        public var rate: String
    }

    /// A line that is no rate.
    public struct Problem: Hashable, Sendable {
        /// The number of the line, from 1.
        public var line: Int
        /// What is wrong with it.
        public var message: String
    }

    /// The rates in the order of the file.
    public private(set) var rates: [Rate] = []
    /// The lines that are none.
    public private(set) var problems: [Problem] = []

    private var seen: [[String]: String] = [:]

    /// Makes an empty set.
    public init() {}

    /// Reads one line; empty lines and the heading are passed over.
    public mutating func add(line: String, number: Int) {
        let fields = line.split(separator: ",", omittingEmptySubsequences: false).map { field in
            String(field.drop { $0 == " " }.reversed().drop { $0 == " " || $0 == "\r" }.reversed())
        }
        if fields == [""] || (number == 1 && fields == ["date", "from", "to", "rate"]) { return }
        guard fields.count == 4 else {
            return refuse(number, "has \(fields.count) fields, not date,from,to,rate")
        }
        let rate = Rate(date: fields[0], from: fields[1], to: fields[2], rate: fields[3])
        guard rate.date.utf8.count == 10, Timestamp(parsing: rate.date) != nil else {
            return refuse(number, "the date is a day such as 2026-01-31")
        }
        guard Self.isCurrency(rate.from), Self.isCurrency(rate.to), rate.from != rate.to else {
            return refuse(number, "from and to are two different currencies such as EUR")
        }
        guard Self.isRate(rate.rate) else {
            return refuse(
                number,
                "the rate is a number above 0 with at most 12 digits before and 18 behind a point"
            )
        }
        let key = [rate.date, rate.from, rate.to]
        if let other = seen[key] {
            if other != rate.rate { refuse(number, "another line has another rate of that day") }
            return
        }
        seen[key] = rate.rate
        rates.append(rate)
    }

    /// Appends the rates that differ from the newest version; nothing is ever changed.
    ///
    /// - Parameter connection: a session of the appender's role.
    /// - Returns: how many were appended.
    /// - Throws: `ReadModelError`; then none was.
    public func append(_ connection: Connection) throws(ReadModelError) -> Int {
        precondition(problems.isEmpty, "a file is imported whole or not at all")
        do {
            let result = try connection.query(
                """
                insert into ledger.fx_rate (rate_date, from_currency, to_currency, version, rate)
                select n.day::date, n.source, n.target, coalesce(o.version, 0) + 1, n.rate::numeric
                from unnest($1::text[], $2::text[], $3::text[], $4::text[])
                    as n (day, source, target, rate)
                left join lateral (
                    select r.version, r.rate
                    from ledger.fx_rate r
                    where r.from_currency = n.source and r.to_currency = n.target
                        and r.rate_date = n.day::date
                    order by r.version desc
                    limit 1
                ) o on true
                where o.rate is distinct from n.rate::numeric
                """,
                [
                    .textArray(rates.map(\.date)), .textArray(rates.map(\.from)),
                    .textArray(rates.map(\.to)), .textArray(rates.map(\.rate)),
                ]
            )
            return result.affected
        } catch {
            throw ReadModelError(error, doing: "append exchange rates")
        }
    }

    private mutating func refuse(_ line: Int, _ message: String) {
        problems.append(Problem(line: line, message: message))
    }

    private static func isCurrency(_ text: String) -> Bool {
        text.utf8.count == 3 && text.utf8.allSatisfy { (0x41...0x5A).contains($0) }
    }

    private static func isRate(_ text: String) -> Bool {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), (1...12).contains(parts[0].utf8.count) else {
            return false
        }
        if parts.count == 2, !(1...18).contains(parts[1].utf8.count) { return false }
        let digits = parts.flatMap { Array($0.utf8) }
        return digits.allSatisfy { (0x30...0x39).contains($0) } && digits.contains { $0 != 0x30 }
    }
}
