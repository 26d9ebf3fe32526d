internal import AppStore
internal import HTTP

/// Carries questions to OCSP responders over HTTP.
///
/// Their answers are signed, so that plain HTTP, which Apple's certificates name, will do.
struct OCSPTransport: RevocationTransport {
    /// How long an answer may take: a delivery waits for it meanwhile.
    static let timeout = Duration.seconds(5)

    private let client: HTTPClient

    /// Makes it.
    ///
    /// - Throws: `HTTPClientError` where there is no client to be had.
    init(timeout: Duration = Self.timeout) throws(HTTPClientError) {
        var configuration = HTTPClientConfiguration()
        configuration.connectTimeout = timeout
        configuration.stallTimeout = timeout
        configuration.wholeTimeout = timeout
        configuration.responseLimitBytes = 64 * 1024
        client = try HTTPClient(configuration)
    }

    func post(_ question: [UInt8], to url: String) throws(RevocationUnreachable) -> [UInt8] {
        let response: HTTPClientResponse
        do throws(HTTPClientError) {
            var headers = HTTPHeaders()
            headers.add("Content-Type", "application/ocsp-request")
            headers.add("Accept", "application/ocsp-response")
            response = try client.send(
                HTTPClientRequest(.post, try HTTPURL(url), headers: headers, body: question)
            )
        } catch {
            throw RevocationUnreachable(error.message)
        }
        guard response.status == 200 else {
            throw RevocationUnreachable("it answered \(response.status)")
        }
        return response.body
    }
}
