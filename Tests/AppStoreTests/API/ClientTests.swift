import Crypto
import Ledger
import Testing

@testable import AppStore

@Suite struct ClientTests {
    private let clock = ManualClock(APISample.now)
    private static let info = APIEndpoint.transactionInfo(id: "1")
    private static let answer = #"{"signedTransactionInfo":"a.b.c"}"#

    private func issuedAt(_ bearer: String) throws -> Int64 {
        let parts = bearer.split(separator: ".").map(String.init)
        let claims = try JSONDocument(try #require(Base64URL.decode(parts[1])))
        return try #require(try claims["iat"]?.int64())
    }

    /// D01: a clock 34 s ahead.
    ///
    /// One 401 is tried again, by Apple's clock; a second names the clock.
    @Test func d01AClockThatIsAheadIsNamedAndGotOver() throws {
        let date = HTTPDate.text(APISample.now.adding(Milliseconds(rawValue: -34_000)))
        let refused = Script.Step.answer(401, "Unauthenticated", [("date", date)])
        let script = Script([refused, .ok(Self.answer)])
        _ = try APISample.client(script, clock).send(Self.info)
        #expect(script.requests.count == 2)
        #expect(script.bearers[0] != script.bearers[1])
        let behind = try issuedAt(script.bearers[0]) - issuedAt(script.bearers[1])
        #expect((33...34).contains(behind))

        let never = Script([.answer(401, "", []), refused, refused])
        let still = ManualClock(APISample.now.adding(Milliseconds(rawValue: -1000)))
        let error = #expect(throws: AppStoreAPIError.self) {
            _ = try APISample.client(never, still).send(Self.info)
        }
        #expect(never.requests.count == 2)
        let text = error.map { "\($0)" } ?? ""
        for word in [
            "34 s ahead", "2X9R4HXF34", "57246542-96fe-1a63-e053-0824d011072a",
            "com.example.app", "In-App Purchase key",
        ] {
            #expect(text.contains(word), "\(text)")
        }
        #expect(!text.contains("Bearer") && !text.contains("eyJ"))
    }

