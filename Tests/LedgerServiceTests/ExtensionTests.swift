import EventLog
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// An extension from the wish to Apple's signature, and everything that refuses one.
struct ExtensionTests {
    @Test func anExtensionLeavesAWholeTrail() throws {
        let bench = try ExtensionBench()
        try bench.buy(owner: UniqueID(bits: 0xA))
        let result = try bench.extend(
            ExtensionBench.wish {
                $0.justification = "three hours of outage"
                $0.incident = "INC-9"
            }
        )
        #expect(result.outcome == .accepted)
        #expect(result.expiresAcked == LogFixture.day(37))
        var row = try #require(try bench.audit().first)
        #expect(row["outcome"] == "accepted")
        #expect(row["apple_effective_at"] == bench.now.description)
        bench.now = LogFixture.day(10.1)
        try bench.apple.notify("1000")
        row = try #require(try bench.audit().first)
        let expected = [
            "original_transaction_id": "1000", "environment": "Production",
            "bundle_id": "com.example.app", "outcome": "confirmed", "scope": "single",
            "operator_authenticated": "os:olga@desk1/ops", "operator_claimed": "Olga",
            "authn_method": "os_account", "channel": "cli", "apple_reason_code": "3",
            "apple_reason": "service-issue", "justification": "three hours of outage",
            "incident_id": "INC-9", "ticket_id": "SUP-1", "days_requested": "7",
            "product_id": "gold.month", "ownership": "PURCHASED", "storefront": "DEU",
            "owner": "00000000-0000-0000-0000-00000000000a", "state_before": "active",
            "state_after": "active", "expires_before": LogFixture.day(30).description,
            "expires_acked": LogFixture.day(37).description,
            "expires_confirmed": LogFixture.day(37).description, "days_effective": "7.000",
            "extensions_365d_before_chain": "0", "http_status": "200",
            "apple_key_id": "KEY1234567", "attempt": "1", "latency_ms": "42",
            "web_order_line_item_id": "77", "fresh_status": "true", "contradiction": "false",
            "service_identity": "subledger test", "clock_source": "apple",
            "notification_uuid":
                "1000-\(bench.now.milliseconds)-\(LogFixture.day(37).milliseconds)",
        ]
        for (name, value) in expected { #expect(row[name] == value, "\(name)") }
        for name in ["approved_by", "refusal_rule", "apple_error_code", "mass_request_id"] {
            #expect(row[name] == nil, "\(name)")
        }
        #expect(row["evidence_positions"] == "2 3 4 5 6")
        #expect(bench.apple.orders.withLock { $0.count } == 1)
    }

    /// The answer moves the end at once; Apple's signature confirms it.
    @Test func theTimelineMovesWithTheAnswer() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        _ = try bench.extend()
        try Projector(bench.log.connection).project()
        let rows = try bench.log.connection.query(
            """
            select confidence, expires_date from read_model.entitlement_at($1)
            where original_transaction_id = '1000'
            """,
            [.instant(milliseconds: LogFixture.day(33).milliseconds)]
        )
        #expect(rows.text(0, 0) == "provisional")
    }

    private static let refusals: [(ExtensionRule, @Sendable (ExtensionBench) throws -> Void)] = [
        (.expired, { try expire($0, retry: false) }),
        (.inBillingRetry, { try expire($0, retry: true) }),
        (.renewalPending, { $0.now = LogFixture.day(30.01) }),
        (.revoked, { try revoke($0) }),
        (
            .freeOffer,
            {
                try $0.buy {
                    $0.offerDiscountType = .freeTrial
                    $0.offerType = 1
                }
            }
        ),
        (.neverPaid, { try $0.buy { $0.price = 0 } }),
        (.familyMember, { try $0.buy { $0.ownership = .familyShared } }),
        (.assignedSeat, { try $0.buy { $0.ownership = .assigned } }),
        (.notAutoRenewable, { try $0.buy { $0.productType = .consumable } }),
    ]

