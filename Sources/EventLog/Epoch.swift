public import Ledger
public import Postgres

/// The server that a log is on, as far as a restore or a failover changes it.
public struct ServerIdentity: Hashable, Sendable, CustomStringConvertible {
    /// PostgreSQL's system identifier, given by `initdb`.
    public var identifier: String
    /// The timeline of the write-ahead log.
    public var timeline: Int64

    /// `server 7312… timeline 1`.
    public var description: String { "server \(identifier), timeline \(timeline)" }
}

/// A stretch of the log's life in which a position always means the same event.
public struct Epoch: Hashable, Sendable {
    /// The number: 1, or the second since 1970 in which it was opened.
    public var number: Int64
    /// The last position that it shares with the one before.
    public var cutPosition: Int64
    /// The server it was opened on.
    public var server: ServerIdentity
    /// When.
    public var openedAt: Timestamp
    /// By whom.
    public var operatorName: String
    /// Why.
    public var why: String
}

/// The epochs of a log: `ledger.epoch`.
///
/// A restore or a failover may lose the end of the log. Its positions are then given out again, so
/// whoever reads on by position must be told; and nobody may append before somebody has said so.
public struct EpochBook {
    private let connection: Connection

    /// Works over a session that may read the log.
    public init(_ connection: Connection) { self.connection = connection }

    /// The epochs, the first one first.
    ///
    /// - Throws: `EventLogError`; `.corrupt` where there is none.
    public func all() throws(EventLogError) -> [Epoch] {
        try logged("read the epochs") {
            let rows = try connection.query(
                """
                select epoch, cut_position, server_identifier, timeline, opened_at, operator, why
                from ledger.epoch order by epoch
                """
            )
            guard rows.count > 0 else {
                throw EventLogError(.corrupt, "ledger.epoch is empty; the migration fills it")
            }
            return (0..<rows.count).map { row in
                Epoch(
                    number: rows.int(row, 0) ?? 0,
                    cutPosition: rows.int(row, 1) ?? 0,
                    server: ServerIdentity(
                        identifier: rows.text(row, 2) ?? "",
                        timeline: rows.int(row, 3) ?? 0
                    ),
                    openedAt: Timestamp(milliseconds: rows.instant(row, 4) ?? 0),
                    operatorName: rows.text(row, 5) ?? "",
                    why: rows.text(row, 6) ?? ""
                )
            }
        }
    }

    /// The server of this session.
    ///
    /// - Throws: `EventLogError`; `.unavailable` on a standby, where nothing can be appended.
    public func server() throws(EventLogError) -> ServerIdentity {
        try logged("read the server's identity") {
            guard try connection.query("select pg_is_in_recovery()").bool(0, 0) == false else {
                throw EventLogError(.unavailable, "the server is a standby, or still recovers")
            }
            let rows = try connection.query(
                """
                select system_identifier::text,
                    ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint
                from pg_control_system()
                """
            )
            return ServerIdentity(
                identifier: rows.text(0, 0) ?? "",
                timeline: rows.int(0, 1) ?? 0
            )
        }
    }

    /// Refuses a log that came to another server, or another timeline, than its epoch was opened on.
    ///
    /// - Throws: `.restored`, with the remedy; `EventLogError` where it cannot be told.
    public func check() throws(EventLogError) {
        guard let present = try all().last else { return }
        let server = try server()
        guard server != present.server else { return }
        throw EventLogError(
            .restored,
            "the ledger is on \(server), but its epoch \(present.number) was opened on "
                + "\(present.server): it was restored or failed over, and its last events may be "
                + "lost. Nothing is written until you run: subledger db restored --operator WHO "
                + "--why TEXT"
        )
    }

    /// Opens a new epoch on this session's server, with the head at the end of what is there.
    ///
    /// - Parameters:
    ///   - operator: who says that the log was restored.
    ///   - why: what happened.
    ///   - now: our clock, which gives the number.
    /// - Returns: the new epoch.
    /// - Throws: `.corrupt`, and nothing is changed, where events are missing in between or the
    ///   batches end elsewhere than the events; `EventLogError`.
    public func open(
        by operator: String,
        why: String,
        now: Timestamp
    ) throws(EventLogError) -> Epoch {
        let server = try server()
        try logged("open an epoch") {
            try connection.transaction { connection in
                try connection.query("select from ledger.head for update")
                let end = try end()
                try connection.query(
                    """
                    update ledger.head set position = $1, link = $2, recorded_at = $3
                    where (position, link, recorded_at) is distinct from ($1, $2, $3)
                    """,
                    [
                        .int(end.position), .bytes(end.link),
                        .instant(milliseconds: end.recordedAt.milliseconds),
                    ]
                )
                try connection.query(
                    """
                    insert into ledger.epoch (epoch, cut_position, server_identifier, timeline,
                        operator, why)
                    select greatest($1, max(epoch) + 1), $2, $3, $4, $5, $6 from ledger.epoch
                    """,
                    [
                        .int(now.milliseconds / 1000), .int(end.position),
                        .text(server.identifier), .int(server.timeline), .text(`operator`),
                        .text(why),
                    ]
                )
            }
        }
        guard let opened = try all().last else {
            throw EventLogError(.corrupt, "ledger.epoch is empty")
        }
        return opened
    }

    /// The last event that is there, and the link of its batch.
    private func end() throws -> (position: Int64, link: [UInt8], recordedAt: Timestamp) {
        let counted = try connection.query(
            "select count(*), coalesce(max(position), 0) from ledger.event"
        )
        let count = counted.int(0, 0) ?? 0
        let last = counted.int(0, 1) ?? 0
        let rows = try connection.query(
            """
            select \(Batch.columns) from ledger.batch
            order by first_position desc limit 1
            """
        )
        let batch = rows.count == 0 ? nil : Batch(rows, 0)
        guard count == last, (batch?.lastPosition ?? 0) == last else {
            throw EventLogError(
                .corrupt,
                "there are \(count) events, the last at \(last), and the batches end at "
                    + "\(batch?.lastPosition ?? 0): the backup is not whole. Restore another one; "
                    + "subledger db check-restore says more"
            )
        }
        return (
            last, batch.map(Chain.link) ?? Chain.genesis,
            batch?.recordedAt ?? Timestamp(milliseconds: 0)
        )
    }
}
