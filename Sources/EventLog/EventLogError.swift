public import Postgres

/// What can go wrong between the program and its log.
///
/// `description` is safe to log: it names positions and streams, never content.
public struct EventLogError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Code: Hashable, Sendable {
        /// The session could not be opened or was lost; nothing of the call was committed.
        case unavailable
        /// The session was lost during COMMIT: the batch may be there or not. Send it again over
        /// a new session; the keys decide.
        case unknownOutcome
        /// The server refused for now (a lock, a full disk, a shutdown); try again later.
        case temporary
        /// The server answered with an error that repeating does not cure.
        case database
        /// The schema is missing, older or newer than this program, or a migration was changed.
        case schema
        /// The log contradicts itself. Stop and look.
        case corrupt
        /// An event that cannot be read; the message names its position and stream.
        case unreadable
        /// A subscription has news since it was read; nothing was written. Read and decide anew.
        case stale
        /// The log came to another server since its epoch was opened; nobody may append before
        /// somebody has looked and opened a new one.
        case restored
        /// The caller handed over what the log cannot keep.
        case invalid
    }

    /// What kind of failure it is.
    public var code: Code
    /// What happened, in words.
    public var message: String
    /// The server's SQLSTATE where it sent one.
    public var sqlState: String?
    /// The position that it is about.
    public var position: Int64?

    /// Makes an error.
    public init(_ code: Code, _ message: String, sqlState: String? = nil, position: Int64? = nil) {
        self.code = code
        self.message = message
        self.sqlState = sqlState
        self.position = position
    }

    /// Puts what the server said in the log's terms.
    public init(_ error: PostgresError, doing what: String) {
        let code: Code =
            switch error.code {
            case .connection: .unavailable
            case .server, .unexpectedResult: error.isTemporary ? .temporary : .database
            }
        self.init(code, "\(what): \(error.message)", sqlState: error.sqlState)
    }

    /// The message, with its SQLSTATE.
    public var description: String {
        sqlState.map { "\(message) (SQLSTATE \($0))" } ?? message
    }
}

/// Runs `body`; what it throws becomes an `EventLogError`.
func logged<Value>(
    _ what: String,
    _ body: () throws -> Value
) throws(EventLogError) -> Value {
    do {
        return try body()
    } catch let error as EventLogError {
        throw error
    } catch let error as PostgresError {
        throw EventLogError(error, doing: what)
    } catch {
        throw EventLogError(.invalid, "\(what): \(error)")
    }
}
