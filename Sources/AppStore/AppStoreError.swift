/// What is wrong with JSON, or with a file of root certificates.
public struct AppStoreError: Error, Hashable, CustomStringConvertible {
    /// The kinds of errors, to switch on.
    public enum Code: String, Hashable, Sendable {
        /// The bytes are no JSON.
        case syntax
        /// An object has the same key twice.
        case duplicateKey = "duplicate_key"
        /// A text is not UTF-8.
        case invalidUTF8 = "invalid_utf8"
        /// The bytes begin with a byte order mark.
        case byteOrderMark = "byte_order_mark"
        /// Objects or arrays are nested deeper than ``JSONDocument/depthMax``.
        case tooDeep = "too_deep"
        /// The bytes are longer than ``JSONDocument/sizeMaxBytes``.
        case tooLong = "too_long"
        /// A number does not fit into 64 bits.
        case integerOverflow = "integer_overflow"
        /// A value is no whole number.
        case notAnInteger = "not_an_integer"
        /// A root certificate cannot be used.
        case badAnchor = "bad_anchor"
    }

    /// What kind of error it is.
    public var code: Code
    /// What to read; it quotes nothing of what a customer sent.
    public var message: String
    /// Where in the bytes, if it is about a place.
    public var offset: Int?

    /// Makes an error.
    public init(code: Code, message: String, offset: Int? = nil) {
        self.code = code
        self.message = message
        self.offset = offset
    }

    /// The message and the place.
    public var description: String {
        guard let offset else { return message }
        return "\(message) at byte \(offset)"
    }
}
