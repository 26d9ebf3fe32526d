import Ledger
import Testing

@testable import AppStore

@Suite struct EndpointTests {
    private static let token =
        UniqueID("7e3fb20b-4cdb-47cc-936d-99d65f608138") ?? UniqueID(bits: 0)

    private static let expected: [(APIEndpoint, String)] = [
        (
            .subscriptionStatuses(id: "1", statuses: [1, 4]),
            "GET /inApps/v1/subscriptions/1?status=1&status=4"
        ),
        (.transactionInfo(id: "1"), "GET /inApps/v1/transactions/1"),
        (
            .transactionHistory(id: "1", TransactionHistoryQuery()),
            "GET /inApps/v2/history/1?sort=ASCENDING"
        ),
        (
            .transactionHistory(id: "1", TransactionHistoryQuery(), revision: "a/b="),
            "GET /inApps/v2/history/1?sort=ASCENDING&revision=a%2Fb%3D"
        ),
        (.refundHistory(id: "1", revision: "r"), "GET /inApps/v2/refund/lookup/1?revision=r"),
        (.orderLookup(orderID: "W002"), "GET /inApps/v1/lookup/W002"),
        (.requestTestNotification, "POST /inApps/v1/notifications/test"),
        (.testNotificationStatus(token: "t_1"), "GET /inApps/v1/notifications/test/t_1"),
        (
            .extensionStatus(productID: "com.example/pro", requestIdentifier: token),
            "GET /inApps/v1/subscriptions/extend/mass/com.example%2Fpro/\(token)"
        ),
        (
            .setAppAccountToken(originalTransactionID: "1", token),
            "PUT /inApps/v1/transactions/1/appAccountToken"
        ),
        (.appTransactionInfo(id: "1"), "GET /inApps/v1/transactions/appTransactions/1"),
        (
            .extendRenewalDate(
                originalTransactionID: "1",
                RenewalExtension(days: 7, reason: .serviceIssue, requestIdentifier: "r")
            ), "PUT /inApps/v1/subscriptions/extend/1"
        ),
        (
            .extendRenewalDates(
                MassRenewalExtension(
                    days: 7,
                    reason: .other,
                    requestIdentifier: token,
                    productID: "p"
                )
            ), "POST /inApps/v1/subscriptions/extend/mass"
        ),
        (
            .sendConsumption(
                transactionID: "1",
                ConsumptionInformation(
                    customerConsented: true,
                    deliveryStatus: .delivered,
                    sampleContentProvided: false
                )
            ), "PUT /inApps/v2/transactions/consumption/1"
        ),
        (
            .notificationHistory(
                NotificationHistoryQuery(from: APISample.now.adding(.days(-1)), to: APISample.now),
                paginationToken: "p q"
            ), "POST /inApps/v1/notifications/history?paginationToken=p%20q"
        ),
    ]

    @Test(arguments: expected.indices)
    func methodAndPathAreApples(_ index: Int) throws {
        let (endpoint, wanted) = Self.expected[index]
        let call = try endpoint.call(in: .production, now: APISample.now)
        #expect("\(call.method) \(call.target)" == wanted)
    }

    @Test(arguments: ["a/../b", "..", "1?x=1", "1#", "%2e%2e", "ünï"])
    func noIdentifierBecomesAnotherPath(_ id: String) throws {
        let call: APICall
        do {
            call = try APIEndpoint.transactionInfo(id: id).call(in: .sandbox, now: APISample.now)
        } catch {
            #expect(error.rule == AppleErrorCode(4_000_006))
            return
        }
        let segment = call.path.dropFirst("/inApps/v1/transactions/".count)
        #expect(call.path.hasPrefix("/inApps/v1/transactions/"))
        #expect(!segment.contains("/") && !segment.contains("?") && !segment.contains("#"))
        #expect(segment != "..")
    }

