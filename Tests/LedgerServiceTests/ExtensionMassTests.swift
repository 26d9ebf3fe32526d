import Crypto
import EventLog
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// A mass extension: one request, the notices of many subscriptions, and totals that must agree.
struct ExtensionMassTests {
    private static func wish(
        _ bench: ExtensionBench,
        days: Int = 5,
        storefronts: [String] = ["DEU"]
    ) -> MassExtensionWish {
        MassExtensionWish(
            bundleID: bench.log.app.bundleID,
            environment: .production,
            productID: "gold.month",
            storefronts: storefronts,
            wish: ExtensionBench.wish("", days: days, ticket: "INC-1")
        )
    }

    private func ask(
        _ bench: ExtensionBench,
        _ wish: MassExtensionWish? = nil
    ) throws -> ExtensionResult {
        try bench.extensions().requestMass(wish ?? Self.wish(bench), by: ExtensionBench.olga)
    }

    /// What Apple sends for a subscription that it could not extend.
    private func fail(_ bench: ExtensionBench, _ stream: String) throws {
        try bench.log.append([
            bench.log.event(
                stream,
                "\(stream)-failure",
                .renewalExtension,
                .failure,
                at: bench.now,
                bench.apple.books.withLock { $0[stream] }
            )
        ])
    }

    /// Apple's summary, which goes to the stream of the request.
    private func summarise(
        _ bench: ExtensionBench,
        _ request: UniqueID,
        succeeded: Int,
        failed: Int
    ) throws {
        let text = """
            {"notificationType":"RENEWAL_EXTENSION","subtype":"SUMMARY","summary":\
            {"requestIdentifier":"\(request)","succeededCount":\(succeeded),"failedCount":\(failed)}}
            """
        try bench.log.append([
            NewEvent(
                app: bench.log.app,
                stream: "mass:\(request)",
                eventKey: "n:summary-\(request)",
                kind: .notification,
                notificationType: "RENEWAL_EXTENSION",
                subtype: "SUMMARY",
                signedAt: bench.now,
                received: Array(text.utf8),
                form: .raw,
                contentDigest: SHA256.digest(Array(text.utf8))
            )
        ])
    }

    @Test func noticesAreLaidToTheRequestAndTheTotalsAgree() throws {
        let bench = try ExtensionBench()
        for stream in ["1000", "2000", "3000"] { try bench.buy(stream) }
        try bench.buy("4000") { $0.storefront = "USA" }
        let result = try ask(bench)
        #expect(result.outcome == .accepted)
        bench.now = LogFixture.day(10.2)
        for stream in ["1000", "2000"] {
            try bench.apple.notify(stream) { $0.expiresDate = LogFixture.day(35) }
        }
        try fail(bench, "3000")
        // Another storefront, and other days: nobody here asked for those.
        try bench.apple.notify("4000") { $0.expiresDate = LogFixture.day(35) }
        bench.now = LogFixture.day(10.3)
        try summarise(bench, result.request, succeeded: 2, failed: 1)
        let rows = try bench.audit()
        let byStream = Dictionary(grouping: rows) { $0["original_transaction_id"] ?? "" }
        for stream in ["1000", "2000"] {
            let row = try #require(byStream[stream]?.first)
            #expect(row["outcome"] == "confirmed", "\(stream)")
            #expect(row["scope"] == "mass")
            #expect(row["mass_request_id"] == result.request.description)
            #expect(row["ticket_id"] == "INC-1")
            #expect(row["operator_claimed"] == "Olga")
            #expect(row["days_requested"] == "5")
            #expect(row["counts_from"] != nil)
        }
        #expect(byStream["3000"]?.first?["outcome"] == "refused_by_apple")
        #expect(byStream["3000"]?.first?["mass_request_id"] == result.request.description)
        #expect(byStream["3000"]?.first?["counts_from"] == nil)
        #expect(byStream["4000"]?.first?["outcome"] == "external")
        let mass = try bench.log.connection.query(
            """
            select succeeded_count, failed_count, own_succeeded_count, own_failed_count,
                complete, succeeded_differs, failed_differs, ticket_id
            from read_model.mass_extension
            """
        )
        #expect(mass.count == 1)
        #expect((0..<4).map { mass.int(0, $0) } == [2, 1, 2, 1])
        #expect((4..<7).map { mass.bool(0, $0) } == [true, false, false])
        #expect(mass.text(0, 7) == "INC-1")
    }

