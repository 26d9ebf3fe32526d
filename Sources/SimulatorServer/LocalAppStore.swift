public import AppStoreSimulator
public import Crypto
internal import Glibc
public import HTTP

/// A fake App Store that listens on this machine, with all that a client needs to talk to it.
///
/// It is what tests start: on a port that is free, with an authority of its own.
public struct LocalAppStore: Sendable {
    /// The running server; whoever started it stops it.
    public let server: FakeAppStoreServer
    /// What stands before the paths, such as `https://localhost:53211`.
    public let baseURL: String
    /// The certificate that a client has to trust for TLS, PEM.
    public let authorityPEM: String
    /// The root that the signed data leads to, PEM.
    public let rootPEM: String
    /// The root that the signed data leads to, DER.
    public let rootDER: [UInt8]
    /// The key that requests are signed with.
    public let key: SigningKey
    /// Whose key it is.
    public let credentials: StoreCredentials

    /// Starts one.
    ///
    /// - Parameters:
    ///   - environment: its environment.
    ///   - subscriptions: how many subscriptions.
    ///   - seed: equal seeds give equal lives.
    ///   - clock: the simulated time; the lives before it have come to pass.
    ///   - key: the key of the client; its public half is registered.
    ///   - port: where to listen; 0 takes any that is free.
    ///   - deliver: posts a notification; nil where there is no webhook.
    ///   - change: changes the options before the store opens.
    /// - Throws: `HTTPError`.
    public init(
        environment: StoreEnvironment = .production,
        subscriptions: Int,
        seed: UInt64 = 1,
        clock: SimulatedClock,
        key: SigningKey = .generateP256(),
        port: UInt16 = 0,
        deliver: (@Sendable ([UInt8]) -> SendAttemptResult)? = nil,
        changing change: (inout FakeAppStore.Options) -> Void = { _ in }
    ) throws(HTTPError) {
        guard let publicKey = PublicKey(publicKeyInfo: key.publicKeyInfo) else {
            throw HTTPError(code: .configuration, message: "the key's public half is not readable")
        }
        self.key = key
        credentials = StoreCredentials(
            issuerID: "57246542-96fe-1a63-e053-0824d011072a",
            keyID: "SIMULATED1",
            key: publicKey
        )
        var options = FakeAppStore.Options(
            environment: environment,
            subscriptions: subscriptions,
            seed: seed,
            opening: clock.now,
            credentials: credentials
        )
        change(&options)
        let store = FakeAppStore(options)
        rootPEM = store.authority.rootPEM
        rootDER = store.authority.rootDER
        let tls = SimulatorTLS(atSeconds: Int64(time(nil)))
        authorityPEM = tls.authorityPEM
        var http = HTTPServerConfiguration(address: .loopback, port: port)
        http.tls = tls.identity
        var configuration = FakeAppStoreServer.Configuration(http: http, clock: clock)
        configuration.deliver = deliver
        server = try FakeAppStoreServer(store, configuration)
        baseURL = "https://localhost:\(server.port)"
    }
}
