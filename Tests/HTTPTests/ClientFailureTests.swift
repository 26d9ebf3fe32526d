import Glibc
import HTTP
import TestSupport
import Testing

/// What a client says where there is no answer.
@Suite struct ClientFailureTests {
    private func client(
        _ adjust: (inout HTTPClientConfiguration) -> Void = { _ in }
    ) throws -> HTTPClient {
        var configuration = HTTPClientConfiguration()
        adjust(&configuration)
        return try HTTPClient(configuration)
    }

    private func failure(
        _ client: HTTPClient,
        _ url: String,
        _ method: HTTPMethod = .get,
        body: [UInt8] = []
    ) throws -> HTTPClientError? {
        let request = HTTPClientRequest(method, try HTTPURL(url), body: body)
        do {
            _ = try client.send(request)
            return nil
        } catch { return error }
    }

    /// What a client that trusts `trusted` says to a server with this certificate.
    private func tlsFailure(
        _ identity: TLSIdentity,
        trusting trusted: HTTPClientConfiguration.TrustAnchors,
        host: String = "127.0.0.1"
    ) throws -> HTTPClientError? {
        let test = try ServerUnderTest { $0.tls = identity }
        let client = try client { $0.trustAnchors = trusted }
        let error = try failure(client, "https://\(host):\(test.server.port)/hello")
        if error == nil {
            try test.wait("its record") { $0.records.all.count == 1 }
        } else {
            #expect(test.records.all.isEmpty)
        }
        #expect(client.idleConnections == (error == nil ? 1 : 0))
        return error
    }

    @Test func anotherAuthorityIsNotTrusted() throws {
        let certificates = TestCertificates()
        let identity = certificates.identity()
        #expect(try tlsFailure(identity, trusting: certificates.anchors) == nil)
        for anchors in [TestCertificates("Other").anchors, .system] {
            let error = try #require(try tlsFailure(identity, trusting: anchors))
            #expect(error.code == .tls(.untrusted))
            #expect(!error.mayHaveArrived)
        }
        // One of the same name has another key.
        let namesake = TestCertificates().anchors
        #expect(try tlsFailure(identity, trusting: namesake)?.code == .tls(.untrusted))
    }

    @Test func aCertificateOfAnotherNameIsNotTrusted() throws {
        let certificates = TestCertificates()
        let anchors = certificates.anchors
        for (names, host) in [
            (["other.example"], "127.0.0.1"), (["localhost"], "127.0.0.1"),
            (["127.0.0.1"], "localhost"), (["*.localhost"], "localhost"),
        ] {
            let error = try tlsFailure(certificates.identity(names), trusting: anchors, host: host)
            #expect(error?.code == .tls(.wrongName), "\(names) \(host)")
            #expect(error?.mayHaveArrived == false)
        }
        let right = certificates.identity(["localhost"])
        #expect(try tlsFailure(right, trusting: anchors, host: "localhost") == nil)
    }

    @Test func aCertificateOfAnotherTimeIsNotTrusted() throws {
        let certificates = TestCertificates()
        let over = certificates.identity(from: -7_200, to: -3_600)
        let early = certificates.identity(from: 3_600, to: 7_200)
        let anchors = certificates.anchors
        #expect(try tlsFailure(over, trusting: anchors)?.code == .tls(.expired))
        #expect(try tlsFailure(early, trusting: anchors)?.code == .tls(.notYetValid))
    }

    @Test func aPortWithoutTLSIsToldFromOneWith() throws {
        let certificates = TestCertificates()
        let plain = try ServerUnderTest()
        let client = try client { $0.trustAnchors = certificates.anchors }
        let error = try failure(client, "https://127.0.0.1:\(plain.server.port)/hello")
        #expect(error?.code == .tls(.handshake))
        #expect(plain.records.all.allSatisfy { $0.status == 400 })
        let identity = certificates.identity()
        let secure = try ServerUnderTest { $0.tls = identity }
        let answer = try failure(client, "http://127.0.0.1:\(secure.server.port)/hello")
        #expect(answer?.code == .cutOff || answer?.code == .malformed)
    }

