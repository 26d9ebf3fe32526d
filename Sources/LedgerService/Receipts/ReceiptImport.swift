public import AppStore
internal import EventLog
public import Ledger
public import Postgres

/// Takes verifyReceipt responses into the log.
///
/// Each transaction and each renewal in one becomes an event of its subscription with provenance
/// `receipt`, and the response one of the stream `api:receipt`, all in one transaction. What the log
/// was told before appends nothing, so reading a file again is harmless.
public final class ReceiptImport {
    /// How many events wait for one append.
    static let eventsMax = BatchLimit.bulk.count / 2
    /// How many bytes of responses do.
    static let sizeMaxBytes = 8 << 20

    private let apps: [AcceptedApp]
    private let session: LogSession
    private var report = ReceiptReport()
    private var waiting: [JudgedReceipt] = []
    private var waitingEvents = 0
    private var waitingBytes = 0

    /// The app of a response that names none.
    public var bundleID: String?
    /// The environment of a response that names none.
    public var environment: Environment?

    /// What a caller hears on the way.
    public struct Listener {
        /// Told of each response that was refused, and of each object that could not be read whole.
        public var refused: (RefusedLine) throws -> Void = { _ in }
        /// Told now and then how far it is.
        public var progress: (ReceiptReport) -> Void = { _ in }
        /// Asked now and then whether to stop after what is under way.
        public var shouldStop: () -> Bool = { false }

        /// Makes a listener that does nothing.
        public init() {}
    }

    /// Makes an import.
    ///
    /// - Parameters:
    ///   - apps: the accepted apps.
    ///   - connect: opens a session that may append; called again when a session is lost.
    public init(apps: [AcceptedApp], connect: @escaping () throws -> Connection) {
        self.apps = apps
        session = LogSession(limit: .bulk, connect: connect)
    }

    /// Reads responses to their end, or until the listener stops it.
    ///
    /// - Throws: `InputError` when the file cannot be read on, `EventLogError` or `PostgresError`
    ///   when the database cannot be reached; what was appended before stays.
    public func run(
        _ documents: ReceiptDocuments,
        now: Timestamp,
        listener: Listener = Listener()
    ) throws -> ReceiptReport {
        report = ReceiptReport()
        while !listener.shouldStop(), let document = try documents.next() {
            switch document {
            case .tooLong(let number, let sizeBytes):
                report.bodies += 1
                let problem = ReceiptProblem(.tooLarge, "it has \(sizeBytes) bytes")
                try refuse(problem, number, listener)
            case .text(let number, let body):
                try take(body, number: number, receivedAt: nil, now: now, listener: listener)
            }
        }
        report.isStopped = listener.shouldStop()
        return try finish(listener)
    }

    /// Takes one response; it is in the log once ``finish(_:)`` returned.
    ///
    /// - Parameters:
    ///   - body: the response.
    ///   - number: what it is called by.
    ///   - receivedAt: when it was received, where we received it ourselves.
    ///   - environment: the environment that was asked; nil takes the import's own.
    ///   - now: what our clock says.
    ///   - listener: what hears of it.
    /// - Throws: what ``finish(_:)`` and the listener throw.
    public func take(
        _ body: [UInt8],
        number: Int,
        receivedAt: Timestamp?,
        environment: Environment? = nil,
        now: Timestamp,
        listener: Listener
    ) throws {
        report.bodies += 1
        let terms = JudgedReceipt.Terms(
            apps: apps,
            bundleID: bundleID,
            environment: environment ?? self.environment,
            now: now
        )
        let judged: JudgedReceipt
        do {
            judged = try JudgedReceipt(body, number: number, receivedAt: receivedAt, terms)
        } catch {
            return try refuse(error, number, listener)
        }
        guard judged.app != nil else {
            report.empty += 1
            return
        }
        waiting.append(judged)
        waitingEvents += judged.content.elements.count + 1
        waitingBytes += body.count
        if waitingEvents >= Self.eventsMax || waitingBytes >= Self.sizeMaxBytes {
            try append(listener)
        }
    }

    /// Appends what waits, and says what became of everything.
    public func finish(_ listener: Listener = Listener()) throws -> ReceiptReport {
        try append(listener)
        return report
    }

    /// Notes that there is no response, and why.
    ///
    /// - Parameters:
    ///   - number: what it is called by.
    ///   - reason: a stable name.
    ///   - detail: what exactly, safe to log.
    ///   - listener: what hears of it.
    /// - Throws: what the listener throws.
    public func refuse(
        _ number: Int,
        reason: String,
        detail: String,
        listener: Listener
    ) throws {
        report.bodies += 1
        report.rejected += 1
        try listener.refused(
            RefusedLine(line: number, outcome: .rejected, reason: reason, detail: detail)
        )
    }

    private func refuse(
        _ problem: ReceiptProblem,
        _ number: Int,
        _ listener: Listener
    ) throws {
        report.rejected += 1
        try listener.refused(
            RefusedLine(
                line: number,
                outcome: .rejected,
                reason: problem.reason.rawValue,
                detail: problem.detail
            )
        )
    }

    private func append(_ listener: Listener) throws {
        let judged = waiting
        (waiting, waitingEvents, waitingBytes) = ([], 0, 0)
        guard !judged.isEmpty else { return }
        let told = try session.withSession { connection, appender in
            try Self.append(judged, LogReader(connection), appender)
        }
        for (receipt, outcomes) in zip(judged, told) {
            for outcome in outcomes {
                switch outcome {
                case .appended: report.appended += 1
                case .duplicate, nil: report.duplicate += 1
                case .conflict: report.conflict += 1
                case .quarantined: report.quarantined += 1
                }
            }
            for flag in receipt.flags {
                report.flagged += 1
                try listener.refused(flag)
            }
        }
        listener.progress(report)
    }

    /// Appends what is new of some responses; for each fact of each what became of it, nil where
    /// it says nothing new.
    private static func append(
        _ judged: [JudgedReceipt],
        _ reader: LogReader,
        _ appender: Appender
    ) throws -> [[AppendOutcome?]] {
        let facts = judged.map(\.events)
        var keys = ReadingKeys()
        try keys.load(Set(facts.joined().map(\.stream)), from: reader)
        var placed: [NewEvent] = []
        var places: [(body: Int, fact: Int)] = []
        for (body, events) in facts.enumerated() {
            for (fact, event) in events.enumerated() {
                guard case .new(let eventKey) = keys.place(event) else { continue }
                var event = event
                event.eventKey = eventKey
                placed.append(event)
                places.append((body, fact))
            }
        }
        let known = try reader.existing(placed)
        var results = facts.map { [AppendOutcome?](repeating: nil, count: $0.count) }
        var events: [NewEvent] = []
        var targets: [(body: Int, fact: Int)?] = []
        for (index, place) in places.enumerated() where !known.contains(index) {
            // The response goes before the first of its facts that is new.
            if targets.last??.body != place.body, let body = judged[place.body].bodyEvent {
                events.append(body)
                targets.append(nil)
            }
            events.append(placed[index])
            targets.append(place)
        }
        guard !events.isEmpty else { return results }
        for (outcome, target) in zip(try appender.append(events), targets) {
            if let target { results[target.body][target.fact] = outcome }
        }
        return results
    }
}
