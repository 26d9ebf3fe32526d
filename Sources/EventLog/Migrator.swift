internal import Crypto
public import Postgres
public import Schema

/// Brings a database's schema up to what this program needs.
///
/// Each migration runs in a transaction of its own, under a row that only one migrating program
/// holds, and is recorded with its checksum. A migration that was applied and has another text
/// now stops everything.
public struct Migrator {
    /// How a migration that is known here stands in the database.
    public struct Standing: Hashable, Sendable {
        /// The migration.
        public var migration: Migration
        /// Whether it was applied.
        public var isApplied: Bool
    }

    /// How often a migration is tried again when a lock is not free.
    static let attempts = 10

    private let connection: Connection
    private let roles: Roles
    private let migrations: [Migration]

    /// Makes a migrator for the log and the read models' own migrations.
    ///
    /// - Parameters:
    ///   - connection: a session that may make the roles and schemas, or becomes the owner.
    ///   - extra: the migrations of the read models.
    ///   - roles: nil takes those of ``defaultRoles(_:)``.
    /// - Throws: `.unavailable` when the name cannot be asked for.
    public init(
        _ connection: Connection,
        extra: [Migration] = [],
        roles: Roles? = nil
    ) throws(EventLogError) {
        self.connection = connection
        self.migrations = Schema.migrations + extra
        if let roles {
            self.roles = roles
        } else {
            self.roles = try Self.defaultRoles(connection)
        }
    }

    /// The roles that go with a database: those that own the ledger in it, which a restore under
    /// another name keeps, or, where there is none yet, those named after the database.
    public static func defaultRoles(
        _ connection: Connection
    ) throws(EventLogError) -> Roles {
        try logged("read the names of the ledger's roles") {
            let rows = try connection.query(
                """
                select current_database()::text, (
                    select pg_get_userbyid(nspowner)::text from pg_namespace
                    where nspname = 'ledger')
                """
            )
            let ending = Roles(prefix: "").owner
            if let owner = rows.text(0, 1), owner.hasSuffix(ending), owner != ending {
                return Roles(prefix: String(owner.dropLast(ending.count)))
            }
            return Roles(prefix: rows.text(0, 0) ?? "subledger")
        }
    }

    /// Applies what is missing.
    ///
    /// - Returns: the migrations that were applied by this call.
    /// - Throws: `.schema` when an applied migration has another text now; `.temporary` when a
    ///   lock stayed taken.
    @discardableResult
    public func migrate() throws(EventLogError) -> [Migration] {
        try bootstrap()
        try verify()
        var applied: [Migration] = []
        for migration in migrations {
            if try apply(migration) { applied.append(migration) }
        }
        return applied
    }

    /// Every migration known here, and whether it was applied.
    public func status() throws(EventLogError) -> [Standing] {
        let known = try checksums() ?? [:]
        return migrations.map {
            Standing(migration: $0, isApplied: known[Identity($0)] != nil)
        }
    }

    /// Checks that the database has exactly the migrations of this program, unchanged.
    ///
    /// - Throws: `.schema` with what is missing, newer or changed, and the remedy.
    public func check() throws(EventLogError) {
        guard let known = try checksums() else {
            throw EventLogError(.schema, "the database has no ledger; run: subledger migrate")
        }
        try verify(known)
        let missing = migrations.filter { known[Identity($0)] == nil }
        guard missing.isEmpty else {
            let have = known.keys.filter { $0.component == "log" }.map(\.number).max() ?? 0
            let need = migrations.filter { $0.component == "log" }.map(\.number).max() ?? 0
            let names = missing.map { "\($0.component) \($0.number)" }.joined(separator: ", ")
            throw EventLogError(
                .schema,
                "the schema is at \(have), this program needs \(need) (missing: \(names)); "
                    + "run: subledger migrate"
            )
        }
    }

    private struct Identity: Hashable {
        var component: String
        var number: Int
        init(_ migration: Migration) {
            component = migration.component
            number = migration.number
        }
        init(component: String, number: Int) {
            self.component = component
            self.number = number
        }
    }

