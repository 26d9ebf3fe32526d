internal import EventLog
internal import Postgres

/// What can go wrong with read models.
///
/// `description` is safe to log.
public struct ReadModelError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Code: Hashable, Sendable {
        /// No read model has that name; the message lists those that there are.
        case unknownProjection
        /// Another rebuild of the same read model runs.
        case rebuildRuns
        /// An event cannot be read; the message names its position, stream and type.
        case unreadableEvent
        /// The rows were made by another version of this program; a rebuild makes new ones.
        case outOfDate
        /// The schema lacks what this program needs.
        case schema
        /// A session could not be opened or was lost, or the server refused for now.
        case unavailable
        /// The server answered with an error that repeating does not cure.
        case database
        /// The caller stopped it.
        case stopped
        /// The log has not come to the position that was asked about.
        case notKnown
        /// The question cannot be answered as it is asked; the message says how to ask.
        case question
    }

    /// What kind of failure it is.
    public var code: Code
    /// What happened, and what to do.
    public var message: String
    /// The server's SQLSTATE where it sent one.
    public var sqlState: String?

    /// Makes an error.
    public init(_ code: Code, _ message: String, sqlState: String? = nil) {
        self.code = code
        self.message = message
        self.sqlState = sqlState
    }

    /// The message, with its SQLSTATE.
    public var description: String {
        sqlState.map { "\(message) (SQLSTATE \($0))" } ?? message
    }

    /// Whether the same call may succeed later.
    public var isTemporary: Bool { code == .unavailable || code == .rebuildRuns }

    /// Puts any error that a call below threw in the terms of read models.
    init(_ error: any Error, doing what: String) {
        switch error {
        case let error as ReadModelError: self = error
        case let error as EventLogError:
            let code: Code =
                switch error.code {
                case .unreadable: .unreadableEvent
                case .unavailable, .temporary, .unknownOutcome, .stale: .unavailable
                case .schema: .schema
                case .database, .corrupt, .invalid, .restored: .database
                }
            self.init(code, error.message, sqlState: error.sqlState)
        case let error as PostgresError:
            // 42P01 and 3F000: the tables or the schema are not there.
            let code: Code =
                error.sqlState == "42P01" || error.sqlState == "3F000"
                ? .schema : error.isTemporary ? .unavailable : .database
            self.init(code, "\(what): \(error.message)", sqlState: error.sqlState)
        default: self.init(.database, "\(what): \(error)")
        }
    }
}

/// Runs `body`; what it throws becomes a `ReadModelError`.
func readModels<Value>(
    _ what: String,
    _ body: () throws -> Value
) throws(ReadModelError) -> Value {
    do {
        return try body()
    } catch {
        throw ReadModelError(error, doing: what)
    }
}
