import AppStoreSimulator
import Testing

/// Set App Account Token, Send Consumption Information, and what whoever runs it can do.
@Suite struct StoreWritingTests {
    static let token = "7E3FB20B-4CDB-47CC-936D-99D65F608138"

    @Test func aNewAccountTokenIsThatOfThisAndLaterPeriods() throws {
        var desk = Desk.production
        let one = try desk.first {
            $0.state == .active && $0.ownership == "PURCHASED" && $0.transactions > 2
        }
        let id = one.originalTransactionID
        desk.deliver()
        let path = "inApps/v1/transactions/\(id)/appAccountToken"
        let answer = desk.ask("PUT", path, body: ["appAccountToken": .string(Self.token)])
        #expect(answer.status == 200 && answer.body == nil)
        #expect(desk.deliver().isEmpty, "nothing is announced")
        let lower = Self.token.lowercased()
        let (all, _, _) = try StoreHistoryTests.pages(&desk, "inApps/v2/history/\(id)")
        for transaction in all where transaction["type"] == "Auto-Renewable Subscription" {
            let isCurrent = transaction["transactionId"]?.text == one.transaction?.transactionID
            #expect((transaction["appAccountToken"]?.text == lower) == isCurrent)
        }
        let status = desk.get("inApps/v1/subscriptions/\(id)").body
        let item = status?["data"]?.elements?.first?["lastTransactions"]?.elements?.first
        #expect(try Desk.payload(item?["signedRenewalInfo"])["appAccountToken"]?.text == lower)
        desk.store.move(to: desk.store.now + 45 * Desk.day)
        var later = 0
        for notice in desk.deliver() {
            guard let jws = notice["data"]?["signedTransactionInfo"] else { continue }
            let transaction = try Desk.payload(jws)
            guard transaction["originalTransactionId"]?.text == id else { continue }
            if transaction["transactionId"]?.text == one.transaction?.transactionID { continue }
            guard transaction["transactionReason"] == "RENEWAL" else { continue }
            if (transaction["purchaseDate"]?.number ?? 0) < Desk.opening { continue }
            #expect(transaction["appAccountToken"]?.text == lower)
            later += 1
        }
        #expect(later > 0)
    }

    @Test func aWrongAccountTokenRequestIsNamed() throws {
        var desk = Desk.production
        let body: WireValue = ["appAccountToken": .string(Self.token)]
        func path(_ id: String) -> String { "inApps/v1/transactions/\(id)/appAccountToken" }
        let one = try desk.first {
            $0.status == 1 && $0.ownership == "PURCHASED"
                && $0.transaction?.transactionID != $0.originalTransactionID
        }
        let id = one.originalTransactionID
        #expect(desk.error("PUT", path(id), body: ["appAccountToken": "me"]) == 4_000_183)
        #expect(desk.error("PUT", path(id), body: .object([])) == 4_000_183)
        #expect(desk.ask("PUT", path(id)).status == 400)
        let renewed = try #require(one.transaction?.transactionID)
        #expect(desk.error("PUT", path(renewed), body: body) == 4_000_187)
        #expect(desk.error("PUT", path(one.appTransactionID), body: body) == 4_000_048)
        #expect(desk.error("PUT", path("x"), body: body) == 4_000_006)
        #expect(desk.error("PUT", path("2000000999999000"), body: body) == 4_040_005)
        let shared = try desk.first { $0.ownership == "FAMILY_SHARED" }
        #expect(desk.error("PUT", path(shared.originalTransactionID), body: body) == 4_000_185)
        let seat = try desk.first { $0.ownership == "ASSIGNED" }
        #expect(desk.error("PUT", path(seat.originalTransactionID), body: body) == 4_000_227)
    }

    static func consumption(_ change: (inout WireValue) -> Void = { _ in }) -> WireValue {
        var body: WireValue = [
            "customerConsented": true, "deliveryStatus": "DELIVERED",
            "sampleContentProvided": false, "refundPreference": "DECLINE",
        ]
        change(&body)
        return body
    }

