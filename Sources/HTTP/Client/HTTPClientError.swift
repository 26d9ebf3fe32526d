/// Why a request got no answer.
///
/// An answer of any status, 500 too, is no error. The message names the place that was asked
/// without its path, says what to do, and never holds a header, a body or a password.
public struct HTTPClientError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it is.
    public enum Code: Hashable, Sendable {
        /// A setting makes no sense, or the certificates to trust cannot be read.
        case configuration
        /// The request cannot be sent as it stands: its address, method or a header is refused.
        case request
        /// The host's name has no address.
        case unresolved
        /// Nobody takes the connection at that address, or there is no way to it.
        case refused
        /// The proxy cannot be reached, or does not let the request through.
        case proxy
        /// There is no TLS session that can be trusted.
        case tls(TLSFailure)
        /// It took too long.
        case timeout(Phase)
        /// The answer is larger than this client takes.
        case tooLarge
        /// The connection ended before the answer was whole.
        case cutOff
        /// What came is not HTTP.
        case malformed
        /// The client was stopped meanwhile.
        case stopped
        /// The library failed in a way that has no name here; the message has its words.
        case library
    }

    /// What is wrong with the other end's TLS.
    public enum TLSFailure: Hashable, Sendable {
        /// No certificate that is trusted here stands behind the server's.
        case untrusted
        /// The certificate is another host's.
        case wrongName
        /// The certificate, or one above it, has ended.
        case expired
        /// The certificate, or one above it, is not valid yet: one of the clocks is wrong.
        case notYetValid
        /// No common version or cipher, or no TLS at all at that port.
        case handshake
    }

    /// What took too long.
    public enum Phase: Hashable, Sendable {
        /// Resolving, connecting and shaking hands.
        case connect
        /// Nothing moved in either direction.
        case stall
        /// The request as a whole.
        case whole
    }

    /// What kind of failure it is.
    public var code: Code

    /// What happened and what to do, safe to log.
    public var message: String

    /// Whether the server may have got the request, whole or in part.
    ///
    /// False means that no byte of it was sent: repeating it cannot do anything twice.
    public var mayHaveArrived: Bool

    /// Makes an error.
    public init(code: Code, message: String, mayHaveArrived: Bool = false) {
        self.code = code
        self.message = message
        self.mayHaveArrived = mayHaveArrived
    }

    /// The message.
    public var description: String { message }
}
