import HTTP
import TestSupport
import Testing

/// What a client sends and gives back, over real TLS with an authority of the test's own.
@Suite struct ClientTests {
    let certificates = TestCertificates()

    private func client(
        _ adjust: (inout HTTPClientConfiguration) -> Void = { _ in }
    ) throws -> HTTPClient {
        var configuration = HTTPClientConfiguration()
        configuration.trustAnchors = certificates.anchors
        adjust(&configuration)
        return try HTTPClient(configuration)
    }

    private func server(
        _ routes: [Route] = [],
        _ adjust: (inout HTTPServerConfiguration) -> Void = { _ in }
    ) throws -> ServerUnderTest {
        let identity = certificates.identity()
        return try ServerUnderTest(routes: routes) {
            $0.tls = identity
            adjust(&$0)
        }
    }

    private func url(_ test: ServerUnderTest, _ path: String) throws -> HTTPURL {
        try HTTPURL("https://127.0.0.1:\(test.server.port)\(path)")
    }

    @Test(arguments: [HTTPMethod.get, .head, .post, .put, .patch, .delete, .options])
    func everyMethodArrivesAsItself(_ method: HTTPMethod) throws {
        let body = method == .get || method == .head ? [] : Array("a body\r\n\0".utf8)
        let seen = Seen()
        let test = try server(
            [HTTPMethod.get, .post, .put, .patch, .delete].map { method in
                Route(method, "/any/{thing}", bodyLimitBytes: 1_000) { request in
                    seen.put(request)
                    return .answer(
                        HTTPResponse(
                            status: 201,
                            headers: ["X-One": "1", "x-two": "a: b"],
                            body: Array("\(request.method)".utf8)
                        )
                    )
                }
            }
        )
        let request = HTTPClientRequest(
            method,
            try url(test, "/any/x%20y?q=a%20b&r=../x"),
            headers: ["X-Empty": "", "X-Words": "one; two", "Accept": "text/plain"],
            body: body
        )
        let answer = try client().send(request)
        // The router answers OPTIONS itself.
        if method == .options {
            #expect(answer.headers["Allow"]?.contains("PATCH") == true)
            return
        }
        #expect(answer.status == 201)
        #expect(answer.headers["x-one"] == "1")
        #expect(answer.headers["X-Two"] == "a: b")
        #expect(answer.body == (method == .head ? [] : Array("\(method)".utf8)))
        let arrived = try #require(seen.last)
        #expect(arrived.method == method)
        #expect(arrived.body == body)
        #expect(arrived.parameter("thing") == "x y")
        #expect(arrived.queryValues("q") == ["a b"])
        #expect(arrived.queryValues("r") == ["../x"])
        #expect(arrived.headers["X-Empty"] == "")
        #expect(arrived.headers["X-Words"] == "one; two")
        #expect(arrived.headers["User-Agent"] == "subledger")
        #expect(arrived.headers["Content-Type"] == nil)
        #expect(arrived.headers["Expect"] == nil)
        #expect(arrived.headers.all("Accept") == ["text/plain"])
    }

