internal import HTTP
internal import Synchronization

/// One notification on its way.
struct ChaosDelivery: Sendable {
    /// Its place in the book.
    var number: Int
    /// The whole request.
    var message: [UInt8]
    /// Apple's `originalTransactionId`.
    var stream: String
    /// Whether it is sent once more after it was acknowledged.
    var comesAgain: Bool
    /// When it was to be sent, in seconds.
    var due: Double
    /// How often it was tried.
    var attempts = 0
}

/// What the sender knows of what it sent and what it was told: the truth that the log is held to.
///
/// It shares nothing with the service and survives whatever becomes of that.
final class ChaosBook: Sendable {
    /// What an answer with 200 said.
    enum Outcome: String, Sendable {
        case stored
        case duplicate
        case conflict
        case quarantined
    }

    struct Entry: Sendable {
        /// The idempotency key that it must be stored under.
        var key: String
        /// SHA-256 of the signed text.
        var digest: [UInt8]
        var sends = 0
        var firstSent = 0.0
        /// When the first acknowledgement had arrived; 0 without one.
        var firstAcknowledged = 0.0
        var acknowledgements = 0
        var firstOutcome: Outcome?
        var position: Int64 = 0
        /// How often a whole request stayed without an answer.
        var unanswered = 0
        /// Answers that contradict each other.
        var contradiction: String?
    }

    private let state = Mutex<[Entry]>([])

    var count: Int { state.withLock { $0.count } }

    var acknowledged: Int { state.withLock { $0.count { $0.acknowledgements > 0 } } }

    var entries: [Entry] { state.withLock { $0 } }

    /// Enters a notification before it is first sent.
    func add(key: String, digest: [UInt8]) -> Int {
        state.withLock { entries in
            entries.append(Entry(key: key, digest: digest))
            return entries.count - 1
        }
    }

    func willSend(_ number: Int, at now: Double) {
        state.withLock { entries in
            if entries[number].sends == 0 { entries[number].firstSent = now }
            entries[number].sends += 1
        }
    }

    func wasNotAnswered(_ number: Int) { state.withLock { $0[number].unanswered += 1 } }

    func wasAcknowledged(
        _ number: Int,
        as outcome: Outcome,
        position: Int64?,
        at now: Double
    ) {
        state.withLock { entries in
            if entries[number].acknowledgements == 0 {
                entries[number].firstAcknowledged = now
                entries[number].firstOutcome = outcome
                entries[number].position = position ?? 0
            } else if (position ?? 0) != entries[number].position {
                entries[number].contradiction =
                    "acknowledged at position \(entries[number].position), then at "
                    + "\(position ?? 0)"
            }
            entries[number].acknowledgements += 1
        }
    }
}

/// Deliveries that wait to be sent: those that are due, and those to be tried again later.
final class ChaosQueue: Sendable {
    private struct State {
        var ready: [ChaosDelivery] = []
        var first = 0
        /// The latest first.
        var later: [(due: Double, delivery: ChaosDelivery)] = []
        /// Deliveries that are not yet done with, wherever they are.
        var open = 0
        var isClosed = false

        mutating func insert(_ delivery: ChaosDelivery, due: Double) {
            var low = 0
            var high = later.count
            while low < high {
                let middle = (low + high) / 2
                if later[middle].due > due { low = middle + 1 } else { high = middle }
            }
            later.insert((due, delivery), at: low)
        }
    }

    private let state = Mutex(State())
    private let work = MonotonicSemaphore()

    /// How many are not done with yet.
    var open: Int { state.withLock { $0.open } }

    /// Nothing new will come.
    func close() { state.withLock { $0.isClosed = true } }

    func add(_ delivery: ChaosDelivery) {
        state.withLock { state in
            state.ready.append(delivery)
            state.open += 1
        }
        work.signal()
    }

    /// Has one tried again later.
    func retry(_ delivery: ChaosDelivery, at due: Double) {
        state.withLock { $0.insert(delivery, due: due) }
    }

    func finish() { state.withLock { $0.open -= 1 } }

    /// Waits a moment for the next one; nil when there is none.
    func take() -> ChaosDelivery? {
        guard work.wait(within: .milliseconds(100)) else { return nil }
        return state.withLock { state in
            guard state.first < state.ready.count else { return nil }
            let delivery = state.ready[state.first]
            state.first += 1
            if state.first > 1000 {
                state.ready.removeFirst(state.first)
                state.first = 0
            }
            return delivery
        }
    }

    /// Has those taken whose time has come; to be called every few milliseconds.
    func advance(to now: Double) {
        let count = state.withLock { state in
            var count = 0
            while let last = state.later.last, last.due <= now {
                state.ready.append(last.delivery)
                state.later.removeLast()
                count += 1
            }
            return count
        }
        for _ in 0..<count { work.signal() }
    }

    /// Whether all that will ever come is done with.
    var isOver: Bool { state.withLock { $0.isClosed && $0.open == 0 } }
}

/// How long things took, by what went on meanwhile.
final class ChaosTimes: Sendable {
    private struct State {
        /// What goes on; nil while nothing is to be measured.
        var phase: String?
        var seconds: [String: [Double]] = [:]
        var order: [String] = []
    }

    private let state = Mutex(State())

    /// What goes on from now on.
    func setPhase(_ phase: String?) { state.withLock { $0.phase = phase } }

    var phase: String? { state.withLock { $0.phase } }

    /// Adds a time, unless what went on changed meanwhile.
    func add(_ seconds: Double, began phase: String?) {
        guard let phase else { return }
        state.withLock { state in
            guard state.phase == phase else { return }
            if state.seconds[phase] == nil { state.order.append(phase) }
            state.seconds[phase, default: []].append(seconds)
        }
    }

    /// What was measured, in the order in which it began; sorted times.
    var all: [(phase: String, seconds: [Double])] {
        state.withLock { state in
            state.order.map { ($0, (state.seconds[$0] ?? []).sorted()) }
        }
    }

    /// The time in ms that a share of them took at most; nil where there are too few to tell.
    func milliseconds(_ share: Double, of phase: String) -> Double? {
        state.withLock { state in
            let sorted = (state.seconds[phase] ?? []).sorted()
            guard sorted.count >= 100 else { return nil }
            return sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))] * 1000
        }
    }
}
