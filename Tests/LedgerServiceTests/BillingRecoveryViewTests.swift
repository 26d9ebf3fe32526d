import EventLog
import Ledger
import LedgerService
import Postgres
import Testing

/// The read model "billing_recovery" in the database: rows, views, cohorts, environments and zones.
@Suite struct BillingRecoveryViewTests {
    private static let owner = UniqueID(bits: 7)

    private static func month(
        _ id: UInt64,
        _ from: Double = 0,
        change: (inout TransactionFact) -> Void = { _ in }
    ) -> TransactionFact {
        LogFixture.month(id, from) {
            $0.price = 9_990
            $0.currency = "USD"
            $0.appAccountToken = owner
            change(&$0)
        }
    }

    private static func failing(_ change: (inout RenewalFact) -> Void = { _ in }) -> RenewalFact {
        LogFixture.renewal {
            $0.isInBillingRetryPeriod = true
            $0.expirationIntent = 2
            change(&$0)
        }
    }

    /// A month from T0 on whose charge fails on day 30, with grace until a day or without.
    private static func failed(
        _ log: LogFixture,
        _ stream: String,
        graceUntil: Double? = nil,
        at day: Double = 30,
        change: (inout TransactionFact) -> Void = { _ in }
    ) -> [NewEvent] {
        let id = UInt64(stream) ?? 1
        return [
            log.event(
                stream,
                "\(stream)-buy",
                .subscribed,
                .initialBuy,
                at: LogFixture.t0,
                month(id, change: change),
                LogFixture.renewal()
            ),
            log.event(
                stream,
                "\(stream)-fail",
                .didFailToRenew,
                graceUntil == nil ? nil : .gracePeriod,
                at: LogFixture.day(day),
                month(id, change: change),
                failing { $0.gracePeriodExpiresDate = graceUntil.map(LogFixture.day) }
            ),
        ]
    }

    private static func recovered(
        _ log: LogFixture,
        _ stream: String,
        on day: Double
    ) -> NewEvent {
        log.event(
            stream,
            "\(stream)-recovered",
            .didRenew,
            .billingRecovery,
            at: LogFixture.day(day),
            month((UInt64(stream) ?? 1) + 1, day),
            LogFixture.renewal()
        )
    }

