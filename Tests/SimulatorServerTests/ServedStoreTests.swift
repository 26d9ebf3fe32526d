import AppStoreSimulator
import Crypto
import Glibc
import HTTP
import SimulatorServer
import Synchronization
import Testing

/// The fake App Store over HTTPS, asked by the product's own client.
@Suite struct ServedStoreTests {
    static let opening: Int64 = 1_767_225_600_000
    static let day: Int64 = 86_400_000

    /// A server and a client that trusts it.
    final class Site: Sendable {
        let local: LocalAppStore
        let client: HTTPClient

        init(
            speed: Double = 0,
            deliver: (@Sendable ([UInt8]) -> SendAttemptResult)? = nil,
            changing change: (inout FakeAppStore.Options) -> Void = { _ in }
        ) throws {
            local = try LocalAppStore(
                subscriptions: 40,
                seed: 3,
                clock: SimulatedClock(at: ServedStoreTests.opening, speed: speed),
                deliver: deliver,
                changing: change
            )
            var configuration = HTTPClientConfiguration()
            configuration.trustAnchors = .pem(local.authorityPEM)
            client = try HTTPClient(configuration)
        }

        deinit { local.server.stop() }

        func ask(
            _ method: HTTPMethod,
            _ path: String,
            body: WireValue? = nil,
            isAuthorized: Bool = true
        ) throws -> HTTPClientResponse {
            var headers: HTTPHeaders = ["Content-Type": "application/json"]
            if isAuthorized {
                let token = local.credentials.token(
                    key: local.key,
                    bundleID: "com.example.subledger",
                    atSeconds: Int64(time(nil))
                )
                headers["Authorization"] = "Bearer \(token)"
            }
            return try client.send(
                HTTPClientRequest(
                    method,
                    HTTPURL(local.baseURL + path),
                    headers: headers,
                    body: body?.bytes ?? []
                )
            )
        }

        var one: FakeAppStore.Overview {
            get throws {
                let found = local.server.withStore { store in
                    store.overviews.first { $0.extensionError == nil && $0.extensionsUsed == 0 }
                }
                return try #require(found)
            }
        }
    }

    static func json(_ response: HTTPClientResponse) -> WireValue? {
        WireValue(reading: response.body)
    }

    @Test func requestsAreAnsweredOverHTTPS() throws {
        let site = try Site()
        let one = try site.one
        let path = "/inApps/v1/subscriptions/\(one.originalTransactionID)?status=1&status=4"
        let answer = try site.ask(.get, path)
        #expect(answer.status == 200)
        #expect(answer.headers["Content-Type"] == "application/json")
        let items = Self.json(answer)?["data"]?.elements?.first?["lastTransactions"]?.elements
        #expect(items?.first?["originalTransactionId"]?.text == one.originalTransactionID)

        let refused = try site.ask(.get, path, isAuthorized: false)
        #expect(refused.status == 401 && refused.body.isEmpty)
        let unknown = try site.ask(.get, "/inApps/v1/transactions/2000000999999000")
        #expect(unknown.status == 404)
        #expect(Self.json(unknown)?["errorCode"] == 4_040_010)
        #expect(try site.ask(.get, "/inApps/v7/nothing").status == 404)

        let body: WireValue = [
            "extendByDays": 3, "extendReasonCode": 2, "requestIdentifier": "over the wire",
        ]
        let extend = "/inApps/v1/subscriptions/extend/\(one.originalTransactionID)"
        let extended = try site.ask(.put, extend, body: body)
        let end = try #require(one.transaction).expiresDate + 3 * Self.day
        #expect(Self.json(extended)?["effectiveDate"]?.number == end)
        #expect(try site.ask(.post, extend, body: body).status == 405)
    }

    @Test func whoDoesNotTrustTheAuthorityGetsNoSession() throws {
        let site = try Site()
        let other = SimulatorTLS(atSeconds: Int64(time(nil)))
        var configuration = HTTPClientConfiguration()
        configuration.trustAnchors = .pem(other.authorityPEM)
        let client = try HTTPClient(configuration)
        let request = try HTTPClientRequest(.get, HTTPURL(site.local.baseURL + "/"))
        let error = #expect(throws: HTTPClientError.self) { try client.send(request) }
        #expect(error?.code == .tls(.untrusted))
    }

