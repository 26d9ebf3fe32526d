internal import Synchronization

/// How many unknown certificate chains may be built: a stranger must not buy our time.
///
/// Building one costs a millisecond, and Apple needs a new one every few months.
public final class ChainRate: Sendable {
    private struct State {
        var left: Double
        var at: ContinuousClock.Instant
    }

    private let perSecond: Double
    private let burst: Double
    private let state: Mutex<State>

    /// Allows so many at once, and then so many a second.
    public init(burst: Int, perSecond: Double) {
        self.burst = Double(burst)
        self.perSecond = perSecond
        state = Mutex(State(left: Double(burst), at: .now))
    }

    /// Takes one; false when none is left for now.
    func take(at now: ContinuousClock.Instant = .now) -> Bool {
        state.withLock { state in
            // Somebody later may have been here first.
            let now = max(now, state.at)
            let gained = (now - state.at) / .seconds(1) * perSecond
            state.at = now
            state.left = min(burst, state.left + gained)
            guard state.left >= 1 else { return false }
            state.left -= 1
            return true
        }
    }
}
