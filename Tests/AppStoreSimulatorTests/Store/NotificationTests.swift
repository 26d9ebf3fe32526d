import AppStoreSimulator
import Testing

/// Notification history and test notifications.
@Suite struct StoreNotificationTests {
    static let path = "inApps/v1/notifications/history"

    static func window(_ desk: Desk, days: Int64) -> WireValue {
        [
            "startDate": .integer(desk.store.now - days * Desk.day),
            "endDate": .integer(desk.store.now + Desk.day),
        ]
    }

    /// Everything of a window, page by page.
    static func read(_ desk: inout Desk, _ body: WireValue) throws -> [WireValue] {
        var all: [WireValue] = []
        var token: String?
        for _ in 0..<1000 {
            let query = token.map { [("paginationToken", $0)] } ?? []
            let answer = try #require(desk.ask("POST", path, query, body: body).body)
            let items = try #require(answer["notificationHistory"]?.elements)
            let isLast = answer["hasMore"] == false
            #expect(isLast ? items.count <= 20 : items.count == 20)
            all += items
            if isLast { return all }
            token = try #require(answer["paginationToken"]?.text)
        }
        throw StoreHistoryTests.Unending()
    }

    static func notices(_ items: [WireValue]) throws -> [WireValue] {
        try items.map { try Desk.payload($0["signedPayload"]) }
    }

