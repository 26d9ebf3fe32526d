internal import Postgres
internal import Projections

/// Removing generations that no view shows.
enum Retirement {
    /// Removes what rebuilds that were killed have left; the rebuild lock must be held.
    static func dropUnfinished(
        _ projections: [any Projection.Type],
        _ connection: Connection
    ) throws {
        for projection in projections {
            for number in try numbers(projection, in: "building", connection) {
                let generation = Generation(projection, number)
                // Nobody reads it, so the lock is only ever taken for moments by others.
                for _ in 0..<50 {
                    if try generation.dropTables(connection) { break }
                    Sleep.milliseconds(50)
                }
                try markDropped(generation, connection)
            }
        }
    }

    /// Removes retired generations that no transaction from before the swap may still read.
    ///
    /// A lock that is not free at once is tried again some times, so that readers never queue
    /// for long; what stays is left to the next rebuild or projector.
    static func dropRetired(_ connection: Connection, attempts: Int = 1) throws {
        for projection in Catalogue.all {
            for number in try numbers(projection, in: "retired", connection) {
                var isUnread = try noOlderReader(projection, connection)
                if !isUnread, attempts > 1 {
                    // A session that has just ended is listed for a moment.
                    Sleep.milliseconds(50)
                    isUnread = try noOlderReader(projection, connection)
                }
                guard isUnread else { continue }
                let generation = Generation(projection, number)
                for attempt in 1...attempts {
                    if try generation.dropTables(connection) {
                        try markDropped(generation, connection)
                        break
                    }
                    if attempt < attempts { Sleep.milliseconds(100) }
                }
            }
        }
    }

    private static func numbers(
        _ projection: any Projection.Type,
        in state: String,
        _ connection: Connection
    ) throws(PostgresError) -> [Int32] {
        let rows = try connection.query(
            """
            select generation from read_model.generation
            where projection = $1 and state = $2 order by generation
            """,
            [.text(projection.name), .text(state)]
        )
        return (0..<rows.count).map { Int32(rows.int($0, 0) ?? 0) }
    }

    private static func markDropped(
        _ generation: Generation,
        _ connection: Connection
    ) throws(PostgresError) {
        try connection.query(
            """
            update read_model.generation set state = 'dropped'
            where projection = $1 and generation = $2
            """,
            [.text(generation.projection), .int(Int64(generation.number))]
        )
    }

    /// Sessions that this role may not look into count as readers for an hour.
    private static func noOlderReader(
        _ projection: any Projection.Type,
        _ connection: Connection
    ) throws(PostgresError) -> Bool {
        let rows = try connection.query(
            """
            select not exists (
                select from pg_stat_activity a
                where a.datname = current_database() and a.pid <> pg_backend_pid()
                    and case
                        when a.query = '<insufficient privilege>'
                            then clock_timestamp() < c.swapped_at + interval '1 hour'
                        else a.backend_type = 'client backend' and a.xact_start <= c.swapped_at
                    end
            )
            from read_model.current c where c.projection = $1
            """,
            [.text(projection.name)]
        )
        return rows.bool(0, 0) ?? false
    }
}