    @Test func bytesComeBackAsTheyWereSent() throws {
        let test = try server()
        let client = try client()
        let bytes = (0..<99_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
        for body in [[], [0], bytes] {
            let answer = try client.send(
                HTTPClientRequest(
                    .post,
                    try url(test, "/echo"),
                    headers: ["Content-Type": "application/json"],
                    body: body
                )
            )
            #expect(answer.status == 200)
            #expect(answer.body == body)
        }
    }

    @Test func aStatusIsNoErrorAndARedirectIsNotFollowed() throws {
        let seen = Seen()
        let test = try server([
            Route(.get, "/moved") { _ in
                .answer(HTTPResponse(status: 302, headers: ["Location": "/target"]))
            },
            Route(.get, "/target") { request in
                seen.put(request)
                return .answer(HTTPResponse(status: 200))
            },
            Route(.get, "/broken") { _ in .answer(HTTPResponse(status: 500)) },
        ])
        let client = try client()
        let moved = try client.send(HTTPClientRequest(.get, try url(test, "/moved")))
        #expect(moved.status == 302)
        #expect(moved.headers["Location"] == "/target")
        #expect(seen.last == nil)
        #expect(try client.send(HTTPClientRequest(.get, try url(test, "/broken"))).status == 500)
        #expect(try client.send(HTTPClientRequest(.get, try url(test, "/nowhere"))).status == 404)
    }

    @Test func aConnectionIsUsedAgain() throws {
        let test = try server()
        let client = try client()
        var request = HTTPClientRequest(.get, try url(test, "/hello"))
        let first = try client.send(request)
        #expect(!first.reusedConnection)
        #expect(try #require(first.certificateEnds) > 1_700_000_000)
        for _ in 0..<20 { #expect(try client.send(request).reusedConnection) }
        #expect(client.idleConnections == 1)
        #expect(test.server.statistics.connectionsOpen == 1)
        request.needsFreshConnection = true
        #expect(try !client.send(request).reusedConnection)
    }

    @Test func onlySoManyConnectionsAreKept() throws {
        let client = try client { $0.idleLimit = 2 }
        let servers = try (0..<4).map { _ in try server() }
        for test in servers {
            #expect(try client.send(HTTPClientRequest(.get, try url(test, "/hello"))).status == 200)
        }
        #expect(client.idleConnections == 2)
        try servers[0].wait("closed") { $0.server.statistics.connectionsOpen == 0 }
        // The last two are still there.
        for test in servers.suffix(2) {
            let answer = try client.send(HTTPClientRequest(.get, try url(test, "/hello")))
            #expect(answer.reusedConnection)
        }
    }

    @Test func hundredsOfRequestsAtOnceAreAnsweredEachWithItsOwn() throws {
        // Two hundred handshakes at once take a busy machine longer than one peer is waited for.
        let test = try server { $0.requestDeadline = .seconds(600) }
        let client = try client {
            $0.idleLimit = 300
            $0.connectTimeout = .seconds(600)
            $0.wholeTimeout = .seconds(600)
            $0.stallTimeout = .seconds(600)
        }
        let address = try url(test, "/echo")
        let wrong = Seen()
        onThreads(200) { number in
            for round in 0..<5 {
                let body = Array("\(number)/\(round) ".utf8) + Array(repeating: 7, count: number)
                do {
                    let answer = try client.send(HTTPClientRequest(.post, address, body: body))
                    if answer.status != 200 || answer.body != body {
                        wrong.count("\(number)/\(round): \(answer.status)")
                    }
                } catch {
                    wrong.count("\(error)")
                }
            }
        }
        #expect(wrong.counts.isEmpty)
        #expect(client.idleConnections <= 200)
        #expect(client.idleConnections > 0)
    }

    @Test func whatCannotBeSentIsRefusedBefore() throws {
        let test = try server()
        let client = try client()
        let fields: [(String, String)] = [
            ("X-A", "b\r\nX-Evil: 1"), ("X-A", "b\nX-Evil: 1"), ("X-A", "b\0"), ("X-A\r\nX-B", "1"),
            ("X A", "1"), ("X-A:", "1"), ("", "1"), ("Host", "elsewhere"), ("content-length", "9"),
            ("Transfer-Encoding", "chunked"), ("Connection", "close"), ("Expect", "100-continue"),
        ]
        for (name, value) in fields {
            var request = HTTPClientRequest(.get, try url(test, "/hello"))
            request.headers.add(name, value)
            expectRefusal { _ = try client.send(request) }
        }
        let target = try url(test, "/hello")
        expectRefusal { _ = try client.send(HTTPClientRequest(.get, target, body: [1])) }
        for name in ["TRACE", "CONNECT", "GET / HTTP/1.1\r\nX: 1", ""] {
            let method = HTTPMethod(rawValue: name)
            expectRefusal { _ = try client.send(HTTPClientRequest(method, target)) }
        }
        #expect(test.records.all.isEmpty)
    }

    private func expectRefusal(
        _ location: SourceLocation = #_sourceLocation,
        _ body: () throws -> Void
    ) {
        let error = #expect(throws: HTTPClientError.self, sourceLocation: location) { try body() }
        #expect(error?.code == .request, sourceLocation: location)
        #expect(error?.mayHaveArrived == false, sourceLocation: location)
        #expect(error?.message.contains("Evil") == false, sourceLocation: location)
    }

    @Test(arguments: [
        "ftp://host/", "file:///etc/passwd", "host/path", "//host", "http:/host", "http:host", "",
        "https://user:secret@host/", "https://user@host/", "http://host/a b",
        "http://host/\r\nX: 1",
        "http://host/#part", "http://h\u{F6}st/", "http://", "http://host:0/", "http://host:70000/",
        "gopher://host/", "HTTPS:///path", "javascript:alert(1)",
    ])
    func anAddressOfAnotherKindIsRefused(_ text: String) {
        let error = #expect(throws: HTTPClientError.self) { _ = try HTTPURL(text) }
        #expect(error?.code == .request)
        #expect(error?.message.contains("secret") == false)
    }

    @Test func anAddressIsTakenApart() throws {
        let plain = try HTTPURL("http://Example.com")
        #expect(plain.origin == "http://Example.com:80" && !plain.isSecure)
        let full = try HTTPURL("https://[2001:db8::1]:8443/a/../b?c=d")
        #expect(full.host == "[2001:db8::1]" && full.port == 8443 && full.isSecure)
        #expect(full.text == "https://[2001:db8::1]:8443/a/../b?c=d")
        #expect(try HTTPURL("https://example.com/x").origin == "https://example.com:443")
    }

    @Test func nothingSecretIsDescribed() throws {
        let url = try HTTPURL("https://example.com/hooks/secret?token=secret")
        let request = HTTPClientRequest(
            .post,
            url,
            headers: ["Authorization": "Bearer secret"],
            body: Array("secret".utf8)
        )
        let response = HTTPClientResponse(
            status: 200,
            headers: ["X": "secret"],
            body: Array("secret".utf8)
        )
        var dumped = ""
        for thing in [url, request, response] as [Any] {
            dump(thing, to: &dumped)
            dumped += "\(thing)" + String(reflecting: thing)
        }
        #expect(dumped.contains("example.com"))
        #expect(!dumped.contains("secret"))
    }

    @Test func settingsWithoutSenseAreRefused() {
        let changes: [(inout HTTPClientConfiguration) -> Void] = [
            { $0.connectTimeout = .zero }, { $0.wholeTimeout = .seconds(-1) },
            { $0.stallTimeout = .seconds(1_000_000) }, { $0.responseLimitBytes = -1 },
            { $0.idleLimit = -1 }, { $0.userAgent = "a\r\nb" }, { $0.userAgent = "" },
            { $0.proxy = "socks5://secret@host" }, { $0.proxy = "http://ho st" },
            { $0.trustAnchors = .pem("secret") }, { $0.trustAnchors = .file("/nowhere/ca.pem") },
        ]
        for change in changes {
            var configuration = HTTPClientConfiguration()
            change(&configuration)
            let error = #expect(throws: HTTPClientError.self) { _ = try HTTPClient(configuration) }
            #expect(error?.code == .configuration)
            #expect(error?.message.contains("secret") == false)
        }
    }
}
