internal import Dispatch
internal import EventLog
package import HTTP
internal import Ledger
package import Postgres
internal import Synchronization

/// Forwards notifications to one destination, on a thread of its own.
///
/// Any number of processes may do so: the one that has the lease forwards, another takes over when
/// the lease has run out. What a process delivered and could not note before its end is delivered
/// again, in the same order.
package final class Forwarder: Sendable {
    /// How long things take.
    package struct Timing: Sendable {
        /// How long a lease lasts.
        package var lease = Duration.seconds(20)
        /// How long one request may take; no request is begun that could outlast the lease.
        package var request = Duration.seconds(10)
        /// How often it looks for what others appended, and for a lease that is free.
        package var poll = Duration.milliseconds(500)
        /// How long it waits after the database failed.
        package var failurePause = Duration.seconds(1)

        /// The usual durations.
        package init() {}
    }

    /// How many events are looked at at a time.
    private static let pageMax = 500
    /// How many events of a held stream one round delivers.
    private static let retriedEventsMax = 32

    /// Where it forwards to.
    package let destination: ForwardDestination
    private let client: HTTPClient
    private let timing: Timing
    private let connect: @Sendable () throws -> Connection
    private let report: @Sendable (Trouble) -> Void
    private let holder: String
    private let work = MonotonicSemaphore()
    private let isOver = DispatchSemaphore(value: 0)
    private let isWoken = Atomic<Bool>(false)
    private let isStopping = Atomic<Bool>(false)
    /// What was measured.
    package let measures = Measures()

    /// What somebody should know of.
    package enum Trouble: Sendable {
        /// The destination as a whole is not to be reached, and why.
        case unreachable(String)
        /// So many streams wait, and what the destination said of one that now does.
        case held(Int, String)
    }

    /// What a forwarder measures.
    package final class Measures: Sendable {
        /// Notifications that were taken.
        package let delivered = Counter()
        /// Notifications that were not taken, each time they were tried.
        package let refused = Counter()
        /// How often the destination as a whole was not to be reached.
        package let unreachable = Counter()
        /// How often the database failed.
        package let failures = Counter()
    }

    /// Starts it.
    ///
    /// - Parameters:
    ///   - destination: where to.
    ///   - timing: how long things take.
    ///   - connect: opens a session that may append; called again when one is lost.
    ///   - report: told why the destination is not reached, once for each time it begins, and of
    ///     streams that begin to wait, at most once a minute.
    /// - Throws: `HTTPClientError` where the certificates to trust cannot be read.
    package init(
        _ destination: ForwardDestination,
        timing: Timing = Timing(),
        connect: @escaping @Sendable () throws -> Connection,
        report: @escaping @Sendable (Trouble) -> Void = { _ in }
    ) throws(HTTPClientError) {
        var configuration = HTTPClientConfiguration()
        if let file = destination.trustFile { configuration.trustAnchors = .file(file) }
        configuration.connectTimeout = min(.seconds(5), timing.request)
        configuration.stallTimeout = timing.request
        configuration.wholeTimeout = timing.request
        // What a consumer says beside its status nobody reads.
        configuration.responseLimitBytes = 1 << 20
        configuration.idleLimit = ForwardDelivery.lanes
        client = try HTTPClient(configuration)
        self.destination = destination
        self.timing = timing
        self.connect = connect
        self.report = report
        var generator = SystemRandomNumberGenerator()
        holder = String(UInt64.random(in: .min ... .max, using: &generator), radix: 16)
        DispatchQueue(label: "subledger.forward").async { [self] in run() }
    }

    /// Has it look for news at once; cheap, from any thread.
    package func wake() {
        guard !isWoken.exchange(true, ordering: .acquiringAndReleasing) else { return }
        work.signal()
    }

    /// Begins no further request; `stop` waits for those under way.
    package func finish() {
        guard !isStopping.exchange(true, ordering: .acquiringAndReleasing) else { return }
        work.signal()
    }

    /// Ends after the requests under way, and gives the lease back.
    package func stop() {
        finish()
        isOver.wait()
        // Whoever else waits is told too.
        isOver.signal()
    }

    private var shouldStop: Bool { isStopping.load(ordering: .acquiring) }

    // MARK: - The forwarder's thread

    private struct Session {
        var store: ForwardStore
        var reader: LogReader
        /// How the destination stands; nil while another process has the lease.
        var plan: ForwardPlan?
        var pausedUntil: ContinuousClock.Instant?
        var reportedHoldAt: ContinuousClock.Instant?
    }

    private func run() {
        var session: Session?
        while !shouldStop {
            var pause = timing.poll
            do {
                var current = try session ?? open()
                session = nil
                isWoken.store(false, ordering: .releasing)
                pause = try turn(&current)
                session = current
            } catch {
                // What was delivered and not noted is delivered again.
                measures.failures.add(1)
                pause = timing.failurePause
            }
            guard !shouldStop else { break }
            if pause > .zero {
                _ = work.wait(within: pause)
            }
        }
        try? session?.store.release()
        isOver.signal()
    }

    private func open() throws -> Session {
        let connection = try connect()
        try connection.execute(
            "set statement_timeout = '15s'; set lock_timeout = '2s';"
                + " set idle_in_transaction_session_timeout = '30s'"
        )
        let store = ForwardStore(
            connection: connection,
            destination: destination.name,
            holder: holder
        )
        try store.begin(startPosition: destination.startPosition)
        return Session(store: store, reader: LogReader(connection))
    }

    /// Does what is to be done now.
    ///
    /// - Returns: how long to wait before the next turn.
    private func turn(_ session: inout Session) throws -> Duration {
        let claimedAt = ContinuousClock.now
        guard try session.store.claim(for: timing.lease) else {
            session.plan = nil
            return timing.poll
        }
        if session.plan == nil {
            let progress = try session.store.progress()
            session.plan = ForwardPlan(
                position: progress.position,
                attempts: progress.attempts,
                held: progress.held
            )
            session.pausedUntil = progress.pause.map { .now + $0 }
        }
        guard var plan = session.plan else { return timing.poll }
        if let until = session.pausedUntil {
            let rest = until - .now
            // The lease is kept meanwhile.
            if rest > .zero { return min(rest, timing.lease / 4) }
            session.pausedUntil = nil
        }
        let (pieces, end, isMore) = try pieces(plan, session.reader)
        guard !pieces.isEmpty || end > plan.position else { return idlePause(plan) }
        let outcomes = try deliver(pieces, session.reader, claimedAt)
        let wasUnreachable = plan.attempts > 0
        let heldBefore = plan.held.count
        let result = plan.settle(pieces, outcomes, upTo: end, at: .now) { .random(in: 0..<1) }
        measures.delivered.add(result.deliveredCount)
        let refusals = outcomes.compactMap { outcome -> String? in
            if case .refused(let reason) = outcome.stop { reason } else { nil }
        }
        measures.refused.add(refusals.count)
        if let reason = refusals.first, plan.held.count > heldBefore,
            session.reportedHoldAt.map({ ContinuousClock.now - $0 > .seconds(60) }) ?? true
        {
            session.reportedHoldAt = .now
            report(.held(plan.held.count, reason))
        }
        guard try session.store.record(result) else {
            session.plan = nil
            return timing.poll
        }
        session.plan = plan
        if let failure = result.failure, let pause = result.pause {
            measures.unreachable.add(1)
            if !wasUnreachable { report(.unreachable(failure)) }
            session.pausedUntil = .now + pause
            return min(pause, timing.lease / 4)
        }
        return isMore ? .zero : idlePause(plan)
    }

    private func idlePause(_ plan: ForwardPlan) -> Duration {
        // The lease must be renewed in time, and a held stream tried when it is due.
        let due = plan.nextDue.map { max($0 - .now, .milliseconds(10)) } ?? timing.poll
        return min(timing.poll, due, timing.lease / 4)
    }

    /// What is to be delivered next: held streams whose time has come, and what is new.
    private func pieces(
        _ plan: ForwardPlan,
        _ reader: LogReader
    ) throws -> (pieces: [ForwardWork], end: Int64, isMore: Bool) {
        let isWanted: (StoredEvent) -> Bool = { [destination] event in
            event.kind == .notification && destination.wants(event.notificationType)
        }
        let events =
            plan.isFull ? [] : try reader.events(after: plan.position, limit: Self.pageMax)
        var (pieces, end) = plan.work(on: events, isWanted: isWanted)
        for key in plan.due(at: .now, upTo: end) {
            guard let stream = plan.held[key] else { continue }
            let all = try reader.events(of: key).filter {
                $0.position >= stream.position && $0.position <= end && isWanted($0)
            }
            pieces.append(
                ForwardWork(
                    key: key,
                    events: Array(all.prefix(Self.retriedEventsMax)),
                    hasMore: all.count > Self.retriedEventsMax
                )
            )
        }
        let isMore = (events.last?.position ?? end) > end || events.count == Self.pageMax
        return (pieces, end, isMore)
    }

    private func deliver(
        _ pieces: [ForwardWork],
        _ reader: LogReader,
        _ claimedAt: ContinuousClock.Instant
    ) throws -> [ForwardOutcome] {
        let items = try pieces.map { piece in
            try piece.events.map { event in
                ForwardDelivery.Item(
                    position: event.position,
                    body: try Self.body(of: event, reader)
                )
            }
        }
        // A request must be over before another process may begin with its own.
        let last = claimedAt + timing.lease - timing.request - .milliseconds(500)
        let delivery = ForwardDelivery(
            client: client,
            url: destination.url,
            goesOn: { [self] in !shouldStop && ContinuousClock.now < last }
        )
        return delivery.deliver(items)
    }

    /// What was received, or why one event cannot be read; what the database fails with is thrown.
    ///
    /// Of one that cannot be read and that an operator has passed over there is nothing to post; it
    /// does not hold its stream for ever.
    private static func body(
        of event: StoredEvent,
        _ reader: LogReader
    ) throws -> Result<[UInt8]?, EventLogError> {
        do throws(EventLogError) {
            guard let evidence = try reader.evidence(of: event), evidence.form == .jws else {
                throw EventLogError(.unreadable, "there is no signed text")
            }
            return .success(evidence.body)
        } catch {
            guard error.code == .unreadable else { throw error }
            return try reader.skippedPositions(of: event.key).contains(event.position)
                ? .success(nil) : .failure(error)
        }
    }
}
