import HTTP
import Testing

@Suite struct ServerAnswerTests {
    @Test func aRouteAnswersOnAKeptConnection() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        for number in 1...3 {
            client.request("GET /things/a%2Fb?q=\(number)&q=%C3%A4 HTTP/1.1", "Host: t")
            let reply = try client.reply()
            #expect(reply.status == 200)
            #expect(reply.text == "[\"a/b\", \"\(number)\", \"ä\"]")
            #expect(reply["X-Request-ID"]?.isEmpty == false)
            #expect(reply["Date"] != nil)
        }
        try test.wait("three records") { $0.records.all.count == 3 }
        let record = try #require(test.records.all.first)
        #expect(record.route == "/things/{id}")
        #expect(record.method == .get)
        #expect(record.status == 200)
        #expect(record.isComplete)
        #expect(record.bytesSent == 18)
        #expect(record.durationNanoseconds > 0)
        #expect(record.refusal == nil)
        let ids = test.records.all.map(\.requestID)
        #expect(Set(ids).count == 3)
        #expect(test.server.statistics.connectionsAccepted == 1)
        #expect(test.server.statistics.requestsByClass == [2: 3])
    }

    @Test func pipelinedRequestsAreAnsweredInTheirOrder() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        var text = ""
        for number in 0..<50 {
            text += "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n\r\n\(number + 10)"
            text += "GET /things/\(number) HTTP/1.1\r\nHost: t\r\n\r\n"
        }
        client.send(text)
        for number in 0..<50 {
            #expect(try client.reply().text == "\(number + 10)")
            #expect(try client.reply().text == "[\"\(number)\"]")
        }
    }

    @Test func headIsAnsweredLikeGetWithoutABody() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.request("HEAD /hello HTTP/1.1", "Host: t")
        let reply = try client.reply(hasBody: false)
        #expect(reply.status == 200)
        #expect(reply["Content-Length"] == "2")
        client.request("GET /hello HTTP/1.1", "Host: t")
        #expect(try client.reply().text == "hi")
    }

    @Test(arguments: [
        ("GET /nowhere HTTP/1.1", 404, "not_found", nil),
        ("DELETE /echo HTTP/1.1", 405, "method_not_allowed", "POST"),
        ("OPTIONS /hello HTTP/1.1", 405, "method_not_allowed", "GET, HEAD"),
        ("OPTIONS * HTTP/1.1", 405, "method_not_allowed", "GET, HEAD, POST"),
        ("BREW /hello HTTP/1.1", 501, "method_not_implemented", nil),
        ("get /hello HTTP/1.1", 501, "method_not_implemented", nil),
        ("TRACE /hello HTTP/1.1", 501, "method_not_implemented", nil),
        ("CONNECT a:1 HTTP/1.1", 501, "method_not_implemented", nil),
        ("GET /a%zz HTTP/1.1", 400, "invalid_target", nil),
        ("GET /a%00 HTTP/1.1", 400, "invalid_target", nil),
        ("GET /hello\0/x HTTP/1.1", 400, "invalid_target", nil),
        ("GET /x/../hello HTTP/1.1", 400, "invalid_target", nil),
        ("GET /hello?a=%C3 HTTP/1.1", 400, "invalid_target", nil),
        ("GET /hel lo HTTP/1.1", 400, "invalid_target", nil),
        ("GET * HTTP/1.1", 400, "invalid_target", nil),
        ("GET hello HTTP/1.1", 400, "invalid_target", nil),
    ])
    func whatNoRouteAnswersIsAProblem(
        _ line: String,
        _ status: Int,
        _ reason: String,
        _ allow: String?
    ) throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.request(line, "Host: t")
        let reply = try client.reply()
        #expect(reply.status == status)
        #expect(reply.text.contains("\"reason\":\"\(reason)\""))
        #expect(reply["Content-Type"] == "application/problem+json")
        #expect(reply["Allow"] == allow)
        // The connection is as good as before.
        client.request("GET /hello HTTP/1.1", "Host: t")
        #expect(try client.reply().text == "hi")
        #expect(test.server.statistics.refusals.map(\.key.rawValue) == [reason])
    }

    @Test(arguments: [
        "GET /hello HTTP/1.1\r\n\r\n", "GET /hello HTTP/1.1\r\nHost: t\r\nno colon\r\n\r\n",
        "GET /hello HTTP/2.0\r\nHost: t\r\n\r\n",
        "GET /hello\r\nHost: t\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\u{16}\u{3}\u{1}\0\u{5}hello\r\n\r\n",
    ])
    func whatIsNoRequestIsRefusedOrCut(_ text: String) throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.send(text)
        if let reply = try? client.reply() {
            #expect([400, 505].contains(reply.status))
        }
        #expect(client.isClosed())
        #expect(try test.client().request("GET /hello HTTP/1.1", "Host: t"))
    }

    @Test func anOldClientIsServedAndItsConnectionClosed() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.request("GET /hello HTTP/1.0")
        #expect(try client.reply().text == "hi")
        #expect(client.isClosed())
    }

    @Test func aHeaderWithALineBreakIsNeverSent() throws {
        let test = try ServerUnderTest(routes: [
            Route(.get, "/inject") { request in
                .answer(
                    HTTPResponse(status: 200, headers: ["X-Name": request.queryValues("n")[0]])
                )
            },
            Route(.get, "/framing") { _ in
                .answer(HTTPResponse(status: 200, headers: ["content-length": "99"]))
            },
            Route(.get, "/status") { _ in .answer(HTTPResponse(status: 99)) },
        ])
        let client = try test.client()
        for path in ["/inject?n=a%0D%0ASet-Cookie:%20b", "/framing", "/status"] {
            client.request("GET \(path) HTTP/1.1", "Host: t")
            let reply = try client.reply()
            #expect(reply.status == 500)
            #expect(reply["Set-Cookie"] == nil)
            #expect(reply.text.contains("invalid_answer"))
        }
        client.request("GET /inject?n=plain HTTP/1.1", "Host: t")
        #expect(try client.reply()["X-Name"] == "plain")
    }

    @Test func aHandlerSeesTheRequestAsItCame() throws {
        let test = try ServerUnderTest(routes: [
            Route(.get, "/seen") { request in
                let parts = [
                    request.headers["x-one"] ?? "-", "\(request.headers.all("X-Two"))",
                    request.peer.description, request.method.rawValue, request.route,
                ]
                return .answer(
                    HTTPResponse(status: 200, body: Array(parts.joined(separator: " ").utf8))
                )
            }
        ])
        let client = try test.client()
        client.request(
            "GET http://t/seen HTTP/1.1",
            "Host: t",
            "X-One:  a b \t",
            "x-two: 1",
            "X-TWO: 2"
        )
        #expect(try client.reply().text == "a b [\"1\", \"2\"] 127.0.0.1 GET /seen")
    }

    @Test func theAddressCanBeIPv6AndTheSamePortIsTakenOnce() throws {
        let six = try #require(IPAddress("::1"))
        let server = try HTTPServer(
            configuration: HTTPServerConfiguration(address: six),
            router: Router([])
        )
        defer { server.stop(within: .zero) }
        #expect(server.port != 0)
        let error = #expect(throws: HTTPError.self) {
            _ = try HTTPServer(
                configuration: HTTPServerConfiguration(address: six, port: server.port),
                router: Router([])
            )
        }
        #expect(error?.code == .address)
    }
}
