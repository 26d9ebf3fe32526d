internal import EventLog
internal import LedgerService
internal import Postgres
internal import Schema

/// The database that a command works on, ready to be used.
///
/// Without `--database`, `DATABASE_URL` and a `database` in the configuration it is the embedded
/// server's, started and migrated where needed. On any other server only `subledger migrate`
/// changes the schema; every other command stops when it does not fit.
final class Database {
    /// How to reach it.
    let conninfo: String
    /// The embedded server, nil for any other.
    let server: EmbeddedServer?

    private init(conninfo: String, server: EmbeddedServer?) {
        self.conninfo = conninfo
        self.server = server
    }

    deinit { server?.close() }

    /// Reaches the database that the command line, the environment or the configuration names, and
    /// sees to its schema.
    static func open(
        _ arguments: Arguments,
        _ configuration: Configuration? = nil,
        directory: String = EmbeddedServer.defaultDirectory
    ) throws -> Database {
        if let url = url(arguments, configuration) {
            let database = Database(conninfo: url, server: nil)
            try Migrator(database.connect(), extra: ReadModels.migrations).check()
            return database
        }
        return try migrated(embedded(directory: directory))
    }

    /// The embedded server's database with the schema that this program needs.
    static func migrated(_ server: EmbeddedServer) throws -> Database {
        let database = Database(conninfo: server.conninfo, server: server)
        try Migrator(database.connect(), extra: ReadModels.migrations).migrate()
        return database
    }

    /// Reaches the database and leaves its schema alone.
    static func openUnchecked(
        _ arguments: Arguments,
        _ configuration: Configuration? = nil
    ) throws -> Database {
        if let url = url(arguments, configuration) { return Database(conninfo: url, server: nil) }
        let server = try embedded(directory: EmbeddedServer.defaultDirectory)
        return Database(conninfo: server.conninfo, server: server)
    }

    /// The server that is named instead of the embedded one.
    static func url(_ arguments: Arguments, _ configuration: Configuration?) -> String? {
        arguments.value("--database") ?? environment("DATABASE_URL") ?? configuration?.database
    }

    /// Opens a session.
    func connect() throws(PostgresError) -> Connection { try Connection(conninfo) }

    /// Opens a session that may do only what a role may.
    func connect(as role: Role) throws -> Connection { try sessions(as: role).open() }

    /// What opens such sessions on any thread.
    func sessions(as role: Role) -> Sessions { Sessions(conninfo: conninfo, role: role) }

    /// Has changes beside the log recorded as events; how many there were.
    @discardableResult
    func recordRows() throws -> Int {
        try RecordedRows(connect(as: .auditor)).record(
            through: Appender(connect(as: .appender)),
            now: .now
        )
    }

    /// Refuses a server that may lose what it has confirmed.
    func refuseUnsafeServer(_ arguments: Arguments) throws {
        let connection = try connect()
        let rows = try connection.query(
            "select name, setting from pg_settings "
                + "where name in ('fsync', 'full_page_writes') and setting <> 'on' order by name"
        )
        let off = (0..<rows.count).compactMap { rows.text($0, 0) }
        guard !off.isEmpty else { return }
        let names = off.joined(separator: " and ")
        guard arguments.has(Option.allowUnsafeServer.name) else {
            throw CommandFailure(
                exitCode: .databaseUnavailable,
                message: "the server runs with \(names) off: after a crash it may have lost what "
                    + "it confirmed. Turn \(names) on; for a test server there is "
                    + Option.allowUnsafeServer.name
            )
        }
        printError("*** UNSAFE SERVER: \(names) off; a crash may lose confirmed events ***")
    }

    /// Refuses to serve as somebody who could drop the triggers that keep the log as it is.
    ///
    /// The embedded server has no other login, and nobody else can reach it.
    func refuseOwner(_ arguments: Arguments) throws {
        guard server == nil else { return }
        let standing = try ServerStanding(connect())
        guard standing.isSuperuser || standing.isOwner else { return }
        let what = standing.isSuperuser ? "a superuser" : "the owner of the schema ledger"
        guard arguments.has(Option.allowOwner.name) else {
            throw CommandFailure(
                exitCode: .databaseUnavailable,
                message: "the login \(printable(standing.login)) is \(what), who can drop the "
                    + "triggers that keep the log from being changed. Make a login of its own: "
                    + "subledger migrate --print-login NAME shows how; for a trial there is "
                    + Option.allowOwner.name
            )
        }
        printError("*** the login is \(what): it could change the log ***")
    }

    /// The embedded server of a folder, started where needed.
    ///
    /// What the environment says to libpq is meant for other servers, and is forgotten: it would lead
    /// to one of them, or keep this one from being reached.
    static func embedded(directory: String) throws -> EmbeddedServer {
        forgetEnvironment(prefix: "PG")
        return try EmbeddedServer.open(directory: directory) { step in
            // Only a person waits and wonders; a log would be full of it.
            if Terminal.isError { printError("subledger: \(step)", isDimmed: true) }
        }
    }
}

/// Who a session acts as.
enum Role: Sendable {
    /// Owns the log; only to fill again what is derived from it.
    case owner
    /// Inserts into the log.
    case appender
    /// Writes the read models.
    case projector
    /// Reads the read models.
    case reader
    /// Reads everything.
    case auditor

    /// The role's name in an installation.
    func name(in roles: Roles) -> String {
        switch self {
        case .owner: roles.owner
        case .appender: roles.appender
        case .projector: roles.projector
        case .reader: roles.reader
        case .auditor: roles.auditor
        }
    }
}

/// Opens sessions for one role, on whatever thread needs one.
struct Sessions: Sendable {
    /// How to reach the database.
    let conninfo: String
    /// Who the sessions act as, nil for whoever logs in.
    let role: Role?

    /// Opens a session.
    ///
    /// The embedded server's superuser, and any other one, steps down to the role; a login of a
    /// server that somebody set up has its own rights already.
    ///
    /// - Throws: `PostgresError`; for an appender `EventLogError`, `.restored` among them.
    func open() throws -> Connection {
        let connection = try openBeforeEpoch()
        // Positions would be given out again that somebody has seen with another event.
        if role == .appender { try EpochBook(connection).check() }
        return connection
    }

    /// Opens a session on whatever server the ledger is now, to open an epoch there.
    func openBeforeEpoch() throws -> Connection {
        let connection = try Connection(conninfo)
        guard let role else { return connection }
        let rows = try connection.query("select current_setting('is_superuser') = 'on'")
        if rows.bool(0, 0) == true {
            let roles = try Migrator.defaultRoles(connection)
            try connection.execute("set role \(Roles.quoted(role.name(in: roles)))")
        }
        return connection
    }
}

extension Configuration {
    /// The configuration that `--config` names, or the one in the working folder, or none.
    static func find(_ arguments: Arguments) throws -> Configuration? {
        if let path = arguments.value("--config") { return try Configuration(path: path) }
        do {
            return try Configuration(path: defaultPath)
        } catch let error as InputError where error.code == .notFound {
            return nil
        }
    }
}