    @Test func consumptionIsTakenAndNoted() throws {
        var desk = Desk.production
        var asked: String?
        for _ in 0..<400 where asked == nil {
            desk.store.move(to: desk.store.now + 9 * Desk.hour)
            let request = desk.deliver().last { $0["notificationType"] == "CONSUMPTION_REQUEST" }
            asked = try request.map {
                try Desk.payload($0["data"]?["signedTransactionInfo"])["transactionId"]?.text ?? ""
            }
        }
        let id = try #require(asked)
        let path = "inApps/v2/transactions/consumption/\(id)"
        let answer = desk.ask("PUT", path, body: Self.consumption())
        #expect(answer.status == 202 && answer.body == nil)
        desk.store.move(to: desk.store.now + 2 * Desk.day)
        #expect(desk.ask("PUT", path, body: Self.consumption()).status == 202)
        #expect(desk.store.consumptions.map(\.transactionID) == [id, id])
        #expect(desk.store.consumptions.map(\.isTimely) == [true, false])
    }

    @Test(
        arguments: [
            ("customerConsented", false, 4_000_035), ("customerConsented", nil, 4_000_035),
            ("deliveryStatus", "LOST", 4_000_036), ("deliveryStatus", nil, 4_000_036),
            ("sampleContentProvided", "no", 4_000_041), ("sampleContentProvided", nil, 4_000_041),
            ("refundPreference", 3, 4_000_044), ("consumptionPercentage", 50_000, 4_000_209),
        ] as [(String, WireValue?, Int64)]
    )
    func aWrongConsumptionIsNamed(_ name: String, _ value: WireValue?, _ code: Int64) throws {
        var desk = Desk.production
        let one = try desk.first { $0.status == 1 && $0.ownership == "PURCHASED" }
        let path = "inApps/v2/transactions/consumption/\(one.originalTransactionID)"
        #expect(desk.error("PUT", path, body: Self.consumption { $0[name] = value }) == code)
        #expect(desk.store.consumptions.isEmpty)
    }

    @Test func consumptionOfWhatIsNotOnesOwnIsRefused() throws {
        var desk = Desk.production
        let shared = try desk.first { $0.ownership == "FAMILY_SHARED" }
        let seat = try desk.first { $0.ownership == "ASSIGNED" }
        for (id, code) in [
            (shared.originalTransactionID, Int64(4_000_185)),
            (seat.originalTransactionID, 4_000_227), (shared.appTransactionID, 4_000_048),
            ("2000000999999000", 4_040_010), ("x", 4_000_006),
        ] {
            let path = "inApps/v2/transactions/consumption/\(id)"
            #expect(desk.error("PUT", path, body: Self.consumption()) == code)
        }
    }

    // MARK: - Control

    @Test func aRefundOnDemandRevokesAtOnce() throws {
        var desk = Desk.production
        let one = try desk.first { $0.state == .active && $0.ownership == "PURCHASED" }
        let path = "subscriptions/\(one.originalTransactionID)"
        desk.deliver()
        let answer = desk.control("POST", path + "/refund", body: ["reason": 1])
        #expect(answer.status == 200)
        let notice = try #require(desk.deliver().last)
        #expect(notice["notificationType"] == "REFUND")
        #expect(notice["notificationUUID"] == answer.body?["notificationUUID"])
        let transaction = try Desk.payload(notice["data"]?["signedTransactionInfo"])
        #expect(transaction["revocationReason"] == 1)
        #expect(desk.control("GET", path).body?["status"] == 5)
        #expect(desk.control("POST", path + "/refund").status == 409)
        #expect(desk.control("POST", path + "/refund", body: ["reason": 7]).status == 400)
        #expect(desk.control("POST", "subscriptions/17/refund").status == 404)
        desk.store.move(to: desk.store.now + 300 * Desk.day)
        #expect(try desk.overview(one.originalTransactionID).status == 5)
    }

    @Test func aRefundTakesAccessFromThePurchasersFamilyToo() throws {
        var desk = Desk { $0.rareFactor = 15 }
        let member = try desk.first {
            ["FAMILY_SHARED", "ASSIGNED"].contains($0.ownership) && $0.state == .active
        }
        #expect(desk.store.refund(member.originalTransactionID) == nil, "nobody paid for it")
        var revoked = 0
        for one in desk.store.overviews where one.extensionError == nil {
            let active = desk.store.overviews.filter { $0.state == .active }
            guard desk.store.refund(one.originalTransactionID) != nil else { continue }
            let lost = active.map(\.originalTransactionID).filter {
                desk.store.overview(of: $0)?.status == 5 && $0 != one.originalTransactionID
            }
            for notice in desk.deliver() where notice["notificationType"] == "REVOKE" {
                let transaction = try Desk.payload(notice["data"]?["signedTransactionInfo"])
                #expect(lost.contains(transaction["originalTransactionId"]?.text ?? ""))
                #expect(transaction["revocationType"]?.text?.hasSuffix("_REVOKE") == true)
                #expect(transaction["revocationPercentage"] == nil)
                revoked += 1
            }
        }
        #expect(revoked > 0)
    }