    /// D02: a long run gets new tokens on the way, and a refused one is replaced once.
    @Test func d02ATokenIsRenewedWithinALongRun() throws {
        let script = Script(
            (1...6).map { page in
                .ok(#"{"signedTransactions":[],"revision":"\#(page)","hasMore":\#(page < 6)}"#)
            }
        )
        let client = try APISample.client(script, clock)
        var pages = 0
        let last = try client.transactionHistory(of: "1") { _ in
            pages += 1
            clock.advance(.minutes(5))
        }
        #expect(last == "6" && pages == 6)
        #expect(Set(script.bearers).count == 2)
        for (index, bearer) in script.bearers.enumerated() {
            let now = APISample.now.milliseconds / 1000 + Int64(index) * 300
            let age = try now - issuedAt(bearer)
            #expect(age <= 15 * 60, "page \(index + 1)")
        }
        // A page in the middle is asked for again, not the run begun again.
        let middle = Script([
            .ok(#"{"signedTransactions":[],"revision":"1","hasMore":true}"#),
            .answer(401, "", []),
            .ok(#"{"signedTransactions":[],"revision":"2","hasMore":false}"#),
        ])
        _ = try APISample.client(middle, clock).transactionHistory(of: "1") { _ in }
        #expect(middle.requests.map(\.url).suffix(2).allSatisfy { $0.contains("revision=1") })
    }

    /// D04: a 404 names the other environment, and nothing but the caller goes there.
    @Test func d04AMissingTransactionNamesTheOtherEnvironment() throws {
        for (environment, other) in [
            (Ledger.Environment.production, "Sandbox"), (.sandbox, "Production"),
        ] {
            let script = Script([.apple(4_040_010)])
            let error = #expect(throws: AppStoreAPIError.self) {
                _ = try APISample.client(script, clock, environment: environment).send(Self.info)
            }
            #expect(error?.code == .transactionIDNotFound)
            #expect(error?.message.contains(other) == true)
            #expect(error?.message.contains("com.example.app") == true)
            #expect(script.requests.count == 1)
        }
    }

    /// D05: what Apple says of an extension keeps its number, and is not tried again.
    @Test(arguments: [4_030_004, 4_030_005, 4_030_007, 4_030_028])
    func d05AnExtensionThatIsRefusedKeepsItsNumber(_ number: Int) throws {
        let script = Script([.apple(number)])
        let endpoint = APIEndpoint.extendRenewalDate(
            originalTransactionID: "1",
            RenewalExtension(days: 1, reason: .other, requestIdentifier: "r")
        )
        let error = #expect(throws: AppStoreAPIError.self) {
            _ = try APISample.client(script, clock).send(endpoint)
        }
        #expect(error?.code?.rawValue == Int64(number) && error?.status == 403)
        #expect(error?.isRetryable == false && script.requests.count == 1)
        #expect(error?.message.contains(error?.code?.name ?? "?") == true)
    }

    /// D06: a fault is tried again whatever its body is, with longer and longer waits, up to a cap.
    @Test func d06AFaultIsTriedAgainWhateverItsBodyIs() throws {
        let faults: [Script.Step] = [
            .answer(503, "<html>down</html>", []), .answer(500, "", []), .apple(5_000_001),
            .answer(200, "<!DOCTYPE html>", []), .failure(.cutOff),
        ]
        let script = Script(faults + [.ok(Self.answer)])
        let response = try APISample.client(script, clock).send(Self.info)
        #expect(response.answer?.items.count == 1)
        #expect(clock.slept == [500, 1000, 2000, 4000, 8000])

        let paged = Script(
            [.ok(#"{"signedTransactions":[],"revision":"1","hasMore":true}"#)]
                + Array(repeating: .answer(503, "<html>", []), count: 9)
        )
        let error = #expect(throws: AppStoreAPIError.self) {
            _ = try APISample.client(paged, clock).transactionHistory(of: "1") { _ in }
        }
        #expect(error?.status == 503 && error?.page == 2 && error?.attempts == 6)
        let text = error.map { "\($0)" } ?? ""
        #expect(text.contains("503") && text.contains("page 2") && text.contains("HTML"))
    }

    /// D07: every page is read; a token that expired begins the window again.
    @Test func d07AllPagesAreReadAlsoWhenATokenExpires() throws {
        func page(_ count: Int, _ token: String?) -> Script.Step {
            let items = Array(repeating: #"{"signedPayload":"a.b.c"}"#, count: count)
            let more = token.map { #""hasMore":true,"paginationToken":"\#($0)""# }
            return .ok(
                #"{"notificationHistory":[\#(items.joined(separator: ","))],"#
                    + "\(more ?? #""hasMore":false"#)}"
            )
        }
        let query = NotificationHistoryQuery(
            from: APISample.now.adding(.days(-1)),
            to: APISample.now
        )
        let plain = Script([page(20, "1"), page(20, "2"), page(5, nil)])
        var counts: [Int] = []
        try APISample.client(plain, clock).notificationHistory(query) {
            counts.append($0.answer?.items.count ?? 0)
        }
        #expect(counts == [20, 20, 5])
        #expect(Set(plain.requests.map(\.body)).count == 1)

        let expiring = Script([
            page(20, "1"), .apple(4_000_017), page(20, "3"), page(20, "4"), page(5, nil),
        ])
        counts = []
        try APISample.client(expiring, clock).notificationHistory(query) {
            counts.append($0.answer?.items.count ?? 0)
        }
        #expect(counts == [20, 20, 20, 5])
        #expect(expiring.requests[2].url.hasSuffix("/inApps/v1/notifications/history"))

        let circle = Script([page(20, "1"), page(20, "1")])
        let error = #expect(throws: AppStoreAPIError.self) {
            try APISample.client(circle, clock).notificationHistory(query) { _ in }
        }
        #expect(error?.kind == .unreadableAnswer)
    }

    @Test func aStoredRevisionThatAppleForgotIsForgottenHere() throws {
        let script = Script([
            .apple(4_000_005), .ok(#"{"signedTransactions":[],"revision":"9","hasMore":false}"#),
        ])
        let revision = try APISample.client(script, clock).transactionHistory(
            of: "1",
            after: "old"
        ) { _ in }
        #expect(revision == "9" && !script.requests[1].url.contains("revision"))
    }

    @Test func aFullHourWaitsUntilTheInstantThatAppleNames() throws {
        let until = APISample.now.adding(Milliseconds(rawValue: 40_000))
        let script = Script([
            .answer(
                429,
                #"{"errorCode":4290000}"#,
                [("Retry-After", "\(until.milliseconds)")]
            ),
            .ok(Self.answer),
        ])
        _ = try APISample.client(script, clock).send(Self.info)
        #expect(clock.now >= until && clock.now < until.adding(.minutes(1)))
        // Longer than there is patience: it says until when, and does not wait.
        let late = APISample.now.adding(.hours(1))
        let far = Script([.answer(429, "", [("retry-after", "\(late.milliseconds)")])])
        let before = clock.now
        let error = #expect(throws: AppStoreAPIError.self) {
            _ = try APISample.client(far, clock).send(Self.info)
        }
        #expect(error?.retryAt == late && clock.now == before)
    }

    @Test func aTestNotificationThatMayHaveBeenSentIsNotSentAgain() throws {
        let script = Script([.failure(.timeout), .ok("{}")])
        let error = #expect(throws: AppStoreAPIError.self) {
            _ = try APISample.client(script, clock).send(.requestTestNotification)
        }
        #expect(error?.kind == .transport(.timeout) && script.requests.count == 1)
        #expect(error?.mayHaveHadEffect == true && !script.requests[0].isRepeatable)
        // What never left this machine is sent again, and did nothing.
        let closed = Script([.unsent(.unreachable), .unsent(.unreachable), .ok("{}")])
        _ = try APISample.client(closed, clock).send(.requestTestNotification)
        let refused = Script([.apple(4_040_007)])
        let none = #expect(throws: AppStoreAPIError.self) {
            _ = try APISample.client(refused, clock).send(.requestTestNotification)
        }
        #expect(none?.mayHaveHadEffect == false)
    }

    private static let extensions: [APIEndpoint] = [
        .extendRenewalDate(
            originalTransactionID: "1",
            RenewalExtension(days: 1, reason: .other, requestIdentifier: "r")
        ),
        .extendRenewalDates(
            MassRenewalExtension(
                days: 1,
                reason: .other,
                requestIdentifier: UniqueID(bits: 1),
                productID: "gold"
            )
        ),
    ]

    /// Apple says nowhere that an extension that comes twice is done once.
    @Test(arguments: extensions)
    func anExtensionThatMayHaveBeenDoneIsNotSentAgain(_ endpoint: APIEndpoint) throws {
        for step in [Script.Step.failure(.timeout), .apple(5_000_001), .ok("<html>")] {
            let script = Script([step, .ok("{}")])
            let error = #expect(throws: AppStoreAPIError.self) {
                _ = try APISample.client(script, clock).send(endpoint)
            }
            #expect(error?.mayHaveHadEffect == true && script.requests.count == 1, "\(step)")
            #expect(script.requests.allSatisfy { !$0.isRepeatable })
        }
        // A refused token did nothing, and neither did a full hour.
        let refused = Script([.answer(401, "", []), .apple(4_290_000), .ok("{}")])
        _ = try APISample.client(refused, clock).send(endpoint)
        #expect(refused.requests.count == 3)
    }

