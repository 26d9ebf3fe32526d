internal import Crypto
public import Ledger
public import Postgres

/// The only writer of events.
///
/// One transaction holds a batch, all of it or nothing. When `append` returns, what it says is
/// durable: the COMMIT came back from a server that writes to disk first. Any number of appenders
/// may run, in any number of processes; the row `ledger.head` lets one of them commit at a time,
/// so that positions are dense and in commit order.
public final class Appender {
    /// How often a batch is tried again after a deadlock or a serialisation failure.
    static let attempts = 6

    private let connection: Connection
    private let limit: BatchLimit
    private var references = ReferenceRows()
    private var apps: [Int32: AppKey] = [:]
    private var expected: [SubscriptionKey: Int64] = [:]

    private var quiet: Quiet?

    /// No event of a kind about an app since a position: what a decision about the whole app rests
    /// on, as one about a subscription rests on its last position.
    public struct Quiet: Hashable, Sendable {
        /// The kind.
        public var kind: EventKind
        /// The number of the app.
        public var appID: Int32
        /// The last position that was read.
        public var after: Int64

        /// Makes one.
        public init(_ kind: EventKind, of appID: Int32, after position: Int64) {
            self.kind = kind
            self.appID = appID
            after = position
        }
    }

    /// Called at each step; tests stop the program there.
    var step: (AppendStep) throws -> Void = { _ in }

    /// Makes an appender over a session that nothing else uses meanwhile.
    ///
    /// It limits how long a statement, a lock and an idle transaction may last: an appender that
    /// hangs must not hold the head. It also has the server go by its indexes: it only ever looks
    /// up what it knows the key of, and a server that has no statistics yet (a new database, or one
    /// that has crashed) would read all of the log for that, with the head locked.
    public init(_ connection: Connection, limit: BatchLimit = .live) throws(EventLogError) {
        self.connection = connection
        self.limit = limit
        try logged("set the session up") {
            try connection.execute(
                """
                set lock_timeout = '5s'; set statement_timeout = '30s';
                set idle_in_transaction_session_timeout = '10s';
                set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off;
                set max_parallel_workers_per_gather = 0
                """
            )
        }
    }

    /// Writes events, at most `limit` in a transaction, and says what became of each.
    ///
    /// An event that the database cannot hold goes to quarantine and the others are written.
    ///
    /// - Throws: `.unknownOutcome` when the session was lost during COMMIT: send the same events
    ///   again over a new session. `.unavailable` and `.temporary` when nothing of the current
    ///   batch was written. `.corrupt` when the log contradicts itself. Batches before the
    ///   current one stay written in any case, and are duplicates when they are sent again.
    public func append(_ events: [NewEvent]) throws(EventLogError) -> [AppendOutcome] {
        var outcomes: [AppendOutcome] = []
        outcomes.reserveCapacity(events.count)
        for start in stride(from: 0, to: events.count, by: limit.count) {
            let end = min(start + limit.count, events.count)
            outcomes += try appendBatch(events[start..<end])
        }
        return outcomes
    }

    /// Writes a few events in one transaction, if some subscriptions have no news since they were
    /// read: what was decided from what they held still holds then.
    ///
    /// - Parameters:
    ///   - events: at most `limit`.
    ///   - expected: the last position of each subscription that was read; 0 for an empty one.
    ///   - quiet: what else must not have been appended since it was read.
    /// - Returns: what became of each event.
    /// - Throws: `.stale` where one has news, and nothing was written; else as `append`.
    public func append(
        _ events: [NewEvent],
        expecting expected: [SubscriptionKey: Int64],
        quiet: Quiet? = nil
    ) throws(EventLogError) -> [AppendOutcome] {
        self.expected = expected
        self.quiet = quiet
        defer {
            self.expected = [:]
            self.quiet = nil
        }
        return try appendBatch(events[...])
    }

