import AppStoreSimulator
import Testing

/// The schedule of deliveries and what goes wrong with them on purpose.
@Suite struct StoreDeliveryTests {
    /// The deliveries as the control endpoint shows them, from a number on.
    static func deliveries(_ desk: inout Desk) throws -> [WireValue] {
        let total = try #require(desk.control("GET", "deliveries?limit=1").body?["total"]?.number)
        var all: [WireValue] = []
        while all.count < Int(total) {
            let page = desk.control("GET", "deliveries?limit=1000&from=\(all.count)")
            all += try #require(page.body?["deliveries"]?.elements)
        }
        return all.filter { ($0["signedDate"]?.number ?? 0) >= Desk.opening }
    }

    static func attempts(_ delivery: WireValue) -> [(date: Int64, result: String)] {
        (delivery["sendAttempts"]?.elements ?? []).map {
            ($0["attemptDate"]?.number ?? 0, $0["sendAttemptResult"]?.text ?? "")
        }
    }

    @Test func aRetryComesSoLongAfterTheAttemptBefore() throws {
        var desk = Desk.production
        let token = try #require(
            desk.ask("POST", "inApps/v1/notifications/test").body?["testNotificationToken"]?.text
        )
        let first = desk.store.now
        var tries = 0
        for _ in 0..<220 {
            desk.deliver {
                guard $0["notificationType"] == "TEST" else { return .success }
                tries += 1
                return .unsuccessfulCode
            }
            desk.store.move(to: desk.store.now + Desk.hour)
        }
        #expect(tries == 6)
        let status = try #require(desk.get("inApps/v1/notifications/test/\(token)").body)
        let attempts = Self.attempts(status)
        #expect(attempts.map(\.date) == [0, 1, 13, 37, 85, 157].map { first + $0 * Desk.hour })
        #expect(attempts.allSatisfy { $0.result == "UNSUCCESSFUL_HTTP_RESPONSE_CODE" })
    }

    @Test func aSuccessEndsTheRetries() throws {
        var desk = Desk.production
        let answer = desk.ask("POST", "inApps/v1/notifications/test")
        let token = try #require(answer.body?["testNotificationToken"]?.text)
        var tries = 0
        for _ in 0..<220 {
            desk.deliver {
                guard $0["notificationType"] == "TEST" else { return .success }
                tries += 1
                return tries < 3 ? .timedOut : .success
            }
            desk.store.move(to: desk.store.now + Desk.hour)
        }
        let status = try #require(desk.get("inApps/v1/notifications/test/\(token)").body)
        #expect(Self.attempts(status).map(\.result) == ["TIMED_OUT", "TIMED_OUT", "SUCCESS"])
        #expect(tries == 3)
    }

    @Test func theSandboxTriesOnce() throws {
        var desk = Desk.sandbox
        desk.store.move(to: desk.store.now + 10 * Desk.day)
        var tries: [String: Int] = [:]
        desk.deliver {
            tries[$0["notificationUUID"]?.text ?? "", default: 0] += 1
            return .socketIssue
        }
        desk.store.move(to: desk.store.now + 10 * Desk.day)
        desk.deliver()
        #expect(tries.count > 3 && tries.values.allSatisfy { $0 == 1 })
        for delivery in try Self.deliveries(&desk) {
            #expect(Self.attempts(delivery).count == 1)
        }
    }

    @Test func aJumpOfTheClockKeepsTheDatesOfTheSchedule() throws {
        var desk = Desk.production
        desk.store.move(to: desk.store.now + 12 * Desk.day)
        desk.deliver { _ in .noResponse }
        let deliveries = try Self.deliveries(&desk)
        let complete = deliveries.filter { Self.attempts($0).count == 6 }
        #expect(!complete.isEmpty)
        for delivery in complete {
            let signed = try #require(delivery["signedDate"]?.number)
            let dates = Self.attempts(delivery).map(\.date)
            #expect(dates == [0, 1, 13, 37, 85, 157].map { signed + $0 * Desk.hour })
        }
    }

    static func plan(_ change: (inout FaultPlan) -> Void) -> FaultPlan {
        var plan = FaultPlan()
        plan.seed = 5
        change(&plan)
        return plan
    }

    /// What arrives within three weeks, in its order.
    static func run(_ desk: inout Desk, _ plan: FaultPlan) -> [WireValue] {
        desk.store.setFaults(plan)
        var arrived: [WireValue] = []
        for _ in 0..<21 * 4 {
            desk.store.move(to: desk.store.now + 6 * Desk.hour)
            arrived += desk.deliver()
        }
        return arrived
    }

    static func uuids(_ notices: [WireValue]) -> [String] {
        notices.compactMap { $0["notificationUUID"]?.text }
    }

    @Test func lostOnesNeverArrive() throws {
        var desk = Desk.production
        let arrived = Set(Self.uuids(Self.run(&desk, Self.plan { $0.delivery.lost = 0.4 })))
        let deliveries = try Self.deliveries(&desk)
        let lost = deliveries.filter { $0["isLostByPlan"] == true }
        #expect(lost.count > 5 && arrived.count > 5)
        #expect(lost.count + arrived.count == deliveries.count)
        for one in lost {
            #expect(!arrived.contains(try #require(one["notificationUUID"]?.text)))
            #expect(one["arrivals"] == 0)
            #expect(!Self.attempts(one).isEmpty)
            #expect(Self.attempts(one).allSatisfy { $0.result != "SUCCESS" })
        }
    }

    @Test func lateOnesComeByTheSchedule() throws {
        var desk = Desk.production
        let arrived = Self.uuids(Self.run(&desk, Self.plan { $0.delivery.late = 1 }))
        #expect(arrived.count > 5 && Set(arrived).count == arrived.count)
        let delivered = try Self.deliveries(&desk).filter { $0["arrivals"] == 1 }
        #expect(delivered.count == arrived.count)
        for one in delivered {
            let attempts = Self.attempts(one)
            #expect(attempts.count > 1 && attempts.last?.result == "SUCCESS")
            #expect(attempts.dropLast().allSatisfy { $0.result != "SUCCESS" })
        }
    }

    @Test(arguments: [StoreEnvironment.production, .sandbox])
    func someComeTwice(_ environment: StoreEnvironment) throws {
        var desk = environment == .production ? Desk.production : Desk.sandbox
        let arrived = Self.uuids(Self.run(&desk, Self.plan { $0.delivery.twice = 1 }))
        let counts = Dictionary(grouping: arrived) { $0 }.mapValues(\.count)
        let twice = counts.values.count { $0 == 2 }
        #expect(twice > 3 && counts.values.allSatisfy { $0 <= 2 })
        for one in try Self.deliveries(&desk) where Self.attempts(one).count > 1 {
            #expect(environment == .production)
            #expect(Self.attempts(one).map(\.result) == ["TIMED_OUT", "SUCCESS"])
            #expect(one["arrivals"] == 2)
        }
    }

    @Test func someAreOvertaken() {
        var desk = Desk.production
        let plan = Self.plan {
            $0.delivery.heldUp = 0.5
            $0.delivery.heldUpMax = 30 * Desk.hour
        }
        let dates = Self.run(&desk, plan).compactMap { $0["signedDate"]?.number }
        #expect(dates.count > 10 && dates != dates.sorted())
        var plain = Desk.production
        let ordered = Self.run(&plain, FaultPlan()).compactMap { $0["signedDate"]?.number }
        #expect(ordered == ordered.sorted())
    }

    @Test func equalSeedsGiveEqualFaults() {
        let plan = Self.plan {
            $0.delivery.lost = 0.2
            $0.delivery.late = 0.3
            $0.delivery.twice = 0.2
            $0.delivery.heldUp = 0.3
        }
        var one = Desk.production
        var other = Desk.production
        let first = Self.run(&one, plan)
        #expect(first == Self.run(&other, plan))
        var third = Desk.production
        var changed = plan
        changed.seed = 6
        #expect(first != Self.run(&third, changed))
    }
}
