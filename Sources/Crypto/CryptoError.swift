internal import COpenSSL

/// What went wrong with bytes that should have been a certificate, a key or a digest.
public struct CryptoError: Error, Hashable, CustomStringConvertible {
    /// The kinds of errors, to switch on.
    public enum Code: Hashable, Sendable {
        /// The bytes are no certificate in the form asked for.
        case badCertificate
        /// The bytes are no PEM text.
        case badPEM
        /// The key is not of the kind that is needed.
        case badKey
        /// OpenSSL could not do what it was asked to.
        case library
    }

    /// What kind of error it is.
    public var code: Code
    /// What to read; safe to log.
    public var message: String

    /// Makes an error.
    public init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    /// The code and the message.
    public var description: String { "CryptoError(\(code)): \(message)" }
}

/// OpenSSL's queue of errors, which is per thread.
enum ErrorQueue {
    /// Empties the queue.
    ///
    /// A leftover entry would show up in the message of another call on the same thread.
    static func clear() { ERR_clear_error() }

    /// Whether nothing was left behind on this thread.
    static var isEmpty: Bool { ERR_peek_error() == 0 }

    /// Empties the queue and gives the first entry's reason.
    static func takeReason() -> String {
        defer { ERR_clear_error() }
        let code = ERR_get_error()
        guard code != 0, let reason = unsafe ERR_reason_error_string(code) else {
            return "no reason given"
        }
        return unsafe String(cString: reason)
    }
}
