public import AppStoreSimulator
public import HTTP

/// Posts notifications to a webhook and says by Apple's names how it went.
public struct WebhookPoster: Sendable {
    private let client: HTTPClient
    private let url: HTTPURL

    /// How long a webhook may take; Apple does not say how long it waits.
    public static let patience = Duration.seconds(10)

    /// Makes a poster.
    ///
    /// - Parameters:
    ///   - url: where to post.
    ///   - trustAnchors: who may stand behind the webhook's certificate.
    /// - Throws: `HTTPClientError` where the anchors cannot be read.
    public init(
        _ url: HTTPURL,
        trustAnchors: HTTPClientConfiguration.TrustAnchors = .system
    ) throws(HTTPClientError) {
        var configuration = HTTPClientConfiguration()
        configuration.trustAnchors = trustAnchors
        configuration.wholeTimeout = Self.patience
        configuration.userAgent = "subledger-simulator"
        client = try HTTPClient(configuration)
        self.url = url
    }

    /// Posts a body.
    public func post(_ body: [UInt8]) -> SendAttemptResult {
        let request = HTTPClientRequest(
            .post,
            url,
            headers: ["Content-Type": "application/json"],
            body: body
        )
        do throws(HTTPClientError) {
            let response = try client.send(request)
            return 200...206 ~= response.status ? .success : .unsuccessfulCode
        } catch {
            return Self.result(error.code)
        }
    }

    /// Ends what is under way.
    public func stop() { client.stop() }

    static func result(_ code: HTTPClientError.Code) -> SendAttemptResult {
        switch code {
        case .unresolved, .refused: .socketIssue
        case .tls: .tlsIssue
        case .timeout: .timedOut
        case .cutOff: .prematureClose
        case .malformed, .tooLarge: .invalidResponse
        default: .other
        }
    }
}
