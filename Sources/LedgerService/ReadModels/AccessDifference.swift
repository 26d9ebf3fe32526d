public import EventLog
public import Ledger

/// A stretch of time in which one subscription gains or loses access.
public struct AccessDifference: Hashable, Sendable {
    /// Apple's id of the subscription.
    public var originalTransactionID: String
    /// The app and the environment.
    public var app: AppKey
    /// The owner at the end of what is known; nil where there is none.
    public var owner: UniqueID?
    /// Whether it gains access; else it loses it.
    public var gains: Bool
    /// The state in which it does.
    public var state: String
    /// Why the subscription expired or was revoked.
    public var cause: String?
    /// The first instant.
    public var from: Timestamp
    /// The first instant after it; nil where it never ends.
    public var until: Timestamp?

    /// Whether the instant lies in the stretch.
    public func contains(_ instant: Timestamp) -> Bool {
        from <= instant && until.map { instant < $0 } ?? true
    }
}

/// How many subscriptions gain and lose access, by cause.
public struct AccessDifferenceSummary: Hashable, Sendable {
    /// One kind of difference.
    public struct Group: Hashable, Sendable {
        /// Whether access is gained; else it is lost.
        public var gains: Bool
        /// The state in which it is.
        public var state: String
        /// Why the subscription expired or was revoked.
        public var cause: String?

        /// A group for a difference.
        public init(_ difference: AccessDifference) {
            gains = difference.gains
            state = difference.state
            cause = difference.cause
        }
    }

    /// How many there are of a kind.
    public struct Count: Hashable, Sendable {
        /// How many subscriptions have such a stretch.
        public var subscriptions: Int64 = 0
        /// How many of them are in one at the instant that is asked about.
        public var now: Int64 = 0
        /// Where the earliest of the stretches begins.
        public var from: Timestamp = .latest
    }

    /// The counts by kind.
    public internal(set) var groups: [Group: Count] = [:]
    /// How many subscriptions were compared.
    public internal(set) var compared: Int64 = 0
    /// How many subscriptions gain or lose access at some time.
    public internal(set) var different: Int64 = 0
    /// How many subscriptions have news that the live rows do not hold yet.
    public internal(set) var stale: Int64 = 0

    /// The groups in a fixed order: losses first, then by state and cause.
    public var ordered: [(group: Group, count: Count)] {
        groups.sorted { left, right in
            if left.key.gains != right.key.gains { return !left.key.gains }
            return (left.key.state, left.key.cause ?? "") < (right.key.state, right.key.cause ?? "")
        }
        .map { (group: $0.key, count: $0.value) }
    }

    /// Counts the differences of one subscription.
    mutating func add(_ differences: [AccessDifference], at instant: Timestamp) {
        compared += 1
        if !differences.isEmpty { different += 1 }
        var isNow: [Group: Bool] = [:]
        for difference in differences {
            let group = Group(difference)
            isNow[group] = isNow[group, default: false] || difference.contains(instant)
            groups[group, default: Count()].from = min(
                groups[group, default: Count()].from,
                difference.from
            )
        }
        for (group, isNow) in isNow {
            groups[group, default: Count()].subscriptions += 1
            if isNow { groups[group, default: Count()].now += 1 }
        }
    }
}

/// A stretch of a timeline, as far as access goes.
struct AccessStretch: Hashable {
    var from: Timestamp
    /// Nil where it never ends.
    var until: Timestamp?
    var entitled: Bool
    var state: String
    var cause: String?

    init(from: Timestamp, until: Timestamp?, entitled: Bool, state: String, cause: String?) {
        self.from = from
        self.until = until
        self.entitled = entitled
        self.state = state
        self.cause = cause
    }

    init(_ interval: Interval) {
        from = interval.from
        until = interval.until
        entitled = interval.entitled
        state = interval.state.name
        cause = interval.state.cause
    }

    /// A stretch in which two timelines differ.
    struct Difference: Hashable {
        var gains: Bool
        var state: String
        var cause: String?
        var from: Timestamp
        var until: Timestamp?
    }

    /// Where access in `new` is another than in `old`, both in order.
    ///
    /// Neighbours of one kind are one. Where a timeline says nothing it grants nothing.
    static func differences(old: [AccessStretch], new: [AccessStretch]) -> [Difference] {
        var cuts = Set<Timestamp>()
        for stretch in old + new {
            cuts.insert(stretch.from)
            if let until = stretch.until { cuts.insert(until) }
        }
        let instants = cuts.sorted()
        var result: [Difference] = []
        var (before, after) = (0, 0)
        for (place, from) in instants.enumerated() {
            while before < old.count, old[before].until.map({ $0 <= from }) ?? false { before += 1 }
            while after < new.count, new[after].until.map({ $0 <= from }) ?? false { after += 1 }
            let was = before < old.count && old[before].from <= from ? old[before] : nil
            let will = after < new.count && new[after].from <= from ? new[after] : nil
            let gains = will?.entitled ?? false
            guard gains != was?.entitled ?? false, let shown = will ?? was else { continue }
            let difference = Difference(
                gains: gains,
                state: shown.state,
                cause: shown.cause,
                from: from,
                until: place + 1 < instants.count ? instants[place + 1] : nil
            )
            if var last = result.last, last.until == from {
                last.from = difference.from
                last.until = difference.until
                if last == difference {
                    result[result.count - 1].until = difference.until
                    continue
                }
            }
            result.append(difference)
        }
        return result
    }
}
