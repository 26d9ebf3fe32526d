import AppStoreSimulator
import Testing

/// Transaction history and refund history.
@Suite struct StoreHistoryTests {
    /// All pages from a revision on; and the last revision.
    static func pages(
        _ desk: inout Desk,
        _ path: String,
        _ query: [(String, String)] = [],
        from revision: String? = nil
    ) throws -> (transactions: [WireValue], revision: String, pages: Int) {
        var revision = revision
        var all: [WireValue] = []
        for page in 1...100 {
            let answer = try #require(
                desk.get(path, query + (revision.map { [("revision", $0)] } ?? [])).body
            )
            let signed = try #require(answer["signedTransactions"]?.elements)
            #expect(signed.count <= 20)
            for jws in signed { all.append(try Desk.payload(jws)) }
            revision = try #require(answer["revision"]?.text)
            let hasMore = try #require(answer["hasMore"])
            if hasMore == true { continue }
            return (all, try #require(revision), page)
        }
        throw Unending()
    }

    struct Unending: Error {}

    static func ids(_ transactions: [WireValue]) -> [String] {
        transactions.compactMap { $0["transactionId"]?.text }
    }

    @Test func aLongHistoryComesInPages() throws {
        var desk = Desk.production
        let one = try #require(desk.store.overviews.max { $0.transactions < $1.transactions })
        try #require(one.transactions > 20)
        let path = "inApps/v2/history/\(one.originalTransactionID)"
        let (all, revision, pages) = try Self.pages(&desk, path)
        #expect(all.count == one.transactions)
        #expect(pages == (one.transactions + 19) / 20)
        #expect(Set(Self.ids(all)).count == all.count)
        let down = try Self.pages(&desk, path, [("sort", "DESCENDING")])
        #expect(Self.ids(down.transactions) == Self.ids(all).reversed())
        // The last revision goes on from there: nothing is new.
        let more = try Self.pages(&desk, path, from: revision)
        #expect(more.transactions.isEmpty && more.revision == revision)
    }

    @Test func aStoredRevisionGivesWhatChangedSince() throws {
        var desk = Desk.production
        let one = try desk.extendable()
        let path = "inApps/v2/history/\(one.originalTransactionID)"
        let (_, revision, _) = try Self.pages(&desk, path)
        desk.store.move(to: desk.store.now + Desk.hour)
        #expect(desk.store.refund(one.originalTransactionID) != nil)
        let changed = try Self.pages(&desk, path, from: revision).transactions
        #expect(Self.ids(changed) == [try #require(one.transaction?.transactionID)])
        #expect(changed[0]["revocationDate"]?.number != nil)
    }

