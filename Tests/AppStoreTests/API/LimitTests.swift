import Ledger
import Testing

@testable import AppStore

@Suite struct LimitTests {
    /// Whatever the pattern of calls, no hour sees more than the share of Apple's number.
    @Test(arguments: [1, 7, 4711])
    func noHourSeesMoreThanItsNumber(_ seed: UInt64) {
        var random = Numbers(state: seed)
        let perHour = 360.0
        var bucket = TokenBucket(perHour: perHour, at: APISample.now)
        var now = APISample.now
        var taken: [Int64] = []
        for _ in 0..<5000 {
            now = now.adding(Milliseconds(rawValue: Int64(random.next() % 12_000)))
            let wait = bucket.take(at: now)
            now = now.adding(wait)
            taken.append(now.milliseconds)
        }
        for (index, start) in taken.enumerated() {
            let count = taken[index...].prefix { $0 < start + 3_600_000 }.count
            #expect(count <= Int(perHour) + 1, "seed \(seed), from call \(index)")
            if count > Int(perHour) + 1 { return }
        }
        // It lets nearly as many through as it may, too.
        let hours = Double(taken[taken.count - 1] - taken[0]) / 3_600_000
        #expect(Double(taken.count) / hours > perHour * 0.8)
    }

    private struct Numbers {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 33
        }
    }

    @Test func waitsDoubleUpToACap() {
        let bounds = (1...10).map { Backoff.bound(afterFailures: $0).rawValue }
        #expect(
            bounds == [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]
        )
    }

    @Test func retryAfterIsReadInEveryFormThatIsSent() {
        let now = APISample.now
        func read(_ text: String?) -> Int64? { RetryAfter.instant(text, now: now)?.milliseconds }
        #expect(read("1790000123456") == 1_790_000_123_456)
        #expect(read("1790000123") == 1_790_000_123_000)
        #expect(read(" 120 ") == now.milliseconds + 120_000)
        #expect(read("Sun, 06 Nov 1994 08:49:37 GMT") == 784_111_777_000)
        #expect(read("soon") == nil && read(nil) == nil && read("-5") == nil && read("") == nil)
    }

    @Test func datesOfHTTPAreReadAndWritten() {
        let text = "Sun, 06 Nov 1994 08:49:37 GMT"
        #expect(HTTPDate.instant(text).map { HTTPDate.text($0) } == text)
        #expect(HTTPDate.instant("06 Nov 1994") == nil)
    }

    @Test func theTableOfErrorsIsComplete() {
        #expect(AppleErrorCode.known.count == 68)
        for code in AppleErrorCode.known {
            #expect([400, 403, 404, 429, 500].contains(code.status), "\(code)")
        }
        let soon = AppleErrorCode.known.filter { $0.retry == .soon }.map(\.rawValue)
        #expect(soon == [4_040_002, 4_040_004, 4_040_006, 5_000_001])
        let later = AppleErrorCode.known.filter { $0.retry == .later }.map(\.rawValue)
        #expect(later == [4_290_000, 5_000_000])
        // A number that nobody knows is kept and judged by its status.
        #expect(AppleErrorCode(4_000_999).retry == .never)
        #expect(AppleErrorCode(5_030_001).retry == .later)
        #expect(AppleErrorCode(4_000_999).name == nil)
        #expect("\(AppleErrorCode(4_000_999))" == "4000999")
    }

    /// A client with half of Sandbox's limits, to which everything is answered.
    private static func frugal(_ clock: ManualClock) throws -> AppStoreClient {
        try APISample.client(
            Script(Array(repeating: .ok("{}"), count: 60)),
            clock,
            environment: .sandbox,
            patience: APIPatience(share: 0.5)
        )
    }

    @Test func headroomFallsAsRequestsAreSent() throws {
        let clock = ManualClock(APISample.now)
        let client = try Self.frugal(clock)
        let endpoint = APIEndpoint.requestTestNotification
        #expect(client.headroom(for: endpoint) == 1)
        for _ in 0..<9 { _ = try client.send(endpoint) }
        #expect(client.headroom(for: endpoint) == 0.5)
        #expect(client.headroom(for: .transactionInfo(id: "1")) == 1)
    }

    /// Whoever has no patience takes nothing: asking again and again does not push the turn away.
    @Test func whatIsNotSentIsNotCounted() throws {
        let clock = ManualClock(APISample.now)
        let client = try Self.frugal(clock)
        let hurried = client.with(waitMax: Milliseconds(rawValue: 0))
        let endpoint = APIEndpoint.requestTestNotification
        var sent = 0
        var turn: Timestamp?
        for _ in 0..<100 {
            do {
                _ = try hurried.send(endpoint)
                sent += 1
            } catch {
                #expect(error.kind == .outOfPatience)
                #expect(turn == nil || error.retryAt == turn, "the same turn as before")
                turn = error.retryAt
            }
        }
        #expect(sent == 18, "a tenth of the hour's share")
        let due = try #require(turn).milliseconds - clock.now.milliseconds
        clock.advance(Milliseconds(rawValue: due))
        _ = try hurried.send(endpoint)
    }

    /// A clock that was an hour ahead and is put right stops nothing for an hour.
    @Test func aClockThatIsSetBackFillsTheBucketOn() {
        var bucket = TokenBucket(perHour: 100, at: APISample.now.adding(.hours(1)))
        for _ in 0..<10 { #expect(bucket.take(at: APISample.now.adding(.hours(1))).rawValue == 0) }
        #expect(bucket.level(at: APISample.now) == 0, "it gives nothing")
        #expect(bucket.level(at: APISample.now.adding(.minutes(2))) > 0)
    }
}
