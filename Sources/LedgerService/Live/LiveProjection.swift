internal import Dispatch
internal import Glibc
internal import HTTP
package import Postgres
internal import Synchronization

/// Keeps the read models up to date while the program runs, on a thread of its own.
///
/// It projects as soon as it is woken, and looks by itself now and then for what other programs
/// appended. Any number of programs may do so at once; the rows of each stream are written by one.
package final class LiveProjection: Sendable {
    /// How it is doing.
    package struct Condition: Sendable {
        /// What went wrong in the last run; nil when it went well.
        package var failure: ReadModelError?
        /// When the last run that went well ended; nil before the first.
        package var succeededAt: ContinuousClock.Instant?
        /// How many streams were folded since the start.
        package var streams = 0
        /// How many runs failed since the start.
        package var failures = 0
    }

    /// How long it waits for news of its own before it looks for others'.
    static let pollMilliseconds = 200
    /// How long it waits after a failure.
    static let failurePauseMilliseconds = 1000
    /// How long it rests after folding something, in ms: a quarter of what that took, within these.
    ///
    /// Each batch costs the server some milliseconds, however small it is; a moment's rest makes one
    /// of several, and nobody sees the difference. Where the machine is full the rest is longer.
    static let restMilliseconds: ClosedRange<Int64> = 10...30

    private let connect: @Sendable () throws -> Connection
    private let noted: @Sendable (ReadModelError?) -> Void
    private let work = MonotonicSemaphore()
    private let isOver = DispatchSemaphore(value: 0)
    private let isWoken = Atomic<Bool>(false)
    private let isStopping = Atomic<Bool>(false)
    private let state = Mutex(Condition())

    /// Starts it.
    ///
    /// - Parameters:
    ///   - connect: opens a session that may write the read models; called again when one is lost.
    ///   - noted: told after each run what was in the way, nil where it went well.
    package init(
        connect: @escaping @Sendable () throws -> Connection,
        noted: @escaping @Sendable (ReadModelError?) -> Void = { _ in }
    ) {
        self.connect = connect
        self.noted = noted
        DispatchQueue(label: "subledger.projection").async { [self] in run() }
    }

    /// Has it look for news at once; cheap, from any thread.
    package func wake() {
        guard !isWoken.exchange(true, ordering: .acquiringAndReleasing) else { return }
        work.signal()
    }

    /// How it is doing.
    package var condition: Condition { state.withLock { $0 } }

    /// Ends after the transaction under way.
    package func stop() {
        guard !isStopping.exchange(true, ordering: .acquiringAndReleasing) else { return }
        work.signal()
        isOver.wait()
    }

    private var shouldStop: Bool { isStopping.load(ordering: .acquiring) }

    private static func rest(after work: Duration) {
        let (shortest, longest) = (restMilliseconds.lowerBound, restMilliseconds.upperBound)
        Sleep.milliseconds(Int(max(shortest, min(longest, Int64(work / .milliseconds(4))))))
    }

    private func run() {
        var projector: Projector?
        while !shouldStop {
            var pause = Self.pollMilliseconds
            do {
                let current: Projector
                if let projector {
                    current = projector
                } else {
                    current = Projector(try connect())
                    projector = current
                }
                isWoken.store(false, ordering: .releasing)
                let start = ContinuousClock.now
                let report = try current.projectNews(shouldStop: { self.shouldStop })
                if report.streams > 0, !shouldStop { Self.rest(after: ContinuousClock.now - start) }
                state.withLock { state in
                    state.failure = nil
                    state.succeededAt = .now
                    state.streams += report.streams
                }
                noted(nil)
            } catch {
                // A session in an unknown condition is not used again.
                projector = nil
                let failure = ReadModelError(error, doing: "project")
                state.withLock { state in
                    state.failure = failure
                    state.failures += 1
                }
                noted(failure)
                pause = Self.failurePauseMilliseconds
            }
            guard !shouldStop else { break }
            _ = work.wait(within: .milliseconds(pause))
        }
        isOver.signal()
    }
}
