import AppStoreSimulator
import Testing

/// Extensions of one subscription, as Apple's rules have them.
@Suite struct StoreExtensionTests {
    static func body(
        days: WireValue? = 7,
        reason: WireValue? = 1,
        identifier: WireValue? = "request-1"
    ) -> WireValue {
        var body: WireValue = .object([])
        body["extendByDays"] = days
        body["extendReasonCode"] = reason
        body["requestIdentifier"] = identifier
        return body
    }

    static func path(_ id: String) -> String { "inApps/v1/subscriptions/extend/\(id)" }

    @Test func anExtensionMovesThePeriodAndAllThatFollows() throws {
        var desk = Desk(subscriptions: 24)
        var untouched = desk
        let one = try desk.first {
            $0.extensionError == nil && $0.extensionsUsed == 0 && $0.ownership == "PURCHASED"
                && $0.transaction?.commitment == nil
        }
        let before = try #require(one.transaction)
        let answer = desk.ask("PUT", Self.path(one.originalTransactionID), body: Self.body())
        #expect(answer.status == 200)
        let effective = before.expiresDate + 7 * Desk.day
        #expect(
            answer.body == [
                "effectiveDate": .integer(effective),
                "originalTransactionId": .string(one.originalTransactionID),
                "success": true,
                "webOrderLineItemId": .string(before.webOrderLineItemID),
            ]
        )
        // The news.
        let news = desk.deliver().filter {
            $0["notificationType"] == "RENEWAL_EXTENDED"
        }
        try #require(news.count == 1)
        let data = try #require(news[0]["data"])
        #expect(data["status"] == 1)
        let transaction = try Desk.payload(data["signedTransactionInfo"])
        let renewal = try Desk.payload(data["signedRenewalInfo"])
        #expect(transaction["transactionId"]?.text == before.transactionID)
        #expect(transaction["expiresDate"]?.number == effective)
        #expect(renewal["renewalDate"]?.number == effective)
        // What is read.
        let status = desk.get("inApps/v1/subscriptions/\(one.originalTransactionID)")
        let item = status.body?["data"]?.elements?.first?["lastTransactions"]?.elements?.first
        let read = try Desk.payload(item?["signedTransactionInfo"])
        #expect(read["expiresDate"]?.number == effective)
        // All that comes later comes seven days later, and is the same.
        func later(_ desk: inout Desk) throws -> [WireValue] {
            desk.deliver()
            desk.store.move(to: Desk.opening + 120 * Desk.day)
            var found: [WireValue] = []
            for notice in desk.deliver() {
                let jws = notice["data"]?["signedTransactionInfo"]
                guard jws != nil, notice["notificationType"] != "RENEWAL_EXTENDED" else { continue }
                let payload = try Desk.payload(jws)
                let id = payload["originalTransactionId"]?.text
                if id == one.originalTransactionID { found.append(notice) }
            }
            return found
        }
        untouched.store.move(to: desk.store.now)
        let moved = try later(&desk)
        let unmoved = try later(&untouched)
        try #require(moved.count > 1 && unmoved.count >= moved.count)
        for (one, other) in zip(moved, unmoved) {
            #expect(one["notificationUUID"] == other["notificationUUID"])
            let dates = [one, other].compactMap { $0["signedDate"]?.number }
            #expect(dates[0] - dates[1] == 7 * Desk.day)
            let new = try Desk.payload(one["data"]?["signedTransactionInfo"])
            let old = try Desk.payload(other["data"]?["signedTransactionInfo"])
            #expect(new["transactionId"] == old["transactionId"])
            let ends = [new, old].compactMap { $0["expiresDate"]?.number }
            #expect(ends[0] - ends[1] == 7 * Desk.day)
            let isLater = new["transactionId"]?.text != before.transactionID
            let begins = [new, old].compactMap { $0["purchaseDate"]?.number }
            #expect(begins[0] - begins[1] == (isLater ? 7 * Desk.day : 0))
        }
    }

    @Test func theSameIdentifierIsTheSameRequest() throws {
        var desk = Desk.production
        let one = try desk.extendable()
        let path = Self.path(one.originalTransactionID)
        let first = desk.ask("PUT", path, body: Self.body())
        let again = desk.ask("PUT", path, body: Self.body())
        #expect(first.status == 200 && first == again)
        let end = try #require(one.transaction).expiresDate + 7 * Desk.day
        #expect(try desk.overview(one.originalTransactionID).transaction?.expiresDate == end)
        let entries = desk.store.extensions.filter { $0.source == .request }
        #expect(entries.map(\.isRepeat) == [false, true])
        #expect(entries.map(\.status) == [200, 200])
        #expect(entries.allSatisfy { $0.effectiveDate == end })
        // For another subscription it is another request.
        let other = try desk.first {
            $0.extensionError == nil && $0.extensionsUsed == 0
                && $0.originalTransactionID != one.originalTransactionID
        }
        let its = desk.ask("PUT", Self.path(other.originalTransactionID), body: Self.body())
        #expect(its.body?["originalTransactionId"]?.text == other.originalTransactionID)
        #expect(desk.deliver().count { $0["notificationType"] == "RENEWAL_EXTENDED" } >= 2)
    }

    @Test func aYearHasTwoExtensions() throws {
        var desk = Desk.production
        let one = try desk.first {
            $0.extensionError == nil && $0.extensionsUsed == 0
                && ($0.transaction?.expiresDate ?? 0) > Desk.opening + 20 * Desk.day
        }
        let path = Self.path(one.originalTransactionID)
        for count in 1...2 {
            let body = Self.body(days: 90, identifier: .string("request-\(count)"))
            #expect(desk.ask("PUT", path, body: body).status == 200)
        }
        let third = Self.body(identifier: "request-3")
        #expect(desk.error("PUT", path, body: third) == 4_030_005)
        // The 180 days behind which the period ends are not over in a year: it does not matter.
        desk.store.move(to: desk.store.now + 150 * Desk.day)
        #expect(desk.error("PUT", path, body: third) == 4_030_005)
        let books = desk.store.extensions.filter {
            $0.originalTransactionID == one.originalTransactionID && $0.source == .request
        }
        #expect(books.map(\.errorCode) == [nil, nil, 4_030_005, 4_030_005])
    }

    @Test func whatTheScriptExtendedCountsToo() throws {
        var desk = Desk.production
        var found: ExtensionEntry?
        for _ in 0..<30 where found == nil {
            desk.store.move(to: desk.store.now + 10 * Desk.day)
            found = desk.store.extensions.last { entry in
                entry.source == .script && entry.at > desk.store.now - 10 * Desk.day
                    && desk.store.overviews.contains {
                        $0.originalTransactionID == entry.originalTransactionID
                            && $0.extensionError == nil && $0.extensionsUsed == 1
                    }
            }
        }
        let entry = try #require(found)
        #expect(entry.keyID == nil && entry.requestIdentifier == nil && entry.status == nil)
        let days = try #require(entry.days)
        #expect(3...30 ~= days)
        #expect(entry.effectiveDate == entry.expiresBefore.map { $0 + days * Desk.day })
        let path = Self.path(entry.originalTransactionID)
        #expect(desk.ask("PUT", path, body: Self.body()).status == 200)
        #expect(desk.error("PUT", path, body: Self.body(identifier: "2")) == 4_030_005)
    }

    @Test func onlyWhatIsActiveAndPaidIsExtended() throws {
        var desk = Desk.production
        var codes: [String: Set<Int64>] = [:]
        for one in desk.store.overviews {
            let isTrial = one.transaction?.offer?.discountType == "FREE_TRIAL"
            let kind: String
            switch (one.ownership, one.state, isTrial) {
            case ("FAMILY_SHARED", _, _): kind = "family"
            case ("ASSIGNED", _, _): kind = "seat"
            case (_, .active?, true): kind = "trial"
            case (_, .active?, false): kind = "active"
            case (_, let state?, _): kind = state.rawValue
            case (_, nil, _): continue
            }
            let path = Self.path(one.originalTransactionID)
            let code = desk.error("PUT", path, body: Self.body())
            #expect(code == one.extensionError ?? 0)
            codes[kind, default: []].insert(code)
        }
        #expect(codes["family"] == [4_030_007])
        #expect(codes["seat"] == [4_030_028])
        for kind in ["trial", "expired", "billing_retry", "grace_period", "revoked"] {
            #expect(codes[kind] == [4_030_004], "\(kind)")
        }
        #expect(codes["active"]?.isSuperset(of: [0]) == true)
        #expect(codes["active"]?.isSubset(of: [0, 4_030_005]) == true)
    }

    @Test func aChargeThatFailedEarlyLeavesThePeriodExtendable() throws {
        var desk = Desk.production
        var found: FakeAppStore.Overview?
        for _ in 0..<2000 where found == nil {
            desk.store.move(to: desk.store.now + 3 * Desk.hour)
            for notice in desk.deliver() where notice["subtype"] == "GRACE_PERIOD" {
                let jws = notice["data"]?["signedTransactionInfo"]
                let id = try Desk.payload(jws)["originalTransactionId"]?.text ?? ""
                let one = desk.store.overview(of: id)
                if one?.state == .active, one?.extensionError == nil { found = one }
            }
        }
        let one = try #require(found)
        let path = Self.path(one.originalTransactionID)
        #expect(desk.ask("PUT", path, body: Self.body()).status == 200)
        let news = desk.deliver().last { $0["notificationType"] == "RENEWAL_EXTENDED" }
        #expect(news?["data"]?["status"] == 4)
        let renewal = try Desk.payload(news?["data"]?["signedRenewalInfo"])
        let transaction = try Desk.payload(news?["data"]?["signedTransactionInfo"])
        if let grace = renewal["gracePeriodExpiresDate"]?.number {
            #expect(grace > (transaction["expiresDate"]?.number ?? .max))
        }
    }

    @Test func whoHasAccessThroughAPurchaserIsExtendedWithIt() throws {
        var desk = Desk { $0.rareFactor = 15 }
        var followed: [ExtensionEntry] = []
        for one in desk.store.overviews where one.extensionError == nil {
            let count = desk.store.extensions.count
            let path = Self.path(one.originalTransactionID)
            guard desk.ask("PUT", path, body: Self.body()).status == 200 else { continue }
            let new = desk.store.extensions[count...].filter { $0.source == .followed }
            for entry in new {
                let member = try desk.overview(entry.originalTransactionID)
                #expect(member.ownership != "PURCHASED")
                #expect(member.transaction?.expiresDate == entry.effectiveDate)
                #expect(entry.requestIdentifier == "request-1")
                followed.append(entry)
            }
        }
        #expect(!followed.isEmpty)
        let uuids = Set(
            desk.deliver().filter { $0["notificationType"] == "RENEWAL_EXTENDED" }
                .compactMap { $0["notificationUUID"]?.text }
        )
        #expect(uuids.isSuperset(of: followed.compactMap(\.notificationUUID)))
    }

    @Test(
        arguments: [
            (body(days: 0), 4_000_009), (body(days: 91), 4_000_009), (body(days: nil), 4_000_009),
            (body(days: "7"), 4_000_009), (body(days: .raw("7.5")), 4_000_009),
            (body(reason: -1), 4_000_010), (body(reason: 4), 4_000_010),
            (body(reason: nil), 4_000_010),
            (body(identifier: nil), 4_000_011), (body(identifier: ""), 4_000_011),
            (body(identifier: 5), 4_000_011),
            (body(identifier: .string(String(repeating: "x", count: 129))), 4_000_011),
        ] as [(WireValue, Int64)]
    )
    func aWrongInputIsNamed(_ body: WireValue, _ code: Int64) throws {
        var desk = Desk.production
        let one = try desk.extendable()
        #expect(desk.error("PUT", Self.path(one.originalTransactionID), body: body) == code)
        #expect(try desk.overview(one.originalTransactionID) == one)
    }

    @Test func theLimitsThemselvesAreAllowed() throws {
        var desk = Desk.production
        let some = desk.store.overviews.filter {
            $0.extensionError == nil && $0.extensionsUsed == 0
        }
        try #require(some.count > 4)
        let long = WireValue.string(String(repeating: "x", count: 128))
        let bodies = [
            Self.body(days: 1, reason: 0), Self.body(days: 90, reason: 3),
            Self.body(reason: 2, identifier: long),
        ]
        for (one, body) in zip(some, bodies) {
            let answer = desk.ask("PUT", Self.path(one.originalTransactionID), body: body)
            #expect(answer.status == 200)
        }
    }

    @Test func onlyAnOriginalIDIsExtended() throws {
        var desk = Desk.production
        let one = try desk.first {
            $0.extensionError == nil && $0.transaction?.transactionID != $0.originalTransactionID
        }
        let renewed = try #require(one.transaction?.transactionID)
        for id in [renewed, one.appTransactionID, "2000000999999000"] {
            #expect(desk.error("PUT", Self.path(id), body: Self.body()) == 4_040_005)
        }
        #expect(desk.error("PUT", Self.path("mass-not"), body: Self.body()) == 4_000_008)
        let request = desk.ask("PUT", Self.path(renewed), body: .array([]))
        #expect(request.status == 400 && request.body == nil)
    }
}
