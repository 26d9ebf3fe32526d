internal import EventLog
internal import Ledger

/// What is delivered of one stream in one round, in its order.
struct ForwardWork: Sendable {
    /// The stream.
    var key: SubscriptionKey
    /// Its notifications by position.
    var events: [StoredEvent]
    /// Whether there are more of it after these.
    var hasMore = false
}

/// How far one piece of work has got.
struct ForwardOutcome: Sendable {
    /// Why it stopped.
    enum Stop: Hashable, Sendable {
        /// The consumer got this one and did not take it; the stream waits, the others go on.
        case refused(String)
        /// The consumer as a whole is not to be reached, or asked to be left alone.
        case unreachable(String, retryAfter: Duration?)
        /// There is no time left in this round.
        case interrupted
    }

    /// How many of the events were taken, from the first on.
    var taken: Int
    /// Why not all of them were; nil when all were.
    var stop: Stop?
}

/// What a round leads to, to be written in one transaction.
struct ForwardResult: Sendable {
    /// What becomes of a stream's row.
    enum Change: Sendable {
        case held(HeldStream, failure: String)
        case released
    }

    var position: Int64
    var attempts = 0
    var pause: Duration?
    var failure: String?
    var deliveredCount = 0
    var changes: [SubscriptionKey: Change] = [:]
}

/// How far a destination has got and what is next: it decides, and does nothing by itself.
///
/// Positions up to `position` are settled: taken, not wanted, or behind the hold of their stream.
/// A stream is held from the first notification that the consumer did not take; the others go on.
/// At most about `heldMax` streams are held: beyond that the position rests until some are taken.
struct ForwardPlan: Sendable {
    /// How many streams may wait before the others wait too.
    static let heldMax = 1000
    /// How many notifications one round delivers of those that are new.
    static let roundMax = 64
    /// How many held streams one round tries again.
    static let retriedMax = 16

    private(set) var position: Int64
    private(set) var attempts: Int
    private(set) var held: [SubscriptionKey: HeldStream]
    /// Taken already, though something before them was not.
    private var takenAhead: Set<Int64> = []

    init(position: Int64, attempts: Int, held: [SubscriptionKey: HeldStream]) {
        self.position = position
        self.attempts = attempts
        self.held = held
    }

    /// Whether so many streams wait that no new notification is begun with.
    var isFull: Bool { held.count >= Self.heldMax }

    /// What of the newest events is to be delivered.
    ///
    /// - Parameters:
    ///   - events: the log from `position` on, without a gap.
    ///   - isWanted: whether the destination gets an event at all.
    /// - Returns: the work, and up to where the events are covered by it.
    func work(
        on events: [StoredEvent],
        isWanted: (StoredEvent) -> Bool
    ) -> (work: [ForwardWork], end: Int64) {
        var work: [ForwardWork] = []
        var places: [SubscriptionKey: Int] = [:]
        var end = position
        var count = 0
        for event in events {
            guard count < Self.roundMax else { break }
            end = event.position
            guard isWanted(event), held[event.key] == nil, !takenAhead.contains(event.position)
            else { continue }
            count += 1
            if let place = places[event.key] {
                work[place].events.append(event)
            } else {
                places[event.key] = work.count
                work.append(ForwardWork(key: event.key, events: [event]))
            }
        }
        return (work, end)
    }

    /// The held streams whose time has come, those that wait longest first.
    func due(at now: ContinuousClock.Instant, upTo end: Int64) -> [SubscriptionKey] {
        held.filter { $0.value.dueAt <= now && $0.value.position <= end }
            .sorted { ($0.value.dueAt, $0.key.stream) < ($1.value.dueAt, $1.key.stream) }
            .prefix(Self.retriedMax).map(\.key)
    }

    /// When the next held stream is due; nil where none is held.
    var nextDue: ContinuousClock.Instant? { held.values.map(\.dueAt).min() }

