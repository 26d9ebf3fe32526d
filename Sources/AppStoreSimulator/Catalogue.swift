/// The products of the simulated app: a group with three levels, weekly, monthly and yearly plans,
/// and a group of its own for what is sold by the seat.
public enum Catalogue {
    /// One product.
    public struct Product: Hashable, Sendable {
        /// Apple's `productId`.
        public var id: String
        /// Apple's `subscriptionGroupIdentifier`.
        public var groupID: String
        /// The rank within the group; 1 is the highest, as in App Store Connect.
        public var level: Int
        /// The plan's length: `1w`, `1m` or `1y`.
        public var period: String
        /// The price in US dollars, milliunits.
        public var price: Int64

        var length: PlanLength { PlanLength(rawValue: period) ?? .month }

        /// The price in a storefront's currency, milliunits.
        func price(in storefront: Chain.Storefront) -> Int64 {
            let factors: [String: Int64] = [
                "USD": 100, "EUR": 99, "GBP": 85, "BRL": 550, "TRY": 3_500, "JPY": 15_000,
                "VND": 2_500_000,
            ]
            return price * (factors[storefront.currency] ?? 100) / 100
        }
    }

    /// The group of all products but those sold by the seat.
    public static let groupID = "20001001"

    /// The group of what is sold by the seat.
    public static let seatGroupID = "20001002"

    /// All products.
    public static let products: [Product] = [
        product("premium.yearly", 1, "1y", 99_990),
        product("premium.monthly", 1, "1m", 12_990),
        product("standard.yearly", 2, "1y", 59_990),
        product("standard.monthly", 2, "1m", 7_990),
        product("duo.monthly", 2, "1m", 8_990),
        product("basic.monthly", 3, "1m", 3_990),
        product("basic.weekly", 3, "1w", 1_490),
        Product(
            id: "com.example.subledger.team.monthly",
            groupID: seatGroupID,
            level: 1,
            period: "1m",
            price: 4_990
        ),
    ]

    /// What is sold by the seat.
    static let team = products[products.count - 1]

    /// What is sold as a 12-month commitment too.
    static let committed = products.filter { $0.groupID == groupID && $0.length == .year }

    private static func product(
        _ name: String,
        _ level: Int,
        _ period: String,
        _ price: Int64
    ) -> Product {
        Product(
            id: "com.example.subledger.\(name)",
            groupID: groupID,
            level: level,
            period: period,
            price: price
        )
    }

    static let storefronts: [(weight: Double, choice: Chain.Storefront)] = [
        (40, .usa),
        (22, Chain.Storefront(code: "DEU", id: "143443", currency: "EUR")),
        (10, Chain.Storefront(code: "GBR", id: "143444", currency: "GBP")),
        (8, Chain.Storefront(code: "BRA", id: "143503", currency: "BRL")),
        (6, Chain.Storefront(code: "TUR", id: "143480", currency: "TRY")),
        (10, Chain.Storefront(code: "JPN", id: "143462", currency: "JPY")),
        (4, Chain.Storefront(code: "VNM", id: "143471", currency: "VND")),
    ]

    /// A product to start with.
    static func anyProduct(_ random: inout SeededRandom) -> Product {
        let weights = [10.0, 14, 14, 26, 6, 18, 12]
        return random.weighted(zip(weights, products).map { (weight: $0, choice: $1) })
    }

    /// What a switch to counts as an upgrade: a higher level, or the same level and length.
    static func upgrades(from product: Product) -> [Product] {
        products.filter {
            $0.groupID == product.groupID
                && ($0.level < product.level
                    || ($0.level == product.level && $0.period == product.period
                        && $0.id != product.id))
        }
    }

    /// What a switch to counts as a downgrade: a lower level, or the same level, another length.
    static func downgrades(from product: Product) -> [Product] {
        products.filter {
            $0.groupID == product.groupID
                && ($0.level > product.level
                    || ($0.level == product.level && $0.period != product.period))
        }
    }
}

/// The lengths that plans have here.
enum PlanLength: String, Hashable, Sendable {
    case week = "1w"
    case month = "1m"
    case year = "1y"

    /// The end of a period that starts at an instant, in UTC; the last day of a short month.
    func end(from start: Int64) -> Int64 {
        switch self {
        case .week: start + 7 * Span.day
        case .month: Self.adding(months: 1, to: start)
        case .year: Self.adding(months: 12, to: start)
        }
    }

    private static func adding(months: Int64, to instant: Int64) -> Int64 {
        let days = instant / Span.day
        let date = civil(fromDays: days)
        let monthIndex = date.year * 12 + (date.month - 1) + months
        let year = monthIndex / 12
        let month = monthIndex % 12 + 1
        let nextMonth = dayNumber(
            year: month == 12 ? year + 1 : year,
            month: month % 12 + 1,
            day: 1
        )
        let length = nextMonth - dayNumber(year: year, month: month, day: 1)
        let target = dayNumber(year: year, month: month, day: min(date.day, length))
        return target * Span.day + (instant - days * Span.day)
    }

    /// The date of a day number after 1970 (Howard Hinnant's algorithm).
    private static func civil(fromDays days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }

    private static func dayNumber(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = shiftedYear / 400
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
            - 719_468
    }
}

/// Lengths of time in milliseconds.
enum Span {
    static let second: Int64 = 1_000
    static let minute: Int64 = 60_000
    static let hour: Int64 = 3_600_000
    static let day: Int64 = 86_400_000
    /// How long an unanswered renewal is waited for.
    static let leeway: Int64 = 2 * hour
    /// How long Apple retries a failed charge.
    static let billingRetry: Int64 = 60 * day
    /// How long it does for a 12-month commitment.
    static let commitmentRetry: Int64 = 90 * day
}