    private static func expire(_ bench: ExtensionBench, retry: Bool) throws {
        bench.now = LogFixture.day(31)
        try bench.log.append([
            bench.log.event(
                "1000",
                "end",
                retry ? .didFailToRenew : .expired,
                retry ? nil : .voluntary,
                at: LogFixture.day(30),
                bench.apple.books.withLock { $0["1000"] },
                LogFixture.renewal {
                    $0.isInBillingRetryPeriod = retry
                    $0.autoRenewStatus = retry ? 1 : 0
                }
            )
        ])
    }

    private static func revoke(_ bench: ExtensionBench) throws {
        bench.apple.books.withLock { $0["1000"]?.revocationDate = LogFixture.day(5) }
        try bench.log.append([
            bench.log.event(
                "1000",
                "refund",
                .refund,
                at: LogFixture.day(5),
                bench.apple.books.withLock { $0["1000"] }
            )
        ])
    }

    @Test(arguments: refusals.map(\.0))
    func whatAppleWouldRefuseIsRefusedByName(_ rule: ExtensionRule) throws {
        let bench = try ExtensionBench()
        let change = try #require(Self.refusals.first { $0.0 == rule }).1
        let isBought = [.freeOffer, .neverPaid, .familyMember, .assignedSeat, .notAutoRenewable]
            .contains(rule)
        if !isBought { try bench.buy() }
        try change(bench)
        let result = try bench.extend()
        #expect(result.rule == rule.rawValue)
        #expect(result.outcome == .refusedLocally)
        #expect(bench.apple.orders.withLock { $0.isEmpty })
        let row = try #require(try bench.audit().first)
        #expect(row["outcome"] == "refused_locally")
        #expect(row["refusal_rule"] == rule.rawValue)
        #expect(row["submitted_at"] == nil)
        #expect(row["counts_from"] == nil)
        guard rule.isApples else { return }
        bench.apple.manner.withLock { $0 = .refuses(4_030_004) }
        bench.now = bench.now.adding(.minutes(1))
        let attempted = try bench.extend(
            ExtensionBench.wish(ticket: "SUP-2") { $0.attemptIneligible = true }
        )
        #expect(attempted.outcome == .refusedByApple)
        #expect(attempted.appleErrorCode == 4_030_004)
        let second = try #require(try bench.audit().last)
        #expect(second["ineligible_rule"] == rule.rawValue)
        #expect(second["attempt_ineligible"] == "true")
    }

    /// D05: Apple's numbers are kept with their words, nothing is retried, access stays.
    @Test(arguments: [4_030_004, 4_030_005, 4_030_007, 4_030_028, 4_040_005, 4_290_000])
    func applesRefusalIsKeptByItsNumber(_ code: Int) throws {
        let bench = try ExtensionBench()
        try bench.buy()
        bench.apple.manner.withLock { $0 = .refuses(code) }
        let result = try bench.extend()
        #expect(result.outcome == .refusedByApple)
        #expect(result.appleErrorCode == Int64(code))
        #expect(result.expiresAcked == nil)
        let row = try #require(try bench.audit().first)
        #expect(row["apple_error_code"] == "\(code)")
        #expect(row["apple_error_message"] == "No.")
        #expect(row["http_status"] == "\(code / 10_000)")
        #expect(bench.apple.orders.withLock { $0.count } == 1)
    }

    /// D09: what is not whole is refused before any call, and nothing is recorded.
    @Test(arguments: [
        ExtensionBench.wish(days: 0), ExtensionBench.wish(days: 91),
        ExtensionBench.wish(ticket: " "), ExtensionBench.wish(ticket: "SUP\u{7}"),
        ExtensionBench.wish(ticket: "SUP-1\n"), ExtensionBench.wish(ticket: " SUP-1"),
        ExtensionBench.wish(ticket: "SUP\n-1"), ExtensionBench.wish(ticket: "SUP\u{2028}1"),
        ExtensionBench.wish { $0.reason = .undeclared }, ExtensionBench.wish { $0.reason = .other },
        ExtensionBench.wish { $0.idempotencyKey = "" },
    ])
    func whatIsNotWholeIsRefusedBeforeAnyCall(_ wish: ExtensionWish) throws {
        let bench = try ExtensionBench()
        try bench.buy()
        #expect(throws: ExtensionProblem.self) { try bench.extend(wish) }
        #expect(try bench.log.count("ledger.event") == 1)
        #expect(bench.apple.reads.withLock { $0 } == 0)
        #expect(ExtensionReason.allCases.map(\.rawValue) == [0, 1, 2, 3])
    }

