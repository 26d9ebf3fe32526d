import Glibc
import HTTP
import Synchronization

/// A server with a few routes, and what it did.
final class ServerUnderTest: Sendable {
    let server: HTTPServer
    /// The pending answers of `/later`, in their order.
    private let waiting = Mutex<[PendingResponse]>([])
    let records: AccessRecords

    /// What the server told of finished requests.
    final class AccessRecords: Sendable {
        private let list = Mutex<[AccessRecord]>([])

        var all: [AccessRecord] { list.withLock { $0 } }

        func add(_ record: AccessRecord) { list.withLock { $0.append(record) } }
    }

    /// Where handlers put the answers that are to come; the routes are made before the server.
    private final class Shelf: Sendable {
        let put = Mutex<(@Sendable (PendingResponse) -> Void)?>(nil)
    }

    init(
        routes more: [Route] = [],
        _ adjust: (inout HTTPServerConfiguration) -> Void = { _ in }
    ) throws {
        let shelf = Shelf()
        let records = AccessRecords()
        var configuration = HTTPServerConfiguration()
        configuration.threadCount = 2
        adjust(&configuration)
        let routes = [
            Route(.get, "/hello") { _ in
                .answer(
                    HTTPResponse(status: 200, contentType: "text/plain", body: Array("hi".utf8))
                )
            },
            Route(.post, "/echo", bodyLimitBytes: 100_000) { request in
                .answer(HTTPResponse(status: 200, body: request.body))
            },
            Route(
                .post,
                "/json",
                bodyLimitBytes: 1_000,
                contentTypes: ["application/json"]
            ) { request in
                .answer(HTTPResponse(status: 200, body: request.body))
            },
            Route(.get, "/things/{id}") { request in
                let words = [request.parameter("id")] + request.queryValues("q")
                return .answer(HTTPResponse(status: 200, body: Array("\(words)".utf8)))
            },
            Route(.get, "/later") { _ in
                let pending = PendingResponse()
                shelf.put.withLock { $0 }?(pending)
                return .later(pending)
            },
            Route(.post, "/later", bodyLimitBytes: 100_000) { _ in
                let pending = PendingResponse()
                shelf.put.withLock { $0 }?(pending)
                return .later(pending)
            },
            Route(.get, "/news") { _ in
                let pending = PendingResponse(whenStopping: HTTPResponse(status: 204))
                shelf.put.withLock { $0 }?(pending)
                return .later(pending)
            },
        ]
        self.records = records
        server = try HTTPServer(
            configuration: configuration,
            router: Router(routes + more),
            onAccess: { records.add($0) }
        )
        shelf.put.withLock { put in
            put = { [weak self] pending in self?.waiting.withLock { $0.append(pending) } }
        }
    }

    deinit { server.stop(within: .zero) }

    var pending: [PendingResponse] { waiting.withLock { $0 } }

    /// Lets the pending answers go.
    func forgetPending() {
        // Outside of the lock, since the last reference answers.
        let forgotten = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        _ = forgotten
    }

    func client() throws -> TestClient { try TestClient(port: server.port) }

    /// Waits until something holds, twenty seconds at most.
    func wait(_ what: String, until holds: (ServerUnderTest) -> Bool) throws {
        for _ in 0..<10_000 {
            if holds(self) { return }
            usleep(2_000)
        }
        throw TestClient.Failure(message: "in vain awaited: \(what)")
    }

    /// Waits until so many answers are awaited.
    func waitForPending(_ count: Int) throws {
        try wait("\(count) pending, \(server.statistics)") {
            $0.server.statistics.requestsSuspended == count
                && $0.pending.count >= count
        }
    }
}
