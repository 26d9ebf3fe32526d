import AppStore
import AppStoreSimulator
import EventLog
import Ledger
import Postgres
import SimulatorServer
import TestSupport
import Testing

@testable import LedgerService

/// Extensions over HTTPS, against a fake App Store with books of its own.
struct AppStoreExtensionTests {
    private func ask(
        _ bench: StoreBench,
        _ id: String,
        _ ticket: String = "SUP-1",
        change: (inout ExtensionWish) -> Void = { _ in }
    ) throws -> ExtensionResult {
        try bench.extensions().request(
            StoreBench.wish(id, ticket: ticket, change: change),
            by: ExtensionBench.olga
        )
    }

    @Test func anExtensionIsAcceptedThenConfirmedAndIsInApplesBooks() throws {
        let bench = try StoreBench()
        let id = try #require(try bench.eligible(1).first)
        bench.advance(.minutes(5))
        let result = try ask(bench, id)
        #expect(result.outcome == .accepted)
        let entry = try #require(bench.books.first { $0.source == .request })
        #expect(entry.originalTransactionID == id && entry.days == 7 && entry.reasonCode == 3)
        #expect(entry.requestIdentifier == result.request.description)
        #expect(entry.effectiveDate == result.expiresAcked?.milliseconds)
        #expect(entry.expiresBefore == result.expiresBefore?.milliseconds)
        var row = try #require(try bench.row(result.request))
        #expect(row["outcome"] == "accepted" && row["fresh_status"] == "true")
        #expect(row["apple_key_id"] == bench.store.credentials.keyID)
        // Its statuses were read anew and are in the log, before the request.
        let reread = try bench.database.connect().query(
            """
            select count(*) from ledger.event where kind = 'api_response'
                and position < (select min(position) from ledger.extension_request)
            """
        )
        #expect((reread.int(0, 0) ?? 0) >= 1)
        try bench.deliverAll()
        row = try #require(try bench.row(result.request))
        #expect(row["outcome"] == "confirmed")
        #expect(row["notification_uuid"] == entry.notificationUUID)
    }

    /// A word of Apple's that came since decides, not what the ledger had before.
    @Test func whatAppleSaysAnewDecides() throws {
        let bench = try StoreBench()
        let id = try #require(try bench.eligible(1).first)
        // Its news does not come: only a fresh reading tells.
        _ = bench.store.server.withStore { $0.refund(id) }
        let result = try ask(bench, id)
        #expect(result.outcome == .refusedLocally && result.rule == "revoked")
        #expect(bench.books.allSatisfy { $0.source != .request })
    }

    @Test func eachRefusalOfApplesIsKeptByNumberAndName() throws {
        let bench = try StoreBench()
        let id = try #require(try bench.eligible(1).first)
        let codes: [(Int64, String)] = [
            (4_000_008, "InvalidOriginalTransactionId"), (4_000_009, "InvalidExtendByDays"),
            (4_000_010, "InvalidExtendReasonCode"), (4_000_011, "InvalidRequestIdentifier"),
            (4_030_004, "SubscriptionExtensionIneligible"), (4_030_005, "SubscriptionMaxExtension"),
            (4_030_007, "FamilySharedSubscriptionExtensionIneligible"),
            (4_030_028, "AssignedSubscriptionExtensionIneligible"),
            (4_040_005, "OriginalTransactionIdNotFound"),
            (4_040_006, "OriginalTransactionIdNotFoundRetryable"),
        ]
        for (code, name) in codes {
            bench.fault(.error(code))
            let result = try ask(bench, id, "SUP-\(code)")
            #expect(result.outcome == .refusedByApple, "\(code)")
            #expect(result.appleErrorCode == code && result.appleErrorName == name)
            #expect(result.httpStatus == Int(code / 10_000))
            let row = try #require(try bench.row(result.request))
            #expect(row["apple_error_code"] == "\(code)" && row["outcome"] == "refused_by_apple")
            #expect(row["apple_error_message"] != nil && row["raw_body_hash"] != nil)
            #expect(row["counts_from"] == nil, "a refusal uses nothing up")
        }
        #expect(try ask(bench, id, "SUP-0").outcome == .accepted)
    }

