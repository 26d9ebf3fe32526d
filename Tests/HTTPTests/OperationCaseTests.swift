import Glibc
import Testing

@testable import HTTP

/// Other people's public reports of class F that are about sockets, each with the right outcome.
@Suite struct OperationCaseTests {
    @Test func f01ABodyFarTooLongIsRefusedBeforeItIsRead() throws {
        let route = Route(.post, "/notices", bodyLimitBytes: 384 * 1024) { request in
            .answer(HTTPResponse(status: 200, body: Array("\(request.body.count)".utf8)))
        }
        let test = try ServerUnderTest(routes: [route])
        let client = try test.client()
        client.request("POST /notices HTTP/1.1", "Host: t", "Content-Length: 24000")
        client.send(String(repeating: "x", count: 24_000))
        #expect(try client.reply().text == "24000")
        // Of two megabytes not one byte has been sent when the answer comes.
        client.request("POST /notices HTTP/1.1", "Host: t", "Content-Length: 2000000")
        #expect(try client.reply().status == 413)
    }

    @Test func f02FiftyThatTrickleHoldUpNobodyAndAreCut() throws {
        let test = try ServerUnderTest { $0.requestDeadline = .milliseconds(1_500) }
        let slow = try (0..<50).map { _ in try test.client() }
        for client in slow {
            client.request("POST /echo HTTP/1.1", "Host: t", "Content-Length: 1000")
        }
        try test.wait("fifty open") { $0.server.statistics.connectionsOpen >= 50 }
        let began = MonotonicClock.now
        let good = try test.client()
        good.request("GET /hello HTTP/1.1", "Host: t")
        #expect(try good.reply().text == "hi")
        #expect(MonotonicClock.now - began < 1_000_000_000)
        // None of them is ever idle; the deadline is for the whole request.
        for _ in 0..<200 where test.server.statistics.refusals[.requestTooSlow] != 50 {
            for client in slow { client.send("x") }
            usleep(20_000)
        }
        #expect(test.server.statistics.refusals == [.requestTooSlow: 50])
        for client in slow { #expect(client.isClosed()) }
    }
}
