internal import Dispatch
package import HTTP
package import Postgres
internal import Synchronization

/// Answers questions to the database on a few threads, each with a session of its own.
///
/// The HTTP server's threads never wait; a request that needs the database is handed over here and
/// its connection sleeps meanwhile.
package final class ReadPool: Sendable {
    private struct Job: Sendable {
        var pending: PendingResponse
        var work: @Sendable (Connection) throws -> HTTPResponse?
        var otherwise: (@Sendable () -> HTTPResponse)?
    }

    private struct State {
        var jobs: [Job] = []
        var isStopping = false
    }

    /// How many questions may wait.
    static let waitingMax = 2000

    private let size: Int
    private let connect: @Sendable () throws -> Connection
    private let failed: @Sendable (any Error) -> Void
    private let state = Mutex(State())
    private let work = DispatchSemaphore(value: 0)
    private let over = DispatchGroup()

    /// Starts the threads; sessions are opened when they are first needed.
    ///
    /// - Parameters:
    ///   - size: how many questions are answered at once.
    ///   - connect: opens a session that may read; called again when one is lost.
    ///   - failed: told of what the database refused, for the log.
    package init(
        size: Int,
        connect: @escaping @Sendable () throws -> Connection,
        failed: @escaping @Sendable (any Error) -> Void
    ) {
        self.size = size
        self.connect = connect
        self.failed = failed
        for number in 0..<size {
            over.enter()
            DispatchQueue(label: "subledger.read.\(number)").async { [self] in
                run()
                over.leave()
            }
        }
    }

    /// How many questions wait for a thread.
    package var waiting: Int { state.withLock { $0.jobs.count } }

    /// Hands a question over.
    ///
    /// - Parameter work: asks, on one of the pool's threads, in a session that only reads.
    /// - Returns: the answer that a handler gives.
    package func answer(
        _ work: @escaping @Sendable (Connection) throws -> HTTPResponse
    ) -> Answer {
        let pending = PendingResponse()
        complete(pending, work)
        return .later(pending)
    }

    /// Hands over a question that has an answer without the database too.
    ///
    /// - Parameters:
    ///   - patience: how long the database is waited for.
    ///   - otherwise: answers where it is away, or takes longer.
    ///   - work: asks.
    /// - Returns: the answer that a handler gives.
    func answer(
        within patience: Duration,
        otherwise: @escaping @Sendable () -> HTTPResponse,
        _ work: @escaping @Sendable (Connection) throws -> HTTPResponse
    ) -> Answer {
        let pending = PendingResponse()
        complete(pending, otherwise: otherwise, work)
        let end = DispatchTime.now() + .milliseconds(Int(patience.wholeMilliseconds))
        // Whichever comes first is what the client gets.
        DispatchQueue.global().asyncAfter(deadline: end) { [weak pending] in
            guard let pending else { return }
            pending.complete(otherwise())
        }
        return .later(pending)
    }

    /// Has a question answered for a request that waits already.
    ///
    /// - Parameters:
    ///   - pending: what the answer is given to.
    ///   - otherwise: answers where the database cannot.
    ///   - work: asks; nil where it has seen to it that the request is answered later.
    func complete(
        _ pending: PendingResponse,
        otherwise: (@Sendable () -> HTTPResponse)? = nil,
        _ work: @escaping @Sendable (Connection) throws -> HTTPResponse?
    ) {
        let isTaken = state.withLock { state in
            guard !state.isStopping, state.jobs.count < Self.waitingMax else { return false }
            state.jobs.append(Job(pending: pending, work: work, otherwise: otherwise))
            return true
        }
        guard isTaken else {
            pending.complete(
                otherwise?() ?? .problem(ServiceProblem.busy.problem).retrying(after: 2)
            )
            return
        }
        self.work.signal()
    }

    /// Answers what waits and ends the threads.
    package func stop() {
        state.withLock { $0.isStopping = true }
        for _ in 0..<size { work.signal() }
        over.wait()
    }

    private func run() {
        var session: Connection?
        while true {
            work.wait()
            let next = state.withLock { state -> Job? in
                state.jobs.isEmpty ? nil : state.jobs.removeFirst()
            }
            guard let job = next else {
                if state.withLock({ $0.isStopping }) { return }
                continue
            }
            if let response = response(to: job, &session) { job.pending.complete(response) }
        }
    }

    private func response(to job: Job, _ session: inout Connection?) -> HTTPResponse? {
        // A session that the server closed meanwhile is noticed by the first statement only.
        for attempt in 1...2 {
            let isFresh = session == nil
            do {
                let connection = try session ?? opened()
                session = connection
                return try job.work(connection)
            } catch let problem as ServiceProblem {
                return .problem(problem.problem)
            } catch {
                session = nil
                if attempt == 1, !isFresh, ServiceProblem.isConnectionLoss(error) { continue }
                failed(error)
                return job.otherwise?() ?? ServiceProblem.response(to: error)
            }
        }
        return .problem(ServiceProblem.databaseUnavailable.problem)
    }

    private func opened() throws -> Connection {
        let connection = try connect()
        try connection.execute(
            """
            set default_transaction_read_only = on; set statement_timeout = '15s';
            set lock_timeout = '2s'; set timezone = 'UTC'
            """
        )
        return connection
    }
}
