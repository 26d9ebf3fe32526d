/// What keeps a server from starting, or a stream of bytes from being written.
///
/// What a client did wrong is never an error of this kind: it is answered, and counted as a
/// `Refusal`.
public struct HTTPError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Code: Hashable, Sendable {
        /// A setting makes no sense; the message names it.
        case configuration
        /// The address cannot be listened on.
        case address
        /// The certificate or its key cannot be read, or they do not belong together.
        case certificate
        /// The process may not have as many open files as the connection limit needs.
        case openFiles
        /// The library refused to start.
        case start
        /// Nobody reads this stream any more: the client went away or the server stops.
        case readerGone
    }

    /// What kind of failure it is.
    public var code: Code

    /// What happened, safe to log.
    public var message: String

    /// Makes an error.
    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}
