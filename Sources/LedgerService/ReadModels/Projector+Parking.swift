internal import Ledger
internal import Postgres

extension Projector {
    /// Why a subscription is parked that has too many events.
    static let tooLong = ReadModelError(
        .database,
        "the stream has more than \(streamEventsMax) events, and so many are not folded"
    )

    /// Parks a subscription that is too long to be folded; it is tried again when it has news.
    static func park(_ key: SubscriptionKey, _ connection: Connection) throws(PostgresError) {
        let marked = try connection.query(
            "select max(position) from ledger.mark where stream = $1 and app_id = $2",
            [.text(key.stream), .int(Int64(key.appID))]
        )
        try park(key, at: marked.int(0, 0) ?? 0, tooLong, connection)
    }

    static func park(
        _ key: SubscriptionKey,
        at position: Int64,
        _ failure: ReadModelError,
        _ connection: Connection
    ) throws(PostgresError) {
        try connection.query(
            """
            insert into read_model.parked (stream, app_id, position, error)
            values ($1, $2, $3, $4)
            on conflict (stream, app_id) do update
            set position = excluded.position, error = excluded.error, parked_at = now()
            """,
            [
                .text(key.stream), .int(Int64(key.appID)), .int(position),
                .text(failure.description),
            ]
        )
    }
}
