import HTTP
import Testing

@Suite struct BodyLimitTests {
    @Test func aBodyArrivesWholeWhateverItsPieces() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        let body = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        client.post("/echo", body)
        #expect(try client.reply().body == body)
        client.request(
            "POST /echo HTTP/1.1",
            "Host: t",
            "Transfer-Encoding: chunked",
            body: chunked(body, size: 777)
        )
        #expect(try client.reply().body == body)
        client.post("/echo", [])
        #expect(try client.reply().body == [])
    }

    @Test func aLengthAboveTheLimitIsAnsweredBeforeTheBody() throws {
        let test = try ServerUnderTest()
        for more in ["X: y", "Expect: 100-continue"] {
            let client = try test.client()
            client.request("POST /echo HTTP/1.1", "Host: t", "Content-Length: 100001", more)
            let reply = try client.reply()
            #expect(reply.status == 413)
            #expect(reply.text.contains("body_too_large"))
            #expect(client.isClosed())
        }
        #expect(test.server.statistics.refusals[.bodyTooLarge] == 2)
    }

    @Test func aBodyThatMayComeIsAskedFor() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.request(
            "POST /echo HTTP/1.1",
            "Host: t",
            "Content-Length: 3",
            "Expect: 100-continue"
        )
        #expect(try client.reply().status == 100)
        client.send("abc")
        #expect(try client.reply().text == "abc")
        client.request("POST /echo HTTP/1.1", "Host: t", "Content-Length: 3", "Expect: magic")
        client.send("abc")
        #expect(try client.reply().status == 417)
    }

    @Test func aChunkedBodyAboveTheLimitIsReadAndAnsweredAtItsEnd() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.request(
            "POST /echo HTTP/1.1",
            "Host: t",
            "Transfer-Encoding: chunked",
            body: chunked([UInt8](repeating: 1, count: 100_001), size: 5_000)
        )
        #expect(try client.reply().status == 413)
        client.request("GET /hello HTTP/1.1", "Host: t")
        #expect(try client.reply().text == "hi")
    }

    @Test func aChunkedBodyWithoutAnEndIsCut() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.request("POST /echo HTTP/1.1", "Host: t", "Transfer-Encoding: chunked")
        let piece = chunked([UInt8](repeating: 1, count: 10_000), size: 10_000).dropLast(5)
        var sent = 0
        while client.send(piece), sent < 500 { sent += 1 }
        #expect(sent < 500)
        #expect(client.isClosed())
        try test.wait("the refusal") { $0.server.statistics.refusals[.bodyTooLarge] == 1 }
        #expect(test.server.statistics.requestsUnanswered == 1)
    }

    @Test func aSmallBodyThatNobodyWantsLeavesTheConnectionUsable() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.post("/nowhere", [1, 2, 3])
        #expect(try client.reply().status == 404)
        client.post("/json", Array("x".utf8), "Content-Encoding: gzip")
        let gzip = try client.reply()
        #expect(gzip.status == 415)
        #expect(gzip["Accept-Encoding"] == "identity")
        client.post("/json", Array("x".utf8), "Content-Type: text/plain")
        #expect(try client.reply().text.contains("unsupported_media_type"))
        client.post("/json", Array("x".utf8), "Content-Encoding: identity")
        #expect(try client.reply().text == "x")
        for type in ["application/json", "Application/JSON ; charset=utf-8"] {
            client.post("/json", Array("x".utf8), "Content-Type: \(type)")
            #expect(try client.reply().text == "x")
        }
        client.request("GET /hello HTTP/1.1", "Host: t", "Content-Length: 1", body: [1])
        #expect(try client.reply().status == 413)
        #expect(client.isClosed())
    }

    func chunked(_ body: [UInt8], size: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: body.count, by: size) {
            let part = body[start..<min(start + size, body.count)]
            bytes += Array("\(String(part.count, radix: 16));x=y\r\n".utf8) + part
            bytes += Array("\r\n".utf8)
        }
        return bytes + Array("0\r\n\r\n".utf8)
    }
}
