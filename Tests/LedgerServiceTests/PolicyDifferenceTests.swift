import EventLog
import Ledger
import Postgres
import TestSupport
import Testing

@testable import LedgerService

/// Changes of the access policy as intervals, and who gains or loses access by them.
@Suite struct PolicyDifferenceTests {
    /// Day 30 fails without grace, so billing retry is from day 30 to day 90.
    private static func failed(_ log: LogFixture, _ stream: String) -> [NewEvent] {
        let month = LogFixture.month(UInt64(stream) ?? 1) { $0.appAccountToken = UniqueID(bits: 5) }
        return [
            log.event(stream, "\(stream)-1", .subscribed, .initialBuy, at: LogFixture.t0, month),
            log.event(
                stream,
                "\(stream)-2",
                .didFailToRenew,
                at: LogFixture.day(30),
                month,
                LogFixture.renewal {
                    $0.isInBillingRetryPeriod = true
                    $0.expirationIntent = 2
                }
            ),
        ]
    }

    private static func prepared() throws -> LogFixture {
        let log = try LogFixture()
        try RuleBook(log.connection).record(AppRules(environment: .production), of: log.app)
        try log.append(failed(log, "1000"))
        try Projector(log.connection).project()
        return log
    }

    private static func change(
        _ log: LogFixture,
        _ access: BillingRetryAccess,
        from start: RuleBook.Start
    ) throws -> AccessPolicy? {
        try RuleBook(log.connection).changePolicy(
            of: log.app,
            from: start,
            operator: "olga",
            ticket: "POL-1",
            change: { $0.billingRetryAccess = access },
            afterwards: { try Projector.markAll(ofApp: $0, log.connection) }
        )
    }

    private static func differences(
        _ log: LogFixture,
        policies: [AccessPolicy]? = nil,
        at day: Double
    ) throws -> ([AccessDifference], AccessDifferenceSummary) {
        var comparison = AccessComparison(at: LogFixture.day(day)) { try log.database.connect() }
        if let policies { comparison.policies[log.app] = policies }
        var found: [AccessDifference] = []
        let summary = try comparison.run { found.append($0) }
        return (found, summary)
    }

    private func entitled(_ log: LogFixture, on day: Double) throws -> Bool {
        try Projector(log.connection).project()
        return try log.count(
            "read_model.entitlement_at('\(LogFixture.day(day))') where entitled"
        ) == 1
    }

    @Test func aPolicyThatIsOnlyThoughtOfShowsWhoWouldGain() throws {
        let log = try Self.prepared()
        let rowsBefore = try log.allRows()
        let (found, summary) = try Self.differences(
            log,
            policies: [AccessPolicy(billingRetryAccess: .days(10))],
            at: 35
        )
        #expect(found.count == 1)
        let gain = try #require(found.first)
        #expect(gain.gains)
        #expect(gain.state == "billing_retry")
        #expect(gain.originalTransactionID == "1000")
        #expect(gain.owner == UniqueID(bits: 5))
        #expect(gain.from == LogFixture.day(30))
        #expect(gain.until == LogFixture.day(40))
        #expect(summary.compared == 1)
        #expect(summary.different == 1)
        #expect(summary.ordered.map(\.count.now) == [1])
        #expect(try log.allRows() == rowsBefore)
        #expect(try log.count("ledger.access_policy") == 1)
    }

    @Test func whoWouldLoseIsShownToo() throws {
        let log = try Self.prepared()
        _ = try Self.change(log, .allow, from: .retroactively(from: nil))
        #expect(try entitled(log, on: 60))
        let (found, summary) = try Self.differences(log, policies: [AccessPolicy()], at: 20)
        #expect(found.map(\.gains) == [false])
        #expect(found.first?.from == LogFixture.day(30))
        #expect(found.first?.until == LogFixture.day(90))
        #expect(summary.ordered.map(\.count.subscriptions) == [1])
        #expect(summary.ordered.map(\.count.now) == [0])
    }

    @Test func withoutAChangeNobodyGainsOrLoses() throws {
        let log = try Self.prepared()
        try log.appendLives(40)
        try Projector(log.connection).project()
        let (found, summary) = try Self.differences(log, at: 35)
        #expect(found.isEmpty)
        #expect(summary.compared == 41)
    }

