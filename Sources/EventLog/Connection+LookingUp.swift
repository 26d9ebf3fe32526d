package import Postgres

extension Connection {
    /// Runs queries that look some hundreds of rows up among many millions.
    ///
    /// Where the server has no statistics yet, or old ones, it would read a whole table for each of
    /// them, and a walk through the log would take the square of its length.
    ///
    /// - Parameter body: the queries.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws, or `PostgresError`.
    package func lookingUp<Value>(_ body: () throws -> Value) throws -> Value {
        try execute(
            """
            set enable_hashjoin = off; set enable_mergejoin = off;
            set max_parallel_workers_per_gather = 0
            """
        )
        // After an error the transaction's rollback does it, or the session is gone.
        defer {
            try? execute(
                """
                reset enable_hashjoin; reset enable_mergejoin;
                reset max_parallel_workers_per_gather
                """
            )
        }
        return try body()
    }
}