    @Test func aTicketMustLookAsConfigured() throws {
        let bench = try ExtensionBench()
        bench.settings.ticketPattern = "SUP-#"
        try bench.buy()
        #expect(throws: ExtensionProblem.self) {
            try bench.extend(ExtensionBench.wish(ticket: "x"))
        }
        #expect(try bench.extend(ExtensionBench.wish(ticket: "SUP-20")).outcome == .accepted)
    }

    @Test func withoutAnAnswerFromAppleNothingIsExtended() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        bench.apple.isAway.withLock { $0 = true }
        let refused = try bench.extend()
        #expect(refused.rule == "status_unavailable")
        // Of two requests of one instant the random identifier would tell the order.
        bench.now = LogFixture.day(11)
        let meant = try bench.extend(
            ExtensionBench.wish(ticket: "SUP-2") { $0.withoutFreshStatus = true }
        )
        #expect(meant.outcome == .accepted)
        let rows = try bench.audit()
        #expect(rows.map { $0["fresh_status"] } == ["false", "false"])
        #expect(rows.map { $0["outcome"] } == ["refused_locally", "accepted"])
    }

    @Test func aDryRunWritesNothingButWhatWasRead() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        let result = try bench.extend(ExtensionBench.wish { $0.isDryRun = true })
        #expect(result.isDryRun)
        #expect(result.expiresBefore == LogFixture.day(30))
        #expect(try bench.audit().isEmpty)
        #expect(bench.apple.orders.withLock { $0.isEmpty })
    }

    // MARK: - Budget

    @Test func theThirdInAYearIsRefusedAndAYearLaterAllowed() throws {
        let bench = try ExtensionBench()
        try bench.buy { $0.expiresDate = LogFixture.day(900) }
        for (number, day) in [10.0, 20.0].enumerated() {
            bench.now = LogFixture.day(day)
            let wish = ExtensionBench.wish(ticket: "SUP-\(number)")
            #expect(try bench.extend(wish).outcome == .accepted)
            try bench.apple.notify("1000")
        }
        bench.now = LogFixture.day(374.99)
        let third = try bench.extend(ExtensionBench.wish(ticket: "SUP-3"))
        #expect(third.rule == "budget_used_subscription")
        #expect(third.usedByChain == 2)
        bench.now = LogFixture.day(375)
        #expect(try bench.extend(ExtensionBench.wish(ticket: "SUP-4")).outcome == .accepted)
    }

    @Test func anOwnersOtherSubscriptionsCountToo() throws {
        let bench = try ExtensionBench()
        let ann = UniqueID(bits: 0xA)
        for stream in ["1000", "2000", "3000"] { try bench.buy(stream, owner: ann) }
        try Projector(bench.log.connection).project()
        #expect(try bench.extend(ExtensionBench.wish("1000")).outcome == .accepted)
        // One that nobody here asked for.
        try bench.apple.notify("2000") { $0.expiresDate = LogFixture.day(33) }
        let third = try bench.extend(ExtensionBench.wish("3000"))
        #expect(third.rule == "budget_used_owner")
        #expect(third.usedByChain == 0)
        #expect(third.usedByOwner == 2)
        let rows = try bench.audit()
        #expect(
            rows.map { $0["outcome"] }.sorted { $0 ?? "" < $1 ?? "" }
                == ["accepted", "external", "refused_locally"]
        )
        let budget = try bench.log.connection.query(
            """
            select original_transaction_id, used_subscription, used_owner, remaining
            from read_model.extension_budget_at($1) order by 1
            """,
            [.instant(milliseconds: LogFixture.day(11).milliseconds)]
        )
        #expect(budget.count == 3)
        #expect((0..<3).map { budget.int($0, 1) } == [1, 1, 0])
        #expect((0..<3).map { budget.int($0, 2) } == [2, 2, 2])
        #expect((0..<3).map { budget.int($0, 3) } == [0, 0, 0])
        #expect(try bench.log.count("read_model.unattributed_extension") == 1)
    }

    // MARK: - Repeats

    @Test func theSameTicketAgainMustBeMeant() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        _ = try bench.extend()
        #expect(try bench.extend().rule == "duplicate_ticket")
        #expect(try bench.extend(ExtensionBench.wish { $0.again = true }).outcome == .accepted)
    }

    @Test func theSameKeyIsOneRequest() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        let wish = ExtensionBench.wish { $0.idempotencyKey = "key-1" }
        let first = try bench.extend(wish, by: ExtensionBench.peter)
        let second = try bench.extend(wish, by: ExtensionBench.peter)
        #expect(second.isRepeated)
        #expect(second.request == first.request)
        #expect(second.outcome == .accepted)
        #expect(bench.apple.orders.withLock { $0.count } == 1)
        var other = wish
        other.days = 8
        #expect(throws: ExtensionProblem.idempotencyMismatch) {
            try bench.extend(other, by: ExtensionBench.peter)
        }
    }

    /// Once it was a broken constraint, and over HTTP our own fault.
    @Test func somebodyElsesKeyOfTheSameSubscriptionIsAnotherRequest() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        let wish = ExtensionBench.wish { $0.idempotencyKey = "key-3" }
        #expect(try bench.extend(wish, by: ExtensionBench.peter).outcome == .accepted)
        #expect(throws: ExtensionProblem.idempotencyMismatch) {
            try bench.extend(wish, by: ExtensionBench.olga)
        }
        #expect(try bench.extend(wish, by: ExtensionBench.peter).isRepeated)
        #expect(bench.apple.orders.withLock { $0.count } == 1)
    }

    /// The other one comes before the subscription is judged, or after it.
    @Test(arguments: [ExtensionPause.refreshed, .decided])
    func theSameKeyTwiceAtATimeIsOneRequest(at pause: ExtensionPause) throws {
        let bench = try ExtensionBench()
        try bench.buy()
        let wish = ExtensionBench.wish { $0.idempotencyKey = "key-2" }
        var other: ExtensionResult?
        let extensions = try bench.extensions()
        extensions.pause = { step in
            guard step == pause, other == nil else { return }
            other = try bench.extend(wish, by: ExtensionBench.peter)
        }
        let result = try extensions.request(wish, by: ExtensionBench.peter)
        #expect(other?.outcome == .accepted && other?.isRepeated == false)
        #expect(result.request == other?.request && result.isRepeated)
        #expect(result.outcome == .accepted)
        #expect(bench.apple.orders.withLock { $0.count } == 1)
    }

    /// Whoever comes second is told so; never are two sent.
    @Test func ofManyAtOnceOneIsSent() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        bench.apple.manner.withLock { $0 = .losesTheRequest }
        let connect = bench.log.connect
        let apple = bench.apple
        let now = bench.now
        onThreads(6) { number in
            let extensions = try? Extensions(
                reading: connect(),
                appending: connect(),
                gateway: apple,
                now: { now }
            )
            let wish = ExtensionBench.wish(ticket: "SUP-\(number)")
            _ = try? extensions?.request(wish, by: ExtensionBench.olga)
        }
        #expect(apple.orders.withLock { $0.count } == 1)
        let rows = try bench.audit()
        #expect(rows.count { $0["outcome"] == "unknown" } == 1)
        #expect(rows.count { $0["refusal_rule"] == "extension_in_progress" } == 5)
    }

    @Test func anotherEndThanTheAnswersIsAContradiction() throws {
        let bench = try ExtensionBench()
        try bench.buy()
        bench.apple.manner.withLock { $0 = .misspeaks }
        #expect(try bench.extend().expiresAcked == LogFixture.day(38))
        bench.now = LogFixture.day(10.1)
        try bench.apple.notify("1000")
        let row = try #require(try bench.audit().first)
        #expect(row["outcome"] == "contradicted")
        #expect(row["contradiction"] == "true")
        #expect(row["expires_confirmed"] == LogFixture.day(37).description)
    }
}