    /// What Apple itself says where our own rules are overruled.
    @Test func theStoresOwnRefusalsComeBackWhereOursAreOverruled() throws {
        let bench = try StoreBench(subscriptions: 400)
        var seen: Set<Int64> = []
        for overview in bench.overviews {
            guard let code = overview.extensionError, !seen.contains(code) else { continue }
            do {
                try bench.gateway.refreshStatuses(of: overview.originalTransactionID, in: bench.app)
            } catch { continue }
            let result = try ask(bench, overview.originalTransactionID) {
                $0.attemptIneligible = true
            }
            guard result.outcome != .refusedLocally else { continue }
            #expect(result.outcome == .refusedByApple && result.appleErrorCode == code)
            seen.insert(code)
        }
        #expect(seen.isSuperset(of: [4_030_004, 4_030_007]), "\(seen)")
        // The third within a year.
        let id = try #require(try bench.eligible(1).first)
        for number in 1...2 { #expect(try ask(bench, id, "B-\(number)").outcome == .accepted) }
        #expect(try ask(bench, id, "B-3").rule == "budget_used_subscription")
        let third = try ask(bench, id, "B-4") { $0.attemptIneligible = true }
        #expect(third.appleErrorCode == 4_030_005)
        let row = try #require(try bench.row(third.request))
        #expect(row["ineligible_rule"] == "budget_used_subscription")
    }

    @Test func aRefusedTokenIsMadeAnewOnceAndThenSaidToBeRefused() throws {
        let bench = try StoreBench()
        let ids = try bench.eligible(2)
        bench.fault(.unauthorized)
        #expect(try ask(bench, ids[0]).outcome == .accepted)
        bench.fault(.unauthorized, times: 2)
        let refused = try ask(bench, ids[1])
        #expect(refused.outcome == .refusedByApple && refused.httpStatus == 401)
        #expect(refused.detail?.contains(bench.store.credentials.keyID) == true)
        #expect(bench.books.filter { $0.source == .request }.count == 1)
    }

    @Test func aFullHourIsARefusalThatSaysUntilWhen() throws {
        let bench = try StoreBench()
        let id = try #require(try bench.eligible(1).first)
        bench.fault(.error(4_290_000))
        let full = try ask(bench, id)
        #expect(full.outcome == .refusedByApple && full.appleErrorCode == 4_290_000)
        #expect(full.detail?.contains("not before") == true, "\(full.detail ?? "")")
        #expect(try bench.row(full.request)?["counts_from"] == nil)
        // The next one waits for the instant that Apple named.
        #expect(try ask(bench, id).outcome == .accepted)
    }

    /// Apple did it, and the answer is an error, is cut off or comes too late.
    @Test(arguments: [
        FaultPlan.Action.errorAfterwards(5_000_000), .errorAfterwards(5_000_001), .loseAnswer,
        .latency(6_000),
    ])
    func anAnswerThatDoesNotSayLeavesItUnknownAndReadingSettlesIt(
        _ action: FaultPlan.Action
    ) throws {
        let bench = try StoreBench(timeout: .seconds(2))
        let id = try #require(try bench.eligible(1).first)
        bench.fault(action)
        let result = try ask(bench, id)
        #expect(result.outcome == .unknown, "\(action)")
        #expect(result.detail != nil)
        // It uses the budget up and stands in the way meanwhile.
        #expect(try bench.row(result.request)?["counts_from"] != nil)
        #expect(try ask(bench, id, "SUP-2").rule == "extension_in_progress")
        bench.advance(.minutes(1))
        let settled = try bench.extensions().resolve(result.request, by: ExtensionBench.peter)
        #expect(settled.outcome == .confirmed && settled.attempts == 1)
        let entries = bench.books.filter { $0.source == .request }
        #expect(entries.count == 1 && entries[0].isAnswerLost != (action == .latency(6_000)))
    }

    /// Apple did nothing and said so badly: sent once more under the same identifier, after a wait.
    @Test func whatWasNotDoneIsSentOnceMoreUnderTheSameIdentifier() throws {
        let bench = try StoreBench()
        let id = try #require(try bench.eligible(1).first)
        bench.fault(.error(5_000_000), times: 2)
        let result = try ask(bench, id)
        #expect(result.outcome == .unknown && result.httpStatus == 500)
        func resolve() throws -> ExtensionResult {
            try bench.extensions().resolve(result.request, by: ExtensionBench.peter)
        }
        #expect(throws: ExtensionProblem.self) { try resolve() }
        #expect(bench.books.isEmpty)
        bench.advance(.minutes(16))
        #expect(try resolve().outcome == .unknown)
        bench.advance(.minutes(16))
        #expect(throws: ExtensionProblem.needsDecision) { try resolve() }
        #expect(try bench.row(result.request)?["attempt"] == "2")
        #expect(bench.books.isEmpty)

        let other = try #require(try bench.eligible(2).last)
        bench.fault(.error(5_000_000))
        let second = try ask(bench, other, "SUP-2")
        bench.advance(.minutes(16))
        let settled = try bench.extensions().resolve(second.request, by: ExtensionBench.peter)
        #expect(settled.outcome == .accepted && settled.attempts == 2)
        #expect(bench.books.map(\.requestIdentifier) == [second.request.description])
    }

    @Test func anAppleThatCannotBeReachedRefusesHere() throws {
        let bench = try StoreBench()
        let id = try #require(try bench.eligible(1).first)
        bench.store.server.stop()
        let unread = try ask(bench, id)
        #expect(unread.outcome == .refusedLocally && unread.rule == "status_unavailable")
        let poll = try bench.database.connect().query(
            "select outcome from ledger.poll where stream = $1 and source = $2",
            [.text(id), .text("subscription_statuses")]
        )
        #expect(poll.text(0, 0).map { $0 != "ok" } == true, "what failed is noted as well")
        let unsent = try ask(bench, id) { $0.withoutFreshStatus = true }
        #expect(unsent.outcome == .refusedLocally && unsent.rule == "not_sent")
        #expect(try bench.row(unsent.request)?["fresh_status"] == "false")
        #expect(try bench.audit().count == 2)
    }

    @Test func aMassExtensionIsAskedAboutUntilAppleIsDone() throws {
        let bench = try StoreBench(subscriptions: 120)
        let counts = Dictionary(grouping: bench.overviews.filter { $0.extensionError == nil }) {
            $0.transaction?.productID ?? ""
        }
        let product = try #require(
            counts.max { ($0.value.count, $0.key) < ($1.value.count, $1.key) }
        )
        for overview in product.value {
            try bench.gateway.refreshStatuses(of: overview.originalTransactionID, in: bench.app)
        }
        let wish = MassExtensionWish(
            bundleID: StoreBench.bundleID,
            environment: .sandbox,
            productID: product.key,
            storefronts: [],
            wish: StoreBench.wish("", days: 11, ticket: "INC-1")
        )
        // The answer gets lost; then Apple knows the request.
        bench.fault(.loseAnswer, at: .massExtend)
        let result = try bench.extensions().requestMass(wish, by: ExtensionBench.olga)
        #expect(result.outcome == .unknown)
        bench.advance(.minutes(1))
        #expect(try bench.extensions().massStatus(result.request).isComplete == false)
        bench.advance(.hours(3))
        let standing = try bench.extensions().massStatus(result.request)
        #expect(standing.isComplete && (standing.succeeded ?? 0) > 0)
        try bench.deliverAll()
        try bench.project()
        let mass = try bench.database.connect().query(
            """
            select succeeded_count, own_succeeded_count, failed_count, own_failed_count
            from read_model.mass_extension
            """
        )
        #expect(mass.int(0, 0) == mass.int(0, 1) && mass.int(0, 2) == mass.int(0, 3))
    }

