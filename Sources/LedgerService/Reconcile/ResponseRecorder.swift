package import AppStore
package import EventLog
package import Ledger
package import Postgres

/// What became of the facts of one answer.
package struct RecordedResponse: Hashable, Sendable {
    /// New events, the one of the body itself not counted.
    package var appended = 0
    /// Facts that the log had: nothing was appended for them.
    package var unchanged = 0
    /// Facts that say something else than the event under their key.
    package var conflict = 0
    /// Documents kept in quarantine.
    package var quarantined = 0
    /// Signed texts of which nothing is kept, with the reason.
    package var rejected: [Rejection] = []
    /// The streams that got something new.
    package var changedStreams: Set<String> = []

    /// Makes the record of nothing.
    package init() {}

    /// Adds what became of another answer.
    package mutating func add(_ other: RecordedResponse) {
        appended += other.appended
        unchanged += other.unchanged
        conflict += other.conflict
        quarantined += other.quarantined
        rejected += other.rejected
        changedStreams.formUnion(other.changedStreams)
    }
}

/// Writes what Apple answered into the log, before anybody uses it.
///
/// Each signed text becomes an event of its own stream, each status one beside it, and the body one
/// of the stream `api:<run>`, all with the request's id as `correlation` and in one transaction. An
/// answer that tells nothing new appends nothing; `ledger.poll` says that it was read.
package final class ResponseRecorder {
    /// What the body's streams are named after.
    package let run: String

    private let verifier: Verifier
    private let session: LogSession

    /// Makes a recorder.
    ///
    /// - Parameters:
    ///   - run: names one run of the program.
    ///   - verifier: knows the anchors and the accepted apps.
    ///   - connect: opens a session that may append; called again when a session is lost.
    package init(run: String, verifier: Verifier, connect: @escaping () throws -> Connection) {
        self.run = run
        self.verifier = verifier
        session = LogSession(connect: connect)
    }

    /// Records an answer.
    ///
    /// - Parameters:
    ///   - response: the answer.
    ///   - stream: what was asked about: a subscription, or `app:` and the bundle id.
    /// - Returns: what became of its facts.
    /// - Throws: `EventLogError` or `PostgresError` when the database cannot be used.
    package func record(_ response: APIResponse, about stream: String) throws -> RecordedResponse {
        let app = AppKey(bundleID: response.bundleID, environment: response.environment)
        guard let answer = response.answer else { return RecordedResponse() }
        let reading = ResponseReading(
            answer,
            of: app,
            correlation: response.requestID,
            verifier: verifier,
            now: response.receivedAt
        )
        return try session.withSession { connection, appender in
            var result = RecordedResponse()
            var events: [NewEvent] = []
            for part in reading.parts {
                switch part {
                case .rejected(let rejection): result.rejected.append(rejection)
                case .admitted(.quarantine(let document, _)):
                    if try appender.quarantine(document) { result.quarantined += 1 }
                case .admitted(.unattributed): break
                case .admitted(.event(let event, _)): events.append(event)
                }
            }
            var keys = ReadingKeys()
            var fresh = try keys.placed(events, LogReader(connection))
            result.unchanged = events.count - fresh.count
            let known = try LogReader(connection).existing(fresh)
            result.unchanged += known.count
            for index in known.sorted().reversed() { fresh.remove(at: index) }
            if !fresh.isEmpty {
                let body = reading.event(
                    of: response.body,
                    endpoint: response.endpoint.name,
                    run: run,
                    requestID: response.requestID
                )
                let outcomes = try appender.append(fresh + [body].compactMap(\.self))
                for (event, outcome) in zip(fresh, outcomes) { result.count(outcome, of: event) }
            }
            try SendAttempts(connection).note(reading.deliveries)
            try PollBook(connection).note(
                stream,
                of: app,
                source: response.endpoint.name,
                outcome: result.rejected.isEmpty ? "ok" : "rejected",
                unchanged: result.unchanged,
                now: response.receivedAt
            )
            return result
        }
    }

    /// Notes that Apple was asked and gave no answer that could be used.
    ///
    /// - Parameters:
    ///   - error: what came instead.
    ///   - stream: what was asked about, as for `record`.
    ///   - app: the app.
    ///   - now: when.
    /// - Throws: `PostgresError` when the database cannot be used.
    package func note(
        _ error: AppStoreAPIError,
        about stream: String,
        of app: AppKey,
        now: Timestamp
    ) throws {
        try withSession { connection, _ in
            try PollBook(connection).note(
                stream,
                of: app,
                source: error.endpoint,
                outcome: error.outcome,
                now: now
            )
        }
    }

    /// Runs `body` over the session, again over a new one where it was lost.
    ///
    /// That is safe whatever became of a COMMIT under way: the keys decide.
    package func withSession<Value>(
        _ body: (Connection, Appender) throws -> Value
    ) throws -> Value {
        try session.withSession(body)
    }
}

extension RecordedResponse {
    fileprivate mutating func count(_ outcome: AppendOutcome, of event: NewEvent) {
        switch outcome {
        case .appended:
            appended += 1
            changedStreams.insert(event.stream)
        case .duplicate: unchanged += 1
        case .conflict: conflict += 1
        case .quarantined: quarantined += 1
        }
    }
}

extension ReadingKeys {
    /// The events that tell something new, with their keys; those with a UUID keep theirs.
    mutating func placed(
        _ events: [NewEvent],
        _ reader: LogReader
    ) throws(EventLogError) -> [NewEvent] {
        let readings = events.filter(\.isReading)
        try load(Set(readings.map(\.stream)), from: reader)
        var result: [NewEvent] = []
        for var event in events {
            if event.isReading {
                guard case .new(let eventKey) = place(event) else { continue }
                event.eventKey = eventKey
            }
            result.append(event)
        }
        return result
    }
}

extension NewEvent {
    /// Whether Apple signs it anew for every answer, so that its key depends on what it follows.
    var isReading: Bool { kind != .notification && fact != nil }
}
