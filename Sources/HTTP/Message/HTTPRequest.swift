/// A request that has arrived whole.
public struct HTTPRequest: Sendable {
    /// Ours, unique while the process lives and hard to mistake for another's; also sent back as
    /// `X-Request-ID`.
    public let id: String

    /// The method; HEAD where a GET route answers it.
    public let method: HTTPMethod

    /// The decoded path and query.
    public let target: RequestTarget

    /// The header fields.
    public let headers: HTTPHeaders

    /// The body, within the route's limit.
    public let body: [UInt8]

    /// The other end of the connection; behind a proxy that is the proxy: see `ForwardedFor`.
    public let peer: IPAddress

    /// What the template's parameters stand for.
    public let parameters: [String: String]

    /// The template of the route, `/v1/things/{id}`.
    public let route: String

    /// The value of a parameter of the route's template.
    public func parameter(_ name: String) -> String {
        guard let value = parameters[name] else {
            preconditionFailure("\(route) has no parameter \(name)")
        }
        return value
    }

    /// Every value of a query name, in order.
    public func queryValues(_ name: String) -> [String] {
        target.query.filter { $0.name == name }.map(\.value)
    }

    /// Makes a request, for a handler's tests: the server makes its own.
    public init(
        method: HTTPMethod,
        target: RequestTarget,
        headers: HTTPHeaders = HTTPHeaders(),
        body: [UInt8] = [],
        peer: IPAddress = .loopback,
        route: String = "",
        parameters: [String: String] = [:],
        id: String = "test"
    ) {
        self.id = id
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.peer = peer
        self.parameters = parameters
        self.route = route
    }
}
