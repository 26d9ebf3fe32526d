/// What went wrong between this program and a PostgreSQL server.
///
/// `description` is safe to log: it holds the server's primary message, never a row's values.
public struct PostgresError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Code: Hashable, Sendable {
        /// No session could be opened, or the session was lost. Whether a COMMIT under way took
        /// effect is unknown.
        case connection
        /// The server answered with an error; `sqlState` says which.
        case server
        /// The answer did not have the form that the caller asked for.
        case unexpectedResult
    }

    /// What kind of failure it is.
    public var code: Code

    /// The five-character SQLSTATE, or nil when the server sent none.
    public var sqlState: String?

    /// The server's primary message, or our own.
    public var message: String

    /// Makes an error.
    public init(code: Code, sqlState: String? = nil, message: String) {
        self.code = code
        self.sqlState = sqlState
        self.message = message
    }

    /// The message with its SQLSTATE.
    public var description: String {
        sqlState.map { "\(message) (SQLSTATE \($0))" } ?? message
    }

    /// Whether the same call may succeed later: lost sessions, shutdowns, deadlocks, serialisation
    /// failures, full disks and lock time-outs (classes 08, 40, 53, 55, 57 and 58, and 25006, which
    /// a former primary answers).
    public var isTemporary: Bool {
        if code == .connection { return true }
        guard let sqlState else { return false }
        if sqlState == "25006" { return true }
        return ["08", "40", "53", "55", "57", "58"].contains(String(sqlState.prefix(2)))
    }
}
