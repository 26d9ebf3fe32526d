/// A request to another server.
///
/// `description` and `dump` show the method, the origin and the body's size alone.
public struct HTTPClientRequest: Sendable, CustomStringConvertible, CustomReflectable {
    /// GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS.
    public var method: HTTPMethod

    /// Whom and what to ask.
    public var url: HTTPURL

    /// The header fields, but none of those that the client writes itself (`ownHeaders`).
    ///
    /// Where there is no `Content-Type` none is sent.
    public var headers: HTTPHeaders

    /// What is sent after the headers; GET and HEAD have none.
    public var body: [UInt8]

    /// Whether a connection that is already open may not be used.
    ///
    /// A kept connection may have been closed meanwhile. The client then repeats the request on a
    /// new one, where no byte of an answer had come; yet the server may have got it before closing.
    /// What must not be done twice, and cannot be told by the server, is sent with this.
    public var needsFreshConnection = false

    /// Makes a request.
    public init(
        _ method: HTTPMethod,
        _ url: HTTPURL,
        headers: HTTPHeaders = HTTPHeaders(),
        body: [UInt8] = []
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }

    /// The fields that say where a message ends and whom it is for, in small letters.
    public static let ownHeaders: Set<String> = [
        "connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "user-agent",
    ]

    /// The method, the origin and the body's size.
    public var description: String { "\(method) \(url.origin), \(body.count) bytes" }

    /// The method, the origin and the body's size.
    public var customMirror: Mirror { Mirror(self, children: ["request": description]) }

    func validate() throws(HTTPClientError) {
        guard HTTPMethod.known.contains(method) else { throw Self.failure("the method is unknown") }
        guard body.isEmpty || (method != .get && method != .head) else {
            throw Self.failure("\(method) has no body")
        }
        for field in headers {
            // A name that is a token cannot hold a secret by accident; a value can.
            guard HTTPHeaders.isValidName(field.name) else {
                throw Self.failure("a header's name is no token")
            }
            guard HTTPHeaders.isValidValue(field.value) else {
                throw Self.failure("the value of \(field.name) has a line break or control byte")
            }
            guard !Self.ownHeaders.contains(field.name.lowercased()) else {
                throw Self.failure("the client itself writes \(field.name)")
            }
        }
    }

    private static func failure(_ message: String) -> HTTPClientError {
        HTTPClientError(code: .request, message: "the request cannot be sent: \(message)")
    }
}

/// The answer of another server, whatever its status.
///
/// A redirect is an answer too, and never followed: `Location` is among the headers.
public struct HTTPClientResponse: Sendable, CustomStringConvertible, CustomReflectable {
    /// The status, from 200 on.
    public var status: Int

    /// The header fields.
    public var headers: HTTPHeaders

    /// The body, within the client's limit.
    public var body: [UInt8]

    /// Whether the request went over a connection that an earlier one had opened.
    public var reusedConnection: Bool

    /// How long it took.
    public var elapsed: Duration

    /// The last second at which the server's certificate is valid, since 1970.
    ///
    /// Nil without TLS and on a connection that was opened earlier.
    public var certificateEnds: Int64?

    /// Makes an answer, for tests of who reads one.
    public init(
        status: Int,
        headers: HTTPHeaders = HTTPHeaders(),
        body: [UInt8] = [],
        reusedConnection: Bool = false,
        elapsed: Duration = .zero,
        certificateEnds: Int64? = nil
    ) {
        self.status = status
        self.headers = headers
        self.body = body
        self.reusedConnection = reusedConnection
        self.elapsed = elapsed
        self.certificateEnds = certificateEnds
    }

    /// The status and the body's size.
    public var description: String { "\(status), \(body.count) bytes" }

    /// The status and the body's size.
    public var customMirror: Mirror { Mirror(self, children: ["response": description]) }
}