    /// What a mass extension could not do is asked for singly later, and each names the other.
    @Test func aRefusalOfAMassExtensionIsLinkedWithItsLaterRetry() throws {
        let bench = try ExtensionBench()
        for stream in ["1000", "2000"] { try bench.buy(stream) }
        let mass = try ask(bench).request
        bench.now = LogFixture.day(10.2)
        for stream in ["1000", "2000"] { try fail(bench, stream) }
        bench.now = LogFixture.day(10.5)
        let retry = try bench.extend(ExtensionBench.wish("2000", days: 5, ticket: "INC-1"))
        #expect(retry.outcome == .accepted)
        bench.now = LogFixture.day(10.6)
        let later = try bench.extend(ExtensionBench.wish("2000", days: 5, ticket: "SUP-9"))
        let rows = try bench.audit()
        let child = try #require(
            rows.first { $0["scope"] == "mass" && $0["original_transaction_id"] == "2000" }
        )
        #expect(child["retried_by_request"] == retry.request.description)
        let other = try #require(rows.first { $0["original_transaction_id"] == "1000" })
        #expect(other["retried_by_request"] == nil)
        func row(_ request: UniqueID) -> ExtensionAuditRow? {
            rows.first { $0["request_identifier"] == request.description }
        }
        #expect(row(retry.request)?["retry_of_mass_request"] == mass.description)
        #expect(row(later.request)?["retry_of_mass_request"] == nil)
    }

    @Test func totalsThatDoNotAgreeAreShown() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        let request = try ask(bench).request
        bench.now = LogFixture.day(10.3)
        try summarise(bench, request, succeeded: 1, failed: 0)
        try Projector(bench.log.connection).project()
        let mass = try bench.log.connection.query(
            "select succeeded_differs, failed_differs from read_model.mass_extension"
        )
        #expect(mass.bool(0, 0) == true)
        #expect(mass.bool(0, 1) == false)
    }

    /// A subscription's own request explains a notice before a mass request may.
    @Test func anOwnRequestComesFirst() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        let own = try bench.extend(ExtensionBench.wish(days: 5))
        _ = try ask(bench)
        bench.now = LogFixture.day(10.1)
        try bench.apple.notify("1000")
        let row = try #require(try bench.audit().first)
        #expect(row["request_identifier"] == own.request.description)
        #expect(row["mass_request_id"] == nil)
        #expect(row["scope"] == "single")
    }

    @Test func aMassRequestIsAskedAboutUntilItIsComplete() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        bench.apple.manner.withLock { $0 = .losesTheAnswer }
        let request = try ask(bench).request
        #expect(try bench.extensions().status(of: request).outcome == .unknown)
        bench.now = LogFixture.day(10.01)
        #expect(try bench.extensions().massStatus(request).isComplete == false)
        #expect(try bench.extensions().status(of: request).outcome == .accepted)
        bench.apple.massStanding.withLock {
            $0 = """
                {"requestIdentifier":"\(request)","complete":true,"completeDate":1760864400000,\
                "succeededCount":0,"failedCount":0}
                """
        }
        bench.now = LogFixture.day(10.02)
        #expect(try bench.extensions().massStatus(request).isComplete)
        try Projector(bench.log.connection).project()
        let mass = try bench.log.connection.query(
            "select complete, succeeded_count, succeeded_differs from read_model.mass_extension"
        )
        #expect(mass.bool(0, 0) == true)
        #expect(mass.int(0, 1) == 0)
        #expect(mass.bool(0, 2) == false)
    }

    @Test(arguments: [["de"], ["DEU", "usa"], [""]])
    func storefrontsAreThreeLetters(_ storefronts: [String]) throws {
        let bench = try ExtensionBench()
        try bench.buy()
        #expect(throws: ExtensionProblem.self) {
            try ask(bench, Self.wish(bench, storefronts: storefronts))
        }
        #expect(bench.apple.orders.withLock { $0.isEmpty })
    }

    @Test func aMassRequestWaitsForAnotherWhereThatIsConfigured() throws {
        let bench = try ExtensionBench()
        bench.settings.approvesMass = true
        try bench.buy()
        let request = try ask(bench).request
        #expect(bench.apple.orders.withLock { $0.isEmpty })
        #expect(throws: ExtensionProblem.selfApproval) {
            try bench.extensions().approve(request, by: ExtensionBench.olga)
        }
        #expect(
            try bench.extensions().approve(request, by: ExtensionBench.peter).outcome == .accepted
        )
        #expect(bench.apple.orders.withLock { $0.count } == 1)
    }

    @Test func theMonthAddsUpByReasonAndOperator() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        _ = try bench.extend()
        bench.now = LogFixture.day(11)
        _ = try bench.extend()
        try Projector(bench.log.connection).project()
        let rows = try bench.log.connection.query(
            """
            select apple_reason, operator, requests, granted, days_granted, refused_locally
            from read_model.extension_monthly('2025-10-01', '2025-12-01')
            """
        )
        #expect(rows.count == 1)
        #expect(rows.text(0, 0) == "service-issue")
        #expect(rows.text(0, 1) == "os:olga@desk1/ops")
        #expect([2, 3, 5].map { rows.int(0, $0) } == [2, 1, 1])
    }
}
