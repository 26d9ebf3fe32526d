/// Whom a client trusts, and how long and how much it waits for.
///
/// TLS is 1.2 or 1.3, and its certificates are always verified: there is no setting against that.
public struct HTTPClientConfiguration: Sendable {
    /// The certificates that may stand behind a server's.
    public enum TrustAnchors: Hashable, Sendable {
        /// The system's store.
        case system
        /// Those of a PEM file, and no others.
        case file(String)
        /// Those of a PEM text, and no others.
        case pem(String)
    }

    /// Whom to trust.
    public var trustAnchors = TrustAnchors.system

    /// How long resolving, connecting and shaking hands may take together.
    public var connectTimeout = Duration.seconds(10)

    /// How long a request may take from beginning to end.
    public var wholeTimeout = Duration.seconds(60)

    /// How long nothing may move once there is a connection, waiting for the answer included.
    ///
    /// It is looked at about once a second.
    public var stallTimeout = Duration.seconds(30)

    /// The largest body of an answer.
    public var responseLimitBytes = 16 * 1024 * 1024

    /// The proxy to go through, `http://host:port` or `https://host:port`; nil for none.
    ///
    /// The environment (`https_proxy` and the like) is never looked at.
    public var proxy: String?

    /// How many connections are kept open between requests, over all hosts.
    public var idleLimit = 32

    /// What is sent as `User-Agent`.
    public var userAgent = "subledger"

    /// Makes a configuration with the usual limits.
    public init() {}

    func validate() throws(HTTPClientError) {
        let durations = [
            ("connect", connectTimeout), ("whole", wholeTimeout), ("stall", stallTimeout),
        ]
        // The library counts in the milliseconds of a C long.
        for (name, value) in durations where value < .milliseconds(1) || value > .seconds(86_400) {
            throw Self.failure("the \(name) timeout must be from 1 ms to a day")
        }
        guard (0...1 << 40).contains(responseLimitBytes) else {
            throw Self.failure("the limit of an answer's size makes no sense")
        }
        guard (0...10_000).contains(idleLimit) else {
            throw Self.failure("the number of idle connections makes no sense")
        }
        guard HTTPHeaders.isValidValue(userAgent), !userAgent.isEmpty else {
            throw Self.failure("the user agent must be one line of text")
        }
        if let proxy {
            guard proxy.hasPrefix("http://") || proxy.hasPrefix("https://"),
                proxy.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
            else {
                // Without the text itself, which may hold a password.
                throw Self.failure("the proxy must be http://host:port or https://host:port")
            }
        }
        if case .pem(let text) = trustAnchors, !text.contains("-----BEGIN CERTIFICATE-----") {
            throw Self.failure("the certificates to trust are not PEM")
        }
    }

    static func failure(_ message: String) -> HTTPClientError {
        HTTPClientError(code: .configuration, message: message)
    }
}