    /// Keeps a genuine document that could not become an event; the same bytes are kept once.
    ///
    /// - Returns: whether it was new.
    @discardableResult
    public func quarantine(_ document: QuarantinedDocument) throws(EventLogError) -> Bool {
        try quarantine(document, bytesPerDayMax: nil) == .kept
    }

    /// Keeps a genuine document that could not become an event, unless too much of that kind was
    /// kept today, which is since midnight UTC by the database's clock.
    ///
    /// - Parameters:
    ///   - document: what to keep; bytes that are there already count as kept, whatever the limit.
    ///   - bytesPerDayMax: how many bytes may be kept in a day, those of all programs together;
    ///     nil for any number.
    /// - Returns: whether it is kept now.
    /// - Throws: `EventLogError` when it is not known to be kept.
    public func quarantine(
        _ document: QuarantinedDocument,
        bytesPerDayMax: Int64?
    ) throws(EventLogError) -> QuarantineOutcome {
        try translated("quarantine a document") {
            let app = try document.app.map { try references.appID($0, connection) }
            let rows = try connection.query(
                """
                insert into ledger.quarantine (stream, digest, reason, app_id, claimed_stream,
                    event_key, received)
                select 'sha256:' || encode(sha256($1), 'hex'), sha256($1), $2, $3::integer,
                    $4, $5, $1
                where $6::bigint is null or $6::bigint >= octet_length($1) + (
                    select coalesce(sum(octet_length(received)), 0) from ledger.quarantine
                    where recorded_at >= date_trunc('day', now(), 'UTC'))
                on conflict (stream) do nothing
                returning stream
                """,
                [
                    .bytes(document.received), .text(document.reason),
                    .int(app.map { Int64($0) }), .text(Self.cleaned(document.stream)),
                    .text(Self.cleaned(document.eventKey)), .int(bytesPerDayMax),
                ]
            )
            if rows.count == 1 { return .kept }
            guard bytesPerDayMax != nil else { return .keptBefore }
            let known = try connection.query(
                "select from ledger.quarantine where stream = 'sha256:' || encode($1, 'hex')",
                [.bytes(SHA256.digest(document.received))]
            )
            return known.count == 1 ? .keptBefore : .full
        }
    }

    private static func cleaned(_ text: String?) -> String? {
        text.map { $0.split(separator: "\0").joined(separator: "\u{FFFD}") }
    }
}

extension Appender {
    /// A batch that the server refused for what is in it.
    private struct Poison: Error {
        var sqlState: String
    }

    private func appendBatch(
        _ events: ArraySlice<NewEvent>
    ) throws(EventLogError) -> [AppendOutcome] {
        var outcomes = [AppendOutcome?](repeating: nil, count: events.count)
        var prepared: [(index: Int, event: PreparedEvent)] = []
        for (index, event) in events.enumerated() {
            do {
                if let reason = PreparedEvent.objection(to: event) {
                    outcomes[index] = try setAside(event, reason: reason)
                } else {
                    prepared.append((index, try prepare(event)))
                }
            } catch let poison as Poison {
                outcomes[index] = try setAside(event, reason: "sqlstate_\(poison.sqlState)")
            } catch {
                throw EventLogError.made(from: error, doing: "prepare an event")
            }
        }
        do { try step(.referencesWritten) } catch {
            throw EventLogError.made(from: error, doing: "append")
        }
        for (index, outcome) in try isolating(prepared[...]) { outcomes[index] = outcome }
        return outcomes.compactMap(\.self)
    }

    private func prepare(_ event: NewEvent) throws -> PreparedEvent {
        do {
            let prepared = try PreparedEvent(
                event,
                references: &references,
                decoder: FactSource.current.version,
                connection
            )
            apps[prepared.key.appID] = event.app
            return prepared
        } catch let error as PostgresError {
            if let state = Self.poison(error) { throw Poison(sqlState: state) }
            throw error
        }
    }

