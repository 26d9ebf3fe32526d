import AppStore
import Crypto
import Glibc
import HTTP
import Ledger
import LedgerService
import Synchronization
import Testing

/// The whole way over TLS: a server of our own, with certificates that only we trust, and faults.
@Suite struct ScriptedAppleTests {
    private let folder: ScratchFolder

    init() throws { folder = try ScratchFolder() }

    /// One answer of the server.
    private struct Step: Sendable {
        var status: Int
        var body: String
        var headers: [(String, String)] = []
        /// Whether the connection breaks within the body.
        var isCut = false
    }

    /// A server that gives answers one after another and remembers who asked.
    private final class Apple: Sendable {
        let server: HTTPServer
        let certificate: String
        private let seen: Holder<String>

        var authorizations: [String] { seen.all }

        init(_ script: [Step]) throws {
            let now = Int64(time(nil))
            let authority = CertificateIssuer(
                name: CertificateName(commonName: "Test Authority"),
                key: SigningKey.generateP256()
            )
            let root = authority.issue(
                CertificateTemplate(
                    subject: authority.name,
                    serial: [1],
                    notBefore: now - 86_400,
                    notAfter: now + 86_400,
                    isAuthority: true,
                    keyUsage: [.certificateSign]
                ),
                for: authority.key
            )
            let key = SigningKey.generateP256()
            let alternatives = [0x82, UInt8("localhost".utf8.count)] + Array("localhost".utf8)
            let leaf = authority.issue(
                CertificateTemplate(
                    subject: CertificateName(commonName: "a test server"),
                    serial: [2],
                    notBefore: now - 3600,
                    notAfter: now + 3600,
                    extensions: [
                        CertificateExtension(
                            oid: "2.5.29.17",
                            value: [0x30, UInt8(alternatives.count)] + alternatives
                        )
                    ]
                ),
                for: key
            )
            certificate = PEM.certificate(root)
            let steps = Holder(script)
            let seen = Holder<String>([])
            var configuration = HTTPServerConfiguration()
            configuration.threadCount = 2
            configuration.tls = TLSIdentity(
                certificatePEM: PEM.certificate(leaf),
                keyPEM: key.pem
            )
            let answer: @Sendable (HTTPRequest) -> Answer = { request in
                seen.add(request.headers["authorization"] ?? "")
                let step = steps.take() ?? Step(status: 500, body: "")
                var headers = HTTPHeaders()
                for (name, value) in step.headers { headers.add(name, value) }
                if step.isCut {
                    let (body, writer) = BodyWriter.makeStream()
                    defer { writer.abort() }
                    return .answer(HTTPResponse(status: step.status, headers: headers, body: body))
                }
                return .answer(
                    HTTPResponse(
                        status: step.status,
                        headers: headers,
                        body: Array(step.body.utf8)
                    )
                )
            }
            self.seen = seen
            server = try HTTPServer(
                configuration: configuration,
                router: Router([
                    Route(.get, "/inApps/v1/transactions/{id}", handler: answer),
                    Route(
                        .post,
                        "/inApps/v1/notifications/history",
                        bodyLimitBytes: 10_000,
                        handler: answer
                    ),
                ]),
                onAccess: { _ in }
            )
        }
    }

    private final class Holder<Value: Sendable>: Sendable {
        private let values: Mutex<[Value]>

        init(_ values: [Value]) { self.values = Mutex(values) }

        var all: [Value] { values.withLock { $0 } }
        func add(_ value: Value) { values.withLock { $0.append(value) } }
        func take() -> Value? { values.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
    }