    /// The recorded checksums, or nil where there is no ledger at all.
    private func checksums() throws(EventLogError) -> [Identity: [UInt8]]? {
        try logged("read the list of migrations") {
            let there = try connection.query(
                "select to_regclass('ledger.schema') is not null"
            )
            guard there.bool(0, 0) == true else { return nil }
            let rows = try connection.query(
                "select component, number, checksum from ledger.schema"
            )
            var result: [Identity: [UInt8]] = [:]
            for row in 0..<rows.count {
                let identity = Identity(
                    component: rows.text(row, 0) ?? "",
                    number: Int(rows.int(row, 1) ?? 0)
                )
                result[identity] = rows.bytes(row, 2)
            }
            return result
        }
    }

    private func verify() throws(EventLogError) { try verify(checksums() ?? [:]) }

    private func verify(_ known: [Identity: [UInt8]]) throws(EventLogError) {
        for migration in migrations {
            guard let recorded = known[Identity(migration)] else { continue }
            guard recorded == Self.checksum(migration) else {
                throw EventLogError(
                    .schema,
                    "migration \(migration.component) \(migration.number) \(migration.name) "
                        + "was applied with another text; use the program that applied it"
                )
            }
        }
    }

    static func checksum(_ migration: Migration) -> [UInt8] {
        SHA256.digest(Array(migration.sql.utf8))
    }
}

extension Migrator {
    /// Makes the roles, the schemas and the list of migrations where they are missing.
    private func bootstrap() throws(EventLogError) {
        if try checksums() != nil { return }
        try makeRoles()
        do {
            try connection.transaction { connection in
                try connection.execute(roles.applied(to: Schema.bootstrap))
            }
        } catch {
            // Another program may have been faster by a moment; then it is all there.
            if try checksums() == nil {
                throw EventLogError.made(from: error, doing: "make the ledger's schemas")
            }
        }
    }

    private func makeRoles() throws(EventLogError) {
        let names = roles.all
        let statements = roles.statements
        try logged("make the ledger's roles") {
            for (name, statement) in zip(names, statements) {
                let rows = try connection.query(
                    "select from pg_roles where rolname = $1",
                    [.text(name)]
                )
                if rows.count == 0 {
                    do {
                        try connection.execute(statement)
                    } catch let error as PostgresError where error.sqlState == "42710" {
                        // Made meanwhile by another program.
                    }
                }
                let member = try connection.query(
                    "select pg_has_role(current_user, $1, 'member')",
                    [.text(name)]
                )
                if member.bool(0, 0) != true {
                    try connection.execute("grant \(Roles.quoted(name)) to current_user")
                }
            }
        }
    }

    private func apply(_ migration: Migration) throws(EventLogError) -> Bool {
        let what = "apply migration \(migration.component) \(migration.number) \(migration.name)"
        var attempt = 1
        while true {
            do {
                return try connection.transaction { connection in
                    try applyOnce(migration, connection)
                }
            } catch {
                let failure = EventLogError.made(from: error, doing: what)
                guard failure.code == .temporary, attempt < Self.attempts else { throw failure }
                attempt += 1
                Pause.jittered(attempt: attempt)
            }
        }
    }

    private func applyOnce(_ migration: Migration, _ connection: Connection) throws -> Bool {
        let owner = Roles.quoted(roles.owner)
        // Waiting for a lock in the middle of DDL would make every reader wait behind it.
        try connection.execute("set local lock_timeout = '2s'; set local role \(owner)")
        try connection.query("select from ledger.schema_lock for update")
        let rows = try connection.query(
            "select checksum from ledger.schema where component = $1 and number = $2",
            [.text(migration.component), .int(Int64(migration.number))]
        )
        guard rows.count == 0 else { return false }
        try connection.execute(roles.applied(to: migration.sql))
        try connection.execute("set local role \(owner)")
        try connection.query(
            "insert into ledger.schema (component, number, name, checksum, serves)"
                + " values ($1, $2, $3, $4, $5)",
            [
                .text(migration.component), .int(Int64(migration.number)), .text(migration.name),
                .bytes(Self.checksum(migration)), .text(Schema.serves),
            ]
        )
        return true
    }
}

extension EventLogError {
    /// Puts any error that a transaction threw in the log's terms.
    static func made(from error: any Error, doing what: String) -> Self {
        switch error {
        case let error as EventLogError: error
        case let error as PostgresError: EventLogError(error, doing: what)
        default: EventLogError(.invalid, "\(what): \(error)")
        }
    }
}
