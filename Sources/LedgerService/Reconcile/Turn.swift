internal import Ledger
package import Postgres

/// Which of several programs does a kind of background work: a row that is claimed for a while.
///
/// Whoever holds it says so again and again; a program that is gone loses it when its time is over.
package struct Turn {
    /// How long a claim holds.
    package static let heldSeconds: Int64 = 120

    /// The kind of work.
    package let work: String
    /// Who would do it: different for each program.
    package let holder: String

    /// Makes it.
    package init(work: String, holder: String) {
        self.work = work
        self.holder = holder
    }

    /// Claims the work, or keeps hold of it.
    ///
    /// - Returns: whether it is ours now.
    /// - Throws: `PostgresError`.
    package func take(_ connection: Connection) throws(PostgresError) -> Bool {
        let rows = try connection.query(
            """
            insert into ledger.turn as held (work, holder, until)
            values ($1, $2, now() + make_interval(secs => $3))
            on conflict (work) do update set holder = excluded.holder, until = excluded.until
                where held.holder = excluded.holder or held.until < now()
            returning holder
            """,
            [.text(work), .text(holder), .int(Self.heldSeconds)]
        )
        return rows.count == 1
    }

    /// Leaves the work to others at once.
    ///
    /// - Throws: `PostgresError`.
    package func leave(_ connection: Connection) throws(PostgresError) {
        try connection.query(
            "update ledger.turn set until = now() where work = $1 and holder = $2",
            [.text(work), .text(holder)]
        )
    }
}
