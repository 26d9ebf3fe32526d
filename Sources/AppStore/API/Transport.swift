/// What carries requests to Apple: HTTPS, or a script in tests.
///
/// It sends one request and waits for the answer. It follows no redirect, tries nothing again and
/// logs no header: all of that is decided here.
public protocol Transport: Sendable {
    /// Sends a request and returns what the server answered, whatever its status.
    ///
    /// - Throws: `TransportFailure` where there is no whole answer.
    func send(_ request: TransportRequest) throws(TransportFailure) -> TransportResponse
}

/// A request as it goes onto the wire.
public struct TransportRequest: Hashable, Sendable, CustomStringConvertible {
    /// `GET`, `POST` or `PUT`.
    public var method: String
    /// The whole address.
    public var url: String
    /// The headers, the bearer token among them.
    public var headers: [Header]
    /// The body, nil for none.
    public var body: [UInt8]?
    /// Whether it may be sent twice, as over a kept connection that was closed meanwhile.
    public var isRepeatable = true

    /// One header.
    public struct Header: Hashable, Sendable {
        /// Its name.
        public var name: String
        /// Its value.
        public var value: String

        /// Makes a header.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Makes a request.
    public init(
        method: String,
        url: String,
        headers: [Header],
        body: [UInt8]?,
        isRepeatable: Bool = true
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.isRepeatable = isRepeatable
    }

    /// Method and address; never a header, since one of them is a secret.
    public var description: String { "\(method) \(url)" }
}

/// What a server answered.
public struct TransportResponse: Hashable, Sendable {
    /// The HTTP status.
    public var status: Int
    /// The headers; names are compared without regard to case.
    public var headers: [TransportRequest.Header]
    /// The body, whole.
    public var body: [UInt8]

    /// Makes a response.
    public init(status: Int, headers: [TransportRequest.Header] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The value of the first header of that name.
    public func header(_ name: String) -> String? {
        let wanted = name.lowercased()
        return headers.first { $0.name.lowercased() == wanted }?.value
    }
}

/// Why there is no whole answer; `message` is safe to log.
public struct TransportFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of failure.
    public enum Code: String, Hashable, Sendable, CaseIterable {
        /// The name could not be resolved.
        case nameUnknown = "name_unknown"
        /// Nobody accepts the connection.
        case unreachable
        /// The certificate is not trusted or names another host.
        case certificate
        /// It took too long.
        case timeout
        /// The connection ended within the answer.
        case cutOff = "cut_off"
        /// The answer is longer than is read.
        case tooLarge = "too_large"
        /// Anything else.
        case other
    }

    /// What kind of failure it is.
    public var code: Code
    /// What to read.
    public var message: String
    /// Whether the server may have got the request, whole or in part.
    public var mayHaveArrived: Bool

    /// Makes a failure.
    public init(code: Code, message: String, mayHaveArrived: Bool = true) {
        self.code = code
        self.message = message
        self.mayHaveArrived = mayHaveArrived
    }

    /// Whether the same request may get an answer a little later.
    ///
    /// A certificate that is not trusted stays so until somebody does something.
    public var isRetryable: Bool { code != .certificate && code != .tooLarge }

    /// The message.
    public var description: String { message }
}
