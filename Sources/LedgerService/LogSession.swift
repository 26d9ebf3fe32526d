internal import EventLog
internal import Postgres

/// A session that appends, opened anew where it was lost.
final class LogSession {
    /// How often a lost session is opened anew before giving up.
    static let reconnections = 3

    private let limit: BatchLimit
    private let connect: () throws -> Connection
    private var session: (connection: Connection, appender: Appender)?

    /// Makes one; it is opened when it is needed.
    ///
    /// - Parameters:
    ///   - limit: how much is appended at once.
    ///   - connect: opens a session that may append; called again when a session is lost.
    init(limit: BatchLimit = .live, connect: @escaping () throws -> Connection) {
        self.limit = limit
        self.connect = connect
    }

    /// Runs `body` over the session, again over a new one where it was lost.
    ///
    /// That is safe whatever became of a COMMIT under way: the keys decide.
    func withSession<Value>(_ body: (Connection, Appender) throws -> Value) throws -> Value {
        var attempt = 1
        while true {
            do {
                let current: (connection: Connection, appender: Appender)
                if let session, session.connection.isAlive {
                    current = session
                } else {
                    let connection = try connect()
                    current = (connection, try Appender(connection, limit: limit))
                    session = current
                }
                return try body(current.connection, current.appender)
            } catch {
                session = nil
                guard Self.isPassing(error), attempt <= Self.reconnections else { throw error }
                Sleep.milliseconds(200 << attempt)
                attempt += 1
            }
        }
    }

    private static func isPassing(_ error: any Error) -> Bool {
        switch error {
        case let error as EventLogError:
            [.unavailable, .unknownOutcome, .temporary].contains(error.code)
        case let error as PostgresError: error.code == .connection || error.isTemporary
        default: false
        }
    }
}
