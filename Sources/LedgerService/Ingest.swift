public import AppStore
internal import EventLog
public import Ledger
public import Postgres

/// Reads lines of signed texts into the log.
///
/// Lines are verified on all cores and appended in their order, in bounded transactions. Nothing
/// is remembered about a file: a line that is in the log already is a duplicate, so a file that
/// was read half can simply be read again. Memory is bounded whatever the file holds.
public final class Ingest {
    /// How many lines make one piece of work.
    static let chunkLinesMax = 64
    /// How many pieces are read ahead of what is appended.
    static let chunksAheadMax = 24
    /// How many bytes of documents wait for one append.
    static let batchSizeMaxBytes = 16 << 20
    /// How long a line waits to be appended together with later ones.
    static let batchAgeMax = Duration.seconds(1)
    /// How often a lost session is opened anew before giving up.
    static let reconnections = 3

    /// For how long appends stay short after somebody else appended too.
    static let considerateFor = Duration.seconds(10)
    /// How many events others have appended between two of our appends where it is left to them for
    /// as long as ours took.
    static let yieldsFrom: Int64 = 8
    /// How long that is at most.
    static let yieldMax = Duration.milliseconds(250)

    private let verifier: Verifier
    private let connect: () throws -> Connection
    private var appender: Appender?
    private var lookUpSession: Connection?
    private var report = IngestReport()
    /// The last position that was given to a line of ours.
    private var lastPosition: Int64?
    /// When somebody else was last seen to append.
    private var othersAppendedAt: ContinuousClock.Instant?

    /// What a caller hears on the way.
    public struct Listener {
        /// Told of every line that was refused, in the order of the lines.
        public var refused: (RefusedLine) throws -> Void = { _ in }
        /// Told now and then how far it is.
        public var progress: (IngestReport) -> Void = { _ in }
        /// Asked now and then whether to stop after what is under way.
        public var shouldStop: () -> Bool = { false }

        /// Makes a listener that does nothing.
        public init() {}
    }

    /// Makes an ingest.
    ///
    /// - Parameters:
    ///   - verifier: knows the anchors and the accepted apps.
    ///   - connect: opens a session that may append; called again when a session is lost.
    public init(verifier: Verifier, connect: @escaping () throws -> Connection) {
        self.verifier = verifier
        self.connect = connect
    }

    /// Reads lines to their end, or until the listener stops it.
    ///
    /// - Parameters:
    ///   - reader: where the lines come from.
    ///   - now: what our clock says; a document signed later is not trusted yet.
    ///   - listener: what hears of it.
    /// - Returns: what became of the lines.
    /// - Throws: `InputError` when the file cannot be read on, `EventLogError` or `PostgresError`
    ///   when the database cannot be reached; what was appended before stays.
    public func run(
        _ reader: LineReader,
        now: Timestamp,
        listener: Listener = Listener()
    ) throws -> IngestReport {
        report = IngestReport()
        let verifier = verifier
        let pipeline = OrderedPipeline<[LineReader.Line], [JudgedLine]>(
            depth: Self.chunksAheadMax
        ) { lines in
            lines.compactMap { JudgedLine($0, verifier: verifier, now: now) }
        }
        var batch = Batch()
        while true {
            while !pipeline.isFull, !listener.shouldStop(),
                reader.isReady || pipeline.isEmpty && batch.lines.isEmpty,
                let chunk = try reader.lines(max: Self.chunkLinesMax)
            {
                pipeline.give(chunk)
            }
            if listener.shouldStop() {
                // What was read ahead is left: it is read again when the file is.
                try append(&batch, listener)
                break
            }
            guard let judged = pipeline.take() else {
                if batch.lines.isEmpty { break }
                try append(&batch, listener)
                continue
            }
            for line in judged {
                batch.add(line)
                if batch.isFull { try append(&batch, listener) }
            }
            if batch.age > Self.batchAgeMax { try append(&batch, listener) }
        }
        report.isStopped = listener.shouldStop()
        return report
    }

    /// Appends what is gathered and tells the listener of each refused line.
    private func append(_ batch: inout Batch, _ listener: Listener) throws {
        try attribute(&batch)
        var facts = batch.facts
        try place(&facts)
        let events = facts.compactMap { $0.isUnchanged ? nil : $0.event }
        let bodies = try batch.bodies(withNewsIn: facts) { try lookUp().existing($0) }
        let start = ContinuousClock.now
        let outcomes = try withAppender { try $0.append(events + bodies) }
        let took = ContinuousClock.now - start
        var appended = outcomes.makeIterator()
        var results: [[AppendOutcome?]] = Array(repeating: [], count: batch.lines.count)
        for fact in facts {
            results[fact.line].append(fact.isUnchanged ? nil : appended.next())
        }
        for (index, line) in batch.lines.enumerated() {
            var outcomes = results[index].makeIterator()
            for part in line.judgement.parts {
                report.read += 1
                let refused = try take(part, line.number) { outcomes.next() ?? nil }
                if let refused { try listener.refused(refused) }
            }
        }
        let others = noteOthers(outcomes)
        batch = Batch(countMax: countMax)
        listener.progress(report)
        // A webhook waits for the same lock and the same processors.
        if others >= Self.yieldsFrom {
            Sleep.milliseconds(Int(min(took, Self.yieldMax) / .milliseconds(1)))
        }
    }

