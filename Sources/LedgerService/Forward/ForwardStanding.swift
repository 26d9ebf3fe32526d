package import Ledger
package import Postgres

/// How far forwarding to one destination has got, as the database says.
package struct ForwardStanding: Hashable, Sendable {
    /// The destination's name.
    package var destination: String
    /// What is up to here was taken, was not wanted, or waits with its stream.
    package var position: Int64
    /// How many events of the log are behind that.
    package var lagEvents: Int64
    /// When the oldest event that it lacks was committed; nil when it lacks none.
    package var oldestAt: Timestamp?
    /// How many seconds ago that was.
    package var lagSeconds: Int64
    /// How many streams wait behind a notification that was not taken.
    package var waitingStreams: Int64
    /// Whether a process forwards to it at the moment.
    package var isForwarding: Bool
    /// How often in a row the destination was not to be reached.
    package var attempts: Int64
    /// How many notifications it has taken.
    package var delivered: Int64
    /// When it took the last one.
    package var deliveredAt: Timestamp?
    /// What went wrong last, of the destination as a whole or else of a stream that waits.
    package var failure: String?

    /// All destinations that anything was ever forwarded to.
    ///
    /// - Parameter connection: a session that may read the log.
    /// - Returns: one for each, by name.
    /// - Throws: `PostgresError`.
    package static func all(_ connection: Connection) throws(PostgresError) -> [ForwardStanding] {
        let rows = try connection.query(
            """
            select f.destination, f.position, greatest(head.position - f.position, 0), oldest.at,
                greatest(floor(extract(epoch from now() - oldest.at)), 0)::bigint,
                held.streams, f.lease_until > now(), f.attempts, f.delivered, f.delivered_at,
                case when f.attempts > 0 then f.failure else held.failure end
            from ledger.head, ledger.forward f
            cross join lateral (
                select count(*) as streams, min(e.recorded_at) as at,
                    max(s.failure) as failure
                from ledger.forward_stream s
                left join ledger.event e
                    on e.stream = s.stream and e.app_id = s.app_id and e.position = s.position
                where s.destination = f.destination
            ) held
            cross join lateral (
                select least(held.at, (
                    select e.recorded_at from ledger.event e where e.position = f.position + 1
                )) as at
            ) oldest
            order by f.destination
            """
        )
        return (0..<rows.count).map { row in
            ForwardStanding(
                destination: rows.text(row, 0) ?? "",
                position: rows.int(row, 1) ?? 0,
                lagEvents: rows.int(row, 2) ?? 0,
                oldestAt: rows.timestamp(row, 3),
                lagSeconds: rows.int(row, 4) ?? 0,
                waitingStreams: rows.int(row, 5) ?? 0,
                isForwarding: rows.bool(row, 6) ?? false,
                attempts: rows.int(row, 7) ?? 0,
                delivered: rows.int(row, 8) ?? 0,
                deliveredAt: rows.timestamp(row, 9),
                failure: rows.text(row, 10)
            )
        }
    }

    /// Writes it as `subledger forwards --json` shows it.
    package func write(to json: inout JSONWriter) {
        json.beginObject()
        json.member("destination", destination)
        json.member("position", position)
        json.member("lag_events", lagEvents)
        json.member("lag_seconds", lagSeconds)
        json.member("oldest_at", oldestAt)
        json.member("waiting_streams", waitingStreams)
        json.member("forwarding", isForwarding)
        json.member("attempts", attempts)
        json.member("delivered", delivered)
        json.member("delivered_at", deliveredAt)
        json.member("failure", failure)
        json.endObject()
    }
}
