/// An instant in UTC, in milliseconds since 1970, as Apple gives all its dates.
public struct Timestamp: Hashable, Comparable, Sendable {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    public var milliseconds: Int64

    /// Makes an instant from milliseconds since 1970.
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// The first instant that is stored: 1970-01-01.
    public static let earliest = Timestamp(milliseconds: 0)

    /// The last instant that is stored: 9999-12-31T23:59:59.999Z.
    public static let latest = Timestamp(milliseconds: 253_402_300_799_999)

    /// Whether the instant lies within what the log stores, 1970 to 9999.
    public var isStorable: Bool { self >= .earliest && self <= .latest }

    /// The earlier of two instants comes first.
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.milliseconds < right.milliseconds
    }

    /// The instant so much later; saturates at the ends of the storable range.
    public func adding(_ duration: Milliseconds) -> Timestamp {
        let (sum, overflow) = milliseconds.addingReportingOverflow(duration.rawValue)
        if overflow { return duration.rawValue > 0 ? .latest : .earliest }
        return Timestamp(milliseconds: sum)
    }
}

/// A length of time in milliseconds.
public struct Milliseconds: RawRepresentable, Hashable, Comparable, Sendable {
    /// The number of milliseconds.
    public var rawValue: Int64

    /// Makes a length of time from milliseconds.
    public init(rawValue: Int64) { self.rawValue = rawValue }

    /// So many minutes.
    public static func minutes(_ count: Int64) -> Milliseconds {
        Milliseconds(rawValue: count * 60_000)
    }

    /// So many hours.
    public static func hours(_ count: Int64) -> Milliseconds { .minutes(count * 60) }

    /// So many days of 24 hours.
    public static func days(_ count: Int64) -> Milliseconds { .hours(count * 24) }

    /// The shorter length comes first.
    public static func < (left: Milliseconds, right: Milliseconds) -> Bool {
        left.rawValue < right.rawValue
    }
}
