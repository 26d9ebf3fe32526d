internal import Synchronization

/// The simulated time: it runs as fast as it is told to, and can be set forward.
///
/// Several servers may share one.
public final class SimulatedClock: Sendable {
    private struct State: Sendable {
        /// The simulated instant at which the speed was set last.
        var base: Int64
        /// The real one.
        var since: ContinuousClock.Instant
        var speed: Double
    }

    /// The highest speed: a day in less than a tenth of a second.
    public static let speedMax = 1_000_000.0

    private let state: Mutex<State>

    /// Makes a clock.
    ///
    /// - Parameters:
    ///   - instant: what it shows at first, ms since 1970.
    ///   - speed: how many simulated seconds go by in a real one; 0 for a clock that stands still
    ///     until it is set forward.
    public init(at instant: Int64, speed: Double = 1) {
        precondition(0...Self.speedMax ~= speed)
        state = Mutex(State(base: instant, since: .now, speed: speed))
    }

    /// The simulated instant, ms since 1970.
    public var now: Int64 { state.withLock { Self.now($0) } }

    /// How many simulated seconds go by in a real one.
    public var speed: Double {
        get { state.withLock { $0.speed } }
        set {
            precondition(0...Self.speedMax ~= newValue)
            state.withLock { state in
                state.base = Self.now(state)
                state.since = .now
                state.speed = newValue
            }
        }
    }

    /// Sets the clock forward.
    public func advance(byMilliseconds length: Int64) {
        precondition(length >= 0)
        state.withLock { $0.base += length }
    }

    /// Sets the clock forward to an instant, unless it is there already.
    func reach(_ instant: Int64) {
        state.withLock { $0.base += max(0, instant - Self.now($0)) }
    }

    private static func now(_ state: State) -> Int64 {
        let (seconds, attoseconds) = state.since.duration(to: .now).components
        let passed = Double(seconds) * 1000 + Double(attoseconds) / 1e15
        return state.base + Int64(passed * state.speed)
    }
}
