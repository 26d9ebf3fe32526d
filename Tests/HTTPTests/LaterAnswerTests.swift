import Dispatch
import Glibc
import HTTP
import Testing

@Suite struct LaterAnswerTests {
    static let ok = HTTPResponse(status: 200, contentType: "text/plain", body: Array("ok".utf8))

    /// Runs something a little later, in another thread.
    static func soon(_ work: @escaping @Sendable () -> Void) {
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(20), execute: work)
    }

    @Test func anAnswerMayComeFromAnotherThreadAndOnce() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.request("GET /later HTTP/1.1", "Host: t")
        try test.waitForPending(1)
        #expect(test.server.statistics.requestsInFlight == 1)
        let pending = try #require(test.pending.first)
        #expect(pending.complete(Self.ok))
        #expect(!pending.complete(HTTPResponse(status: 500)))
        #expect(try client.reply().text == "ok")
        #expect(!pending.complete(HTTPResponse(status: 500)))
        client.request("GET /hello HTTP/1.1", "Host: t")
        #expect(try client.reply().text == "hi")
        try test.wait("nothing in flight") { $0.server.statistics.requestsInFlight == 0 }
        #expect(test.server.statistics.requestsSuspended == 0)
    }

    @Test func ofManyThatCompleteOneWins() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        for round in 1...20 {
            client.request("GET /later HTTP/1.1", "Host: t")
            try test.wait("round \(round)") { $0.pending.count == round }
            let pending = try #require(test.pending.last)
            let winners = DispatchSemaphore(value: 0)
            DispatchQueue.concurrentPerform(iterations: 8) { number in
                if pending.complete(HTTPResponse(status: 200 + number)) { winners.signal() }
            }
            #expect(winners.wait(timeout: .now()) == .success)
            #expect(winners.wait(timeout: .now()) == .timedOut)
            #expect((200..<208).contains(try client.reply(hasBody: false).status))
            // 204 and 205 have no body to be read, and the others an empty one.
        }
    }

    @Test func anAnswerMayBeThereBeforeTheHandlerReturns() throws {
        let test = try ServerUnderTest(routes: [
            Route(.get, "/early") { _ in
                let pending = PendingResponse()
                pending.complete(Self.ok)
                return .later(pending)
            },
            Route(.get, "/forgotten") { _ in .later(PendingResponse()) },
            Route(.get, "/race") { _ in
                let pending = PendingResponse()
                DispatchQueue.global().async { pending.complete(Self.ok) }
                return .later(pending)
            },
        ])
        let client = try test.client()
        client.request("GET /early HTTP/1.1", "Host: t")
        #expect(try client.reply().text == "ok")
        client.request("GET /forgotten HTTP/1.1", "Host: t")
        let forgotten = try client.reply()
        #expect(forgotten.status == 500)
        #expect(forgotten.text.contains("forgotten"))
        for _ in 0..<300 {
            client.request("GET /race HTTP/1.1", "Host: t")
            #expect(try client.reply().text == "ok")
        }
        #expect(test.server.statistics.requestsSuspended == 0)
    }

    @Test func anAnswerThatIsLetGoIsAnError() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.request("GET /later HTTP/1.1", "Host: t")
        try test.waitForPending(1)
        test.forgetPending()
        #expect(try client.reply().status == 500)
    }

    @Test func anAnswerThatDoesNotComeIsOverdue() throws {
        let test = try ServerUnderTest { $0.answerDeadline = .milliseconds(200) }
        let client = try test.client()
        client.request("GET /later HTTP/1.1", "Host: t")
        let reply = try client.reply()
        #expect(reply.status == 503)
        #expect(reply["Retry-After"] == "1")
        #expect(reply.text.contains("answer_overdue"))
        #expect(test.pending.first?.complete(Self.ok) == false)
        try test.wait("the refusal") { $0.server.statistics.refusals == [.answerOverdue: 1] }
    }

    @Test func aClientThatVanishedDoesNoHarm() throws {
        let test = try ServerUnderTest()
        for _ in 0..<20 {
            let client = try test.client()
            client.post("/later", [UInt8](repeating: 7, count: 50_000))
        }
        try test.waitForPending(20)
        for pending in test.pending { #expect(pending.complete(Self.ok)) }
        try test.wait("all gone") {
            $0.server.statistics.requestsInFlight == 0 && $0.server.statistics.connectionsOpen == 0
        }
        #expect(test.records.all.count == 20)
        #expect(try test.client().request("GET /hello HTTP/1.1", "Host: t"))
    }

    @Test func aHalfClosedClientIsClosedAndItsRequestDone() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        client.request("GET /later HTTP/1.1", "Host: t")
        try test.waitForPending(1)
        client.shutdownWriting()
        #expect(test.pending.first?.complete(Self.ok) == true)
        #expect(client.ends())
        try test.wait("all gone") { $0.server.statistics.connectionsOpen == 0 }
    }

    @Test func pipelinedRequestsWaitForEachOther() throws {
        let test = try ServerUnderTest()
        let client = try test.client()
        let one = "GET /later HTTP/1.1\r\nHost: t\r\n\r\n"
        client.send(one + one + "GET /hello HTTP/1.1\r\nHost: t\r\n\r\n")
        try test.waitForPending(1)
        usleep(50_000)
        #expect(test.pending.count == 1)
        test.pending[0].complete(Self.ok)
        #expect(try client.reply().text == "ok")
        try test.wait("the second") { $0.pending.count == 2 }
        test.pending[1].complete(Self.ok)
        #expect(try client.reply().text == "ok")
        #expect(try client.reply().text == "hi")
    }

    @Test func athousandConnectionsWaitAtOnce() throws {
        let test = try ServerUnderTest { $0.addressConnectionLimit = 2_000 }
        let clients = try (0..<1_000).map { _ in
            let client = try test.client()
            client.request("GET /later HTTP/1.1", "Host: t")
            return client
        }
        try test.waitForPending(1_000)
        #expect(test.server.statistics.connectionsOpen == 1_000)
        // No thread is held: another is served meanwhile.
        let other = try test.client()
        other.request("GET /hello HTTP/1.1", "Host: t")
        #expect(try other.reply().text == "hi")
        let pending = test.pending
        DispatchQueue.concurrentPerform(iterations: 4) { part in
            for index in stride(from: part, to: pending.count, by: 4) {
                pending[index].complete(Self.ok)
            }
        }
        for client in clients { #expect(try client.reply().text == "ok") }
        #expect(test.server.statistics.requestsSuspended == 0)
    }
}
