/// What a handler says.
public enum Answer: Sendable {
    /// The answer itself.
    case answer(HTTPResponse)
    /// The answer will be given to this object, from any thread; until then the connection waits
    /// and holds no thread.
    case later(PendingResponse)
}

/// One thing that can be asked, and who answers.
public struct Route: Sendable {
    /// The method; GET answers HEAD too.
    public let method: HTTPMethod

    /// The path.
    public let template: RouteTemplate

    /// The largest body that is read; a larger one is answered 413.
    public let bodyLimitBytes: Int

    /// The media types a body may have, without parameters; empty for any.
    ///
    /// A request that names no type is let through.
    public let contentTypes: [String]

    let handler: @Sendable (HTTPRequest) -> Answer

    /// Makes a route.
    ///
    /// - Parameters:
    ///   - method: one of `HTTPMethod.known`, not HEAD or OPTIONS.
    ///   - template: the path; see `RouteTemplate`.
    ///   - bodyLimitBytes: the largest body that is read.
    ///   - contentTypes: the media types a body may have; empty for any.
    ///   - handler: called in the server's thread when the request is whole. It may compute but
    ///     must not wait: the thread serves many other connections. To wait, answer `.later`.
    public init(
        _ method: HTTPMethod,
        _ template: String,
        bodyLimitBytes: Int = 0,
        contentTypes: [String] = [],
        handler: @escaping @Sendable (HTTPRequest) -> Answer
    ) {
        precondition(
            HTTPMethod.known.contains(method) && method != .head && method != .options,
            "the router itself answers \(method)"
        )
        self.method = method
        self.template = RouteTemplate(template)
        self.bodyLimitBytes = bodyLimitBytes
        self.contentTypes = contentTypes
        self.handler = handler
    }
}
