internal import Dispatch
internal import EventLog
internal import HTTP
internal import Postgres
internal import Synchronization

/// Lets requests for events that are still to come wait, without a thread for each.
package final class Feed: Sendable {
    private struct Waiter: Sendable {
        var after: Int64
        var deadline: ContinuousClock.Instant
        var pending: PendingResponse
        var read: @Sendable (Connection) throws -> HTTPResponse
        var empty: HTTPResponse
    }

    private struct State {
        var waiters: [Waiter] = []
        var isStopping = false
    }

    /// How often it looks for what other programs appended.
    static let pollMilliseconds = 250
    /// How many requests may wait.
    static let waitersMax = 1000

    private let pool: ReadPool
    private let connect: @Sendable () throws -> Connection
    private let state = Mutex(State())
    private let work = MonotonicSemaphore()
    private let isOver = DispatchSemaphore(value: 0)

    init(pool: ReadPool, connect: @escaping @Sendable () throws -> Connection) {
        self.pool = pool
        self.connect = connect
        DispatchQueue(label: "subledger.feed").async { [self] in run() }
    }

    /// Something was committed.
    package func wake() { work.signal() }

    /// Answers with `read` as soon as the log goes beyond a position, or with `empty` when the
    /// time is over.
    func wait(
        beyond position: Int64,
        within duration: Duration,
        empty: HTTPResponse,
        read: @escaping @Sendable (Connection) throws -> HTTPResponse
    ) -> Answer {
        let waiter = Waiter(
            after: position,
            deadline: .now + duration,
            pending: PendingResponse(whenStopping: empty),
            read: read,
            empty: empty
        )
        let isTaken = state.withLock { state in
            guard !state.isStopping, state.waiters.count < Self.waitersMax else { return false }
            state.waiters.append(waiter)
            return true
        }
        guard isTaken else { return .answer(empty) }
        work.signal()
        return .later(waiter.pending)
    }

    /// How many requests wait.
    var waiting: Int { state.withLock { $0.waiters.count } }

    /// Lets go of those that wait.
    package func stop() {
        let isFirst = state.withLock { state in
            defer { state.isStopping = true }
            return !state.isStopping
        }
        guard isFirst else { return }
        work.signal()
        isOver.wait()
    }

    private func run() {
        var connection: Connection?
        while true {
            _ = work.wait(within: .milliseconds(Self.pollMilliseconds))
            if state.withLock({ $0.isStopping }) { break }
            guard waiting > 0 else { continue }
            var head: Int64?
            do {
                let session = try connection ?? connect()
                connection = session
                head = try session.query("select position from ledger.head").int(0, 0)
            } catch {
                // The waiters' time runs on; their readers learn of the database by asking.
                connection = nil
            }
            settle(head)
        }
        for waiter in state.withLock({ $0.waiters }) { waiter.pending.complete(waiter.empty) }
        isOver.signal()
    }

    private func settle(_ head: Int64?) {
        let now = ContinuousClock.now
        let (ready, late) = state.withLock { state in
            let ready = state.waiters.filter { waiter in head.map { $0 > waiter.after } ?? false }
            let late = state.waiters.filter { waiter in
                !(head.map { $0 > waiter.after } ?? false) && waiter.deadline <= now
            }
            state.waiters.removeAll { waiter in
                (head.map { $0 > waiter.after } ?? false) || waiter.deadline <= now
            }
            return (ready, late)
        }
        for waiter in late { waiter.pending.complete(waiter.empty) }
        for waiter in ready { pool.complete(waiter.pending, waiter.read) }
    }
}
