import Dispatch
import Glibc
import HTTP
import Synchronization
import Testing

/// Writes a stream in a thread of its own, and remembers how far it came.
final class Writing: Sendable {
    private let state = Mutex<(written: Int, error: HTTPError?, isDone: Bool)>((0, nil, false))

    var written: Int { state.withLock { $0.written } }
    var error: HTTPError? { state.withLock { $0.error } }
    var isDone: Bool { state.withLock { $0.isDone } }

    @discardableResult
    static func start(
        _ writer: BodyWriter,
        count: Int,
        piece: Int = 10_000,
        ending: @escaping @Sendable (BodyWriter) -> Void = { $0.finish() }
    ) -> Writing {
        let writing = Writing()
        DispatchQueue(label: "writing").async { writing.run(writer, count, piece, ending) }
        return writing
    }

    private func run(
        _ writer: BodyWriter,
        _ count: Int,
        _ piece: Int,
        _ ending: (BodyWriter) -> Void
    ) {
        do throws(HTTPError) {
            while written < count {
                let bytes = [UInt8](repeating: 5, count: min(piece, count - written))
                try writer.write(bytes)
                state.withLock { $0.written += bytes.count }
            }
            ending(writer)
        } catch {
            state.withLock { $0.error = error }
        }
        state.withLock { $0.isDone = true }
    }
}

@Suite struct StreamTests {
    /// A route that streams, and the writings it has begun.
    final class Streams: Sendable {
        let all = Mutex<[Writing]>([])

        func route(
            _ path: String,
            count: Int,
            ending: @escaping @Sendable (BodyWriter) -> Void = { $0.finish() }
        ) -> Route {
            Route(.get, path) { _ in
                let (body, writer) = BodyWriter.makeStream(bufferLimitBytes: 64 * 1024)
                let writing = Writing.start(writer, count: count, ending: ending)
                self.all.withLock { $0.append(writing) }
                return .answer(HTTPResponse(status: 200, contentType: "text/csv", body: body))
            }
        }

        var last: Writing? { all.withLock { $0.last } }
    }

    @Test func aStreamOfAnyLengthArrivesWhole() throws {
        let streams = Streams()
        let test = try ServerUnderTest(routes: [
            streams.route("/large", count: 3_000_000), streams.route("/none", count: 0),
        ])
        let client = try test.client()
        client.request("GET /large HTTP/1.1", "Host: t")
        let reply = try client.reply()
        #expect(reply["Transfer-Encoding"] == "chunked")
        #expect(reply.body.count == 3_000_000)
        #expect(reply.body.allSatisfy { $0 == 5 })
        client.request("GET /none HTTP/1.1", "Host: t")
        #expect(try client.reply().body == [])
        client.request("GET /hello HTTP/1.1", "Host: t")
        #expect(try client.reply().text == "hi")
        try test.wait("three records") { $0.records.all.count == 3 }
        #expect(test.records.all.map(\.bytesSent) == [3_000_000, 0, 2])
    }

    @Test func theWriterWaitsForTheClient() throws {
        let streams = Streams()
        let test = try ServerUnderTest(routes: [streams.route("/large", count: 50_000_000)])
        let client = try test.client()
        client.request("GET /large HTTP/1.1", "Host: t")
        try test.wait("a standstill") { _ in
            let before = streams.last?.written ?? 0
            usleep(100_000)
            return before > 0 && streams.last?.written == before
        }
        // The sockets' buffers, which are the kernel's, and ours.
        #expect(try #require(streams.last).written < 20_000_000)
        #expect(try client.reply().body.count == 50_000_000)
    }

    @Test func aWriterThatGivesUpCutsTheConnection() throws {
        let streams = Streams()
        let test = try ServerUnderTest(routes: [
            streams.route("/abort", count: 100_000) { $0.abort() },
            streams.route("/drop", count: 100_000) { _ in },
        ])
        for path in ["/abort", "/drop"] {
            let client = try test.client()
            client.request("GET \(path) HTTP/1.1", "Host: t")
            // The last chunk, which would make it whole, never comes.
            #expect(throws: TestClient.Failure.self) { try client.reply() }
            #expect(client.hasEnded)
        }
        try test.wait("two records") { $0.records.all.count == 2 }
        #expect(test.records.all.allSatisfy { !$0.isComplete })
    }

    @Test func aWriterIsToldThatTheClientHasGone() throws {
        let streams = Streams()
        let test = try ServerUnderTest(routes: [
            streams.route("/large", count: 500_000_000),
            Route(.get, "/invalid") { _ in
                let (body, writer) = BodyWriter.makeStream(bufferLimitBytes: 1_000)
                let writing = Writing.start(writer, count: 100_000)
                streams.all.withLock { $0.append(writing) }
                return .answer(HTTPResponse(status: 7, body: body))
            },
        ])
        for line in ["GET /large HTTP/1.1", "HEAD /large HTTP/1.1", "GET /invalid HTTP/1.1"] {
            do {
                let client = try test.client()
                client.request(line, "Host: t")
                _ = try? client.reply(hasBody: false)
            }
            try test.wait("the writer's end") { _ in streams.last?.isDone == true }
            #expect(streams.last?.error?.code == .readerGone)
        }
        #expect(streams.all.withLock(\.count) == 3)
    }

    @Test func aSlowWriterDoesNotHoldAThread() throws {
        let kept = Kept()
        let test = try ServerUnderTest(routes: [
            Route(.get, "/slow") { _ in
                let (body, writer) = BodyWriter.makeStream()
                kept.writers.withLock { $0.append(writer) }
                return .answer(HTTPResponse(status: 200, body: body))
            }
        ]) { $0.sendDeadline = .milliseconds(500) }
        let clients = try (0..<10).map { _ in
            let client = try test.client()
            client.request("GET /slow HTTP/1.1", "Host: t")
            return client
        }
        try test.wait("ten writers") { _ in kept.writers.withLock(\.count) == 10 }
        let other = try test.client()
        other.request("GET /hello HTTP/1.1", "Host: t")
        #expect(try other.reply().text == "hi")
        // Longer than a client may take: that the writer is slow is not the client's fault.
        usleep(800_000)
        for writer in kept.writers.withLock({ $0 }) {
            try writer.write([1])
            try writer.write([2, 3])
            writer.finish()
        }
        for client in clients { #expect(try client.reply().body == [1, 2, 3]) }
    }

    final class Kept: Sendable {
        let writers = Mutex<[BodyWriter]>([])
    }
}
