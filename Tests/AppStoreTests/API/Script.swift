import AppStore
import Crypto
import Ledger
import Synchronization

/// A server whose answers are written down beforehand.
final class Script: Transport {
    /// One answer, or why there is none.
    enum Step: Sendable {
        case answer(Int, String, [(String, String)])
        case failure(TransportFailure.Code)
        case unsent(TransportFailure.Code)

        static func ok(_ body: String) -> Step { .answer(200, body, []) }
        static func apple(_ code: Int) -> Step {
            .answer(code / 10_000, #"{"errorCode":\#(code),"errorMessage":"text"}"#, [])
        }
    }

    private struct State {
        var steps: [Step] = []
        var requests: [TransportRequest] = []
    }

    private let state: Mutex<State>

    init(_ steps: [Step]) { state = Mutex(State(steps: steps)) }

    var requests: [TransportRequest] { state.withLock { $0.requests } }
    var bearers: [String] {
        requests.map { request in
            request.headers.first { $0.name == "Authorization" }?.value ?? ""
        }
    }

    func send(_ request: TransportRequest) throws(TransportFailure) -> TransportResponse {
        let step = state.withLock { state in
            state.requests.append(request)
            return state.steps.isEmpty ? nil : state.steps.removeFirst()
        }
        switch step {
        case .answer(let status, let body, let headers):
            return TransportResponse(
                status: status,
                headers: headers.map { TransportRequest.Header($0.0, $0.1) },
                body: Array(body.utf8)
            )
        case .failure(let code): throw TransportFailure(code: code, message: "scripted")
        case .unsent(let code):
            throw TransportFailure(code: code, message: "scripted", mayHaveArrived: false)
        case nil: throw TransportFailure(code: .unreachable, message: "the script is over")
        }
    }
}

/// A clock that moves only when somebody sleeps.
final class ManualClock: Sendable {
    private struct State {
        var now: Timestamp
        var slept: [Int64] = []
        var isStopped = false
    }

    private let state: Mutex<State>

    init(_ now: Timestamp) { state = Mutex(State(now: now)) }

    var now: Timestamp { state.withLock { $0.now } }
    var slept: [Int64] { state.withLock { $0.slept } }
    func advance(_ duration: Milliseconds) {
        state.withLock { $0.now = $0.now.adding(duration) }
    }
    func stop() { state.withLock { $0.isStopped = true } }

    /// Surroundings that draw the highest number of every range, so that waits are known.
    var surroundings: APISurroundings {
        APISurroundings(
            now: { self.now },
            sleep: { duration in
                self.state.withLock { state in
                    state.slept.append(duration.rawValue)
                    state.now = state.now.adding(duration)
                    return !state.isStopped
                }
            },
            random: { $0.upperBound }
        )
    }
}

/// What tests of the client share.
enum APISample {
    static let now = Timestamp(milliseconds: 1_790_000_000_000)
    static let signingKey = SigningKey(seed: [1, 2, 3])

    static func key() throws -> APIKey {
        try APIKey(
            keyID: "2X9R4HXF34",
            issuerID: "57246542-96fe-1a63-e053-0824d011072a",
            signingKey: signingKey
        )
    }

    static func client(
        _ script: Script,
        _ clock: ManualClock,
        environment: Ledger.Environment = .production,
        patience: APIPatience = APIPatience()
    ) throws -> AppStoreClient {
        AppStoreClient(
            access: APIAccess(
                host: APIHost(environment),
                bundleID: "com.example.app",
                key: try key()
            ),
            transport: script,
            surroundings: clock.surroundings,
            patience: patience
        )
    }
}
