internal import Dispatch
internal import EventLog
internal import HTTP
internal import Postgres
internal import Synchronization

/// Lets requests for events that are still to come wait, without a thread for each.
package final class Feed: Sendable {
    private struct Waiter: Sendable {
        var after: Int64
        /// The epoch of `after`; nil for whatever is the present one.
        var epoch: Int64?
        var deadline: ContinuousClock.Instant
        var pending: PendingResponse
        var read: @Sendable (Connection) throws -> HTTPResponse
        var empty: @Sendable (_ epoch: Int64?) -> HTTPResponse
    }

    /// Where the log ends.
    private struct End {
        var epoch: Int64
        var position: Int64

        /// Whether there is something to tell, be it that the epoch of the question is over or that
        /// the log has not come to its place.
        func isNews(for waiter: Waiter) -> Bool {
            position != waiter.after || waiter.epoch.map { $0 != epoch } ?? false
        }
    }

    private struct State {
        var waiters: [Waiter] = []
        var isStopping = false
        /// The present epoch, as far as it was seen.
        var epoch: Int64?
    }

    /// How often it looks for what other programs appended.
    static let pollMilliseconds = 250
    /// How many requests may wait: with those that wait for the read models fewer than one address
    /// may have connections, so that whoever waits never keeps a delivery out.
    static let waitersMax = 100

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

    /// Answers with `read` as soon as the log goes beyond a position or is in another epoch, or
    /// with `empty` when the time is over, which is told the present epoch as far as it is known;
    /// with 503 where too many wait.
    func wait(
        beyond position: Int64,
        of epoch: Int64?,
        within duration: Duration,
        empty: @escaping @Sendable (_ epoch: Int64?) -> HTTPResponse,
        read: @escaping @Sendable (Connection) throws -> HTTPResponse
    ) -> Answer {
        let known = state.withLock { $0.epoch }
        let waiter = Waiter(
            after: position,
            epoch: epoch,
            deadline: .now + duration,
            pending: PendingResponse(whenStopping: empty(known)),
            read: read,
            empty: empty
        )
        let refusal = state.withLock { state -> HTTPResponse? in
            if state.isStopping { return empty(known) }
            guard state.waiters.count < Self.waitersMax else {
                return .problem(ServiceProblem.busy.problem).retrying(after: 2)
            }
            state.waiters.append(waiter)
            return nil
        }
        if let refusal { return .answer(refusal) }
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
            var end: End?
            do {
                let session = try connection ?? connect()
                connection = session
                let rows = try session.query(
                    "select position, (select max(epoch) from ledger.epoch) from ledger.head"
                )
                end = End(epoch: rows.int(0, 1) ?? 0, position: rows.int(0, 0) ?? 0)
            } catch {
                // The waiters' time runs on; their readers learn of the database by asking.
                connection = nil
            }
            settle(end)
        }
        let (left, epoch) = state.withLock { ($0.waiters, $0.epoch) }
        for waiter in left { waiter.pending.complete(waiter.empty(epoch)) }
        isOver.signal()
    }

    private func settle(_ end: End?) {
        let now = ContinuousClock.now
        let (ready, late, epoch) = state.withLock { state in
            if let end { state.epoch = end.epoch }
            let ready = state.waiters.filter { end?.isNews(for: $0) ?? false }
            let others = state.waiters.filter { !(end?.isNews(for: $0) ?? false) }
            state.waiters = others.filter { $0.deadline > now }
            return (ready, others.filter { $0.deadline <= now }, state.epoch)
        }
        for waiter in late { waiter.pending.complete(waiter.empty(epoch)) }
        for waiter in ready { pool.complete(waiter.pending, waiter.read) }
    }
}
