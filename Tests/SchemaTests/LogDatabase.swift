import EventLog
import Postgres
import Schema
import TestSupport

/// A migrated database with the roles `schematest_…`, dropped with the object.
struct LogDatabase {
    static let roles = Roles(prefix: "schematest")

    let database: TestDatabase

    init() throws {
        database = try TestDatabase.create(template: "schema-tests") { connection in
            try Migrator(connection, roles: Self.roles).migrate()
        }
    }

    func connect() throws -> Connection { try database.connect() }
}