    @Test func subscriptionsWithNewsAreLeftOutAndCounted() throws {
        let log = try Self.prepared()
        try log.append(Self.failed(log, "2000"))
        let (found, summary) = try Self.differences(
            log,
            policies: [AccessPolicy(billingRetryAccess: .allow)],
            at: 35
        )
        #expect(found.map(\.originalTransactionID) == ["1000"])
        #expect(summary.stale == 1)
    }

    @Test func anEditNeverRewritesWhatWasGrantedBefore() throws {
        let log = try Self.prepared()
        // T0 lies in the past, and so does the whole retry: from now on nothing of it is left.
        let changed = try #require(try Self.change(log, .allow, from: .now))
        #expect(changed.version == 2)
        #expect(try !entitled(log, on: 60))
        #expect(throws: EventLogError.self) {
            try Self.change(log, .deny, from: .at(LogFixture.day(30)))
        }
        // On purpose it does, and the row says so.
        let rewritten = try #require(
            try Self.change(log, .days(20), from: .retroactively(from: LogFixture.day(45)))
        )
        #expect(rewritten.version == 3)
        #expect(try !entitled(log, on: 44))
        #expect(try entitled(log, on: 46))
        #expect(try !entitled(log, on: 51))
        let rows = try log.connection.query(
            """
            select version, retroactive, is_configured, operator, ticket
            from ledger.access_policy order by version
            """
        )
        #expect((0..<rows.count).map { rows.bool($0, 1) } == [false, false, true])
        #expect((0..<rows.count).map { rows.bool($0, 2) } == [true, false, false])
        #expect(rows.text(2, 3) == "olga")
        #expect(rows.text(2, 4) == "POL-1")
    }

    @Test func aLaterVersionTakesThePlaceOfWhatWasScheduled() throws {
        let log = try Self.prepared()
        let far = Timestamp(milliseconds: 4_000_000_000_000)
        _ = try Self.change(log, .allow, from: .at(far))
        #expect(try RuleBook(log.connection).policies(of: log.app).map(\.version) == [1, 2])
        _ = try Self.change(log, .days(5), from: .now)
        #expect(try RuleBook(log.connection).policies(of: log.app).map(\.version) == [1, 3])
    }

    @Test func theSamePolicyAgainIsNoVersion() throws {
        let log = try Self.prepared()
        #expect(try Self.change(log, .deny, from: .now) == nil)
        _ = try Self.change(log, .allow, from: .now)
        #expect(try Self.change(log, .allow, from: .now) == nil)
        // The same from earlier on is another thing.
        #expect(try Self.change(log, .allow, from: .retroactively(from: nil))?.version == 3)
    }

    @Test func anUnchangedConfigurationDoesNotUndoWhatAnOperatorSet() throws {
        let log = try Self.prepared()
        _ = try Self.change(log, .allow, from: .now)
        let book = RuleBook(log.connection)
        let same = try book.record(AppRules(environment: .production), of: log.app)
        #expect(same.policyVersion == nil)
        let edited = try book.record(
            AppRules(
                environment: .production,
                policies: [AccessPolicy(billingRetryAccess: .days(3))]
            ),
            of: log.app
        )
        #expect(edited.policyVersion == 3)
    }

    @Test func differencesAreFoundStretchByStretch() {
        func stretch(
            _ from: Int64,
            _ until: Int64?,
            _ entitled: Bool,
            _ state: String
        ) -> AccessStretch {
            AccessStretch(
                from: Timestamp(milliseconds: from),
                until: until.map { Timestamp(milliseconds: $0) },
                entitled: entitled,
                state: state,
                cause: nil
            )
        }
        let old = [
            stretch(0, 10, true, "active"), stretch(10, 20, false, "billing_retry"),
            stretch(20, nil, false, "expired"),
        ]
        let new = [
            stretch(0, 8, true, "active"), stretch(8, 10, false, "revoked"),
            stretch(10, 14, true, "billing_retry"), stretch(14, 16, true, "billing_retry"),
            stretch(16, nil, false, "expired"),
        ]
        let found = AccessStretch.differences(old: old, new: new)
        #expect(found.map(\.gains) == [false, true])
        #expect(found.map(\.from.milliseconds) == [8, 10])
        #expect(found.map(\.until?.milliseconds) == [10, 16])
        #expect(AccessStretch.differences(old: old, new: old).isEmpty)
        #expect(AccessStretch.differences(old: [], new: new).map(\.gains) == [true, true])
    }
}