    @Test func nobodyThereAndNoNameAreToldApart() throws {
        let client = try client()
        let port: UInt16
        do {
            let server = RawServer { _, _ in }
            port = server.port
        }
        let refused = try #require(try failure(client, "http://127.0.0.1:\(port)/"))
        #expect(refused.code == .refused)
        #expect(!refused.mayHaveArrived)
        #expect(refused.message.contains("http://127.0.0.1:\(port)"))
        // A label that long is no name, so no DNS server is asked.
        let name = String(repeating: "a", count: 64) + ".invalid"
        let unresolved = try #require(try failure(client, "http://\(name)/"))
        #expect(unresolved.code == .unresolved)
        #expect(!unresolved.mayHaveArrived)
    }

    @Test func aListenerThatTakesNobodyRunsIntoTheConnectTimeout() throws {
        // It accepts, since the kernel does, and shakes no hands.
        let server = RawServer { _, _ in }
        let client = try client {
            $0.connectTimeout = .milliseconds(300)
            $0.stallTimeout = .milliseconds(10)
        }
        let began = ContinuousClock.now
        let error = try #require(try failure(client, "https://127.0.0.1:\(server.port)/"))
        #expect(error.code == .timeout(.connect))
        #expect(!error.mayHaveArrived)
        #expect(ContinuousClock.now - began < .seconds(20))
    }

