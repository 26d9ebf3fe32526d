internal import Postgres

/// Keeps a second rebuild of the same read models away for as long as it lives.
///
/// The lock is a row of `read_model.claim` under a name that no stream has, held by an open
/// transaction: it goes with the session, however that ends.
final class RebuildLock {
    private var connection: Connection?

    /// What a rebuild into a schema of its own locks.
    static func into(_ schema: String) -> String { "into:\(schema)" }

    init(_ names: [String], _ connection: Connection) throws {
        self.connection = connection
        let streams = names.map { "rebuild:\($0)" }
        try connection.query(
            """
            insert into read_model.claim (stream, app_id)
            select s, 0 from unnest($1::text[]) as s on conflict do nothing
            """,
            [.textArray(streams)]
        )
        // A rebuild may take long, and this session is idle all the while.
        try connection.execute("set idle_in_transaction_session_timeout = 0; begin")
        for stream in streams.sorted() {
            let rows = try connection.query(
                """
                select from read_model.claim where stream = $1 and app_id = 0
                for update skip locked
                """,
                [.text(stream)]
            )
            guard rows.count == 1 else {
                let name = stream.dropFirst("rebuild:".count)
                throw ReadModelError(
                    .rebuildRuns,
                    "another rebuild \(name.hasPrefix("into:") ? "" : "of ")\(name) runs; "
                        + "wait until it is done"
                )
            }
        }
    }

    /// Lets the next rebuild begin, and ends the session: it would count as one that may still read
    /// the rows of before the swap.
    func release() {
        try? connection?.execute("commit")
        connection = nil
    }
}