    private static func expired(
        _ log: LogFixture,
        _ stream: String,
        _ subtype: Subtype,
        on day: Double
    ) -> NewEvent {
        log.event(
            stream,
            "\(stream)-expired",
            .expired,
            subtype,
            at: LogFixture.day(day),
            month(UInt64(stream) ?? 1),
            LogFixture.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = subtype == .voluntary ? 1 : 2
            }
        )
    }

    private static func at(_ day: Double) -> String {
        "'\(LogFixture.day(day))'"
    }

    private func text(_ log: LogFixture, _ sql: String) throws -> [String?] {
        let rows = try log.connection.query(sql)
        return (0..<rows.count).map { rows.text($0, 0) }
    }

    // MARK: - Who is in trouble

    @Test func a01_inGraceOneIsListedWithOwnerIntentAndDates() throws {
        let log = try LogFixture()
        try log.append(Self.failed(log, "1000", graceUntil: 46))
        try Projector(log.connection).project()
        let rows = try log.connection.query(
            """
            select state, entitled, app_account_token, cause, renewal_intent, grace_source,
                days_unpaid_access::text, amount_at_risk, grace_exhausted_at
            from read_model.billing_recovery_at(\(Self.at(35)))
            """
        )
        #expect(rows.count == 1)
        #expect(rows.text(0, 0) == "grace_period")
        #expect(rows.bool(0, 1) == true)
        #expect(rows.uuid(0, 2) == Self.owner.bits)
        #expect(rows.text(0, 3) == "billing_retry")
        #expect(rows.text(0, 4) == "on")
        #expect(rows.text(0, 5) == "apple")
        #expect(rows.text(0, 6) == "5.00")
        #expect(rows.int(0, 7) == 9_990)
        #expect(rows.isNull(0, 8))
        // Before it was announced nobody knew, and after 60 days nobody tries any more.
        #expect(try log.count("read_model.billing_recovery_at(\(Self.at(29.9)))") == 0)
        #expect(try log.count("read_model.billing_recovery_at(\(Self.at(89.9)))") == 1)
        #expect(try log.count("read_model.billing_recovery_at(\(Self.at(90)))") == 0)
    }

    @Test func a02_inRetryWithoutGraceOneIsListedWithoutAccess() throws {
        let log = try LogFixture()
        try log.append(Self.failed(log, "1000"))
        try Projector(log.connection).project()
        #expect(
            try text(
                log,
                """
                select state || ' ' || entitled || ' ' || days_unpaid_access
                from read_model.billing_recovery_at(\(Self.at(31)))
                """
            ) == ["billing_retry false 0.00"]
        )
    }

    @Test func whoCancelledMeanwhileIsToldFromWhoDidNot() throws {
        let log = try LogFixture()
        try log.append(Self.failed(log, "1000") + Self.failed(log, "2000"))
        try log.append([
            log.event(
                "2000",
                "off",
                .didChangeRenewalStatus,
                .autoRenewDisabled,
                at: LogFixture.day(32),
                Self.month(2000),
                Self.failing {
                    $0.autoRenewStatus = 0
                    $0.expirationIntent = 1
                }
            )
        ])
        try Projector(log.connection).project()
        #expect(
            try text(
                log,
                """
                select original_transaction_id || ' ' || renewal_intent || ' ' || cause
                from read_model.billing_recovery_at(\(Self.at(33))) order by 1
                """
            ) == ["1000 on billing_retry", "2000 off voluntary"]
        )
    }

    @Test func s05_troubleIsListedWhileThePaidPeriodRuns() throws {
        let log = try LogFixture()
        try log.append(Self.failed(log, "1000", at: 29.2))
        try Projector(log.connection).project()
        #expect(
            try text(
                log,
                "select state from read_model.billing_recovery_at(\(Self.at(29.5)))"
            ) == ["active"]
        )
    }

    @Test func aFamilyMemberIsNeverReminded() throws {
        let log = try LogFixture()
        try log.append(Self.failed(log, "1000") { $0.ownership = .familyShared })
        try Projector(log.connection).project()
        #expect(try log.count("read_model.billing_recovery_all") == 1)
        #expect(try log.count("read_model.billing_recovery_at(\(Self.at(35)))") == 0)
    }

    /// Sandbox never shows in Production's answers, not even under the same id.
    @Test func environmentsNeverMix() throws {
        var log = try LogFixture()
        log.app.environment = .sandbox
        try log.append(Self.failed(log, "1000", graceUntil: 46))
        try Projector(log.connection).project()
        let rate = "read_model.billing_recovery_rate('2025-01-01', '2026-01-01'"
        #expect(try log.count("read_model.billing_recovery_at(\(Self.at(35)))") == 0)
        #expect(try log.count("read_model.billing_recovery_at_sandbox(\(Self.at(35)))") == 1)
        #expect(try log.count("\(rate))") == 0)
        #expect(try log.count("\(rate), environment => 'Sandbox')") == 2)
        log.app.environment = .production
        try log.append(Self.failed(log, "1000", graceUntil: 46))
        try Projector(log.connection).project()
        #expect(
            try text(
                log,
                "select environment from read_model.billing_recovery_at(\(Self.at(35)))"
            ) == ["Production"]
        )
    }

    // MARK: - How it ended

    @Test func eachEndHasItsOutcome() throws {
        let log = try LogFixture()
        var events: [NewEvent] = []
        for (stream, grace) in [("1000", 46.0), ("2000", 46), ("3000", 46)] {
            events += Self.failed(log, stream, graceUntil: grace)
        }
        for stream in ["4000", "5000"] { events += Self.failed(log, stream) }
        events.append(Self.recovered(log, "1000", on: 40))
        events.append(Self.recovered(log, "2000", on: 70))
        events.append(Self.expired(log, "3000", .voluntary, on: 35))
        events.append(Self.expired(log, "4000", .billingRetry, on: 90))
        try log.append(events.shuffled())
        try Projector(log.connection).project()
        #expect(
            try text(
                log,
                """
                select original_transaction_id || ' ' || outcome
                from read_model.billing_recovery_all order by 1
                """
            ) == [
                "1000 recovered_in_grace", "2000 recovered_after_grace", "3000 cancelled",
                "4000 expired", "5000 open",
            ]
        )
        // Grace that was used up was served for nothing; grace that was paid for later was not.
        #expect(
            try text(
                log,
                """
                select round(unpaid_access_ms / 86400000.0, 1)::text
                from read_model.billing_recovery_all order by original_transaction_id
                """
            ) == ["10.0", "16.0", "5.0", "0.0", "0.0"]
        )
    }

    @Test func s02_s03_s06_s07_theRateCountsCohortsByOpening() throws {
        let log = try LogFixture()
        var events: [NewEvent] = []
        for stream in ["1000", "2000", "3000", "4000", "5000"] {
            events += Self.failed(log, stream, graceUntil: 46) {
                if stream == "5000" {
                    $0.currency = "EUR"
                    $0.price = 8_000
                }
            }
        }
        events.append(Self.recovered(log, "1000", on: 40))
        events.append(Self.recovered(log, "2000", on: 70))
        events.append(Self.expired(log, "3000", .voluntary, on: 35))
        try log.append(events)
        try Projector(log.connection).project()
        let query = RecoveryRateQuery(
            since: "2025-10-01",
            until: "2026-01-01",
            step: .month,
            asOf: LogFixture.day(89)
        )
        let rows = try query.rows(log.connection)
        #expect(rows.count == 3)
        let total = try #require(rows.first)
        #expect(total.isTotal)
        #expect(total.since == "2025-11-01")
        #expect(total.failures == 5)
        #expect(total.recovered == 2)
        #expect(total.recoveredInGrace == 1)
        #expect(total.recoveredAfterGrace == 1)
        #expect(total.cancelled == 1)
        #expect(total.open == 2)
        #expect(total.unknown == 0)
        #expect(total.recoveryRate == "0.4000")
        #expect(total.inGraceShare == "0.5000")
        #expect(total.amountAtRisk == nil)
        #expect(!total.isMatured)
        // Amounts stand per currency and are never added across.
        #expect(rows.map(\.currency) == [nil, "EUR", "USD"])
        #expect(rows.map(\.amountAtRisk) == [nil, "8000", "39960"])
        #expect(rows.map(\.amountRecovered) == [nil, "0", "19980"])
        #expect(rows[2].amountRecoveryRate == "0.5000")
        // On day 90 the deadline passes without a word: nobody knows, and nothing more can come.
        var later = query
        later.asOf = LogFixture.day(91)
        let matured = try #require(try later.rows(log.connection).first)
        #expect(matured.open == 0)
        #expect(matured.unknown == 2)
        #expect(matured.isMatured)
        // As of an instant before the recovery there was none.
        var earlier = query
        earlier.asOf = LogFixture.day(39)
        let before = try #require(try earlier.rows(log.connection).first)
        #expect(before.recovered == 0)
        #expect(before.open == 4)
    }

    @Test func s29_aCommitmentMaturesAfterNinetyDays() throws {
        let log = try LogFixture()
        try log.append(
            Self.failed(log, "1000") {
                $0.billingPlanType = .monthly
                $0.commitmentExpiresDate = LogFixture.day(360)
            }
        )
        try Projector(log.connection).project()
        var query = RecoveryRateQuery(
            since: "2025-10-01",
            until: "2026-01-01",
            step: .month,
            asOf: LogFixture.day(100)
        )
        #expect(try query.rows(log.connection).first?.isMatured == false)
        query.asOf = LogFixture.day(121)
        #expect(try query.rows(log.connection).first?.isMatured == true)
    }

    @Test func aCohortBelongsToTheDayThatItIsInTheZone() throws {
        let log = try LogFixture()
        // Day 22.7 is 2025-11-01 01:41 UTC, still October in California.
        try log.append(Self.failed(log, "1000", at: 22.7))
        try Projector(log.connection).project()
        var query = RecoveryRateQuery(
            since: "2025-10-01",
            until: "2025-12-01",
            step: .month,
            asOf: LogFixture.day(30)
        )
        #expect(try query.rows(log.connection).first?.since == "2025-11-01")
        query.zone = "America/Los_Angeles"
        #expect(try query.rows(log.connection).first?.since == "2025-10-01")
        // The session's own zone has no say.
        try log.connection.execute("set time zone 'Pacific/Kiritimati'")
        #expect(try query.rows(log.connection).first?.since == "2025-10-01")
        query.step = .week
        #expect(try query.rows(log.connection).first?.since == "2025-10-27")
    }
}
