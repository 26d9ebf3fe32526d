package import AppStore
package import EventLog
package import Ledger
package import Postgres

/// Tries quarantined documents again with what this program knows today.
///
/// What can become an event now is appended by the appender as any other; the row in quarantine
/// stays. A replay that is killed between the event and its note is simply run again: then the
/// event is a duplicate.
package final class QuarantineReplay {
    /// What became of a document.
    package enum Outcome: Hashable, Sendable {
        /// It is dealt with now.
        case resolved(Quarantine.Outcome, position: Int64)
        /// Somebody else dealt with it meanwhile.
        case resolvedBefore
        /// It still cannot become an event.
        case remains(reason: String, detail: String)
    }

    private let verifier: Verifier
    private let now: Timestamp
    private let connection: Connection
    private let quarantine: Quarantine
    private let appender: Appender

    /// Makes a replay.
    ///
    /// - Parameters:
    ///   - verifier: knows the anchors and the accepted apps.
    ///   - now: what our clock says.
    ///   - connection: a session that may append, which nothing else uses meanwhile.
    /// - Throws: `EventLogError` when the session cannot be used.
    package init(
        verifier: Verifier,
        now: Timestamp,
        _ connection: Connection
    ) throws(EventLogError) {
        self.verifier = verifier
        self.now = now
        self.connection = connection
        quarantine = Quarantine(connection)
        appender = try Appender(connection)
    }

    /// Tries a document again.
    ///
    /// - Parameters:
    ///   - entry: the document.
    ///   - operatorName: who has it tried.
    ///   - ticket: where more is to be read.
    /// - Returns: what became of it.
    /// - Throws: `EventLogError` or `PostgresError` when the database cannot be used.
    package func replay(
        _ entry: Quarantine.Entry,
        by operatorName: String,
        ticket: String?
    ) throws -> Outcome {
        let event: NewEvent
        switch try judge(entry) {
        case .failure(let remains): return .remains(reason: remains.reason, detail: remains.detail)
        case .success(let found): event = found
        }
        let outcome: Quarantine.Outcome
        let position: Int64
        switch try appender.append([event]).first {
        case .appended(let at): (outcome, position) = (.appended, at)
        case .duplicate(let at): (outcome, position) = (.duplicate, at)
        case .conflict(let at): (outcome, position) = (.conflict, at)
        case .quarantined(let reason):
            return .remains(reason: reason, detail: "the database cannot hold it as an event")
        case nil: throw EventLogError(.corrupt, "an event without an outcome")
        }
        let isNoted = try quarantine.resolve(
            entry,
            as: outcome,
            position: position,
            by: operatorName,
            ticket: ticket
        )
        return isNoted ? .resolved(outcome, position: position) : .resolvedBefore
    }

    private struct Remains: Error {
        var reason: String
        var detail: String
    }

    /// The event that a document can become now.
    private func judge(_ entry: Quarantine.Entry) throws -> Result<NewEvent, Remains> {
        let received = try quarantine.received(entry)
        switch JudgedLine.Judgement(of: received, verifier, now: now) {
        case .rejected(let rejection):
            return .failure(
                Remains(reason: rejection.reason.rawValue, detail: rejection.detail)
            )
        case .admitted(.quarantine(let document, let detail)):
            return .failure(Remains(reason: document.reason, detail: detail))
        case .answer:
            return .failure(Remains(reason: "bad_json", detail: "it is no single signed text"))
        case .admitted(.event(let event, _)): return .success(try keyed(event))
        case .admitted(.unattributed(var event, _)):
            let owners = try Admission.owners(of: event, connection)
            guard owners.count == 1, let owner = owners.first else {
                return .failure(
                    Remains(
                        reason: "app_unknown",
                        detail: "it names no app, and no app here has its subscription"
                    )
                )
            }
            event.app.bundleID = owner
            return .success(try keyed(event))
        }
    }

    /// The event with the key of what it follows, where it is one that Apple signs anew each time.
    private func keyed(_ event: NewEvent) throws -> NewEvent {
        guard event.isReading else { return event }
        var event = event
        var keys = ReadingKeys()
        try keys.load([event.stream], from: LogReader(connection))
        if case .new(let eventKey) = keys.place(event) { event.eventKey = eventKey }
        return event
    }
}
