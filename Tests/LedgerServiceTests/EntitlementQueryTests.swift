import Ledger
import Postgres
import Testing

@testable import LedgerService

@Suite struct EntitlementQueryTests {
    /// A month, cancelled on day 10, with a change of plan announced on day 20.
    private static func life() throws -> LogFixture {
        let log = try LogFixture()
        let month = LogFixture.month(1)
        try log.append([
            log.event(
                "7001",
                "a",
                .subscribed,
                .initialBuy,
                at: LogFixture.t0,
                month,
                LogFixture.renewal()
            ),
            log.event(
                "7001",
                "b",
                .didChangeRenewalPref,
                .downgrade,
                at: LogFixture.day(20),
                month,
                LogFixture.renewal { $0.autoRenewProductID = "silver.month" }
            ),
        ])
        try Projector(log.connection).project()
        return log
    }

    private static func answer(
        _ log: LogFixture,
        at instant: Timestamp
    ) throws -> EntitlementAnswer? {
        try EntitlementQuery(at: instant).answers(log.connection).first
    }

    @Test func fromAndUntilBoundTheStateAndRecheckIsTheNextChangeOfAnything() throws {
        let log = try Self.life()
        let early = try #require(try Self.answer(log, at: LogFixture.day(5)))
        #expect(early.state == "active")
        #expect(early.stateFrom == LogFixture.t0)
        #expect(early.stateUntil == LogFixture.day(30))
        #expect(early.validUntil == LogFixture.day(20))
        #expect(early.pendingProductID == nil)
        let late = try #require(try Self.answer(log, at: LogFixture.day(25)))
        #expect(late.pendingProductID == "silver.month")
        #expect(late.stateFrom == LogFixture.t0)
        #expect(late.validUntil == LogFixture.day(30))
    }

    @Test func accessEndsWithTheContiguousRunByEachOfTheTwoLines() throws {
        let log = try Self.life()
        let answer = try #require(try Self.answer(log, at: LogFixture.day(5)))
        #expect(answer.accessUntilApple == LogFixture.day(30))
        // Our policy goes on for the leeway of two hours while no news has come.
        #expect(answer.accessUntil == LogFixture.day(30).adding(.hours(2)))
        let over = try #require(try Self.answer(log, at: LogFixture.day(31)))
        #expect(over.state == "expired")
        #expect(over.confidence == "clock")
        #expect(over.accessUntil == nil)
        #expect(over.accessUntilApple == nil)
        #expect(over.validUntil == nil)
    }

    @Test func intervalsAreHalfOpen() throws {
        let log = try Self.life()
        let end = LogFixture.day(30)
        let before = Timestamp(milliseconds: end.milliseconds - 1)
        #expect(try Self.answer(log, at: before)?.entitledApple == true)
        #expect(try Self.answer(log, at: end)?.entitledApple == false)
        #expect(try Self.answer(log, at: LogFixture.t0)?.state == "active")
    }

    @Test func beforeTheFirstPurchaseThereIsNoAnswer() throws {
        let log = try Self.life()
        let before = Timestamp(milliseconds: LogFixture.t0.milliseconds - 1)
        #expect(try Self.answer(log, at: before) == nil)
    }

    @Test func jsonHasExactlyTheAgreedMembers() throws {
        let log = try Self.life()
        var json = JSONWriter()
        try #require(try Self.answer(log, at: LogFixture.day(25))).write(to: &json)
        #expect(
            json.text == """
                {"original_transaction_id":"7001","environment":"Production",\
                "bundle_id":"com.example.app","product_id":"gold.month","state":"active",\
                "cause":null,"entitled":true,"entitled_apple":true,\
                "from":"2025-10-09T08:53:20.000Z","until":"2025-11-08T08:53:20.000Z",\
                "access_until_apple":"2025-11-08T08:53:20.000Z",\
                "access_until":"2025-11-08T10:53:20.000Z",\
                "recheck_at":"2025-11-08T08:53:20.000Z",\
                "expires_date":"2025-11-08T08:53:20.000Z","grace_period_expires_date":null,\
                "confidence":"confirmed","renewal_intent":"on",\
                "pending_product_id":"silver.month","offer":"standard","ownership":"PURCHASED",\
                "subscription_group_identifier":"group1","app_account_token":null,\
                "app_transaction_id":null,"policy_version":1,"known_to_position":2,\
                "positions":[2]}
                """
        )
    }

    @Test func theOwnerIsTheOneOfTheInstantAndAChangeRewritesNothing() throws {
        let log = try LogFixture()
        let first = try #require(UniqueID("00000000-0000-0000-0000-00000000000a"))
        let second = try #require(UniqueID("00000000-0000-0000-0000-00000000000b"))
        try log.append([
            log.event(
                "7001",
                "a",
                .subscribed,
                at: LogFixture.t0,
                LogFixture.month(1) { $0.appAccountToken = first }
            ),
            log.event(
                "7001",
                "b",
                .didRenew,
                at: LogFixture.day(30),
                LogFixture.month(2, 30) { $0.appAccountToken = second }
            ),
            log.event(
                "7001",
                "c",
                .didRenew,
                at: LogFixture.day(60),
                LogFixture.month(3, 60) { $0.appAccountToken = nil }
            ),
        ])
        try Projector(log.connection).project()
        func owned(by owner: UniqueID, day: Double) throws -> Int {
            try EntitlementQuery(at: LogFixture.day(day), owner: owner)
                .answers(log.connection).count
        }
        #expect(try owned(by: first, day: 10) == 1)
        #expect(try owned(by: second, day: 10) == 0)
        #expect(try owned(by: first, day: 40) == 0)
        #expect(try owned(by: second, day: 40) == 1)
        // A token that is missing later does not clear the owner.
        #expect(try owned(by: second, day: 70) == 1)
    }

    @Test func answersComeInPagesWithoutLossOrRepeat() throws {
        let log = try LogFixture()
        try log.appendLives(25)
        try Projector(log.connection).project()
        var query = EntitlementQuery(at: LogFixture.day(10))
        let whole = try query.answers(log.connection)
        query.pageSize = 4
        #expect(try query.answers(log.connection) == whole)
        #expect(whole.count == 25)
        #expect(whole.map(\.originalTransactionID) == whole.map(\.originalTransactionID).sorted())
    }

    @Test func anErrorOfTheCallerComesBackAsItIs() throws {
        struct Enough: Error {}
        let log = try Self.life()
        #expect(throws: Enough.self) {
            try EntitlementQuery(at: LogFixture.day(1)).forEach(log.connection) { _ in
                throw Enough()
            }
        }
        #expect(try Self.answer(log, at: LogFixture.day(1)) != nil)
    }

    @Test func openMarksAreCountedAsStaleStreams() throws {
        let log = try Self.life()
        #expect(try Staleness(log.connection).staleStreams == 0)
        try log.append([
            log.event("7001", "d", .didRenew, at: LogFixture.day(30), LogFixture.month(2, 30)),
            log.event("7001", "e", .didRenew, at: LogFixture.day(60), LogFixture.month(3, 60)),
            log.event("7002", "f", .subscribed, at: LogFixture.t0, LogFixture.month(9)),
        ])
        #expect(try Staleness(log.connection).staleStreams == 2)
    }
}
