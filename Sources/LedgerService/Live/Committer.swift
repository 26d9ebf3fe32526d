internal import Dispatch
package import EventLog
internal import Ledger
package import Postgres
internal import Synchronization

/// The one writer of live documents: whatever waits is written in one transaction.
///
/// Callers hand over and go on; they are told when the COMMIT came back, on the committer's own
/// thread. While one batch is written the next one gathers by itself; only where many come is a
/// moment waited, since a batch costs the server as much as a dozen documents. Production goes
/// before Sandbox, of which every batch still takes some.
package final class Committer: Sendable {
    /// What became of a document.
    package enum Reception: Sendable {
        /// It is in the log, in quarantine or was there before; whatever it says is durable.
        case kept(AppendOutcome)
        /// It is not known to be kept: the sender must send it again.
        case failed(EventLogError)
        /// It is not kept: too much was quarantined today.
        case quarantineFull
    }

    /// How much may wait, and how long.
    package struct Limits: Sendable {
        /// How many documents of each environment may wait for the next batch.
        package var waitingMax = 20_000
        /// How many documents one transaction may hold.
        package var batchMax = BatchLimit.live.count
        /// How many of a batch Sandbox gets when Production alone would fill it.
        package var sandboxShare = 20
        /// How many of a batch Sandbox gets at most while Production comes too: whoever comes
        /// next waits for the whole batch under way.
        package var sandboxMax = 40
        /// For how long after a Production document that holds.
        package var attention = Duration.seconds(2)
        /// How long a batch is tried again while the database is away.
        package var patience = Duration.seconds(3)
        /// From how many documents of the last batch on the next one is given a moment to gather.
        package var gatherFrom = 8
        /// How long that moment is at most; it ends where nobody came for `gatherStep`, and is no
        /// longer than the last batch took.
        package var gather = Duration.milliseconds(25)
        /// See `gather`.
        package var gatherStep = Duration.milliseconds(3)
        /// How many bytes may be quarantined in a day, those of all programs together.
        package var quarantineBytesPerDay = ServiceSettings.quarantineBytesPerDayDefault

        /// The limits that `serve` has.
        package init() {}
    }

    private struct Waiting: Sendable {
        var admission: Admission
        var since: ContinuousClock.Instant
        var completion: @Sendable (Reception) -> Void
    }

    private struct State {
        var production = Queue<Waiting>()
        var sandbox = Queue<Waiting>()
        /// When the last Production document came.
        var productionAt: ContinuousClock.Instant?
        var isStopping = false
        /// Whether the last batch could not be written.
        var isAway = false

        var count: Int { production.count + sandbox.count }

        /// Whether a Production document came so lately that Sandbox gives way.
        func isWatched(_ attention: Duration) -> Bool {
            productionAt.map { ContinuousClock.now - $0 < attention } ?? false
        }
    }

    private let limits: Limits
    private let connect: @Sendable () throws -> Connection
    private let quarantineIsFull: @Sendable (Int) -> Void
    private let committed: @Sendable () -> Void
    private let noted: @Sendable (EventLogError?) -> Void
    private let state = Mutex(State())
    private let work = DispatchSemaphore(value: 0)
    private let isOver = DispatchSemaphore(value: 0)
    /// What was measured.
    package let measures = Measures()

    /// Starts a committer with a thread and a session of its own.
    ///
    /// - Parameters:
    ///   - limits: how much may wait, and how long.
    ///   - connect: opens a session that may append; called again when one is lost.
    ///   - committed: called after each transaction that appended something, on the committer's
    ///     thread.
    ///   - quarantineIsFull: called with the size of each document that was not kept for that.
    ///   - noted: told after each try what was in the way, nil where it went well.
    package init(
        limits: Limits = Limits(),
        connect: @escaping @Sendable () throws -> Connection,
        committed: @escaping @Sendable () -> Void = {},
        quarantineIsFull: @escaping @Sendable (Int) -> Void = { _ in },
        noted: @escaping @Sendable (EventLogError?) -> Void = { _ in }
    ) {
        self.limits = limits
        self.connect = connect
        self.noted = noted
        self.quarantineIsFull = quarantineIsFull
        self.committed = committed
        DispatchQueue(label: "subledger.committer").async { [self] in run() }
    }

    /// Hands a document over.
    ///
    /// - Parameters:
    ///   - admission: what is to become of it.
    ///   - completion: called once, as soon as that is settled.
    /// - Returns: false when so much waits already, or the committer is stopping, that the sender
    ///   should come again later; `completion` is not called then.
    func submit(
        _ admission: Admission,
        completion: @escaping @Sendable (Reception) -> Void
    ) -> Bool {
        let waiting = Waiting(admission: admission, since: .now, completion: completion)
        let isTaken = state.withLock { state in
            let isProduction = admission.isProduction
            // Each has a limit of its own, so that a flood of one turns nothing of the other away.
            let count = isProduction ? state.production.count : state.sandbox.count
            guard !state.isStopping, count < limits.waitingMax else { return false }
            if isProduction {
                state.production.append(waiting)
                state.productionAt = waiting.since
            } else {
                state.sandbox.append(waiting)
            }
            return true
        }
        if isTaken { work.signal() }
        return isTaken
    }

    /// How many documents wait.
    package var waiting: Int { state.withLock { $0.count } }

    /// Whether the last batch could not be written.
    package var isAway: Bool { state.withLock { $0.isAway } }

    /// Takes nothing more, settles all that waits, and ends the thread.
    package func stop() {
        let isFirst = state.withLock { state in
            defer { state.isStopping = true }
            return !state.isStopping
        }
        guard isFirst else { return }
        work.signal()
        isOver.wait()
    }

    // MARK: - The committer's thread

    private func run() {
        var appender: Appender?
        var lastCount = 0
        var lastTook = Duration.zero
        while let batch = next(after: lastCount, lastTook) {
            lastCount = batch.count
            measures.batchSize.observe(Double(batch.count))
            let start = ContinuousClock.now
            let receptions = commit(batch, &appender)
            let now = ContinuousClock.now
            lastTook = now - start
            var hasAppended = false
            for (waiting, reception) in zip(batch, receptions) {
                if case .kept(.appended) = reception { hasAppended = true }
                measures.appendSeconds.observe((now - waiting.since) / .seconds(1))
                waiting.completion(reception)
            }
            if hasAppended { committed() }
        }
        isOver.signal()
    }

    /// Waits for something to do; nil when all is done and the committer is stopping.
    private func next(after lastCount: Int, _ lastTook: Duration) -> [Waiting]? {
        if lastCount >= limits.gatherFrom { gather(for: min(lastTook, limits.gather)) }
        while true {
            let (batch, isStopping) = state.withLock { state in
                let sandboxMin = min(limits.sandboxShare, state.sandbox.count)
                var batch = state.production.take(max: limits.batchMax - sandboxMin)
                let rest = limits.batchMax - batch.count
                let isWatched = state.isWatched(limits.attention)
                batch += state.sandbox.take(max: isWatched ? min(limits.sandboxMax, rest) : rest)
                return (batch, state.isStopping)
            }
            if !batch.isEmpty { return batch }
            if isStopping { return nil }
            work.wait()
        }
    }

    /// Gives the next batch time to grow, as long as somebody comes for whom it is worth it.
    ///
    /// A batch costs the server as much as some dozens of documents do. Where they come fast,
    /// waiting as long as the last batch took spares more than it costs those who wait.
    private func gather(for limit: Duration) {
        let end = ContinuousClock.now + limit
        var seen = -1
        while ContinuousClock.now < end {
            let count: Int? = state.withLock { state in
                if state.isStopping { return nil }
                // Production does not wait for a Sandbox that it goes before.
                return state.isWatched(limits.attention) ? state.production.count : state.count
            }
            guard let count, count > seen, count < limits.batchMax else { return }
            seen = count
            Sleep.milliseconds(Int(limits.gatherStep / .milliseconds(1)))
        }
    }

    /// Writes a batch, again over a new session where one is lost, as long as patience lasts.
    ///
    /// That is safe whatever became of a COMMIT under way: the keys decide.
    private func commit(_ batch: [Waiting], _ appender: inout Appender?) -> [Reception] {
        let wasAway = isAway
        let end = ContinuousClock.now + limits.patience
        var pause = 10
        while true {
            do {
                let current: Appender
                if let appender {
                    current = appender
                } else {
                    current = try Appender(connect())
                    appender = current
                }
                let receptions = try write(batch, current)
                state.withLock { $0.isAway = false }
                noted(nil)
                return receptions
            } catch {
                let failure = EventLogError(anything: error)
                appender = nil
                measures.failures.add(1)
                noted(failure)
                let mayPass = [.unavailable, .unknownOutcome, .temporary].contains(failure.code)
                // While the database is away a batch is one question whether it is back.
                guard mayPass, !wasAway, ContinuousClock.now < end else {
                    state.withLock { $0.isAway = true }
                    return batch.map { _ in .failed(failure) }
                }
                Sleep.milliseconds(pause)
                pause = min(pause * 2, 400)
            }
        }
    }

    private func write(_ batch: [Waiting], _ appender: Appender) throws -> [Reception] {
        var events: [NewEvent] = []
        for waiting in batch {
            if case .event(let event, _) = waiting.admission { events.append(event) }
        }
        var outcomes = try appender.append(events).makeIterator()
        return try batch.map { waiting in
            switch waiting.admission {
            case .event:
                guard let outcome = outcomes.next() else {
                    return .failed(EventLogError(.corrupt, "an event without an outcome"))
                }
                return .kept(outcome)
            case .quarantine(let document, _):
                return try quarantine(document, appender)
            case .unattributed(let event, _):
                let document = QuarantinedDocument(
                    received: event.received,
                    reason: "app_unknown",
                    stream: event.stream,
                    eventKey: event.eventKey
                )
                return try quarantine(document, appender)
            }
        }
    }

    private func quarantine(
        _ document: QuarantinedDocument,
        _ appender: Appender
    ) throws -> Reception {
        let outcome = try appender.quarantine(
            document,
            bytesPerDayMax: limits.quarantineBytesPerDay
        )
        guard outcome == .full else { return .kept(.quarantined(reason: document.reason)) }
        quarantineIsFull(document.received.count)
        return .quarantineFull
    }
}

