import HTTP
import Testing

/// What a proxy and this server could read as two different requests.
@Suite struct SmugglingTests {
    @Test(arguments: [
        (["Content-Length: 5", "Transfer-Encoding: chunked"], "ambiguous_length"),
        (["Transfer-Encoding: chunked", "Content-Length: 5"], "ambiguous_length"),
        (["Content-Length: 5", "Content-Length: 5"], "ambiguous_length"),
        (["Content-Length: 5", "content-length: 6"], "ambiguous_length"),
        (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], "ambiguous_length"),
        (["Transfer-Encoding: gzip, chunked"], "invalid_length"),
        (["Transfer-Encoding: identity"], "invalid_length"),
        (["Transfer-Encoding: xchunked"], "invalid_length"),
        (["Transfer-Encoding : chunked"], "invalid_header"),
        (["Content-Length : 5"], "invalid_header"),
        (["Transfer-Encoding\u{B}: chunked"], "invalid_header"),
        (["Host: other"], "invalid_header"),
        (["X Y: z"], "invalid_header"),
    ])
    func aRequestWithTwoReadingsIsRefusedAndTheConnectionClosed(
        _ lines: [String],
        _ reason: String
    ) throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        let head = (["POST /echo HTTP/1.1", "Host: t"] + lines).joined(separator: "\r\n")
        client.send(head + "\r\n\r\n0\r\n\r\nGET /hello HTTP/1.1\r\nHost: t\r\n\r\n")
        let reply = try client.reply()
        #expect(reply.status == 400)
        #expect(reply.text.contains("\"\(reason)\""))
        #expect(reply["Connection"] == "close")
        // Nothing after it is taken for a request.
        #expect(client.isClosed())
        try test.wait("one request") { $0.server.statistics.requestsByClass == [4: 1] }
    }

    @Test(arguments: ["+5", "-5", "5x", "0x5", "5, 5", "", "99999999999999999999"])
    func aLengthThatIsNoNumberEndsTheConnection(_ length: String) throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: \(length)\r\n\r\nhello")
        client.send("GET /hello HTTP/1.1\r\nHost: t\r\n\r\n")
        // libmicrohttpd answers some of these itself, and its headers are there twice.
        if let reply = try? client.reply() { #expect([400, 413].contains(reply.status)) }
        #expect(client.ends())
        try test.wait("the refusal") { $0.server.statistics.refusals.count == 1 }
        #expect(test.server.statistics.requestsByClass[2] == nil)
    }

    @Test(arguments: [
        "x\r\n", "-1\r\nab", "1\r\nabc\r\n", "FFFFFFFFFFFFFFFFF\r\n", "\r\n", "0x1\r\n",
    ])
    func aBrokenChunkEndsTheConnection(_ text: String) throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.send("POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n" + text)
        client.send("GET /hello HTTP/1.1\r\nHost: t\r\n\r\n")
        if let reply = try? client.reply() { #expect([400, 413].contains(reply.status)) }
        #expect(client.ends())
        #expect(test.server.statistics.requestsByClass[2] == nil)
    }

    @Test func anOldClientHasNoTransferCoding() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.send("POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        #expect(try client.reply().text.contains("invalid_length"))
        #expect(client.isClosed())
    }

    @Test func noHostIsRefused() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.send("GET /hello HTTP/1.1\r\n\r\n")
        #expect(try client.reply().text.contains("missing_host"))
        #expect(client.isClosed())
    }

    @Test func headersAndTargetsHaveALimit() throws {
        let test = try ServerUnderTest()
        let long = String(repeating: "a", count: 9_000)
        let first = try test.client()
        first.request("GET /\(long) HTTP/1.1", "Host: t")
        #expect(try first.reply().status == 414)
        #expect(first.isClosed())
        let many = String(repeating: "&a", count: 3_000)
        let second = try test.client()
        second.request("GET /hello?\(many) HTTP/1.1", "Host: t")
        #expect(try second.reply().text == "hi")
        for size in [33_000, 39_000, 60_000, 500_000] {
            let client = try test.client()
            let value = String(repeating: "b", count: size)
            client.request("GET /hello HTTP/1.1", "Host: t", "X: \(value)")
            if let reply = try? client.reply() { #expect(reply.status == 431) }
            #expect(client.ends())
        }
        let lines = (0..<700).map { "X-\($0): yyyyyyyyyyyyyyyy" }.joined(separator: "\r\n")
        let third = try test.client()
        third.request("GET /hello HTTP/1.1", "Host: t", lines)
        #expect([200, 431].contains(try third.reply().status))
        let fourth = try test.client()
        fourth.request("GET /hello HTTP/1.1", "Host: t", "X: " + String(long.prefix(8_000)))
        #expect(try fourth.reply().text == "hi")
    }
}
