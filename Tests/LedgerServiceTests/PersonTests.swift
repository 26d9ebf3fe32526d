import EventLog
import Ledger
import LedgerService
import Postgres
import TestSupport
import Testing

/// All subscriptions that one person has, over migrations and over one customer of the app.
@Suite struct PersonTests {
    private static let ann = UniqueID(bits: 0xA)
    private static let bob = UniqueID(bits: 0xB)

    /// A purchase on day 0: whose, of which customer of the app, and what it was before.
    private static func bought(
        _ log: LogFixture,
        _ stream: String,
        product: Symbol = "gold.month",
        owner: UniqueID? = nil,
        customer: UInt64? = nil,
        before: UInt64? = nil,
        change: (inout TransactionFact) -> Void = { _ in }
    ) -> NewEvent {
        log.event(
            stream,
            "\(stream)-buy",
            .subscribed,
            .initialBuy,
            at: LogFixture.t0,
            LogFixture.month(UInt64(stream) ?? 1, product: product) {
                $0.appAccountToken = owner
                $0.appTransactionID = customer.map { AppleID($0) }
                $0.previousOriginalTransactionID = before.map { AppleID($0) }
                change(&$0)
            },
            LogFixture.renewal()
        )
    }

    /// What belongs to an owner on a day, as "stream via", with a star where it counts.
    private func owned(
        _ log: LogFixture,
        by owner: UniqueID,
        on day: Double = 5
    ) throws -> [String] {
        try Projector(log.connection).project()
        return try EntitlementQuery(at: LogFixture.day(day), owner: owner)
            .answers(log.connection)
            .map { "\($0.originalTransactionID) \($0.via ?? "?")\($0.counts == true ? " *" : "")" }
    }