    @Test func aSlowServerRunsIntoTheWholeTimeout() throws {
        let server = RawServer { connection, _ in
            guard RawServer.readHead(connection) else { return }
            RawServer.send(connection, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while RawServer.send(connection, ".") { usleep(50_000) }
        }
        let client = try client { $0.wholeTimeout = .milliseconds(700) }
        let error = try #require(try failure(client, "http://127.0.0.1:\(server.port)/"))
        #expect(error.code == .timeout(.whole))
        #expect(error.mayHaveArrived)
    }

    @Test func aSilentServerRunsIntoTheStallTimeout() throws {
        let test = try ServerUnderTest()
        let client = try client { $0.stallTimeout = .milliseconds(300) }
        let error = try #require(
            try failure(client, "http://127.0.0.1:\(test.server.port)/later", .post, body: [1])
        )
        #expect(error.code == .timeout(.stall))
        #expect(error.mayHaveArrived)
        test.forgetPending()
        // Drop by drop is no silence.
        let server = RawServer { connection, _ in
            guard RawServer.readHead(connection) else { return }
            RawServer.send(connection, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n")
            for _ in 0..<12 where RawServer.send(connection, ".") { usleep(100_000) }
        }
        #expect(try failure(client, "http://127.0.0.1:\(server.port)/") == nil)
    }

    @Test(arguments: [
        "", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    ])
    func anAnswerThatIsCutIsNoAnswer(_ text: String) throws {
        let server = RawServer { connection, _ in
            guard RawServer.readHead(connection) else { return }
            RawServer.send(connection, text)
            RawServer.end(connection)
        }
        let client = try client()
        let error = try failure(client, "http://127.0.0.1:\(server.port)/")
        // Headers alone may be an answer that lasts until the connection's end, but not half a line.
        if text == "HTTP/1.1 200 OK\r\n" {
            #expect(error == nil || error?.code == .cutOff)
        } else {
            #expect(error?.code == .cutOff)
            #expect(error?.mayHaveArrived == true)
        }
        #expect(client.idleConnections <= (error == nil ? 1 : 0))
    }

    @Test func nonsenseIsNoAnswer() throws {
        let server = RawServer { connection, _ in
            guard RawServer.readHead(connection) else { return }
            RawServer.send(connection, "SSH-2.0-OpenSSH_9.2\r\n\r\n")
            RawServer.end(connection)
        }
        let error = try failure(try client(), "http://127.0.0.1:\(server.port)/")
        #expect(error?.code == .malformed)
    }

    @Test func aBodyThatIsTooLargeIsNotRead() throws {
        let announced = RawServer { connection, _ in
            guard RawServer.readHead(connection) else { return }
            RawServer.send(connection, "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n")
        }
        let endless = RawServer { connection, _ in
            guard RawServer.readHead(connection) else { return }
            RawServer.send(connection, "HTTP/1.1 200 OK\r\n\r\n")
            while RawServer.send(connection, String(repeating: "x", count: 500)) {}
        }
        let headers = RawServer { connection, _ in
            guard RawServer.readHead(connection) else { return }
            RawServer.send(connection, "HTTP/1.1 200 OK\r\n")
            while RawServer.send(connection, "X: " + String(repeating: "y", count: 5_000) + "\r\n")
            {}
        }
        let client = try client { $0.responseLimitBytes = 1_000 }
        for server in [announced, endless, headers] {
            let error = try failure(client, "http://127.0.0.1:\(server.port)/")
            #expect(error?.code == .tooLarge)
        }
        let exact = RawServer { connection, _ in
            guard RawServer.readHead(connection) else { return }
            let body = String(repeating: "x", count: 1_000)
            RawServer.send(connection, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + body)
        }
        #expect(try failure(client, "http://127.0.0.1:\(exact.port)/") == nil)
    }

    @Test func aConnectionClosedBetweenRequestsIsMadeAnew() throws {
        // The first connection answers once, and is closed when the next request comes.
        let server = RawServer { connection, _ in
            guard RawServer.readHead(connection) else { return }
            RawServer.send(connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            usleep(100_000)
            RawServer.end(connection)
        }
        let client = try client()
        for round in 0..<4 {
            // Now before the close, now after it.
            if round.isMultiple(of: 2) { usleep(200_000) }
            let request = HTTPClientRequest(
                .post,
                try HTTPURL("http://127.0.0.1:\(server.port)/"),
                body: [1, 2, 3]
            )
            let answer = try client.send(request)
            #expect(answer.status == 200 && answer.body == Array("ok".utf8))
            #expect(!answer.reusedConnection)
        }
        #expect(server.connectionCount == 4)
    }

    @Test func aStoppedClientEndsWhatIsUnderWay() throws {
        let test = try ServerUnderTest()
        let client = try client()
        let result = Seen()
        let url = "http://127.0.0.1:\(test.server.port)/later"
        onThreads(4) { number in
            if number == 0 {
                try? test.waitForPending(3)
                client.stop()
            } else {
                let error = try? failure(client, url)
                result.count("\(error?.code == .stopped)")
            }
        }
        #expect(result.counts == ["true": 3])
        #expect(try failure(client, url)?.code == .stopped)
        test.forgetPending()
    }

    @Test func aProxyIsUsedWhereItIsSet() throws {
        let seen = Seen()
        let proxy = Self.proxy(seen)
        let test = try ServerUnderTest()
        let url = "http://127.0.0.1:\(test.server.port)/hello"
        let through = try client { $0.proxy = "http://127.0.0.1:\(proxy.port)" }
        let answer = try through.send(HTTPClientRequest(.get, try HTTPURL(url)))
        #expect(answer.body == Array("via".utf8))
        #expect(seen.counts == ["asked": 1])
        let gone = try client { $0.proxy = "http://secret:secret@127.0.0.1:1" }
        let error = try #require(try failure(gone, url))
        #expect(error.code == .proxy)
        #expect(!"\(error)".contains("secret"))
    }

    /// In a process of its own, since other tests read the environment meanwhile.
    @Test func noProxyIsTakenFromTheEnvironment() async {
        await #expect(processExitsWith: .success) {
            let seen = Seen()
            let proxy = Self.proxy(seen)
            let test = try ServerUnderTest()
            for name in ["http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"] {
                unsafe setenv(name, "http://127.0.0.1:\(proxy.port)", 1)
            }
            let url = try HTTPURL("http://127.0.0.1:\(test.server.port)/hello")
            let answer = try HTTPClient().send(HTTPClientRequest(.get, url))
            precondition(answer.body == Array("hi".utf8) && seen.counts.isEmpty)
        }
    }

    private static func proxy(_ seen: Seen) -> RawServer {
        RawServer { connection, _ in
            guard RawServer.readHead(connection) else { return }
            seen.count("asked")
            RawServer.send(connection, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nvia")
        }
    }
}
