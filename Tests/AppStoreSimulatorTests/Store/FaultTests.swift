import AppStoreSimulator
import Testing

/// Rate limits, and errors on demand.
@Suite struct StoreFaultTests {
    static let path = "inApps/v1/subscriptions/2000000999999000"

    @Test func anHourAllowsSoManyRequests() throws {
        var desk = Desk(subscriptions: 4) { $0.rateFactor = 3 / 180_000.0 }
        for _ in 0..<3 { #expect(desk.get(Self.path).status == 404) }
        let answer = desk.get(Self.path)
        #expect(answer.status == 429)
        #expect(answer.body?["errorCode"] == 4_290_000)
        let next = (desk.wall / Desk.hour + 1) * Desk.hour
        #expect(answer.retryAfter == next, "an instant in milliseconds, not a time to wait")
        // Every endpoint has its own bucket.
        #expect(desk.get("inApps/v1/transactions/2000000999999000").status == 404)
        desk.wall = next - 1
        #expect(desk.get(Self.path).status == 429)
        desk.wall = next
        #expect(desk.get(Self.path).status == 404)
    }

    @Test func theSandboxAllowsATenth() {
        var desk = Desk(environment: .sandbox, subscriptions: 4) { $0.rateFactor = 20 / 3_600.0 }
        for _ in 0..<2 { #expect(desk.ask("POST", "inApps/v1/notifications/test").status == 200) }
        #expect(desk.ask("POST", "inApps/v1/notifications/test").status == 429)
    }

    @Test func anErrorOnDemandComesBeforeAnythingIsDone() throws {
        var desk = Desk.production
        let one = try desk.extendable()
        for code: Int64 in [5_000_001, 5_000_000, 4_040_006, 4_040_002, 4_040_004] {
            desk.store.addFault(.init(.error(code), endpoint: .extend, times: 1))
            let path = StoreExtensionTests.path(one.originalTransactionID)
            #expect(desk.error("PUT", path, body: StoreExtensionTests.body()) == code)
            #expect(try desk.overview(one.originalTransactionID) == one)
            #expect(desk.get("inApps/v1/subscriptions/\(one.originalTransactionID)").status == 200)
        }
        let path = StoreExtensionTests.path(one.originalTransactionID)
        #expect(desk.ask("PUT", path, body: StoreExtensionTests.body()).status == 200)
    }

    @Test func anAnswerCanBeLostAfterTheDeed() throws {
        var desk = Desk.production
        let one = try desk.extendable()
        let path = StoreExtensionTests.path(one.originalTransactionID)
        desk.store.addFault(.init(.loseAnswer, endpoint: .extend, times: 1))
        let lost = desk.ask("PUT", path, body: StoreExtensionTests.body())
        #expect(lost.isLost)
        let end = try #require(one.transaction).expiresDate + 7 * Desk.day
        #expect(try desk.overview(one.originalTransactionID).transaction?.expiresDate == end)
        desk.store.addFault(.init(.errorAfterwards(5_000_000), endpoint: .extend, times: 1))
        #expect(desk.error("PUT", path, body: StoreExtensionTests.body()) == 5_000_000)
        let last = desk.ask("PUT", path, body: StoreExtensionTests.body())
        #expect(!last.isLost && last.body?["effectiveDate"]?.number == end)
        let entries = desk.store.extensions.filter { $0.source == .request }
        #expect(entries.map(\.isAnswerLost) == [true, true, false])
        #expect(entries.map(\.isRepeat) == [false, true, true])
    }

    @Test func otherFaultsOnDemand() throws {
        var desk = Desk.production
        desk.store.addFault(.init(.error(4_290_000), endpoint: .statuses, times: 1))
        let limited = desk.get(Self.path)
        #expect(limited.status == 429 && limited.retryAfter == desk.wall + 2_000)
        desk.store.addFault(.init(.unauthorized, times: 1))
        let refused = desk.get(Self.path)
        #expect(refused.status == 401 && refused.body == nil)
        desk.store.addFault(.init(.latency(400), times: 1))
        #expect(200...400 ~= desk.get(Self.path).delayMilliseconds)
        #expect(desk.get(Self.path).delayMilliseconds == 0)
        var rule = FaultPlan.RequestFault(.error(4_000_017), endpoint: .notifications)
        rule.onlyLaterPages = true
        desk.store.addFault(rule)
        let body = StoreNotificationTests.window(desk, days: 60)
        let path = StoreNotificationTests.path
        let first = desk.ask("POST", path, body: body)
        let token = try #require(first.body?["paginationToken"]?.text)
        #expect(desk.error("POST", path, [("paginationToken", token)], body: body) == 4_000_017)
    }

    @Test func aShareOfRequestsFailsTheSameWayEveryTime() {
        func run(_ seed: UInt64) -> [Int] {
            var desk = Desk.production
            var plan = FaultPlan()
            plan.seed = seed
            var rule = FaultPlan.RequestFault(.error(5_000_000))
            rule.rate = 0.5
            plan.requests = [rule]
            desk.store.setFaults(plan)
            return (0..<60).map { _ in desk.get(Self.path).status }
        }
        let first = run(3)
        #expect(first.contains(500) && first.contains(404))
        #expect(first == run(3))
        #expect(first != run(4))
    }

    @Test func aPlanIsReadStrictly() throws {
        let text = """
            {"seed": 7, "delivery": {"lost": 0.25, "late": 1, "twice": 0, "heldUp": 0.5,
             "heldUpSeconds": 60}, "requests": [
              {"endpoint": "extend", "action": "error", "code": 5000001, "rate": 0.1, "times": 3},
              {"action": "latency", "milliseconds": 20}, {"action": "lose_answer"},
              {"action": "error_afterwards", "code": 5000000, "onlyLaterPages": true},
              {"action": "unauthorized"}]}
            """
        let plan = try FaultPlan(#require(WireValue(reading: Array(text.utf8))))
        #expect(plan.seed == 7 && plan.delivery.lost == 0.25 && plan.delivery.late == 1)
        #expect(plan.delivery.heldUp == 0.5 && plan.delivery.heldUpMax == 60_000)
        #expect(plan.requests.count == 5)
        #expect(plan.requests[0].endpoint == .extend && plan.requests[0].times == 3)
        #expect(plan.requests[0].rate == 0.1 && plan.requests[0].action == .error(5_000_001))
        #expect(plan.requests[1].action == .latency(20) && plan.requests[1].endpoint == nil)
        #expect(plan.requests[3].onlyLaterPages)
        for wrong in [
            "[]", "{\"sede\": 7}", "{\"delivery\": {\"lost\": 2}}", "{\"requests\": {}}",
            "{\"requests\": [{\"action\": \"error\"}]}", "{\"seed\": -1}",
            "{\"requests\": [{\"action\": \"error\", \"code\": 17}]}",
            "{\"requests\": [{\"action\": \"explode\"}]}",
            "{\"requests\": [{\"action\": \"lose_answer\", \"endpoint\": \"x\"}]}",
            "{\"requests\": [{\"action\": \"lose_answer\", \"times\": -1}]}",
            "{\"delivery\": {\"heldUpSeconds\": -1}}",
        ] {
            let json = try #require(WireValue(reading: Array(wrong.utf8)))
            #expect(throws: FaultPlan.Invalid.self, "\(wrong)") { try FaultPlan(json) }
        }
    }
}
