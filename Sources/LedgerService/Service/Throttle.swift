internal import Synchronization

/// Lets something through once in a while, and counts what it held back.
package final class Throttle: Sendable {
    private struct State {
        var lastAt: Duration?
        var heldBack = 0
    }

    private let interval: Duration
    private let elapsed: @Sendable () -> Duration
    private let state = Mutex(State())

    /// Makes a throttle.
    ///
    /// - Parameters:
    ///   - interval: how long nothing is let through after something was.
    ///   - elapsed: the time since some moment; a clock that nobody sets.
    package init(interval: Duration, elapsed: (@Sendable () -> Duration)? = nil) {
        self.interval = interval
        let start = ContinuousClock.now
        self.elapsed = elapsed ?? { ContinuousClock.now - start }
    }

    /// Asks to be let through.
    ///
    /// - Returns: how many were held back since the last that was let through; nil to hold back.
    package func pass() -> Int? {
        let now = elapsed()
        return state.withLock { state in
            if let last = state.lastAt, now - last < interval {
                state.heldBack += 1
                return nil
            }
            defer { state = State(lastAt: now) }
            return state.heldBack
        }
    }
}