    @Test func theStateAndTheSubscriptionsCanBeSeen() throws {
        var desk = Desk.production
        let state = try #require(desk.control("GET", "state").body)
        let count = desk.store.overviews.count
        #expect(state["subscriptions"]?.number == Int64(count))
        #expect(state["now"]?.number == desk.store.now)
        var seen: [WireValue] = []
        var next: Int64? = 0
        while let from = next {
            let page = desk.control("GET", "subscriptions?limit=50&from=\(from)").body
            seen += page?["subscriptions"]?.elements ?? []
            next = page?["next"]?.number
        }
        #expect(seen.count == count)
        let expired = desk.control("GET", "subscriptions?status=2&limit=1000").body
        #expect(
            expired?["subscriptions"]?.elements?.count
                == desk.store.overviews.count { $0.status == 2 }
        )
        let id = try #require(seen[0]["originalTransactionId"]?.text)
        let one = try #require(desk.control("GET", "subscriptions/\(id)").body)
        let intervals = try #require(one["intervals"]?.elements)
        #expect(intervals.allSatisfy { ($0["from"]?.number ?? .max) <= desk.store.now })
        #expect(intervals.last?["until"] == .null)
        for bad in ["subscriptions?limit=0", "subscriptions?status=x", "deliveries?from=-1"] {
            #expect(desk.control("GET", bad).status == 400)
        }
        #expect(desk.control("GET", "secrets").status == 404)
        let plan: WireValue = ["requests": [["action": "unauthorized", "times": 1]]]
        #expect(desk.control("PUT", "faults", body: plan).status == 204)
        #expect(desk.get("inApps/v1/subscriptions/\(id)").status == 401)
        let rule: WireValue = ["action": "error", "code": 5_000_001, "times": 1]
        #expect(desk.control("POST", "faults", body: rule).status == 204)
        #expect(desk.get("inApps/v1/subscriptions/\(id)").status == 500)
        #expect(desk.control("PUT", "faults", body: ["x": 1]).status == 400)
        #expect(desk.control("POST", "faults").status == 400)
    }

    // MARK: - The whole

    @Test func equalSeedsAndRequestsGiveEqualAnswers() throws {
        func run(_ seed: UInt64) throws -> [WireValue?] {
            var desk = Desk(subscriptions: 30, seed: seed)
            var answers: [WireValue?] = []
            for one in desk.store.overviews {
                let id = one.originalTransactionID
                answers.append(desk.get("inApps/v1/subscriptions/\(id)").body)
                let body = StoreExtensionTests.body()
                answers.append(desk.ask("PUT", StoreExtensionTests.path(id), body: body).body)
            }
            desk.store.move(to: desk.store.now + 20 * Desk.day)
            answers += desk.deliver().map { $0 as WireValue? }
            answers.append(desk.control("GET", "extensions?limit=1000").body)
            return answers
        }
        let first = try run(7)
        #expect(first.count > 30)
        #expect(first == (try run(7)))
        #expect(first != (try run(8)))
    }

    @Test func jsonIsReadAsItIsWritten() {
        let good = [
            "{\"a\":[1,-2,true,false,null,\"x\\\"\\\\\\n\\u00e9\\ud83d\\ude00\"],\"b\":{}}",
            " [ 1.5 , 1e3 ] ", "9223372036854775807", "\"\"", "[]",
        ]
        for text in good {
            let value = WireValue(reading: Array(text.utf8))
            #expect(value != nil, "\(text)")
            #expect(value.flatMap { WireValue(reading: $0.bytes) } == value)
        }
        let bad = [
            "", "{", "[1,]", "{\"a\" 1}", "{\"a\":1,}", "01x", "+1", "tru", "\"\\x\"",
            "\"\\ud800\"",
            "\"a", "[1] 2", "\"\u{1}\"", "{1:2}", "--1", "\"\\u12\"",
            String(repeating: "[", count: 40) + String(repeating: "]", count: 40),
        ]
        for text in bad { #expect(WireValue(reading: Array(text.utf8)) == nil, "\(text)") }
        #expect(WireValue(reading: [0x22, 0xFF, 0x22]) == nil)
    }
}
