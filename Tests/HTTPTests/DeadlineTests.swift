import Glibc
import Testing

@testable import HTTP

@Suite struct DeadlineTests {
    /// Sends a byte now and then, so that the connection is never silent, until it is closed.
    ///
    /// - Returns: milliseconds until then, or nil where it never is.
    func trickle(_ client: TestClient, _ text: String) -> Int? {
        let began = MonotonicClock.now
        for byte in text.utf8 {
            if !client.send([byte]) { return Int((MonotonicClock.now - began) / 1_000_000) }
            usleep(20_000)
        }
        return nil
    }

    static let slow = "GET /hello HTTP/1.1\r\nHost: t\r\nX: " + String(repeating: "a", count: 300)

    @Test func aHeaderThatTricklesIsCut() throws {
        let test = try ServerUnderTest { $0.requestDeadline = .milliseconds(400) }
        let milliseconds = try #require(trickle(try test.client(), Self.slow))
        #expect(milliseconds >= 300)
        #expect(test.server.statistics.refusals == [.requestTooSlow: 1])
        try test.wait("closed") { $0.server.statistics.connectionsOpen == 0 }
    }

    @Test func aBodyThatTricklesIsCut() throws {
        let test = try ServerUnderTest { $0.requestDeadline = .milliseconds(400) }
        let client = try test.client()
        client.request("POST /echo HTTP/1.1", "Host: t", "Content-Length: 1000")
        let milliseconds = try #require(trickle(client, String(repeating: "a", count: 500)))
        #expect(milliseconds >= 300)
        #expect(test.server.statistics.refusals == [.requestTooSlow: 1])
        try test.wait("one record") { $0.records.all.count == 1 }
        #expect(test.records.all[0].status == nil)
        #expect(!test.records.all[0].isComplete)
    }

    @Test func theDeadlineBeginsAnewWithEachRequest() throws {
        let test = try ServerUnderTest { $0.requestDeadline = .milliseconds(1_200) }
        let client = try test.client()
        // Longer than the deadline in all, each request well within it.
        for _ in 0..<4 {
            client.send("GET /hello HTTP/1.1\r\nHost: t\r\n")
            usleep(350_000)
            client.send("\r\n")
            #expect(try client.reply().text == "hi")
        }
        // A second request that trickles is cut as well.
        #expect(trickle(client, Self.slow) != nil)
    }

    @Test func aSilentConnectionIsClosed() throws {
        let test = try ServerUnderTest { $0.idleTimeoutSeconds = 1 }
        let client = try test.client()
        client.request("GET /hello HTTP/1.1", "Host: t")
        #expect(try client.reply().text == "hi")
        #expect(client.isClosed())
        #expect(test.server.statistics.refusals == [:])
    }

    @Test func aClientThatDoesNotReadIsCut() throws {
        let size = 20_000_000
        let test = try ServerUnderTest(routes: [
            Route(.get, "/large") { _ in
                let (body, writer) = BodyWriter.makeStream()
                Writing.start(writer, count: size)
                return .answer(HTTPResponse(status: 200, body: body))
            }
        ]) { $0.sendDeadline = .milliseconds(300) }
        let client = try test.client()
        client.request("GET /large HTTP/1.1", "Host: t")
        try test.wait("cut") {
            let statistics = $0.server.statistics
            return statistics.connectionsAccepted == 1 && statistics.connectionsOpen == 0
        }
        #expect(test.server.statistics.refusals == [.answerTooSlow: 1])
        #expect(throws: TestClient.Failure.self) { try client.reply() }
    }
}