    /// What a try that may have arrived did stays so, whatever the second one meets.
    @Test func whatMayHaveHadAnEffectIsSaidThoughTheLastTryHadNone() throws {
        let script = Script([.failure(.timeout), .unsent(.nameUnknown)])
        let endpoint = APIEndpoint.setAppAccountToken(
            originalTransactionID: "1",
            UniqueID(bits: 1)
        )
        let error = #expect(throws: AppStoreAPIError.self) {
            let patience = APIPatience(attemptsMax: 2)
            _ = try APISample.client(script, clock, patience: patience).send(endpoint)
        }
        #expect(error?.kind == .transport(.nameUnknown) && error?.mayHaveHadEffect == true)
    }

    @Test func aStopCutsAWaitShort() throws {
        clock.stop()
        let script = Script([.answer(503, "", []), .ok(Self.answer)])
        let error = #expect(throws: AppStoreAPIError.self) {
            _ = try APISample.client(script, clock).send(Self.info)
        }
        #expect(error?.kind == .stopped && script.requests.count == 1)
    }

    @Test func noDescriptionHoldsASecret() throws {
        let script = Script([.ok(Self.answer)])
        let client = try APISample.client(script, clock)
        _ = try client.send(Self.info)
        let request = script.requests[0]
        let bearer = script.bearers[0]
        #expect(bearer.hasPrefix("Bearer eyJ"))
        #expect("\(request)" == "GET https://api.storekit.apple.com/inApps/v1/transactions/1")
        #expect(!"\(client.access)".contains("PRIVATE"))
    }
}
