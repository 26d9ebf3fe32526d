import EventLog
import Postgres
import Schema
import TestSupport

/// A migrated database for one test, dropped with the object.
final class LogDatabase: Sendable {
    static let roles = Roles(prefix: "eventlogtest")

    let database: TestDatabase

    init(on server: TestServer = .shared) throws {
        database = try TestDatabase.create(template: "event-log-tests", on: server) { connection in
            try Migrator(connection, roles: Self.roles).migrate()
        }
    }

    /// Called at a test's end: without it the database would go with the last mention of it.
    func stayAlive() {}

    /// A session of the superuser.
    func connect() throws -> Connection { try database.connect() }

    /// A session with one role's privileges alone.
    func connect(as role: String) throws -> Connection {
        let connection = try database.connect()
        try connection.execute("set role \(Roles.quoted(role))")
        return connection
    }

    /// An appender with the privileges of its role alone.
    func appender(limit: BatchLimit = .live) throws -> Appender {
        try Appender(connect(as: Self.roles.appender), limit: limit)
    }

    /// A number that a query gives.
    func count(_ sql: String) throws -> Int64 {
        try connect().query(sql).int(0, 0) ?? -1
    }

    /// Checks that the log is whole: dense positions, three rows for each event, the chain.
    func problems() throws -> [String] {
        var problems: [String] = []
        let events = try count("select count(*) from ledger.event")
        for (name, sql) in [
            ("highest position", "select coalesce(max(position), 0) from ledger.event"),
            ("distinct positions", "select count(distinct position) from ledger.event"),
            ("evidence rows", "select count(*) from ledger.evidence"),
            ("fact rows", "select count(*) from ledger.fact"),
            ("head", "select position from ledger.head"),
        ] {
            let found = try count(sql)
            if found != events { problems.append("\(events) events but \(name) \(found)") }
        }
        if let difference = try LogAudit(connect()).run().difference {
            problems.append(difference.description)
        }
        return problems
    }
}
