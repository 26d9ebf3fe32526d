internal import Ledger

/// How often one endpoint may be called.
///
/// Apple counts by the hour. A bucket that holds a tenth of the hour's requests and is filled with
/// the other nine tenths evenly lets no more through in any hour than the hour's number, and
/// still allows a short burst.
struct TokenBucket: Hashable, Sendable {
    /// How many may be taken at once.
    let capacity: Double
    /// How many come back in a millisecond.
    let perMillisecond: Double

    private var available: Double
    private var filledAt: Timestamp

    /// A full bucket that lets so many through in any hour.
    init(perHour: Double, at now: Timestamp) {
        capacity = max(1, (perHour / 10).rounded(.down))
        perMillisecond = max(0, perHour - capacity) / 3_600_000
        available = capacity
        filledAt = now
    }

    /// How long to wait before one may be taken; 0 for at once.
    ///
    /// What is taken is taken also where the caller has to wait for it, so that callers queue up.
    mutating func take(at now: Timestamp) -> Milliseconds {
        fill(at: now)
        available -= 1
        guard available < 0 else { return Milliseconds(rawValue: 0) }
        guard perMillisecond > 0 else { return .hours(1) }
        return Milliseconds(rawValue: Int64((-available / perMillisecond).rounded(.up)))
    }

    /// Puts one back that was taken and not used, since its caller would have had to wait too long:
    /// otherwise whoever asks again and again keeps the bucket empty by asking.
    mutating func giveBack() { available = min(capacity, available + 1) }

    /// What part of the bucket is there.
    mutating func level(at now: Timestamp) -> Double {
        fill(at: now)
        return available / capacity
    }

    private mutating func fill(at now: Timestamp) {
        // A clock that was set back gives nothing and takes nothing, and the time goes on from there;
        // less than a second is only another thread's reading.
        if filledAt.milliseconds - now.milliseconds > 1000 { filledAt = now }
        guard now > filledAt else { return }
        let passed = Double(now.milliseconds - filledAt.milliseconds)
        available = min(capacity, available + passed * perMillisecond)
        filledAt = now
    }
}

/// How long to wait before a request is sent again.
///
/// Waits are drawn evenly from zero up to a bound that doubles ("full jitter"), so that clients
/// that failed together do not come back together.
struct Backoff: Sendable {
    /// The bound of the first wait.
    static let first = Milliseconds(rawValue: 500)
    /// The longest bound.
    static let longest = Milliseconds(rawValue: 60_000)

    /// The bound of a wait after so many failures, from 1.
    static func bound(afterFailures count: Int) -> Milliseconds {
        let doublings = min(max(0, count - 1), 16)
        return Milliseconds(rawValue: min(longest.rawValue, first.rawValue << doublings))
    }
}
