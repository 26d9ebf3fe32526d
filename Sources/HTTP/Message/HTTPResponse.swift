/// An answer.
public struct HTTPResponse: Sendable {
    /// The bytes of an answer, or where they will come from.
    public enum Body: Sendable {
        /// All of them, with a length.
        case bytes([UInt8])
        /// A stream, of any length; made by `BodyWriter`.
        case stream(BodySource)
    }

    /// The status, from 200 to 599.
    public var status: Int

    /// Further header fields, but none of the connection's own (`framing`).
    public var headers: HTTPHeaders

    /// What is sent after the headers, but to HEAD.
    public var body: Body

    /// Whether the connection is closed after this answer.
    public var closesConnection = false

    /// An answer with all of its bytes.
    public init(
        status: Int,
        contentType: String? = nil,
        headers: HTTPHeaders = HTTPHeaders(),
        body: [UInt8] = []
    ) {
        self.init(status: status, contentType: contentType, headers: headers, body: .bytes(body))
    }

    /// An answer whose bytes may still be to come.
    public init(
        status: Int,
        contentType: String? = nil,
        headers: HTTPHeaders = HTTPHeaders(),
        body: Body
    ) {
        self.status = status
        self.headers = headers
        self.body = body
        if let contentType { self.headers["Content-Type"] = contentType }
    }

    /// An answer of JSON that is already text.
    public static func json(_ text: String, status: Int = 200) -> HTTPResponse {
        HTTPResponse(status: status, contentType: "application/json", body: Array(text.utf8))
    }

    /// The header fields that the server alone writes.
    public static let framing = [
        "Connection", "Content-Length", "Date", "Keep-Alive", "Transfer-Encoding", "Upgrade",
        "X-Request-ID",
    ]

    /// Whether it can be sent as it is.
    var isValid: Bool {
        (200...599).contains(status) && headers.isValid
            && !headers.contains { field in
                Self.framing.contains { HTTPHeaders.isSame($0, field.name) }
            }
    }
}