    /// Sees from the positions how many events others have appended since our last append.
    private func noteOthers(_ outcomes: [AppendOutcome]) -> Int64 {
        let positions = outcomes.compactMap { outcome -> Int64? in
            if case .appended(let position) = outcome { position } else { nil }
        }
        guard let first = positions.first, let last = positions.last else { return 0 }
        let others = lastPosition.map { max(0, first - $0 - 1) } ?? 0
        if others > 0 { othersAppendedAt = .now }
        lastPosition = last
        return others
    }

    /// How many events are appended at once: fewer where a webhook waits for the same lock.
    private var countMax: Int {
        let isShared =
            othersAppendedAt.map { ContinuousClock.now - $0 < Self.considerateFor } ?? false
        return isShared ? BatchLimit.live.count : BatchLimit.bulk.count
    }

    /// Counts what became of one fact of a line; what to report where it is not simply there now.
    private func take(
        _ part: ResponseReading.Part,
        _ number: Int,
        _ outcome: () -> AppendOutcome?
    ) throws -> RefusedLine? {
        switch part {
        case .admitted(.event(_, let isUnrecognised)):
            return count(outcome(), isUnrecognised, number)
        case .admitted(.unattributed(let event, _)):
            let document = QuarantinedDocument(
                received: event.received,
                reason: "app_unknown",
                stream: event.stream,
                eventKey: event.eventKey
            )
            let detail = "a renewal info names no app, and no app here has its subscription"
            return try quarantine(document, detail, number)
        case .admitted(.quarantine(let document, let detail)):
            return try quarantine(document, detail, number)
        case .rejected(let rejection):
            report.rejected += 1
            return RefusedLine(
                line: number,
                outcome: .rejected,
                reason: rejection.reason.rawValue,
                detail: rejection.detail
            )
        }
    }

    /// Gives what Apple signs anew for every answer its keys; what tells nothing new is no event.
    private func place(_ facts: inout [Batch.Fact]) throws {
        let readings = facts.filter(\.event.isReading)
        guard !readings.isEmpty else { return }
        var keys = ReadingKeys()
        try keys.load(Set(readings.map(\.event.stream)), from: try lookUp())
        for index in facts.indices {
            guard facts[index].event.isReading else {
                keys.note(facts[index].event)
                continue
            }
            switch keys.place(facts[index].event) {
            case .unchanged: facts[index].isUnchanged = true
            case .new(let eventKey): facts[index].event.eventKey = eventKey
            }
        }
    }

    /// Reads what the log has, over a session that appends nothing.
    private func lookUp() throws -> LogReader {
        if let lookUpSession, lookUpSession.isAlive { return LogReader(lookUpSession) }
        let session = try connect()
        lookUpSession = session
        return LogReader(session)
    }

    private func quarantine(
        _ document: QuarantinedDocument,
        _ detail: String,
        _ number: Int
    ) throws -> RefusedLine {
        _ = try withAppender { try $0.quarantine(document) }
        report.quarantined += 1
        return RefusedLine(
            line: number,
            outcome: .quarantined,
            reason: document.reason,
            detail: detail
        )
    }

    /// Finds the app of what names none: the one that has its stream, in this batch or in the log.
    private func attribute(_ batch: inout Batch) throws {
        guard batch.hasUnattributed else { return }
        let connection = try connect()
        for index in batch.lines.indices {
            // What stands in a response takes the app that the response names.
            guard
                case .admitted(.unattributed(var event, let isUnrecognised)) =
                    batch.lines[index].judgement
            else { continue }
            var owners = try Admission.owners(of: event, connection)
            for other in batch.facts.map(\.event)
            where other.stream == event.stream && other.app.environment == event.app.environment {
                owners.insert(other.app.bundleID)
            }
            guard owners.count == 1, let owner = owners.first else { continue }
            event.app.bundleID = owner
            batch.lines[index].judgement = .admitted(
                .event(event, isUnrecognised: isUnrecognised)
            )
        }
    }

    /// Counts what became of an event; a line to report where it is not simply there now.
    private func count(
        _ outcome: AppendOutcome?,
        _ isUnrecognised: Bool,
        _ number: Int
    ) -> RefusedLine? {
        switch outcome {
        case .appended:
            report.appended += 1
            if isUnrecognised { report.unrecognised += 1 }
            return nil
        case .duplicate, nil:
            report.duplicate += 1
            return nil
        case .conflict(let position):
            report.conflict += 1
            return RefusedLine(
                line: number,
                outcome: .conflict,
                reason: "conflict",
                detail: "event \(position) has the same key and says something else"
            )
        case .quarantined(let reason):
            report.quarantined += 1
            return RefusedLine(
                line: number,
                outcome: .quarantined,
                reason: reason,
                detail: "the database cannot hold it as an event"
            )
        }
    }

    /// Runs `body` with an appender, again over a new session where one was lost.
    ///
    /// That is safe whatever became of a COMMIT under way: the keys decide.
    private func withAppender<Value>(_ body: (Appender) throws -> Value) throws -> Value {
        var attempt = 1
        while true {
            do {
                let current: Appender
                if let appender {
                    current = appender
                } else {
                    current = try Appender(connect(), limit: .bulk)
                    appender = current
                }
                return try body(current)
            } catch let error as EventLogError
                where [.unavailable, .unknownOutcome, .temporary].contains(error.code)
            {
                appender = nil
                guard attempt <= Self.reconnections else { throw error }
                Sleep.milliseconds(200 << attempt)
                attempt += 1
            }
        }
    }
}
