internal import Postgres
internal import Synchronization

/// The zones that questions may name: those of the IANA time zone database.
///
/// PostgreSQL reads any other text as a POSIX zone, an invented one like a misspelt one, and there
/// the sign is reversed: `+05:30` lies west of Greenwich. A report by such days looks right.
enum ZoneName {
    /// Names that the server was asked about before; there are some hundreds.
    private static let known = Mutex<Set<String>>(["UTC"])

    /// Refuses what names no zone.
    ///
    /// - Parameters:
    ///   - name: as in `Europe/Berlin`; the case does not matter.
    ///   - connection: any session.
    /// - Throws: `PostgresError` with SQLSTATE 22023, as the server does for what it cannot read.
    static func check(_ name: String, _ connection: Connection) throws(PostgresError) {
        guard !known.withLock({ $0.contains(name) }) else { return }
        let rows = try connection.query(
            """
            select from pg_catalog.pg_timezone_names
            where lower(name) = lower($1) and name !~* '^(posix/|right/|posixrules$|localtime$|factory$)'
            limit 1
            """,
            [.text(name)]
        )
        guard rows.count == 1 else {
            throw PostgresError(
                code: .server,
                sqlState: "22023",
                message: "“\(name)” is no zone: take a name such as Europe/Berlin, or UTC"
            )
        }
        known.withLock { _ = $0.insert(name) }
    }
}
