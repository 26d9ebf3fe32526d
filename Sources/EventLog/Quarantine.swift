public import Ledger
public import Postgres

/// What became of a document that was to be quarantined.
public enum QuarantineOutcome: Hashable, Sendable {
    /// It was new and is kept.
    case kept
    /// The same bytes were kept before.
    case keptBefore
    /// It is not kept: too much was quarantined today.
    case full
}

/// The genuine documents that could not become events, and what became of each later.
public struct Quarantine {
    /// One document, without its bytes.
    public struct Entry: Hashable, Sendable {
        /// SHA-256 of the bytes in hexadecimal, by which it is called.
        public var digest: String
        /// Why it is here, by a stable name.
        public var reason: String
        /// The app that it was for, where known.
        public var app: AppKey?
        /// The stream that it names, where it could be read.
        public var stream: String?
        /// The key that it would have had.
        public var eventKey: String?
        /// When it was kept.
        public var recordedAt: Timestamp
        /// How many bytes it has.
        public var sizeBytes: Int64
        /// What became of it; nil as long as nobody has dealt with it.
        public var resolution: Resolution?
    }

    /// How somebody dealt with a document.
    public struct Resolution: Hashable, Sendable {
        /// What became of it.
        public var outcome: Outcome
        /// The event that holds it, or was kept instead; nil for a dismissed one.
        public var position: Int64?
        /// Who dealt with it.
        public var operatorName: String
        /// Where more is to be read.
        public var ticket: String?
        /// When.
        public var resolvedAt: Timestamp
    }

    /// What can become of a document.
    public enum Outcome: String, Hashable, Sendable {
        /// It is an event now.
        case appended
        /// It was an event already.
        case duplicate
        /// An event has its key and says something else; both are kept.
        case conflict
        /// Somebody decided that nothing is to follow from it.
        case dismissed
    }

    /// The shortest beginning of a digest that names a document.
    public static let nameLengthMin = 8

    private let connection: Connection

    /// Looks through a session that may read everything; `resolve` needs the appender's rights.
    public init(_ connection: Connection) { self.connection = connection }

    /// The documents, the oldest first.
    ///
    /// - Parameters:
    ///   - includingResolved: whether those are listed that somebody has dealt with.
    ///   - limit: at most so many.
    /// - Returns: the documents without their bytes.
    /// - Throws: `EventLogError` when the database cannot be read.
    public func entries(
        includingResolved: Bool,
        limit: Int64
    ) throws(EventLogError) -> [Entry] {
        try entries(
            "where $1 or r.stream is null order by q.recorded_at, q.stream limit $2",
            [.bool(includingResolved), .int(limit)]
        )
    }

    /// The documents whose digest begins so; more than one where that is too short.
    public func entries(named name: String) throws(EventLogError) -> [Entry] {
        try entries(
            "where starts_with(q.stream, 'sha256:' || $1) order by q.stream limit 3",
            [.text(name.lowercased())]
        )
    }

    /// How many documents nobody has dealt with yet.
    public func unresolvedCount() throws(EventLogError) -> Int64 {
        try logged("count the quarantine") {
            try connection.query(
                """
                select count(*) from ledger.quarantine q
                where not exists (
                    select from ledger.quarantine_resolution r where r.stream = q.stream)
                """
            ).int(0, 0) ?? 0
        }
    }

    /// The bytes of a document, as they were received.
    public func received(_ entry: Entry) throws(EventLogError) -> [UInt8] {
        try logged("read a quarantined document") {
            let rows = try connection.query(
                "select received from ledger.quarantine where stream = 'sha256:' || $1",
                [.text(entry.digest)]
            )
            guard rows.count == 1, let received = rows.bytes(0, 0) else {
                throw EventLogError(.corrupt, "the quarantined document \(entry.digest) is gone")
            }
            return received
        }
    }

    /// Notes how somebody dealt with a document.
    ///
    /// - Returns: false where somebody had before, which stays as it is.
    public func resolve(
        _ entry: Entry,
        as outcome: Outcome,
        position: Int64? = nil,
        by operatorName: String,
        ticket: String? = nil
    ) throws(EventLogError) -> Bool {
        try logged("note what became of a quarantined document") {
            let rows = try connection.query(
                """
                insert into ledger.quarantine_resolution (stream, outcome, position, operator,
                    ticket)
                values ('sha256:' || $1, $2, $3, $4, $5)
                on conflict (stream) do nothing
                returning stream
                """,
                [
                    .text(entry.digest), .text(outcome.rawValue), .int(position),
                    .text(operatorName), .text(ticket),
                ]
            )
            return rows.count == 1
        }
    }

    private func entries(
        _ condition: String,
        _ binds: [Bind]
    ) throws(EventLogError) -> [Entry] {
        try logged("list the quarantine") {
            let rows = try connection.query(
                """
                select encode(q.digest, 'hex'), q.reason, app.bundle_id, app.environment,
                    q.claimed_stream, q.event_key, q.recorded_at, octet_length(q.received),
                    r.outcome, r.position, r.operator, r.ticket, r.resolved_at
                from ledger.quarantine q
                left join ledger.app using (app_id)
                left join ledger.quarantine_resolution r on r.stream = q.stream
                \(condition)
                """,
                binds
            )
            return (0..<rows.count).map { Self.entry(rows, $0) }
        }
    }

    private static func entry(_ rows: Rows, _ row: Int) -> Entry {
        var entry = Entry(
            digest: rows.text(row, 0) ?? "",
            reason: rows.text(row, 1) ?? "",
            stream: rows.text(row, 4),
            eventKey: rows.text(row, 5),
            recordedAt: Timestamp(milliseconds: rows.instant(row, 6) ?? 0),
            sizeBytes: rows.int(row, 7) ?? 0
        )
        if let bundleID = rows.text(row, 2) {
            let environment = Environment(rows.text(row, 3) ?? "")
            entry.app = AppKey(bundleID: bundleID, environment: environment)
        }
        if let outcome = rows.text(row, 8).flatMap({ Outcome(rawValue: $0) }) {
            entry.resolution = Resolution(
                outcome: outcome,
                position: rows.int(row, 9),
                operatorName: rows.text(row, 10) ?? "",
                ticket: rows.text(row, 11),
                resolvedAt: Timestamp(milliseconds: rows.instant(row, 12) ?? 0)
            )
        }
        return entry
    }
}
