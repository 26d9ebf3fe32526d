package import Postgres

/// Who a session is, as far as the log's safety is concerned.
package struct ServerStanding: Hashable, Sendable {
    /// The name that it logged in with.
    package var login: String
    /// Whether no privilege binds it.
    package var isSuperuser: Bool
    /// Whether it may act as the owner of the log's schema, or of the log's tables.
    package var isOwner: Bool

    /// Asks a session.
    package init(_ connection: Connection) throws(PostgresError) {
        let rows = try connection.query(
            """
            select session_user::text, rolsuper, exists (
                select from pg_class
                where relnamespace = 'ledger'::regnamespace and relkind in ('r', 'p')
                    and pg_has_role(session_user, relowner, 'member')
            ) or exists (
                select from pg_namespace
                where nspname = 'ledger' and pg_has_role(session_user, nspowner, 'member')
            )
            from pg_roles where rolname = session_user
            """
        )
        login = rows.text(0, 0) ?? ""
        isSuperuser = rows.bool(0, 1) ?? true
        isOwner = rows.bool(0, 2) ?? true
    }
}