extension Committer {
    /// What a committer measures.
    package final class Measures: Sendable {
        /// From the hand-over to the answer of COMMIT, in seconds.
        package let appendSeconds = Histogram(
            bounds: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5]
        )
        /// How many documents a transaction held.
        package let batchSize = Histogram(bounds: [1, 2, 5, 10, 20, 50, 100, 200])
        /// How often a batch could not be written at once.
        package let failures = Counter()
    }
}

extension Admission {
    /// Whether it is for the Production environment.
    fileprivate var isProduction: Bool {
        switch self {
        case .event(let event, _), .unattributed(let event, _):
            event.app.environment == .production
        case .quarantine(let document, _): document.app?.environment == .production
        }
    }
}

extension EventLogError {
    /// Puts whatever was thrown while appending in the log's terms.
    fileprivate init(anything error: any Error) {
        if let error = error as? EventLogError {
            self = error
        } else if let error = error as? PostgresError {
            self.init(error, doing: "open a session")
        } else {
            self.init(.unavailable, "open a session: \(error)")
        }
    }
}

/// First in, first out, in constant time.
private struct Queue<Element> {
    private var elements: [Element] = []
    private var first = 0

    var count: Int { elements.count - first }

    mutating func append(_ element: Element) { elements.append(element) }

    mutating func take(max: Int) -> [Element] {
        let end = min(first + Swift.max(max, 0), elements.count)
        let taken = Array(elements[first..<end])
        first = end
        if first == elements.count || first > 4096 {
            elements.removeFirst(first)
            first = 0
        }
        return taken
    }
}