    /// Writes a batch; where the server refuses it for its content, writes its halves, until the
    /// offender stands alone and goes to quarantine.
    private func isolating(
        _ events: ArraySlice<(index: Int, event: PreparedEvent)>
    ) throws(EventLogError) -> [(index: Int, outcome: AppendOutcome)] {
        guard let first = events.first else { return [] }
        do {
            let outcomes = try attempt(events.map(\.event))
            return zip(events, outcomes).map { ($0.index, $1) }
        } catch let poison as Poison {
            guard events.count > 1 else {
                let reason = "sqlstate_\(poison.sqlState)"
                return [(first.index, try setAside(first.event.source, reason: reason))]
            }
            let middle = events.startIndex + events.count / 2
            return try isolating(events[..<middle]) + isolating(events[middle...])
        } catch {
            throw EventLogError.made(from: error, doing: "append")
        }
    }

    /// Writes a batch, again after a deadlock: the whole transaction, reads included.
    private func attempt(_ events: [PreparedEvent]) throws -> [AppendOutcome] {
        var attempt = 1
        while true {
            do {
                return try attemptOnce(events)
            } catch let error as PostgresError {
                if let state = Self.poison(error) { throw Poison(sqlState: state) }
                if error.sqlState == "23505" {
                    // The keys were looked up under the lock, so no key can be there twice.
                    throw EventLogError(.corrupt, "append: \(error.message)", sqlState: "23505")
                }
                guard error.sqlState?.hasPrefix("40") == true, connection.isAlive,
                    attempt < Self.attempts
                else { throw EventLogError(error, doing: "append") }
            } catch is AppendTransaction.ShortReturning {
                guard attempt < Self.attempts else {
                    throw EventLogError(
                        .corrupt,
                        "events appear without the head being locked: another program writes them"
                    )
                }
            }
            attempt += 1
            Pause.jittered(attempt: attempt)
        }
    }

    private func attemptOnce(_ events: [PreparedEvent]) throws -> [AppendOutcome] {
        let transaction = AppendTransaction(
            connection: connection,
            apps: apps,
            step: step,
            expected: expected,
            quiet: quiet
        )
        let foresight = try transaction.foresee(events)
        let outcomes: [AppendOutcome]
        do {
            try connection.execute(
                "begin isolation level read committed; set local synchronous_commit = on"
            )
            outcomes = try transaction.write(events, foresight)
        } catch {
            // A rollback that fails has lost the session, and with it the transaction.
            if connection.isAlive { try? connection.execute("rollback") }
            throw error
        }
        do {
            try connection.execute("commit")
        } catch let error {
            guard error.code == .connection else { throw error }
            throw EventLogError(
                .unknownOutcome,
                "the session was lost during COMMIT (\(error.message)); send the batch again"
            )
        }
        try step(.committed)
        return outcomes
    }

    private func setAside(
        _ event: NewEvent,
        reason: String
    ) throws(EventLogError) -> AppendOutcome {
        // The app's own row may be what the server refused.
        let isKnown = apps.values.contains(event.app)
        try quarantine(
            QuarantinedDocument(
                received: event.received,
                reason: reason,
                app: isKnown ? event.app : nil,
                stream: event.stream,
                eventKey: event.eventKey
            )
        )
        return .quarantined(reason: reason)
    }

    /// The SQLSTATE of an error that is about the content, or nil.
    ///
    /// That is data exceptions, broken constraints and exceeded limits. A broken unique key is none: the keys were looked up under the lock.
    private static func poison(_ error: PostgresError) -> String? {
        guard let state = error.sqlState, state != "23505" else { return nil }
        return ["22", "23", "54"].contains(String(state.prefix(2))) ? state : nil
    }

    private func translated<Value>(
        _ what: String,
        _ body: () throws -> Value
    ) throws(EventLogError) -> Value {
        do { return try body() } catch { throw EventLogError.made(from: error, doing: what) }
    }
}

extension AppKey {
    /// Stands for an app that is not known, which cannot be.
    static let none = AppKey(bundleID: "", environment: .unknown(""))
}