    /// Takes in how a round went.
    ///
    /// - Parameters:
    ///   - work: what was tried, the retried streams too.
    ///   - outcomes: how each piece went, in the same order.
    ///   - end: up to where the new events are covered.
    ///   - now: the time.
    ///   - jitter: a random number from 0 up to 1.
    /// - Returns: what is to be written.
    mutating func settle(
        _ work: [ForwardWork],
        _ outcomes: [ForwardOutcome],
        upTo end: Int64,
        at now: ContinuousClock.Instant,
        jitter: () -> Double
    ) -> ForwardResult {
        var result = ForwardResult(position: end)
        var unfinished = Int64.max
        var retryAfter: Duration?
        var wasReached = work.isEmpty
        for (piece, outcome) in zip(work, outcomes) {
            result.deliveredCount += outcome.taken
            let rest = piece.events.dropFirst(outcome.taken)
            let wasHeld = held[piece.key] != nil
            if outcome.taken > 0 { wasReached = true }
            for event in piece.events.prefix(outcome.taken) { takenAhead.insert(event.position) }
            switch outcome.stop {
            case .refused(let reason):
                wasReached = true
                hold(piece.key, at: rest.first?.position, now, jitter())
                if let stream = held[piece.key] {
                    result.changes[piece.key] = .held(stream, failure: reason)
                }
            case .unreachable(let reason, let wish):
                result.failure = reason
                retryAfter = [retryAfter, wish].compactMap(\.self).max()
                unfinished = min(unfinished, leave(piece, rest, wasHeld, &result))
            case .interrupted:
                unfinished = min(unfinished, leave(piece, rest, wasHeld, &result))
            case nil where wasHeld:
                release(piece, now, &result)
            case nil: break
            }
        }
        if result.failure != nil {
            attempts += 1
            let pause = max(
                Self.pause(attempts, capSeconds: 60, jitter()),
                min(retryAfter ?? .zero, .seconds(600))
            )
            result.pause = pause
        } else if wasReached {
            attempts = 0
        }
        result.attempts = attempts
        position = max(position, min(end, unfinished - 1))
        result.position = position
        takenAhead = takenAhead.filter { $0 > position }
        return result
    }

    /// Leaves what was not tried for the next round.
    ///
    /// - Returns: the first position that the destination still lacks.
    private mutating func leave(
        _ piece: ForwardWork,
        _ rest: ArraySlice<StoredEvent>,
        _ wasHeld: Bool,
        _ result: inout ForwardResult
    ) -> Int64 {
        guard let next = rest.first?.position else { return .max }
        guard wasHeld else { return next }
        // It stays held, from where it has got to.
        if var stream = held[piece.key], stream.position != next {
            stream.position = next
            held[piece.key] = stream
            result.changes[piece.key] = .held(stream, failure: "the rest of it waits")
        }
        return .max
    }

    private mutating func hold(
        _ key: SubscriptionKey,
        at position: Int64?,
        _ now: ContinuousClock.Instant,
        _ jitter: Double
    ) {
        guard let position else { return }
        // What the consumer took meanwhile is progress: the count begins anew.
        let before = held[key].flatMap { $0.position == position ? $0.attempts : nil } ?? 0
        held[key] = HeldStream(
            position: position,
            attempts: before + 1,
            dueAt: now + Self.pause(before + 1, capSeconds: 300, jitter)
        )
    }

    private mutating func release(
        _ piece: ForwardWork,
        _ now: ContinuousClock.Instant,
        _ result: inout ForwardResult
    ) {
        guard piece.hasMore, let last = piece.events.last?.position else {
            held[piece.key] = nil
            result.changes[piece.key] = .released
            return
        }
        let stream = HeldStream(position: last + 1, attempts: 0, dueAt: now)
        held[piece.key] = stream
        result.changes[piece.key] = .held(stream, failure: "the rest of it waits")
    }

    /// A second, doubled with each attempt up to a cap; half of it random.
    ///
    /// Random, so that consumers are not met by everything at once when they come back.
    static func pause(_ attempt: Int, capSeconds: Int64, _ jitter: Double) -> Duration {
        let seconds = min(capSeconds, 1 << Int64(min(max(attempt - 1, 0), 20)))
        return .milliseconds(seconds * 500 + Int64(Double(seconds * 500) * jitter))
    }
}
