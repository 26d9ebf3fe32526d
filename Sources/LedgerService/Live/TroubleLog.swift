internal import Synchronization

/// Says in the log why something that runs all the time does not work, and when it does again.
///
/// The same reason is said once a minute: what fails is tried again at once.
final class TroubleLog: Sendable {
    private struct State {
        var reason: String?
        var saidAt: ContinuousClock.Instant?
        var notSaid = 0
    }

    /// How often the same is said.
    static let interval = Duration.seconds(60)

    private let name: String
    private let log: ServiceLog
    private let state = Mutex(State())

    /// Makes one.
    ///
    /// - Parameters:
    ///   - name: what runs, as in `append_failed` and `append_works_again`.
    ///   - log: where it is said.
    init(_ name: String, _ log: ServiceLog) {
        self.name = name
        self.log = log
    }

    /// Takes how it went.
    ///
    /// - Parameter error: what was in the way; nil where it went well.
    func note(_ error: (any Error)?) {
        guard let error else {
            let hadFailed = state.withLock { state in
                defer { state = State() }
                return state.reason != nil
            }
            if hadFailed { log.write(.info, "\(name)_works_again") { _ in } }
            return
        }
        let text = "\(error)"
        let heldBack: Int? = state.withLock { state in
            let now = ContinuousClock.now
            if state.reason == text, let saidAt = state.saidAt, now - saidAt < Self.interval {
                state.notSaid += 1
                return nil
            }
            defer { state = State(reason: text, saidAt: now) }
            return state.notSaid
        }
        guard let heldBack else { return }
        log.write(.error, "\(name)_failed") { json in
            json.member("error", text)
            json.member("not_logged", Int64(heldBack))
        }
    }
}
