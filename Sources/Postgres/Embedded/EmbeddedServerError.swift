/// Why the private PostgreSQL server could not be made, started, used or stopped.
///
/// `message` says what was tried, what the server said, and what to do about it.
public struct EmbeddedServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Code: Hashable, Sendable {
        /// No PostgreSQL server program was found.
        case noBinaries
        /// The programs found do not fit the cluster, or are older than 15.
        case version
        /// A folder or file could not be made, read or written.
        case directory
        /// The file system has no room left.
        case diskFull
        /// There is no unprivileged account that could run the server.
        case account
        /// `initdb` failed.
        case initialisation
        /// The server did not start.
        case start
        /// The server did not stop.
        case stop
        /// Another command kept the folder locked for too long, or still uses the server.
        case busy
    }

    /// What kind of failure it is.
    public var code: Code

    /// What happened and what to do about it.
    public var message: String

    /// Makes an error.
    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
