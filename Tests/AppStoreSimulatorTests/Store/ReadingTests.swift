import AppStoreSimulator
import Crypto
import Testing

/// The endpoints that read: statuses, transactions, orders.
@Suite struct StoreReadingTests {
    @Test func statusesAreGroupedAndSignedAnew() throws {
        var desk = Desk.production
        let one = try desk.first { $0.status == 1 && $0.transactions > 2 }
        let path = "inApps/v1/subscriptions/\(one.originalTransactionID)"
        let first = try #require(desk.get(path).body)
        #expect(first["environment"]?.text == "Production")
        #expect(first["bundleId"]?.text == "com.example.subledger")
        #expect(first["appAppleId"]?.number == 1_234_567_890)
        let group = try #require(first["data"]?.elements?.first)
        #expect(group["subscriptionGroupIdentifier"]?.text?.isEmpty == false)
        let item = try #require(group["lastTransactions"]?.elements?.first)
        #expect(item["originalTransactionId"]?.text == one.originalTransactionID)
        #expect(item["status"]?.number == 1)
        let transaction = try Desk.payload(item["signedTransactionInfo"])
        let renewal = try Desk.payload(item["signedRenewalInfo"])
        #expect(transaction["transactionId"]?.text == one.transaction?.transactionID)
        #expect(transaction["environment"]?.text == "Production")
        #expect(renewal["originalTransactionId"]?.text == one.originalTransactionID)
        #expect(renewal["renewalDate"]?.number == transaction["expiresDate"]?.number)

        let again = try #require(desk.get(path).body)
        let second = try Desk.payload(
            again["data"]?.elements?.first?["lastTransactions"]?.elements?.first?[
                "signedTransactionInfo"
            ]
        )
        let dates = [transaction, second].compactMap { $0["signedDate"]?.number }
        #expect(dates.count == 2 && dates[0] < dates[1])
        var content = second
        content["signedDate"] = transaction["signedDate"]
        #expect(content == transaction, "nothing else of it changes")
    }

    @Test func everyKindOfIDFindsTheCustomer() throws {
        var desk = Desk.production
        let one = try desk.first {
            $0.status == 1 && $0.transaction?.transactionID != $0.originalTransactionID
        }
        let current = try #require(one.transaction?.transactionID)
        for id in [one.originalTransactionID, current, one.appTransactionID] {
            let answer = desk.get("inApps/v1/subscriptions/\(id)")
            #expect(answer.status == 200)
            let items = answer.body?["data"]?.elements?.flatMap {
                $0["lastTransactions"]?.elements ?? []
            }
            let ids = items?.compactMap { $0["originalTransactionId"]?.text } ?? []
            #expect(ids.contains(one.originalTransactionID))
        }
    }

    @Test func aMigratedCustomerHasTwoChains() throws {
        var desk = Desk.production
        let all = Dictionary(grouping: desk.store.overviews, by: \.appTransactionID)
        let customer = try #require(all.values.first { $0.count > 1 })
        let id = customer[0].appTransactionID
        let answer = try #require(desk.get("inApps/v1/subscriptions/\(id)").body)
        let items = answer["data"]?.elements?.flatMap { $0["lastTransactions"]?.elements ?? [] }
        #expect(items?.count == customer.count)
    }

    @Test func statusesCanBeFiltered() throws {
        var desk = Desk.production
        for status in 1...5 {
            let one = try desk.first { $0.status == status }
            let path = "inApps/v1/subscriptions/\(one.originalTransactionID)"
            let same = desk.get(path, [("status", "\(status)")])
            #expect(same.body?["data"]?.elements?.isEmpty == false, "status \(status)")
            let other = desk.get(path, [("status", "\(status % 5 + 1)")])
            let ids = other.body?["data"]?.elements?.flatMap {
                $0["lastTransactions"]?.elements ?? []
            }.compactMap { $0["originalTransactionId"]?.text }
            #expect(ids?.contains(one.originalTransactionID) == false)
            let both = desk.get(path, [("status", "\(status % 5 + 1)"), ("status", "\(status)")])
            #expect(both.body?["data"]?.elements?.isEmpty == false)
        }
        let id = try desk.first { $0.status == 1 }.originalTransactionID
        for bad in ["0", "6", "active", ""] {
            let code = desk.error("GET", "inApps/v1/subscriptions/\(id)", [("status", bad)])
            #expect(code == 4_000_031)
        }
    }

    @Test func timeAloneChangesAStatus() throws {
        var desk = Desk.production
        // Those whose grace or period ends without any news before.
        for _ in 0..<40 {
            desk.store.move(to: desk.store.now + Desk.day)
            for one in desk.store.overviews {
                switch one.state {
                case .expired: #expect(one.status == 2 || one.status == 5)
                case .revoked: #expect(one.status == 5)
                case .billingRetry: #expect(one.status == 3)
                case .gracePeriod: #expect(one.status == 4)
                default: #expect(one.status != 0)
                }
            }
        }
    }

