internal import EventLog
internal import LedgerService
internal import Postgres
internal import Schema

/// `subledger migrate`.
enum MigrateCommand {
    static let command = Command(
        name: "migrate",
        summary: "Bring the database's schema up to what this program needs.",
        options: [
            .database, .config,
            .flag("--print-roles", "print the SQL that makes the roles, for a DBA, and stop"),
            .value(
                "--print-login",
                "NAME",
                "print the SQL that makes a login for `serve`, and stop"
            ),
        ],
        details: """
            On the embedded server every command does this by itself. On any other server only
            this command changes the schema: run it as a role that may create schemas and roles,
            or let a DBA run the output of --print-roles beforehand.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let configuration = try Configuration.find(arguments)
        let output = Output.standard()
        if arguments.has("--print-roles") {
            for statement in try roles(arguments, configuration).statements {
                try output.line(statement)
            }
            try output.flush()
            return .done
        }
        if let name = arguments.value("--print-login") {
            for statement in try roles(arguments, configuration).login(name) {
                try output.line(statement)
            }
            try output.flush()
            return .done
        }
        let database = try Database.openUnchecked(arguments, configuration)
        let connection = try database.connect()
        let migrator = try Migrator(connection, extra: ReadModels.migrations)
        let applied = try migrator.migrate()
        for migration in applied {
            try output.line("applied \(migration.component) \(migration.number) \(migration.name)")
        }
        if applied.isEmpty { try output.line("nothing to do: the schema is up to date") }
        if let configuration {
            _ = try configuration.record(connection)
        }
        try output.flush()
        return .done
    }

    /// The roles' names begin with the database's; it is asked where there is one to ask.
    private static func roles(
        _ arguments: Arguments,
        _ configuration: Configuration?
    ) throws -> Roles {
        guard let url = Database.url(arguments, configuration) else {
            return Roles(prefix: EmbeddedServer.database)
        }
        return try Migrator.defaultRoles(Connection(url))
    }
}
