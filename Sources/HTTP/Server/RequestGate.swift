internal import Synchronization

/// Knows how many requests are under way, and lets none in any more once the server stops.
final class RequestGate: Sendable {
    enum Phase: Sendable {
        case open
        /// Requests are still answered, and their connections closed.
        case draining
        case shut
    }

    private struct State: Sendable {
        var phase = Phase.open
        var inFlight = 0
        var isWaitedFor = false
    }

    private let state = Mutex(State())
    private let isEmpty = MonotonicSemaphore()

    var inFlight: Int { state.withLock { $0.inFlight } }

    var isOpen: Bool { state.withLock { $0.phase == .open } }

    /// Counts a request in; false where it is too late.
    func enter() -> Bool {
        state.withLock { state in
            guard state.phase != .shut else { return false }
            state.inFlight += 1
            return true
        }
    }

    /// Counts a request out.
    func leave() {
        state.withLock { state in
            state.inFlight -= 1
            if state.inFlight == 0, state.isWaitedFor {
                state.isWaitedFor = false
                isEmpty.signal()
            }
        }
    }

    func drain() {
        state.withLock { if $0.phase == .open { $0.phase = .draining } }
    }

    /// Waits until no request is under way and lets none in from then on.
    ///
    /// - Returns: false where that did not come about in time; the gate is then as it was.
    func shut(within duration: Duration) -> Bool {
        let deadline = ContinuousClock.now + .nanoseconds(Int64(duration.nanoseconds))
        while true {
            let isShut = state.withLock { state in
                if state.inFlight == 0 { state.phase = .shut }
                state.isWaitedFor = state.inFlight > 0
                // Not the phase: a gate that was slammed is shut with requests behind it.
                return state.inFlight == 0
            }
            if isShut { return true }
            guard isEmpty.wait(within: deadline - .now) else {
                state.withLock { $0.isWaitedFor = false }
                // The last one may have left just now, and signalled.
                _ = isEmpty.wait(within: .zero)
                return state.withLock { state in
                    if state.inFlight == 0 { state.phase = .shut }
                    return state.inFlight == 0
                }
            }
        }
    }

    /// Lets none in, whatever is under way.
    func slam() {
        state.withLock { $0.phase = .shut }
    }
}
