import AppStoreSimulator
import Testing

/// Extensions of all subscribers of a product.
@Suite struct StoreMassExtensionTests {
    static let path = "inApps/v1/subscriptions/extend/mass"
    static let identifier = "0c9a2b9e-7a5e-4a55-9b0e-0123456789ab"
    static let product = "com.example.subledger.basic.monthly"

    static func body(_ change: (inout WireValue) -> Void = { _ in }) -> WireValue {
        var body: WireValue = [
            "extendByDays": 5, "extendReasonCode": 3,
            "requestIdentifier": .string(identifier), "productId": .string(product),
        ]
        change(&body)
        return body
    }

    static func status(_ desk: inout Desk) -> StoreResponse {
        desk.get("\(path)/\(product)/\(identifier)")
    }

    @Test func everySubscriberIsDealtWithAndSummedUp() throws {
        var desk = Desk.production
        let targets = desk.store.overviews.filter {
            $0.state == .active && $0.transaction?.productID == Self.product
                && ["PURCHASED", "ORGANIZATION"].contains($0.ownership)
        }
        // One of them has no extension left, so that something fails.
        let spent = try #require(targets.first { $0.extensionError == nil })
        for count in 1...2 {
            let path = StoreExtensionTests.path(spent.originalTransactionID)
            let body = StoreExtensionTests.body(identifier: .string("\(count)"))
            if count > spent.extensionsUsed {
                #expect(desk.ask("PUT", path, body: body).status == 200)
            }
        }
        desk.deliver()
        let answer = desk.ask("POST", Self.path, body: Self.body())
        #expect(answer.body == ["requestIdentifier": .string(Self.identifier)])
        #expect(
            Self.status(&desk).body
                == ["requestIdentifier": .string(Self.identifier), "complete": false]
        )
        desk.store.move(to: desk.store.now + Desk.hour)
        #expect(Self.status(&desk).body?["complete"] == false)
        desk.store.move(to: desk.store.now + Desk.hour)
        let status = try #require(Self.status(&desk).body)
        #expect(status["complete"] == true)
        let succeeded = try #require(status["succeededCount"]?.number)
        let failed = try #require(status["failedCount"]?.number)
        #expect(succeeded > 0 && failed > 0)
        #expect(Int(succeeded + failed) == targets.count)
        #expect((status["completeDate"]?.number ?? 0) > Desk.opening)

        let news = desk.deliver()
        let summaries = news.filter { $0["notificationType"] == "RENEWAL_EXTENSION" }
            .filter { $0["summary"]?["requestIdentifier"]?.text == Self.identifier }
        try #require(summaries.count == 1)
        #expect(summaries[0]["subtype"] == "SUMMARY")
        #expect(summaries[0]["summary"]?["succeededCount"]?.number == succeeded)
        #expect(summaries[0]["summary"]?["failedCount"]?.number == failed)
        #expect(summaries[0]["summary"]?["storefrontCountryCodes"] == nil)
        #expect(summaries[0]["summary"]?["environment"] == "Production")

        let books = desk.store.extensions.filter { $0.requestIdentifier == Self.identifier }
        let own = books.filter { $0.source == .mass }
        #expect(own.count == targets.count)
        #expect(own.count { $0.errorCode == nil } == Int(succeeded))
        let extended = Set(
            news.filter { $0["notificationType"] == "RENEWAL_EXTENDED" }
                .compactMap { $0["notificationUUID"]?.text }
        )
        let failures = Set(
            news.filter { $0["subtype"] == "FAILURE" }.compactMap { $0["notificationUUID"]?.text }
        )
        for entry in own {
            let uuid = try #require(entry.notificationUUID)
            if entry.errorCode == nil {
                #expect(extended.contains(uuid))
                #expect(entry.effectiveDate == entry.expiresBefore.map { $0 + 5 * Desk.day })
            } else {
                #expect(failures.contains(uuid) && entry.effectiveDate == nil)
            }
        }
        let ofSpent = own.first { $0.originalTransactionID == spent.originalTransactionID }
        #expect(ofSpent?.errorCode == 4_030_005)
    }

    @Test func storefrontsRestrictIt() throws {
        var desk = Desk.production
        let body = Self.body { $0["storefrontCountryCodes"] = ["DEU", "JPN"] }
        #expect(desk.ask("POST", Self.path, body: body).status == 200)
        desk.store.move(to: desk.store.now + 3 * Desk.hour)
        let entries = desk.store.extensions.filter { $0.source == .mass }
        #expect(!entries.isEmpty)
        for entry in entries {
            let one = try desk.overview(entry.originalTransactionID)
            #expect(["DEU", "JPN"].contains(one.storefront))
        }
        let summary = desk.deliver().last { $0["subtype"] == "SUMMARY" }
        #expect(summary?["summary"]?["storefrontCountryCodes"] == ["DEU", "JPN"])
    }

    @Test func theSameIdentifierStartsNothingTwice() throws {
        var desk = Desk.production
        for _ in 0..<2 {
            let answer = desk.ask("POST", Self.path, body: Self.body())
            #expect(answer.body == ["requestIdentifier": .string(Self.identifier)])
        }
        desk.store.move(to: desk.store.now + 3 * Desk.hour)
        let ids = desk.store.extensions.filter { $0.source == .mass }
            .map(\.originalTransactionID)
        #expect(!ids.isEmpty && Set(ids).count == ids.count)
    }

    @Test(
        arguments: [
            ("extendByDays", 0, 4_000_009), ("extendReasonCode", 9, 4_000_010),
            ("requestIdentifier", "request-1", 4_000_011), ("requestIdentifier", nil, 4_000_011),
            ("productId", "com.example.other", 4_000_023), ("productId", nil, 4_000_023),
            ("storefrontCountryCodes", [], 4_000_027),
            ("storefrontCountryCodes", ["DE"], 4_000_028),
            ("storefrontCountryCodes", ["usa"], 4_000_028),
            ("storefrontCountryCodes", "USA", 4_000_028),
        ] as [(String, WireValue?, Int64)]
    )
    func aWrongInputIsNamed(_ name: String, _ value: WireValue?, _ code: Int64) {
        var desk = Desk.production
        let body = Self.body { $0[name] = value }
        #expect(desk.error("POST", Self.path, body: body) == code)
        #expect(desk.store.extensions.last?.errorCode == code)
        #expect(desk.store.extensions.last?.source == .mass)
    }

    @Test func aRequestThatNobodyMadeHasNoStatus() {
        var desk = Desk.production
        #expect(desk.error("GET", "\(Self.path)/\(Self.product)/\(Self.identifier)") == 4_040_009)
        #expect(desk.error("GET", "\(Self.path)/\(Self.product)/request-1") == 4_000_011)
        #expect(desk.error("GET", "\(Self.path)/unknown/\(Self.identifier)") == 4_000_023)
        #expect(desk.ask("POST", Self.path, body: Self.body()).status == 200)
        let other = "com.example.subledger.premium.yearly"
        #expect(desk.error("GET", "\(Self.path)/\(other)/\(Self.identifier)") == 4_040_009)
    }
}
