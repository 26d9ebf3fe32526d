import EventLog
import Postgres
import Schema
import TestSupport

/// One migrated database for the tests that leave it as it is.
final class LogDatabase: Sendable {
    static let roles = Roles(prefix: "schematest")

    static let shared = LogDatabase()

    private let database: Result<TestDatabase, any Error>

    private init() {
        database = Result {
            let database = try TestDatabase.create()
            try Migrator(database.connect(), roles: Self.roles).migrate()
            return database
        }
    }

    func connect() throws -> Connection { try database.get().connect() }
}
