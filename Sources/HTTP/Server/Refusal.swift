/// Why a request or a connection got no answer of a handler.
///
/// The raw values are stable: they are the `reason` of the answer and the label in the metrics.
public enum Refusal: String, Hashable, Sendable, CaseIterable {
    /// Too many connections; closed at once.
    case connectionLimit = "connection_limit"
    /// Too many connections of one address; closed at once.
    case addressLimit = "address_limit"
    /// The request did not arrive within its deadline; cut.
    case requestTooSlow = "request_too_slow"
    /// The client did not take its answer; cut.
    case answerTooSlow = "answer_too_slow"
    /// The handler's answer did not come within its deadline.
    case answerOverdue = "answer_overdue"
    /// A handler forgot the request.
    case forgotten = "forgotten"
    /// A handler's answer could not be sent, such as a header with a line break.
    case invalidAnswer = "invalid_answer"
    /// The server is about to stop.
    case stopping = "stopping"
    /// libmicrohttpd could not read the request, and answered or cut it itself.
    case malformed = "malformed"
    /// Two lengths, or a length and a transfer coding: what follows could be another request.
    case ambiguousLength = "ambiguous_length"
    /// A length that is no number, or a transfer coding other than `chunked`.
    case invalidLength = "invalid_length"
    /// A header name that is no token, or more than one Host.
    case invalidHeader = "invalid_header"
    /// No Host, which HTTP/1.1 demands.
    case missingHost = "missing_host"
    /// The headers are too large.
    case headersTooLarge = "headers_too_large"
    /// The target is too long.
    case targetTooLong = "target_too_long"
    /// The target cannot be decoded.
    case invalidTarget = "invalid_target"
    /// An Expect other than 100-continue.
    case expectation = "unsupported_expectation"
    /// The body is larger than its route allows.
    case bodyTooLarge = "body_too_large"
    /// The body is compressed.
    case contentEncoding = "unsupported_content_encoding"
    /// The body's media type is not the route's.
    case mediaType = "unsupported_media_type"
    /// No route has this path.
    case notFound = "not_found"
    /// The path has other methods.
    case methodNotAllowed = "method_not_allowed"
    /// No route has this method.
    case methodNotImplemented = "method_not_implemented"

    /// The status, and what the reason means.
    var meaning: (status: Int, title: String) {
        switch self {
        case .connectionLimit: (503, "Too many connections")
        case .addressLimit: (503, "Too many connections from this address")
        case .requestTooSlow: (408, "The request took too long to arrive")
        case .answerTooSlow: (408, "The answer took too long to be received")
        case .answerOverdue: (503, "The answer did not come in time")
        case .forgotten: (500, "The request was not answered")
        case .invalidAnswer: (500, "The answer could not be sent")
        case .stopping: (503, "The service is stopping")
        case .malformed: (400, "The request is malformed")
        case .ambiguousLength: (400, "The request's length is ambiguous")
        case .invalidLength: (400, "The request's length or transfer coding is invalid")
        case .invalidHeader: (400, "A header field is invalid")
        case .missingHost: (400, "The Host header is missing")
        case .headersTooLarge: (431, "The header fields are too large")
        case .targetTooLong: (414, "The request target is too long")
        case .invalidTarget: (400, "The request target is invalid")
        case .expectation: (417, "This expectation cannot be met")
        case .bodyTooLarge: (413, "The body is too large")
        case .contentEncoding: (415, "Compressed bodies are not accepted")
        case .mediaType: (415, "This media type is not accepted here")
        case .notFound: (404, "There is nothing at this path")
        case .methodNotAllowed: (405, "This path has other methods")
        case .methodNotImplemented: (501, "This method is not implemented")
        }
    }

    /// The answer, where there is one.
    func response() -> HTTPResponse {
        let (status, title) = meaning
        var response = HTTPResponse.problem(
            Problem(status: status, reason: rawValue, title: title)
        )
        switch self {
        case .ambiguousLength, .invalidLength, .invalidHeader, .missingHost, .headersTooLarge,
            .targetTooLong:
            // What the connection brings next cannot be trusted.
            response.closesConnection = true
        case .stopping:
            response.closesConnection = true
            response.headers["Retry-After"] = "1"
        case .answerOverdue:
            response.headers["Retry-After"] = "1"
        case .contentEncoding:
            response.headers["Accept-Encoding"] = "identity"
        default:
            break
        }
        return response
    }
}