    private static let info = APIEndpoint.transactionInfo(id: "1")
    private static let good = Step(status: 200, body: #"{"signedTransactionInfo":"a.b.c"}"#)

    private func client(
        _ apple: Apple,
        trusting certificate: String? = nil,
        now: @escaping @Sendable () -> Timestamp = Self.wallClock
    ) throws -> AppStoreClient {
        var configuration = Configuration()
        configuration.appStore.issuerID = "issuer"
        configuration.appStore.keyID = "KEY"
        configuration.appStore.keyText = SigningKey(seed: [7]).pem
        let url = "https://localhost:\(apple.server.port)"
        configuration.appStore.productionURL = url
        configuration.appStore.sandboxURL = url
        configuration.appStore.certificateAuthority = try folder.file(
            "ca.pem",
            Array((certificate ?? apple.certificate).utf8)
        )
        let clients = try AppStoreClients(
            apps: [AcceptedApp(bundleID: "b", appAppleID: nil, environments: [.sandbox])],
            configuration: configuration,
            surroundings: APISurroundings(
                now: now,
                sleep: { _ in true },
                random: { $0.lowerBound }
            )
        )
        return clients.accounts[0].client
    }

    @Test func faultsAreGotOverOverTLS() throws {
        let apple = try Apple([
            Step(status: 503, body: "<html>down</html>"), Step(status: 500, body: ""),
            Step(status: 500, body: #"{"errorCode":5000001,"errorMessage":"x"}"#),
            Step(
                status: 429,
                body: #"{"errorCode":4290000}"#,
                headers: [("Retry-After", "\((Int64(time(nil)) + 1) * 1000)")]
            ),
            Self.good,
        ])
        let response = try client(apple).send(Self.info)
        #expect(response.answer?.form == .transactionInfo)
        #expect(apple.authorizations.count == 5)
        #expect(apple.authorizations.allSatisfy { $0.hasPrefix("Bearer eyJ") })
        _ = apple.server.stop(within: .seconds(1))
    }

    private static let wallClock: @Sendable () -> Timestamp = {
        Timestamp(milliseconds: Int64(time(nil)) * 1000)
    }

    private static func page(_ token: String?) -> Step {
        let more =
            token.map { #""hasMore":true,"paginationToken":"\#($0)""# } ?? #""hasMore":false"#
        return Step(status: 200, body: #"{"notificationHistory":[],\#(more)}"#)
    }

    private static func window() -> NotificationHistoryQuery {
        let now = wallClock()
        return NotificationHistoryQuery(from: now.adding(.hours(-2)), to: now.adding(.hours(-1)))
    }

    /// A page that breaks off is asked for again; where Apple forgot the token of a page the window
    /// is begun anew.
    @Test func cutPagesAndForgottenPageTokensAreGotOverOverTLS() throws {
        let apple = try Apple([
            Self.page("a"), Step(status: 200, body: "", isCut: true), Self.page("b"),
            Step(status: 400, body: #"{"errorCode":4000017,"errorMessage":"Expired."}"#),
            Self.page("c"), Step(status: 200, body: "", isCut: true),
            Step(status: 200, body: #"{"notificationHistory":[{"signedPayload":"a.b"#),
            Self.page(nil),
        ])
        var pages: [Int?] = []
        try client(apple).notificationHistory(Self.window()) { pages.append($0.page) }
        #expect(pages == [1, 2, 1, 2])
        #expect(apple.authorizations.count == 8)
        _ = apple.server.stop(within: .seconds(1))
    }

    /// A token that Apple refuses within a list is made anew, and one that grows old is before it is
    /// refused.
    @Test func aTokenThatDiesWhilePagingIsMadeAnew() throws {
        let apple = try Apple([
            Self.page("a"), Step(status: 401, body: ""), Self.page("b"), Self.page(nil),
        ])
        let late = Mutex<Int64>(0)
        let client = try client(apple) {
            Self.wallClock().adding(.minutes(late.withLock { $0 }))
        }
        var pages = 0
        try client.notificationHistory(Self.window()) { _ in
            pages += 1
            // Before the last page most of a token's life goes by.
            if pages == 2 { late.withLock { $0 = 13 } }
        }
        let seen = apple.authorizations
        #expect(pages == 3 && seen.count == 4)
        #expect(seen[0] == seen[1] && Set(seen[1...]).count == 3)
        _ = apple.server.stop(within: .seconds(1))
    }

    @Test func aCertificateThatIsNotTrustedIsNamedAndNotTriedAgain() throws {
        let apple = try Apple([Self.good, Self.good])
        let other = try Apple([])
        let error = #expect(throws: AppStoreAPIError.self) {
            _ = try client(apple, trusting: other.certificate).send(Self.info)
        }
        #expect(error?.kind == .transport(.certificate) && error?.attempts == 1)
        #expect(error?.mayHaveHadEffect == false)
        #expect(apple.authorizations.isEmpty)
        _ = apple.server.stop(within: .seconds(1))
        _ = other.server.stop(within: .seconds(1))
    }

    @Test func aServerThatIsGoneIsTemporary() throws {
        let apple = try Apple([Self.good])
        let client = try client(apple)
        _ = apple.server.stop(within: .seconds(1))
        let error = #expect(throws: AppStoreAPIError.self) { _ = try client.send(Self.info) }
        #expect(error?.isRetryable == true && error?.attempts == 6)
    }
}