    @Test func s27_whatAMigrationMadeBelongsToTheOwnerOverAnyNumberOfSteps() throws {
        let log = try LogFixture()
        try log.append([
            Self.bought(log, "1000", owner: Self.ann) { $0.expiresDate = LogFixture.day(2) },
            Self.bought(log, "2000", before: 1000) { $0.expiresDate = LogFixture.day(3) },
            Self.bought(log, "3000", before: 2000) { $0.expiresDate = LogFixture.day(4) },
            Self.bought(log, "4000", before: 3000),
        ])
        #expect(
            try owned(log, by: Self.ann) == [
                "1000 own", "2000 alias", "3000 alias", "4000 alias *",
            ]
        )
        #expect(try log.count("read_model.unattributed_subscription") == 0)
        let counting = try log.connection.query(
            "select original_transaction_id, via from read_model.owner_entitlement_at($1)",
            [.instant(milliseconds: LogFixture.day(5).milliseconds)]
        )
        #expect(counting.count == 1)
        #expect(counting.text(0, 0) == "4000")
        #expect(counting.text(0, 1) == "alias")
    }

    @Test(arguments: [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]])
    func theOrderInWhichAliasesArriveChangesNothing(order: [Int]) throws {
        let log = try LogFixture()
        // Only the one in the middle names its owner.
        let events = [
            Self.bought(log, "1000"),
            Self.bought(log, "2000", owner: Self.ann, before: 1000),
            Self.bought(log, "3000", before: 2000),
            Self.bought(log, "4000", before: 3000),
        ]
        for place in order {
            try log.append([events[place]])
            try Projector(log.connection).project()
        }
        // All are equal otherwise, so the lowest id counts.
        #expect(
            try owned(log, by: Self.ann) == [
                "1000 alias *", "2000 own", "3000 alias", "4000 alias",
            ]
        )
    }

    @Test func anAliasWithAnOwnerOfItsOwnStaysThatOwnersAndSoDoesWhatFollowsIt() throws {
        let log = try LogFixture()
        try log.append([
            Self.bought(log, "1000", owner: Self.ann),
            Self.bought(log, "2000", before: 1000),
            Self.bought(log, "3000", owner: Self.bob, before: 2000),
            Self.bought(log, "4000", before: 3000),
        ])
        #expect(try owned(log, by: Self.ann) == ["1000 own *", "2000 alias"])
        #expect(try owned(log, by: Self.bob) == ["3000 own *", "4000 alias"])
    }

    @Test func anOldSubscriptionOfWhichTwoOwnersComeIsNobodys() throws {
        let log = try LogFixture()
        try log.append([
            Self.bought(log, "1000"),
            Self.bought(log, "2000", owner: Self.ann, before: 1000),
            Self.bought(log, "3000", owner: Self.bob, before: 1000),
        ])
        #expect(try owned(log, by: Self.ann) == ["2000 own *"])
        #expect(try owned(log, by: Self.bob) == ["3000 own *"])
        #expect(try log.count("read_model.unattributed_subscription") == 1)
    }

    @Test func migrationsThatGoRoundInACircleEnd() throws {
        let log = try LogFixture()
        try log.append([
            Self.bought(log, "1000", owner: Self.ann, before: 3000),
            Self.bought(log, "2000", before: 1000),
            Self.bought(log, "3000", before: 2000),
            Self.bought(log, "4000", owner: Self.bob, before: 4000),
        ])
        #expect(try owned(log, by: Self.ann) == ["1000 own *", "2000 alias", "3000 alias"])
        #expect(try owned(log, by: Self.bob) == ["4000 own *"])
    }

    @Test func whatTheSameCustomerBoughtWithoutATokenBelongsToTheOnlyOwner() throws {
        let log = try LogFixture()
        try log.append([
            Self.bought(log, "1000", product: "silver.month", owner: Self.ann, customer: 77),
            // A code redeemed outside the app carries no token.
            Self.bought(log, "2000", product: "news.month", customer: 77) {
                $0.subscriptionGroupID = "group2"
            },
            Self.bought(log, "3000", customer: 77) { $0.ownership = .familyShared },
            Self.bought(log, "4000", customer: 77) { $0.ownership = .assigned },
            Self.bought(log, "5000", product: "news.month", customer: 78),
        ])
        var rules = AppRules(environment: log.app.environment)
        rules.products = [
            "gold.month": ProductRules(groupID: "group1", level: 1, period: .oneMonth),
            "silver.month": ProductRules(groupID: "group1", level: 2, period: .oneMonth),
        ]
        try RuleBook(log.connection).record(rules, of: log.app)
        #expect(
            try owned(log, by: Self.ann) == [
                "1000 own", "2000 customer *", "3000 family *", "4000 assigned",
            ]
        )
        let rows = try log.connection.query(
            "select original_transaction_id from read_model.unattributed_subscription"
        )
        #expect((0..<rows.count).map { rows.text($0, 0) } == ["5000"])
    }

    @Test func twoOwnersOfOneCustomerLeaveThePurchaseToAnOperator() throws {
        let log = try LogFixture()
        try log.append([
            Self.bought(log, "1000", product: "silver.month", owner: Self.ann, customer: 77),
            Self.bought(log, "2000", product: "news.month", customer: 77),
            Self.bought(log, "3000", product: "silver.month", owner: Self.bob, customer: 77),
        ])
        #expect(try owned(log, by: Self.ann) == ["1000 own *"])
        #expect(try owned(log, by: Self.bob) == ["3000 own *"])
        let rows = try log.connection.query(
            "select original_transaction_id, likely_owner from read_model.unattributed_subscription"
        )
        #expect(rows.count == 1)
        #expect(rows.text(0, 0) == "2000")
        #expect(rows.isNull(0, 1))
    }

    @Test func theAnswerForAnOwnerIsTheOneThatCountsInEachGroupOnEveryDay() throws {
        let log = try LogFixture()
        try log.appendLives(120, seed: 5)
        try Projector(log.connection).project()
        var compared = 0
        for day in [3.0, 35, 64.5, 95, 250] {
            let chosen = try log.connection.query(
                """
                select app_account_token, original_transaction_id
                from read_model.owner_entitlement_at($1) order by 1, 2
                """,
                [.instant(milliseconds: LogFixture.day(day).milliseconds)]
            )
            var expected: [UInt128: [String]] = [:]
            for row in 0..<chosen.count {
                expected[chosen.uuid(row, 0) ?? 0, default: []].append(chosen.text(row, 1) ?? "")
            }
            for (owner, streams) in expected {
                let answers = try EntitlementQuery(
                    at: LogFixture.day(day),
                    owner: UniqueID(bits: owner)
                ).answers(log.connection)
                let counting = answers.filter { $0.counts == true }
                #expect(counting.map(\.originalTransactionID) == streams, "day \(day)")
                compared += 1
            }
        }
        #expect(compared > 200)
    }
}