    @Test func idsThatAreNoneOrUnknownAreTold() {
        var desk = Desk.production
        let paths = [
            ("inApps/v1/subscriptions/", ""), ("inApps/v1/transactions/", ""),
            ("inApps/v2/history/", ""), ("inApps/v2/refund/lookup/", ""),
            ("inApps/v1/transactions/appTransactions/", ""),
        ]
        for (path, _) in paths {
            #expect(desk.error("GET", path + "abc") == 4_000_006)
            #expect(desk.error("GET", path + "123456789012345678901") == 4_000_006)
            #expect(desk.error("GET", path + "2000000999999000") == 4_040_010)
            #expect(desk.error("GET", path + "17") == 4_040_010)
        }
    }

    @Test func theOtherEnvironmentKnowsNothingOfIt() throws {
        var sandbox = Desk.sandbox
        let one = try Desk.production.first { $0.status == 1 }
        let path = "inApps/v1/subscriptions/\(one.originalTransactionID)"
        #expect(sandbox.error("GET", path) == 4_040_010)
        let own = try sandbox.first { $0.status == 1 }
        let answer = try #require(
            sandbox.get("inApps/v1/subscriptions/\(own.originalTransactionID)").body
        )
        #expect(answer["environment"]?.text == "Sandbox")
        #expect(answer["appAppleId"] == nil)
        let ids = Set(Desk.production.store.overviews.map(\.originalTransactionID))
        #expect(ids.isDisjoint(with: sandbox.store.overviews.map(\.originalTransactionID)))
    }

    @Test func aTransactionIsReadByItsID() throws {
        var desk = Desk.production
        let one = try desk.first { $0.transactions > 3 && $0.transaction?.offer == nil }
        let id = try #require(one.transaction?.transactionID)
        let answer = desk.get("inApps/v1/transactions/\(id)")
        let transaction = try Desk.payload(answer.body?["signedTransactionInfo"])
        #expect(transaction["transactionId"]?.text == id)
        #expect(transaction["originalTransactionId"]?.text == one.originalTransactionID)
        let customer = one.appTransactionID
        #expect(desk.error("GET", "inApps/v1/transactions/\(customer)") == 4_000_048)
    }

    @Test func whatHasNotHappenedYetIsNotThere() throws {
        var desk = Desk.production
        let known = Set(desk.store.overviews.map(\.originalTransactionID))
        desk.store.move(to: desk.store.now + 60 * Desk.day)
        let later = try desk.first { !known.contains($0.originalTransactionID) }
        let path = "inApps/v1/transactions/\(later.originalTransactionID)"
        #expect(desk.get(path).status == 200)
        var before = Desk.production
        #expect(before.error("GET", path) == 4_040_010)
    }

    @Test func anUpgradedTransactionSaysSo() throws {
        var desk = Desk.production
        var upgraded = 0
        for one in desk.store.overviews where one.transactions > 1 {
            let history = desk.get("inApps/v2/history/\(one.originalTransactionID)")
            for jws in history.body?["signedTransactions"]?.elements ?? [] {
                let transaction = try Desk.payload(jws)
                if transaction["isUpgraded"]?.flag == true { upgraded += 1 }
            }
        }
        #expect(upgraded > 3)
    }

    @Test func anOrderIsLookedUpInProductionOnly() throws {
        var desk = Desk.production
        let one = try desk.first { $0.status == 1 }
        let id = try #require(one.transaction?.transactionID)
        let order = try #require(FakeAppStore.orderID(ofTransaction: id))
        let answer = try #require(desk.get("inApps/v1/lookup/\(order)").body)
        #expect(answer["status"]?.number == 0)
        let transaction = try Desk.payload(answer["signedTransactions"]?.elements?.first)
        #expect(transaction["transactionId"]?.text == id)
        for unknown in ["MW17", "ZZZZ"] {
            let answer = desk.get("inApps/v1/lookup/\(unknown)")
            #expect(answer.body == ["status": 1])
        }
        #expect(desk.error("GET", "inApps/v1/lookup/no-order") == 4_000_000)
        var sandbox = Desk.sandbox
        let answerThere = sandbox.get("inApps/v1/lookup/\(order)")
        #expect(answerThere.status == 404 && answerThere.body == nil)
    }

    @Test func anAppTransactionIsSigned() throws {
        var desk = Desk.production
        let one = try desk.first { $0.status == 1 }
        let path = "inApps/v1/transactions/appTransactions/\(one.originalTransactionID)"
        let app = try Desk.payload(desk.get(path).body?["signedAppTransactionInfo"])
        #expect(app["appTransactionId"]?.text == one.appTransactionID)
        #expect(app["receiptType"]?.text == "Production")
    }

    @Test func whatIsNoEndpointIsNotFound() {
        var desk = Desk.production
        for (method, path) in [
            ("GET", "inApps/v9/subscriptions/1"), ("POST", "inApps/v1/subscriptions/1"),
            ("GET", "inapps/v1/subscriptions/1"), ("GET", ""),
        ] {
            let answer = desk.ask(method, path)
            #expect(answer.status == 404 && answer.body == nil)
        }
    }
}