    @Test func aWindowIsReadInPagesAndOrder() throws {
        var desk = Desk.production
        let items = try Self.read(&desk, Self.window(desk, days: 60))
        let notices = try Self.notices(items)
        #expect(notices.count > 100)
        let dates = notices.compactMap { $0["signedDate"]?.number }
        #expect(dates == dates.sorted() && dates.count == notices.count)
        #expect(dates.allSatisfy { $0 >= desk.store.now - 61 * Desk.day })
        #expect(Set(notices.compactMap { $0["notificationUUID"]?.text }).count == notices.count)
        // What lies before the opening was received by somebody.
        #expect(
            items.allSatisfy {
                $0["sendAttempts"]?.elements?.first?["sendAttemptResult"] == "SUCCESS"
            }
        )
        // Two windows beside each other have all of it, once.
        let middle = desk.store.now - 30 * Desk.day
        var early = Self.window(desk, days: 60)
        early["endDate"] = .integer(middle)
        var late = early
        late["startDate"] = .integer(middle)
        late["endDate"] = .integer(desk.store.now + Desk.day)
        let count = try Self.read(&desk, early).count + Self.read(&desk, late).count
        #expect(abs(count - items.count) <= 1, "the second window ends some milliseconds later")
    }

    @Test func whatIsReadIsWhatWasPosted() throws {
        var desk = Desk.production
        desk.store.move(to: desk.store.now + 5 * Desk.day)
        var posted: Set<String> = []
        while let dispatches = desk.store.takeDispatch() {
            for dispatch in dispatches {
                posted.insert(WireValue(reading: dispatch.body)?["signedPayload"]?.text ?? "")
                desk.store.record(.success, of: dispatch)
            }
        }
        var body = Self.window(desk, days: 5)
        body["startDate"] = .integer(Desk.opening)
        let items = try Self.read(&desk, body)
        #expect(posted.count > 10)
        #expect(Set(items.compactMap { $0["signedPayload"]?.text }) == posted)
    }

    @Test func filtersByTypeSubtypeAndCustomer() throws {
        var desk = Desk.production
        let all = try Self.notices(Self.read(&desk, Self.window(desk, days: 50)))
        var body = Self.window(desk, days: 50)
        body["notificationType"] = "DID_CHANGE_RENEWAL_STATUS"
        let changes = try Self.notices(Self.read(&desk, body))
        #expect(
            changes.count == all.count { $0["notificationType"] == "DID_CHANGE_RENEWAL_STATUS" }
        )
        body["notificationSubtype"] = "AUTO_RENEW_DISABLED"
        let disabled = try Self.notices(Self.read(&desk, body))
        #expect(!disabled.isEmpty && disabled.count < changes.count)
        #expect(disabled.allSatisfy { $0["subtype"] == "AUTO_RENEW_DISABLED" })

        let one = try desk.first { $0.status == 1 && $0.transactions > 3 }
        var ofOne = Self.window(desk, days: 50)
        ofOne["transactionId"] = .string(try #require(one.transaction?.transactionID))
        let its = try Self.notices(Self.read(&desk, ofOne))
        #expect(!its.isEmpty && its.count < 20)
    }

    @Test func onlyFailuresAreThoseThatNeverArrived() throws {
        var desk = Desk()
        desk.store.move(to: desk.store.now + 4 * Desk.day)
        let arrived = Set(
            desk.deliver {
                "0123".contains($0["notificationUUID"]?.text?.first ?? "x") ? .timedOut : .success
            }.compactMap { $0["notificationUUID"]?.text }
        )
        var body = Self.window(desk, days: 4)
        body["startDate"] = .integer(Desk.opening)
        let all = try Self.notices(Self.read(&desk, body))
        body["onlyFailures"] = true
        let items = try Self.read(&desk, body)
        let failed = try Self.notices(items).compactMap { $0["notificationUUID"]?.text }
        #expect(!failed.isEmpty && arrived.isDisjoint(with: failed))
        #expect(failed.count + arrived.count == all.count)
        for item in items {
            let attempts = try #require(item["sendAttempts"]?.elements)
            #expect(attempts.allSatisfy { $0["sendAttemptResult"] == "TIMED_OUT" })
        }
    }

    @Test(arguments: [StoreEnvironment.production, .sandbox])
    func aWindowReachesBackSoFar(_ environment: StoreEnvironment) {
        var desk = environment == .production ? Desk.production : Desk.sandbox
        let days: Int64 = environment == .production ? 180 : 30
        var body = Self.window(desk, days: days)
        body["startDate"] = .integer(desk.store.now - days * Desk.day + 1000)
        #expect(desk.ask("POST", Self.path, body: body).status == 200)
        body["startDate"] = .integer(desk.store.now - days * Desk.day - 1000)
        #expect(desk.error("POST", Self.path, body: body) == 4_000_012)
    }

    @Test(
        arguments: [
            ("startDate", nil, 4_000_015), ("startDate", "2026", 4_000_015),
            ("endDate", nil, 4_000_016), ("endDate", 1, 4_000_013),
            ("notificationType", "DID_SING", 4_000_018),
            ("notificationSubtype", "INITIAL_BUY", 4_000_018), ("transactionId", "abc", 4_000_006),
            ("transactionId", "2000000999999000", 4_040_010),
        ] as [(String, WireValue?, Int64)]
    )
    func aWrongInputIsNamed(_ name: String, _ value: WireValue?, _ code: Int64) {
        var desk = Desk.production
        var body = Self.window(desk, days: 3)
        body[name] = value
        #expect(desk.error("POST", Self.path, body: body) == code)
    }

    @Test func filtersThatExcludeEachOtherAreRefused() {
        var desk = Desk.production
        var body = Self.window(desk, days: 3)
        body["startDate"] = body["endDate"]
        #expect(desk.error("POST", Self.path, body: body) == 4_000_013)
        body = Self.window(desk, days: 3)
        body["notificationType"] = "TEST"
        body["transactionId"] = "2000000000000000"
        #expect(desk.error("POST", Self.path, body: body) == 4_000_019)
        body["transactionId"] = nil
        body["notificationSubtype"] = "INITIAL_BUY"
        #expect(desk.error("POST", Self.path, body: body) == 4_000_018)
        let answer = desk.ask("POST", Self.path)
        #expect(answer.status == 400 && answer.body == nil)
    }

    @Test func aTokenEndsAndBelongsToItsQuestion() throws {
        var desk = Desk.production
        let body = Self.window(desk, days: 60)
        let answer = try #require(desk.ask("POST", Self.path, body: body).body)
        let token = try #require(answer["paginationToken"]?.text)
        let query = [("paginationToken", token)]
        #expect(desk.ask("POST", Self.path, query, body: body).status == 200)
        let bad = [("paginationToken", token + "A")]
        #expect(desk.error("POST", Self.path, bad, body: body) == 4_000_014)
        var other = body
        other["onlyFailures"] = true
        #expect(desk.error("POST", Self.path, query, body: other) == 4_000_014)
        desk.wall += Desk.hour
        #expect(desk.error("POST", Self.path, query, body: body) == 4_000_017)
        // From the beginning it goes.
        #expect(desk.ask("POST", Self.path, body: body).status == 200)
    }

    @Test func aTestIsDeliveredAndCanBeAskedFor() throws {
        var desk = Desk.sandbox
        desk.deliver()
        let answer = desk.ask("POST", "inApps/v1/notifications/test")
        let token = try #require(answer.body?["testNotificationToken"]?.text)
        let path = "inApps/v1/notifications/test/\(token)"
        #expect(desk.error("GET", path) == 4_040_008, "it is not ready yet")
        let posted = desk.deliver { _ in .tlsIssue }
        #expect(posted.isEmpty)
        let status = try #require(desk.get(path).body)
        let notice = try Desk.payload(status["signedPayload"])
        #expect(notice["notificationType"] == "TEST")
        #expect(notice["data"]?["environment"] == "Sandbox")
        #expect(notice["data"]?["signedTransactionInfo"] == nil)
        let attempts = try #require(status["sendAttempts"]?.elements)
        #expect(attempts.count == 1 && attempts[0]["sendAttemptResult"] == "TLS_ISSUE")
        for bad in ["abc", "0c9a2b9e-7a5e-4a55-9b0e-0123456789ab", "x_1"] {
            #expect(desk.error("GET", "inApps/v1/notifications/test/\(bad)") == 4_000_020)
        }
        let unknown = "0c9a2b9e-7a5e-4a55-9b0e-0123456789ab_1"
        #expect(desk.error("GET", "inApps/v1/notifications/test/\(unknown)") == 4_040_008)
        desk.store.move(to: desk.store.now + 181 * Desk.day)
        #expect(desk.error("GET", path) == 4_040_008, "it is readable for half a year")
    }

    @Test func withoutAPlaceToGoThereIsNoTestAndAllFails() throws {
        var desk = Desk.sandbox
        desk.store.hasReceiver = false
        #expect(desk.error("POST", "inApps/v1/notifications/test") == 4_040_007)
        desk.store.move(to: desk.store.now + 5 * Desk.day)
        #expect(desk.store.takeDispatch() == nil)
        var body = Self.window(desk, days: 6)
        body["startDate"] = .integer(Desk.opening)
        body["onlyFailures"] = true
        let items = try Self.read(&desk, body)
        #expect(items.count > 3)
        for item in items {
            let attempts = item["sendAttempts"]?.elements
            #expect(attempts?.count == 1)
            #expect(attempts?.first?["sendAttemptResult"] == "NO_RESPONSE")
        }
    }
}