    @Test func everyEndpointHasItsRoute() throws {
        let site = try Site()
        for (method, path) in StoreEndpoint.routes {
            let filled = path.map { $0 == "*" ? "x" : $0 }.joined(separator: "/")
            let answer = try site.ask(
                HTTPMethod(rawValue: method),
                "/" + filled,
                body: method == "GET" ? nil : .object([])
            )
            // The simulator's own answer: the router's would be a problem document.
            #expect([200, 400, 404].contains(answer.status), "\(filled)")
            let isOwn = answer.body.isEmpty || Self.json(answer)?["status"] == nil
            #expect(isOwn || filled.contains("lookup"), "\(filled)")
        }
        let counted = try site.ask(.get, "/simulator/v1/state", isAuthorized: false)
        let requests = try #require(Self.json(counted)?["requests"]?.members)
        #expect(Set(requests.map(\.name)) == Set(StoreEndpoint.allCases.map(\.rawValue)))
    }

    @Test func aLostAnswerBreaksTheConnection() throws {
        let site = try Site()
        let one = try site.one
        site.local.server.withStore { $0.addFault(.init(.loseAnswer, times: 1)) }
        let path = "/inApps/v1/subscriptions/extend/\(one.originalTransactionID)"
        let body: WireValue = [
            "extendByDays": 3, "extendReasonCode": 0, "requestIdentifier": "a",
        ]
        let error = #expect(throws: HTTPClientError.self) {
            try site.ask(.put, path, body: body)
        }
        #expect(error?.code == .cutOff && error?.mayHaveArrived == true)
        let again = try site.ask(.put, path, body: body)
        #expect(again.status == 200)
        let books = Self.json(
            try site.ask(.get, "/simulator/v1/extensions?limit=1000", isAuthorized: false)
        )
        let own = books?["extensions"]?.elements?.filter { $0["source"] == "request" } ?? []
        #expect(own.map { $0["isAnswerLost"]?.flag } == [true, false])
        #expect(own.map { $0["isRepeat"]?.flag } == [false, true])
    }

    @Test func limitsAndLatencyAreOnTheWire() throws {
        let site = try Site(changing: { $0.rateFactor = 1 / 36_000.0 })
        let path = "/inApps/v1/lookup/ZZZ"
        #expect(try site.ask(.get, path).status == 200)
        let limited = try site.ask(.get, path)
        #expect(limited.status == 429)
        let instant = try #require(limited.headers["Retry-After"].flatMap { Int64($0) })
        let now = Int64(time(nil)) * 1000
        #expect(now - 5_000...now + 3_600_000 ~= instant && instant % 3_600_000 == 0)
        site.local.server.withStore { $0.addFault(.init(.latency(300), times: 1)) }
        let slow = try site.ask(.get, "/inApps/v1/transactions/1")
        #expect(slow.status == 404 && slow.elapsed >= .milliseconds(140))
    }

    @Test func theClockIsSetFromOutside() throws {
        let site = try Site()
        func now(_ response: HTTPClientResponse) -> Int64 {
            Self.json(response)?["now"]?.number ?? 0
        }
        let clock = "/simulator/v1/clock"
        let first = now(try site.ask(.get, clock, isAuthorized: false))
        #expect(first - Self.opening < 60_000)
        let ahead = try site.ask(.post, clock, body: ["advanceMilliseconds": .integer(Self.day)])
        #expect(now(ahead) - first == Self.day)
        let to = try site.ask(.post, clock, body: ["to": .integer(first + 2 * Self.day)])
        #expect(now(to) == first + 2 * Self.day)
        #expect(try site.ask(.post, clock, body: ["speed": 500]).status == 200)
        #expect(site.local.server.withStore { $0.now } >= first + 2 * Self.day)
        for bad: WireValue in [
            ["advanceMilliseconds": -1], ["to": .integer(first)], ["speed": -1], ["sped": 1], [:],
        ] {
            #expect(try site.ask(.post, clock, body: bad).status == 400)
        }
        let root = try site.ask(.get, "/simulator/v1/root.pem", isAuthorized: false)
        #expect(String(decoding: root.body, as: UTF8.self) == site.local.rootPEM)
    }

    @Test func manyAskAtOnce() throws {
        let site = try Site()
        let id = try site.one.originalTransactionID
        let failures = Atomic<Int>(0)
        let threads = (0..<4).map { _ in
            Thread {
                for _ in 0..<10 {
                    let answer = try? site.ask(.get, "/inApps/v2/history/\(id)")
                    if answer?.status != 200 { failures.add(1, ordering: .relaxed) }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(failures.load(ordering: .relaxed) == 0)
    }
}
