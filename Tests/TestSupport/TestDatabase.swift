public import Postgres

/// An empty database for one test, dropped with the object.
public final class TestDatabase: Sendable {
    /// The database's name.
    public let name: String

    private let server: TestServer

    private init(_ name: String, on server: TestServer) {
        self.name = name
        self.server = server
    }

    /// Makes a database without any table.
    public static func create(on server: TestServer = .shared) throws -> TestDatabase {
        let name = server.nextDatabaseName()
        try server.connect().execute("create database \(name) template template0")
        return TestDatabase(name, on: server)
    }

    /// Makes a copy of a database that `prepare` fills once in this process.
    ///
    /// Copying takes a fraction of the time of migrating anew.
    ///
    /// - Parameters:
    ///   - template: what tells this template from others.
    ///   - server: the server to make it on.
    ///   - prepare: fills the template; it must leave no session open.
    /// - Returns: the copy.
    /// - Throws: what the server or `prepare` threw.
    public static func create(
        template: String,
        on server: TestServer = .shared,
        prepare: (Connection) throws -> Void
    ) throws -> TestDatabase {
        let original = try server.template(template, prepare: prepare)
        let name = server.nextDatabaseName()
        try server.connect().execute("create database \(name) template \(original)")
        return TestDatabase(name, on: server)
    }

    deinit {
        // With force, since a failed test may have left a session open.
        try? server.connect().execute("drop database if exists \(name) with (force)")
    }

    /// How a client reaches the database as the superuser.
    public var conninfo: String { server.conninfo(database: name) }

    /// How a client reaches the database as a role.
    public func conninfo(user: String) -> String {
        server.conninfo(database: name, user: user)
    }

    /// Opens a session; the superuser's, unless another role is named.
    public func connect(user: String = "postgres") throws(PostgresError) -> Connection {
        try server.connect(database: name, user: user)
    }
}

/// Runs `body` with a session in an empty database of its own, which is dropped afterwards.
public func withDatabase<Value>(
    on server: TestServer = .shared,
    _ body: (Connection) throws -> Value
) throws -> Value {
    let database = try TestDatabase.create(on: server)
    return try withExtendedLifetime(database) { try body(database.connect()) }
}
