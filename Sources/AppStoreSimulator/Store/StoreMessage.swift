/// A request as it reached the fake App Store, without anything of HTTP that it does not look at.
public struct StoreRequest: Sendable {
    /// `GET`, `POST`, `PUT`, `DELETE`.
    public var method: String
    /// The decoded segments of the path.
    public var path: [String]
    /// The decoded query in its order, with repeats.
    public var query: [(name: String, value: String)]
    /// The field `Authorization`.
    public var authorization: String?
    /// The body.
    public var body: [UInt8]

    /// Makes a request.
    public init(
        method: String,
        path: [String],
        query: [(name: String, value: String)] = [],
        authorization: String? = nil,
        body: [UInt8] = []
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.authorization = authorization
        self.body = body
    }

    /// Every value of a query's name.
    func values(_ name: String) -> [String] { query.filter { $0.name == name }.map(\.value) }

    /// The first value of a query's name.
    func value(_ name: String) -> String? { query.first { $0.name == name }?.value }
}

/// What the fake App Store answers.
public struct StoreResponse: Hashable, Sendable {
    /// The HTTP status.
    public var status: Int
    /// The JSON of the body; nil where there is none.
    public var body: WireValue?
    /// `Retry-After`, as Apple has it: milliseconds since 1970.
    public var retryAfter: Int64?
    /// How long the answer takes on purpose.
    public var delayMilliseconds: Int64 = 0
    /// What was asked for is done, and the connection breaks before the answer.
    public var isLost = false
    /// The media type, where it is not JSON.
    public var contentType = "application/json"

    /// Makes an answer.
    public init(status: Int = 200, body: WireValue? = nil) {
        self.status = status
        self.body = body
    }

    /// Makes the answer that an error is.
    public init(_ error: StoreError) {
        status = error.status
        body = [
            "errorCode": .integer(error.code),
            "errorMessage": .string(error.message),
        ]
    }

    /// The body's bytes.
    public var bytes: [UInt8] { body?.bytes ?? [] }
}
