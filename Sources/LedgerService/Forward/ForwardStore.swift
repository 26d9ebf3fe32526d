internal import EventLog
internal import Ledger
internal import Postgres

/// The rows that say how far a destination has got.
struct ForwardStore {
    /// How a destination stood when its row was claimed.
    struct Progress {
        var position: Int64
        var attempts: Int
        /// How long it is left alone; nil where it need not be.
        var pause: Duration?
        var held: [SubscriptionKey: HeldStream]
    }

    let connection: Connection
    let destination: String
    let holder: String

    /// Makes the row of a destination that has none.
    func begin(startPosition: Int64?) throws(PostgresError) {
        _ = try connection.query(
            """
            insert into ledger.forward (destination, position)
            select $1, coalesce($2::bigint - 1, head.position) from ledger.head
            on conflict do nothing
            """,
            [.text(destination), .int(startPosition)]
        )
    }

    /// Takes or keeps the lease; false where another process has it.
    func claim(for duration: Duration) throws(PostgresError) -> Bool {
        let rows = try connection.query(
            """
            update ledger.forward
            set lease_holder = $2, lease_until = now() + $3 * interval '1 millisecond'
            where destination = $1
                and (lease_holder is null or lease_holder = $2 or lease_until <= now())
            returning destination
            """,
            [.text(destination), .text(holder), .int(duration.wholeMilliseconds)]
        )
        return rows.count == 1
    }

    /// Gives the lease back.
    func release() throws(PostgresError) {
        _ = try connection.query(
            """
            update ledger.forward set lease_holder = null, lease_until = null
            where destination = $1 and lease_holder = $2
            """,
            [.text(destination), .text(holder)]
        )
    }

    /// How the destination stands.
    func progress() throws(PostgresError) -> Progress {
        let rows = try connection.query(
            """
            select position, attempts,
                ceil(extract(epoch from retry_at - now()) * 1000)::bigint
            from ledger.forward where destination = $1
            """,
            [.text(destination)]
        )
        let streams = try connection.query(
            """
            select stream, app_id, position, attempts,
                ceil(extract(epoch from retry_at - now()) * 1000)::bigint
            from ledger.forward_stream where destination = $1
            """,
            [.text(destination)]
        )
        var held: [SubscriptionKey: HeldStream] = [:]
        for row in 0..<streams.count {
            let key = SubscriptionKey(
                appID: Int32(truncatingIfNeeded: streams.int(row, 1) ?? 0),
                stream: streams.text(row, 0) ?? ""
            )
            held[key] = HeldStream(
                position: streams.int(row, 2) ?? 1,
                attempts: Int(streams.int(row, 3) ?? 0),
                dueAt: .now + .milliseconds(max(0, streams.int(row, 4) ?? 0))
            )
        }
        return Progress(
            position: rows.int(0, 0) ?? 0,
            attempts: Int(rows.int(0, 1) ?? 0),
            pause: rows.int(0, 2).flatMap { $0 > 0 ? .milliseconds($0) : nil },
            held: held
        )
    }

    /// Writes what a round came to; false where the lease was lost, and nothing is written.
    func record(_ result: ForwardResult) throws(PostgresError) -> Bool {
        try connection.execute("begin")
        do {
            let rows = try connection.query(
                """
                update ledger.forward set position = $3, attempts = $4,
                    retry_at = now() + $5::bigint * interval '1 millisecond',
                    failure = coalesce($6, failure),
                    failed_at = case when $6::text is null then failed_at else now() end,
                    delivered = delivered + $7,
                    delivered_at = case when $7::bigint > 0 then now() else delivered_at end
                where destination = $1 and lease_holder = $2 and lease_until > now()
                returning destination
                """,
                [
                    .text(destination), .text(holder), .int(result.position),
                    .int(Int64(result.attempts)), .int(result.pause?.wholeMilliseconds),
                    .text(result.failure), .int(Int64(result.deliveredCount)),
                ]
            )
            guard rows.count == 1 else {
                try connection.execute("rollback")
                return false
            }
            for (key, change) in result.changes { try record(change, of: key) }
            try connection.execute("commit")
            return true
        } catch {
            try? connection.execute("rollback")
            throw error
        }
    }

    private func record(
        _ change: ForwardResult.Change,
        of key: SubscriptionKey
    ) throws(PostgresError) {
        guard case .held(let stream, let failure) = change else {
            _ = try connection.query(
                """
                delete from ledger.forward_stream
                where destination = $1 and stream = $2 and app_id = $3
                """,
                [.text(destination), .text(key.stream), .int(Int64(key.appID))]
            )
            return
        }
        _ = try connection.query(
            """
            insert into ledger.forward_stream
                (destination, stream, app_id, position, attempts, retry_at, failure)
            values ($1, $2, $3, $4, $5, now() + $6 * interval '1 millisecond', $7)
            on conflict (destination, stream, app_id) do update
            set position = excluded.position, attempts = excluded.attempts,
                retry_at = excluded.retry_at, failure = excluded.failure, failed_at = now()
            """,
            [
                .text(destination), .text(key.stream), .int(Int64(key.appID)),
                .int(stream.position), .int(Int64(stream.attempts)),
                .int((stream.dueAt - .now).wholeMilliseconds), .text(failure),
            ]
        )
    }
}

/// A stream that waits, since one of its notifications was not taken.
struct HeldStream: Hashable, Sendable {
    /// The first notification that was not taken.
    var position: Int64
    /// How often it was tried.
    var attempts: Int
    /// When it is tried again.
    var dueAt: ContinuousClock.Instant
}

extension Duration {
    /// The duration in whole milliseconds, at least 0.
    var wholeMilliseconds: Int64 { max(0, Int64(self / .milliseconds(1))) }
}