    @Test func filtersAreJoined() throws {
        var desk = Desk.production
        let one = try #require(
            desk.store.overviews.max { $0.transactions < $1.transactions }
        )
        let path = "inApps/v2/history/\(one.originalTransactionID)"
        let all = try Self.pages(&desk, path).transactions
        let dates = all.compactMap { $0["purchaseDate"]?.number }.sorted()
        let middle = dates[dates.count / 2]
        let late = try Self.pages(&desk, path, [("startDate", "\(middle)")]).transactions
        let early = try Self.pages(&desk, path, [("endDate", "\(middle)")]).transactions
        #expect(late.count + early.count == all.count && !late.isEmpty && !early.isEmpty)
        #expect(late.allSatisfy { ($0["purchaseDate"]?.number ?? 0) >= middle })
        let product = try #require(all[0]["productId"]?.text)
        let ofProduct = try Self.pages(&desk, path, [("productId", product)]).transactions
        #expect(ofProduct.count == all.count { $0["productId"]?.text == product })
        let either = try Self.pages(&desk, path, [("productId", product), ("productId", "x")])
        #expect(either.transactions.count == ofProduct.count)
        let type = [("productType", "CONSUMABLE")]
        #expect(
            try Self.pages(&desk, path, type).transactions.count
                == all.count { $0["type"]?.text == "Consumable" }
        )
        let group = try #require(all[0]["subscriptionGroupIdentifier"]?.text)
        #expect(
            try Self.pages(&desk, path, [("subscriptionGroupIdentifier", group)]).transactions.count
                == all.count { $0["subscriptionGroupIdentifier"]?.text == group }
        )
        let both = try Self.pages(&desk, path, [("productId", product), ("endDate", "\(middle)")])
        #expect(both.transactions.count < all.count)
        let shared = [("inAppOwnershipType", "FAMILY_SHARED")]
        #expect(try Self.pages(&desk, path, shared).transactions.isEmpty)
    }

    @Test func revokedOnesAreToldApart() throws {
        var desk = Desk.production
        var revoked = 0
        for one in desk.store.overviews where one.status == 5 {
            let path = "inApps/v2/history/\(one.originalTransactionID)"
            let all = try Self.pages(&desk, path).transactions
            let only = try Self.pages(&desk, path, [("revoked", "true")]).transactions
            let rest = try Self.pages(&desk, path, [("revoked", "false")]).transactions
            let old = try Self.pages(&desk, path, [("excludeRevoked", "true")]).transactions
            #expect(only.allSatisfy { $0["revocationDate"] != nil })
            #expect(rest.allSatisfy { $0["revocationDate"] == nil })
            #expect(only.count + rest.count == all.count && old.count == rest.count)
            revoked += only.count
        }
        #expect(revoked > 0)
    }

    @Test(arguments: [
        ("startDate", "yesterday", 4_000_015), ("endDate", "-1", 4_000_016),
        ("sort", "UP", 4_000_021), ("productType", "Consumable", 4_000_022),
        ("productId", "", 4_000_023), ("subscriptionGroupIdentifier", "group", 4_000_024),
        ("excludeRevoked", "1", 4_000_025), ("inAppOwnershipType", "OWNED", 4_000_026),
        ("revoked", "yes", 4_000_030), ("revision", "abc", 4_000_005),
        ("revision", "r1", 4_000_005),
    ])
    func aWrongParameterIsNamed(_ name: String, _ value: String, _ code: Int64) throws {
        var desk = Desk.production
        let id = try desk.first { $0.status == 1 }.originalTransactionID
        #expect(desk.error("GET", "inApps/v2/history/\(id)", [(name, value)]) == code)
    }

    @Test func aRevisionBelongsToItsQuestion() throws {
        var desk = Desk.production
        let ids = desk.store.overviews.filter { $0.status == 1 }.map(\.originalTransactionID)
        let path = "inApps/v2/history/\(ids[0])"
        let (_, revision, _) = try Self.pages(&desk, path)
        let changed = [("revision", revision), ("sort", "DESCENDING")]
        #expect(desk.error("GET", path, changed) == 4_000_005)
        let other = "inApps/v2/history/\(ids[1])"
        #expect(desk.error("GET", other, [("revision", revision)]) == 4_000_005)
    }

    @Test func refundsComeInTheOrderOfTheirDates() throws {
        var desk = Desk.production
        var refunds = 0
        var lost = 0
        for one in desk.store.overviews {
            let path = "inApps/v2/refund/lookup/\(one.originalTransactionID)"
            let (all, _, _) = try Self.pages(&desk, path)
            let dates = all.compactMap { $0["revocationDate"]?.number }
            #expect(dates.count == all.count && dates == dates.sorted())
            #expect(all.allSatisfy { $0["revocationType"]?.text?.hasPrefix("REFUND") == true })
            refunds += all.count
            if one.status == 5, all.isEmpty { lost += 1 }
        }
        #expect(refunds > 10)
        #expect(lost > 0, "families lose access without a refund")
        let id = try desk.first { $0.status == 1 }.originalTransactionID
        let path = "inApps/v2/refund/lookup/\(id)"
        #expect(desk.error("GET", path, [("revision", "?")]) == 4_000_005)
    }
}
