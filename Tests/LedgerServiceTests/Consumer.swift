import Glibc
import HTTP
import Synchronization

/// A service that takes notifications as Apple posts them, and does what a test wants.
final class Consumer: Sendable {
    /// A body as it came.
    struct Delivery: Hashable, Sendable {
        var body: [UInt8]
        var contentType: String?
    }

    private struct State {
        var taken: [Delivery] = []
        var tried = 0
        var answer: @Sendable ([UInt8]) -> Int = { _ in 200 }
    }

    private final class Shelf: Sendable {
        let state = Mutex(State())
    }

    private let shelf = Shelf()
    private let server: Mutex<HTTPServer?> = Mutex(nil)
    let port: UInt16

    /// Starts it; `answer` gives the status for each body.
    init(port: UInt16 = 0, _ answer: @escaping @Sendable ([UInt8]) -> Int = { _ in 200 }) throws {
        let shelf = shelf
        shelf.state.withLock { $0.answer = answer }
        var configuration = HTTPServerConfiguration(port: port)
        configuration.threadCount = 2
        let started = try HTTPServer(
            configuration: configuration,
            router: Router([
                Route(.post, "/app-store", bodyLimitBytes: 1 << 20) { request in
                    let answer = shelf.state.withLock { state in
                        state.tried += 1
                        return state.answer
                    }
                    let status = answer(request.body)
                    if status == 200 {
                        let type = request.headers["Content-Type"]
                        shelf.state.withLock {
                            $0.taken.append(Delivery(body: request.body, contentType: type))
                        }
                    }
                    return .answer(HTTPResponse(status: status))
                }
            ])
        )
        self.port = started.port
        server.withLock { $0 = started }
    }

    deinit { stop() }

    /// Where it takes them.
    var url: String { "http://127.0.0.1:\(port)/app-store" }

    /// What was taken, in the order it came.
    var taken: [Delivery] { shelf.state.withLock { $0.taken } }

    /// How many different bodies were taken.
    ///
    /// A forwarder that did not hear an answer in time delivers again: `taken` may be longer.
    var distinct: Int { Set(taken.map(\.body)).count }

    /// How often somebody tried.
    var tried: Int { shelf.state.withLock { $0.tried } }

    /// Changes what it answers.
    func answer(_ answer: @escaping @Sendable ([UInt8]) -> Int) {
        shelf.state.withLock { $0.answer = answer }
    }

    /// Takes no connection any more.
    func stop() { server.withLock { $0.take() }?.stop(within: .seconds(5)) }

    /// Waits for something; a minute and a half at most.
    func wait(_ until: (Consumer) -> Bool) -> Bool {
        for _ in 0..<9_000 {
            if until(self) { return true }
            usleep(10_000)
        }
        return false
    }
}

/// Holds a thread up.
func sleepSeconds(_ seconds: UInt32) { sleep(seconds) }