    /// A wish for all subscribers of the product that most have.
    private func mass(
        _ bench: StoreBench,
        in storefronts: [String],
        ticket: String,
        change: (inout ExtensionWish) -> Void = { _ in }
    ) -> MassExtensionWish {
        let products = bench.overviews.compactMap { $0.transaction?.productID }
        let counts = Dictionary(products.map { ($0, 1) }, uniquingKeysWith: +)
        var wish = StoreBench.wish("", days: 3, ticket: ticket)
        change(&wish)
        return MassExtensionWish(
            bundleID: StoreBench.bundleID,
            environment: .sandbox,
            productID: counts.max { ($0.value, $0.key) < ($1.value, $1.key) }?.key ?? "",
            storefronts: storefronts,
            wish: wish
        )
    }

    /// Apple extends the same subscribers as often as it is asked, and it cannot be undone.
    @Test func theSameSubscribersAreNotExtendedTwiceByMistake() throws {
        let bench = try StoreBench(subscriptions: 60)
        func ask(
            _ storefronts: [String],
            _ ticket: String,
            again: Bool = false
        ) throws -> ExtensionResult {
            try bench.extensions().requestMass(
                mass(bench, in: storefronts, ticket: ticket) { $0.again = again },
                by: ExtensionBench.olga
            )
        }
        func complete(_ result: ExtensionResult) throws {
            #expect(try bench.extensions().massStatus(result.request).isComplete)
        }
        let first = try ask(["DEU", "FRA"], "INC-3")
        #expect(first.outcome == .accepted)
        // Apple works on it: neither another ticket nor a second yes makes it another thing.
        for (storefronts, ticket) in [(["FRA"], "INC-3"), (["DEU"], "INC-4"), ([], "INC-4")] {
            let refused = try ask(storefronts, ticket, again: true)
            #expect(refused.outcome == .refusedLocally && refused.rule == "extension_in_progress")
        }
        let elsewhere = try ask(["USA"], "INC-3")
        #expect(elsewhere.outcome == .accepted, "these are others")
        bench.advance(.hours(3))
        try complete(first)
        try complete(elsewhere)
        // Also where both came to everybody.
        for storefronts in [["FRA"], []] {
            let refused = try ask(storefronts, "INC-3")
            #expect(refused.outcome == .refusedLocally && refused.rule == "duplicate_ticket")
        }
        let meant = try ask(["FRA"], "INC-3", again: true)
        #expect(meant.outcome == .accepted)
        let other = try ask(["USA"], "INC-5")
        #expect(other.outcome == .accepted, "another ticket is another reason")
        // What was refused asked Apple nothing, and has its row.
        let asked = try bench.database.connect().query(
            """
            select count(*) filter (where kind = 'mass_extension_requested'),
                count(*) filter (where kind = 'mass_extension_submitted'),
                count(*) filter (where kind = 'extension_refused')
            from ledger.event
            """
        )
        #expect((0..<3).map { asked.int(0, $0) } == [9, 4, 5])
    }

