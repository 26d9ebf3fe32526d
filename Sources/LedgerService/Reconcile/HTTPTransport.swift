internal import AppStore
internal import HTTP

/// Carries requests to Apple over HTTPS.
struct HTTPTransport: Transport {
    /// Apple's pages have at most 20 signed texts of some 20 kB.
    static let responseLimitBytes = 8 << 20

    private let client: HTTPClient

    /// Makes it.
    ///
    /// - Parameters:
    ///   - settings: whose certificates and proxy are used.
    ///   - responseLimitBytes: the longest answer that is read.
    ///   - timeout: how long one request may take; nil for the usual.
    /// - Throws: `NotSetUp` for certificates or a proxy that cannot be used.
    init(
        _ settings: AppStoreSettings,
        responseLimitBytes: Int = HTTPTransport.responseLimitBytes,
        timeout: Duration? = nil
    ) throws(AppStoreClients.NotSetUp) {
        var configuration = HTTPClientConfiguration()
        configuration.wholeTimeout = timeout ?? configuration.wholeTimeout
        configuration.responseLimitBytes = responseLimitBytes
        configuration.proxy = settings.proxy
        if let file = settings.certificateAuthority { configuration.trustAnchors = .file(file) }
        do {
            client = try HTTPClient(configuration)
        } catch {
            throw AppStoreClients.NotSetUp(description: error.message)
        }
    }

    func send(_ request: TransportRequest) throws(TransportFailure) -> TransportResponse {
        let url: HTTPURL
        do { url = try HTTPURL(request.url) } catch {
            throw TransportFailure(code: .other, message: error.message, mayHaveArrived: false)
        }
        var headers = HTTPHeaders()
        // The client names the program itself.
        for header in request.headers where header.name != "User-Agent" {
            headers.add(header.name, header.value)
        }
        var sent = HTTPClientRequest(
            HTTPMethod(rawValue: request.method),
            url,
            headers: headers,
            body: request.body ?? []
        )
        sent.needsFreshConnection = !request.isRepeatable
        let response: HTTPClientResponse
        do {
            response = try client.send(sent)
        } catch {
            throw TransportFailure(
                code: Self.code(error.code),
                message: error.message,
                mayHaveArrived: error.mayHaveArrived
            )
        }
        return TransportResponse(
            status: response.status,
            headers: response.headers.map { TransportRequest.Header($0.name, $0.value) },
            body: response.body
        )
    }

    private static func code(_ code: HTTPClientError.Code) -> TransportFailure.Code {
        switch code {
        case .unresolved: .nameUnknown
        case .refused, .proxy: .unreachable
        case .tls: .certificate
        case .timeout: .timeout
        case .tooLarge: .tooLarge
        case .cutOff, .malformed: .cutOff
        case .configuration, .request, .stopped, .library: .other
        }
    }
}
