public import Ledger
public import Postgres

/// Reads the log: events, evidence, facts, marks and the head.
///
/// It keeps no state between calls and needs no transaction of its own; inside one it reads what
/// that transaction sees.
public struct LogReader {
    /// One part of a table that can be read on its own; a stream never spans two.
    public struct Slice: Sendable {
        /// Its place, from 0.
        public var index: Int
        /// The part's name as SQL, schema included.
        public var relation: String
        /// The streams of it that are meant: from one, exclusive of another; nil for all.
        var streams: (from: String?, until: String?) = (nil, nil)
    }

    /// One row of `ledger.mark`.
    public struct Mark: Hashable, Sendable {
        /// The subscription that changed.
        public var key: SubscriptionKey
        /// The newest position of it in one append.
        public var position: Int64
    }

    let connection: Connection
    let source: FactSource

    /// Makes a reader over a session.
    ///
    /// - Parameters:
    ///   - connection: the session.
    ///   - source: the decoder whose rows of `ledger.fact` are read, and that decodes all other
    ///     events from their evidence.
    public init(_ connection: Connection, source: FactSource = .current) {
        self.connection = connection
        self.source = source
    }

    /// The apps of the log by their number.
    public func apps() throws(EventLogError) -> [Int32: AppKey] {
        try logged("read the apps") {
            let rows = try connection.query(
                "select app_id, bundle_id, environment from ledger.app"
            )
            var result: [Int32: AppKey] = [:]
            for row in 0..<rows.count {
                result[Int32(rows.int(row, 0) ?? 0)] = AppKey(
                    bundleID: rows.text(row, 1) ?? "",
                    environment: Environment(rows.text(row, 2) ?? "")
                )
            }
            return result
        }
    }

    /// The parts of a table, `ledger.fact` for a rebuild.
    public func slices(
        of table: String = "ledger.fact"
    ) throws(EventLogError) -> [Slice] {
        try logged("list the parts of \(table)") {
            let rows = try connection.query(
                "select slice, part from ledger.slices($1) order by slice",
                [.text(table)]
            )
            return (0..<rows.count).map {
                Slice(index: Int(rows.int($0, 0) ?? 0), relation: rows.text($0, 1) ?? "")
            }
        }
    }

    /// The subscriptions that have a stream of this name, at most one for each app.
    public func keys(ofStream stream: String) throws(EventLogError) -> [SubscriptionKey] {
        try logged("look a stream up") {
            let rows = try connection.query(
                "select distinct app_id from ledger.event where stream = $1 order by app_id",
                [.text(stream)]
            )
            return (0..<rows.count).map {
                SubscriptionKey(appID: Int32(rows.int($0, 0) ?? 0), stream: stream)
            }
        }
    }

    /// The events of a subscription by position.
    public func events(of key: SubscriptionKey) throws(EventLogError) -> [StoredEvent] {
        try logged("read the events of \(key)") {
            let rows = try connection.query(
                "select \(StoredEvent.columns) from ledger.event"
                    + " where stream = $1 and app_id = $2 order by position",
                [.text(key.stream), .int(Int64(key.appID))]
            )
            return try (0..<rows.count).map { try StoredEvent(rows, $0) }
        }
    }

    /// The events from a position on, in commit order, at most `limit`.
    public func events(
        after position: Int64,
        limit: Int
    ) throws(EventLogError) -> [StoredEvent] {
        try logged("read the events after \(position)") {
            let rows = try connection.query(
                "select \(StoredEvent.columns) from ledger.event"
                    + " where position > $1 order by position limit $2",
                [.int(position), .int(Int64(limit))]
            )
            var result: [StoredEvent] = []
            for row in 0..<rows.count {
                let event = try StoredEvent(rows, row)
                // A hole closes by itself; what is behind it is read then.
                guard event.position == position + Int64(row) + 1 else { break }
                result.append(event)
            }
            return result
        }
    }

    /// The event at a position, or nil.
    public func event(at position: Int64) throws(EventLogError) -> StoredEvent? {
        try logged("read event \(position)") {
            let rows = try connection.query(
                "select \(StoredEvent.columns) from ledger.event where position = $1",
                [.int(position)]
            )
            return try rows.count == 0 ? nil : StoredEvent(rows, 0)
        }
    }

    /// The end of the log, as `subledger audit head` prints it.
    public func head() throws(EventLogError) -> AuditHead {
        try logged("read the head") {
            let rows = try connection.query(
                "select position, link, recorded_at from ledger.head"
            )
            guard rows.count == 1, let link = rows.bytes(0, 1) else {
                throw EventLogError(.corrupt, "ledger.head has \(rows.count) rows, not one")
            }
            return AuditHead(
                position: rows.int(0, 0) ?? 0,
                root: link,
                recordedAt: Timestamp(milliseconds: rows.instant(0, 2) ?? 0)
            )
        }
    }

    /// Marks of subscriptions whose read models are not up to date, at most `limit`.
    public func marks(limit: Int) throws(EventLogError) -> [Mark] {
        try logged("read the marks") {
            let rows = try connection.query(
                "select stream, app_id, max(position) from ledger.mark"
                    + " group by stream, app_id order by 3 limit $1",
                [.int(Int64(limit))]
            )
            return (0..<rows.count).map {
                Mark(
                    key: SubscriptionKey(
                        appID: Int32(rows.int($0, 1) ?? 0),
                        stream: rows.text($0, 0) ?? ""
                    ),
                    position: rows.int($0, 2) ?? 0
                )
            }
        }
    }

    /// How many subscriptions wait to be folded.
    public func markedStreams() throws(EventLogError) -> Int {
        try logged("count the marks") {
            let rows = try connection.query(
                "select count(*) from (select distinct stream, app_id from ledger.mark) as marked"
            )
            return Int(rows.int(0, 0) ?? 0)
        }
    }
}

extension StoredEvent {
    /// The columns of `ledger.event` in the order that `init(_:_:)` reads.
    static let columns = """
        event.position, event.app_id, event.stream, event.event_key, event.kind, \
        event.notification_type, event.subtype, event.provenance, event.signed_at, \
        event.recorded_at, event.correlation, event.content_digest, event.sealed_digest, \
        event.operator, event.ticket
        """

    /// Reads a row that begins with `columns`.
    init(_ rows: Rows, _ row: Int) throws(EventLogError) {
        guard
            let position = rows.int(row, 0), let appID = rows.int(row, 1),
            let stream = rows.text(row, 2), let eventKey = rows.text(row, 3),
            let kind = rows.text(row, 4), let word = rows.text(row, 7),
            let provenance = Provenance(text: word), let recordedAt = rows.instant(row, 9),
            let contentDigest = rows.bytes(row, 11), let sealedDigest = rows.bytes(row, 12)
        else {
            throw EventLogError(
                .unreadable,
                "event \(rows.int(row, 0) ?? 0) of \(rows.text(row, 2) ?? "?") cannot be read",
                position: rows.int(row, 0)
            )
        }
        self.init(
            position: position,
            key: SubscriptionKey(appID: Int32(truncatingIfNeeded: appID), stream: stream),
            eventKey: eventKey,
            kind: EventKind(kind),
            notificationType: rows.text(row, 5),
            subtype: rows.text(row, 6),
            provenance: provenance,
            signedAt: rows.instant(row, 8).map { Timestamp(milliseconds: $0) },
            recordedAt: Timestamp(milliseconds: recordedAt),
            correlation: rows.text(row, 10),
            contentDigest: contentDigest,
            sealedDigest: sealedDigest,
            operator: rows.text(row, 13),
            ticket: rows.text(row, 14)
        )
    }
}