    @Test func ofTwoMassExtensionsAtATimeOneIsSent() throws {
        let bench = try StoreBench(subscriptions: 20)
        let extensions = try bench.extensions()
        var other: ExtensionResult?
        // Decided to be sent, and then somebody else is quicker.
        extensions.pause = { step in
            guard step == .decided, other == nil else { return }
            other = try bench.extensions().requestMass(
                mass(bench, in: ["USA"], ticket: "INC-7"),
                by: ExtensionBench.peter
            )
        }
        let result = try extensions.requestMass(
            mass(bench, in: [], ticket: "INC-6"),
            by: ExtensionBench.olga
        )
        #expect(other?.outcome == .accepted)
        #expect(result.outcome == .refusedLocally && result.rule == "extension_in_progress")
    }

    @Test func aMassRequestThatGotLostIsSentOnceMoreAfterAWait() throws {
        let bench = try StoreBench()
        let overview = try #require(bench.overviews.first { $0.extensionError == nil })
        let wish = MassExtensionWish(
            bundleID: StoreBench.bundleID,
            environment: .sandbox,
            productID: overview.transaction?.productID ?? "",
            storefronts: [],
            wish: StoreBench.wish("", days: 3, ticket: "INC-2")
        )
        bench.fault(.error(5_000_000), at: .massExtend)
        let request = try bench.extensions().requestMass(wish, by: ExtensionBench.olga).request
        bench.advance(.minutes(2))
        let early = #expect(throws: ExtensionProblem.self) {
            try bench.extensions().resolve(request, by: ExtensionBench.peter)
        }
        if case .tooEarly? = early {} else { Issue.record("\(String(describing: early))") }
        bench.advance(.minutes(15))
        let settled = try bench.extensions().resolve(request, by: ExtensionBench.peter)
        #expect(settled.outcome == .accepted && settled.attempts == 2)
    }
}
