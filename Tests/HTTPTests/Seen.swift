import HTTP
import Synchronization

/// What handlers and threads of a test have seen.
final class Seen: Sendable {
    private let requests = Mutex<[HTTPRequest]>([])
    private let words = Mutex<[String: Int]>([:])

    var last: HTTPRequest? { requests.withLock { $0.last } }

    var counts: [String: Int] { words.withLock { $0 } }

    func put(_ request: HTTPRequest) { requests.withLock { $0.append(request) } }

    func count(_ word: String) { words.withLock { $0[word, default: 0] += 1 } }
}
