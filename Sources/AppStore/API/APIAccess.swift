public import Ledger

/// Who asks, where, and for which app.
public struct APIAccess: Sendable, CustomStringConvertible {
    /// The host of one environment.
    public var host: APIHost
    /// The app's bundle id.
    public var bundleID: String
    /// The key that signs.
    public var key: APIKey

    /// Puts them together.
    public init(host: APIHost, bundleID: String, key: APIKey) {
        self.host = host
        self.bundleID = bundleID
        self.key = key
    }

    /// App, environment, host and ids; never the key.
    public var description: String {
        "\(bundleID) in \(host.environment) at \(host.baseURL) with \(key)"
    }
}

/// A whole answer of Apple's to one request.
public struct APIResponse: Sendable {
    /// What was asked.
    public var endpoint: APIEndpoint
    /// Our own id of the request; what its facts have in common.
    public var requestID: String
    /// The app that was asked for.
    public var bundleID: String
    /// Production or Sandbox.
    public var environment: Environment
    /// The HTTP status, 200 to 299.
    public var status: Int
    /// The body, byte for byte; empty where Apple sends none.
    public var body: [UInt8]
    /// The body, read; nil where it is empty.
    public var answer: APIAnswer?
    /// When it was there, by our clock.
    public var receivedAt: Timestamp
    /// Which page of a list it is, from 1.
    public var page: Int?

    /// Makes a response.
    public init(
        endpoint: APIEndpoint,
        requestID: String,
        bundleID: String,
        environment: Environment,
        status: Int,
        body: [UInt8],
        answer: APIAnswer?,
        receivedAt: Timestamp,
        page: Int? = nil
    ) {
        self.endpoint = endpoint
        self.requestID = requestID
        self.bundleID = bundleID
        self.environment = environment
        self.status = status
        self.body = body
        self.answer = answer
        self.receivedAt = receivedAt
        self.page = page
    }
}
