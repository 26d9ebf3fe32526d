/// How a server listens, and its limits.
public struct HTTPServerConfiguration: Sendable {
    /// The IPv4 or IPv6 address to listen on; `::` takes IPv4 connections as well.
    public var address: IPAddress

    /// The port; 0 takes any that is free.
    public var port: UInt16

    /// How many threads serve; nil for one per core.
    public var threadCount: Int?

    /// How many connections may be open; a further one is closed at once.
    public var connectionLimit = 2_048

    /// How many connections one address may have open (of IPv6, one /64).
    public var addressConnectionLimit = 256

    /// Networks, such as those of proxies, whose addresses may have more.
    public var addressLimitExemptions: [AddressRange] = []

    /// The largest request line and headers together.
    public var headerLimitBytes = 32 * 1024

    /// The longest request target.
    public var targetLimitBytes = 8 * 1024

    /// How much of a body that is refused is still read, to keep the connection usable.
    public var discardLimitBytes = 64 * 1024

    /// How long a request may take to arrive whole, however it trickles.
    public var requestDeadline = Duration.seconds(30)

    /// How long a handler's later answer may take; then it is 503.
    public var answerDeadline = Duration.seconds(120)

    /// How long a client may take for each 32 kB of its answer.
    public var sendDeadline = Duration.seconds(30)

    /// How many seconds a connection may be silent.
    public var idleTimeoutSeconds = 60

    /// The certificate and key, where the server does TLS itself.
    public var tls: TLSIdentity?

    /// Makes a configuration with the usual limits.
    public init(address: IPAddress = .loopback, port: UInt16 = 0) {
        self.address = address
        self.port = port
    }

    func validate() throws(HTTPError) {
        let positive: [(String, Int)] = [
            ("thread count", threadCount ?? 1), ("connection limit", connectionLimit),
            ("connection limit per address", addressConnectionLimit),
            ("header limit", headerLimitBytes), ("target limit", targetLimitBytes),
            ("idle timeout", idleTimeoutSeconds), ("discard limit", discardLimitBytes + 1),
        ]
        for (name, value) in positive where value <= 0 || value > 1 << 24 {
            throw HTTPError(code: .configuration, message: "the \(name) makes no sense")
        }
        for (name, value) in [
            ("request", requestDeadline), ("answer", answerDeadline), ("send", sendDeadline),
        ] where value <= .zero {
            throw HTTPError(code: .configuration, message: "the \(name) deadline is not positive")
        }
    }
}