    @Test func hostsOfBothGenerationsAndOthersAreTaken() {
        let names = Environment.known.flatMap { environment in
            APIHost.Generation.allCases.map { APIHost(environment.value, generation: $0).baseURL }
        }
        #expect(
            names == [
                "https://api.storekit.apple.com", "https://api.storekit.itunes.apple.com",
                "https://api.storekit-sandbox.apple.com",
                "https://api.storekit-sandbox.itunes.apple.com",
            ]
        )
        let own = APIHost(.sandbox, baseURL: "https://localhost:8443/fake/")
        #expect(own?.baseURL == "https://localhost:8443/fake")
        #expect(APIHost(.sandbox, baseURL: "http://127.0.0.1:8080") != nil)
        for bad in [
            "http://apple.example", "ftp://x", "https://", "https://u@h", "https://h?x", "h",
            "http://localhost.example:1", "https://h\n",
        ] {
            #expect(APIHost(.sandbox, baseURL: bad) == nil, "\(bad)")
        }
    }

    @Test func limitsAreApplesAndATenthInSandbox() {
        let transaction = APIEndpoint.transactionInfo(id: "1")
        #expect(transaction.requestsPerHour(in: .production) == 180_000)
        #expect(transaction.requestsPerHour(in: .sandbox) == 18_000)
        #expect(APIEndpoint.refundHistory(id: "1").requestsPerHour(in: .production) == 36_000)
        #expect(APIEndpoint.requestTestNotification.requestsPerHour(in: .sandbox) == 360)
    }

    @Test func whatAppleWouldRefuseOfAnExtensionIsRefusedHere() {
        let cases: [(RenewalExtension, Int64)] = [
            (RenewalExtension(days: 0, reason: .other, requestIdentifier: "r"), 4_000_009),
            (RenewalExtension(days: 91, reason: .other, requestIdentifier: "r"), 4_000_009),
            (RenewalExtension(days: 1, reason: .other, requestIdentifier: ""), 4_000_011),
            (
                RenewalExtension(
                    days: 1,
                    reason: .other,
                    requestIdentifier: String(repeating: "x", count: 129)
                ), 4_000_011
            ),
        ]
        for (values, code) in cases {
            #expect(throws: APIRefusal.self) { try values.body() }
            do { _ = try values.body() } catch { #expect(error.rule.rawValue == code) }
        }
        #expect(ExtendReasonCode(rawValue: 4) == nil)
        let empty = MassRenewalExtension(
            days: 1,
            reason: .other,
            requestIdentifier: Self.token,
            productID: "p",
            storefronts: []
        )
        do {
            _ = try empty.body()
            Issue.record("an empty list of storefronts was taken")
        } catch { #expect(error.rule.name == "InvalidEmptyStorefrontCountryCodeList") }
    }

    /// D08: empty fields are left out, the rest is refused by the rule's name before any call.
    @Test func d08FiltersThatAppleRefusesAreRefusedHere() throws {
        let now = APISample.now
        var query = NotificationHistoryQuery(from: now.adding(.days(-1)), to: now)
        query.transactionID = ""
        query.notificationType = ""
        let body = String(decoding: try query.body(in: .production, now: now), as: UTF8.self)
        #expect(
            body == #"{"startDate":1789913600000,"endDate":1790000000000}"#
        )
        func rule(
            _ environment: Ledger.Environment,
            _ change: (inout NotificationHistoryQuery) -> Void
        ) -> String? {
            var query = NotificationHistoryQuery(from: now.adding(.days(-1)), to: now)
            change(&query)
            do { _ = try query.body(in: environment, now: now) } catch { return error.ruleName }
            return nil
        }
        #expect(
            rule(.production) {
                $0.transactionID = "1"
                $0.notificationType = "REFUND"
            } == "MultipleFiltersSupplied"
        )
        #expect(rule(.production) { $0.startDate = $0.endDate } == "StartDateAfterEndDate")
        #expect(
            rule(.production) { $0.startDate = now.adding(.days(-181)) } == "StartDateTooFarInPast"
        )
        #expect(rule(.production) { $0.startDate = now.adding(.days(-31)) } == nil)
        #expect(rule(.sandbox) { $0.startDate = now.adding(.days(-31)) } == "StartDateTooFarInPast")
        #expect(
            rule(.production) { $0.notificationSubtype = "VOLUNTARY" } == "InvalidNotificationType"
        )
        for environment in [Ledger.Environment.production, .sandbox] {
            let start = NotificationHistoryQuery.earliestStart(in: environment, now: now)
            #expect(rule(environment) { $0.startDate = start } == nil)
        }
    }
}
