import Dispatch
import Glibc
import HTTP
import Synchronization
import Testing

@Suite struct StopTests {
    /// Stops in another thread, since stopping waits.
    final class Stopping: Sendable {
        private let outcome = Mutex<HTTPServer.StopOutcome?>(nil)

        init(_ test: ServerUnderTest, within duration: Duration) {
            DispatchQueue(label: "stop").async {
                let outcome = test.server.stop(within: duration)
                self.outcome.withLock { $0 = outcome }
            }
        }

        var result: HTTPServer.StopOutcome? { outcome.withLock { $0 } }
    }

    @Test func whatWaitsIsAnsweredBeforeTheServerStops() throws {
        let test = try ServerUnderTest()
        let idle = try test.client()
        idle.request("GET /hello HTTP/1.1", "Host: t")
        _ = try idle.reply()
        let clients = try (0..<64).map { _ in
            let client = try test.client()
            client.request("GET /later HTTP/1.1", "Host: t")
            return client
        }
        try test.waitForPending(64)
        let stopping = Stopping(test, within: .seconds(30))
        try test.wait("nobody can connect") { _ in (try? test.client()) == nil }
        #expect(stopping.result == nil)
        // What is asked on an open connection meanwhile is answered, and the connection closed.
        idle.request("GET /hello HTTP/1.1", "Host: t")
        let reply = try idle.reply()
        #expect(reply.text == "hi")
        #expect(reply["Connection"] == "close")
        for pending in test.pending { pending.complete(LaterAnswerTests.ok) }
        for client in clients {
            #expect(try client.reply().text == "ok")
            #expect(client.isClosed())
        }
        try test.wait("the stop") { _ in stopping.result != nil }
        #expect(stopping.result == .drained)
        #expect(test.server.stop(within: .zero) == .drained)
        #expect(test.server.statistics.requestsByClass == [2: 66])
        #expect(test.server.statistics.connectionsOpen == 0)
    }

    @Test func whoOnlyWaitsForNewsIsSentAway() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.request("GET /news HTTP/1.1", "Host: t")
        try test.waitForPending(1)
        #expect(test.server.stop(within: .seconds(30)) == .drained)
        #expect(try client.reply().status == 204)
        #expect(test.pending[0].complete(LaterAnswerTests.ok) == false)
    }

    @Test func whatHasNoAnswerInTimeIsRefusedAndLaterAnswersDoNoHarm() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.request("GET /later HTTP/1.1", "Host: t")
        try test.waitForPending(1)
        #expect(test.server.stop(within: .milliseconds(50)) == .cut)
        let reply = try client.reply()
        #expect(reply.status == 503)
        #expect(reply.text.contains("stopping"))
        #expect(!test.pending[0].complete(LaterAnswerTests.ok))
        test.forgetPending()
    }

    @Test func aServerThatIsLetGoStopsWithRequestsSuspended() throws {
        var test: ServerUnderTest? = try ServerUnderTest()
        let client = try #require(try test?.client())
        client.request("GET /later HTTP/1.1", "Host: t")
        try test?.waitForPending(1)
        let pending = try #require(test?.pending.first)
        test = nil
        #expect(client.ends())
        pending.complete(LaterAnswerTests.ok)
    }

    @Test func streamsAndHalfRequestsEndWithTheServer() throws {
        let streams = StreamTests.Streams()
        let test = try ServerUnderTest(routes: [streams.route("/large", count: 500_000_000)])
        let reader = try test.client()
        reader.request("GET /large HTTP/1.1", "Host: t")
        let half = try test.client()
        half.request("POST /echo HTTP/1.1", "Host: t", "Content-Length: 10", body: [1])
        let silent = try test.client()
        try test.wait("two in flight") { $0.server.statistics.requestsInFlight == 2 }
        #expect(test.server.stop(within: .zero) == .cut)
        #expect(half.ends())
        #expect(silent.isClosed())
        try test.wait("the writer's end") { _ in streams.last?.isDone == true }
        #expect(streams.last?.error?.code == .readerGone)
    }

    @Test func serversStopUnderLoadAgainAndAgain() throws {
        for round in 0..<10 {
            let test = try ServerUnderTest(routes: [
                Route(.get, "/race") { _ in
                    let pending = PendingResponse()
                    DispatchQueue.global().async { pending.complete(LaterAnswerTests.ok) }
                    return .later(pending)
                }
            ])
            let clients = try (0..<20).map { _ in try test.client() }
            for client in clients {
                for _ in 0..<20 { client.request("GET /race HTTP/1.1", "Host: t") }
            }
            let outcome = test.server.stop(
                within: .milliseconds(round.isMultiple(of: 2) ? 20_000 : 0)
            )
            #expect(test.server.statistics.requestsInFlight == 0)
            #expect(test.server.statistics.requestsSuspended == 0)
            if round.isMultiple(of: 2) { #expect(outcome == .drained) }
        }
    }
}
