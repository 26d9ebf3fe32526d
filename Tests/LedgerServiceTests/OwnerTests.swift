import EventLog
import Ledger
import LedgerService
import Postgres
import TestSupport
import Testing

/// Who owns what: links by operators, and entitlement per person over all chains.
@Suite struct OwnerTests {
    private static let ann = UniqueID(bits: 0xA)
    private static let bob = UniqueID(bits: 0xB)

    private static func bought(
        _ log: LogFixture,
        _ stream: String,
        product: Symbol = "gold.month",
        owner: UniqueID? = nil,
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
                change(&$0)
            },
            LogFixture.renewal()
        )
    }

    private static func link(
        _ log: LogFixture,
        _ id: String,
        to owner: UniqueID = ann,
        ticket: String = "SUP-1",
        operator: String = "olga",
        at day: Double = 3,
        environment: Environment? = nil
    ) throws -> OwnerLinking.Outcome {
        try OwnerLinking(log.database.connect()).link(
            id,
            to: owner,
            operator: `operator`,
            ticket: ticket,
            environment: environment,
            now: LogFixture.day(day)
        )
    }

    private func owner(_ log: LogFixture, _ stream: String, on day: Double) throws -> UniqueID? {
        try Projector(log.connection).project()
        let rows = try log.connection.query(
            "select app_account_token from read_model.entitlement_at($1)"
                + " where original_transaction_id = $2",
            [.instant(milliseconds: LogFixture.day(day).milliseconds), .text(stream)]
        )
        return rows.count == 1 ? rows.uuid(0, 0).map { UniqueID(bits: $0) } : nil
    }

    // MARK: - Links

    @Test func aLinkGivesAnUnattributedSubscriptionItsOwner() throws {
        let log = try LogFixture()
        try log.append([Self.bought(log, "1000")])
        #expect(try owner(log, "1000", on: 5) == nil)
        #expect(try log.count("read_model.unattributed_subscription") == 1)
        #expect(try Self.link(log, "1000") == .linked(position: 2, before: nil))
        #expect(try owner(log, "1000", on: 5) == Self.ann)
        #expect(try log.count("read_model.unattributed_subscription") == 0)
        let event = try log.connection.query(
            """
            select kind, provenance, operator, ticket from ledger.event where position = 2
            """
        )
        #expect(event.text(0, 0) == "owner_linked")
        #expect(event.text(0, 1) == "operator")
        #expect(event.text(0, 2) == "olga")
        #expect(event.text(0, 3) == "SUP-1")
    }

    @Test func theSameLinkAgainIsADuplicate() throws {
        let log = try LogFixture()
        try log.append([Self.bought(log, "1000")])
        _ = try Self.link(log, "1000")
        #expect(try Self.link(log, "1000", at: 9) == .repeated(position: 2))
        #expect(try log.count("ledger.event") == 2)
        #expect(try log.count("ledger.conflict") == 0)
        // On another ticket it is said anew.
        #expect(
            try Self.link(log, "1000", ticket: "SUP-2") == .linked(position: 3, before: Self.ann)
        )
    }

    @Test func aLinkThatGoesBackIsAnEventOfItsOwn() throws {
        let log = try LogFixture()
        try log.append([Self.bought(log, "1000")])
        _ = try Self.link(log, "1000", to: Self.ann, at: 3)
        _ = try Self.link(log, "1000", to: Self.bob, at: 6)
        let back = try Self.link(log, "1000", to: Self.ann, at: 9)
        #expect(back == .linked(position: 4, before: Self.bob))
        #expect(try owner(log, "1000", on: 4) == Self.ann)
        #expect(try owner(log, "1000", on: 7) == Self.bob)
        #expect(try owner(log, "1000", on: 10) == Self.ann)
    }

    @Test func anotherDecoderReadsTheLinkBackFromItsEvidence() throws {
        let log = try LogFixture()
        try log.append([Self.bought(log, "1000")])
        _ = try Self.link(log, "1000", ticket: "SUP \"1\" \\ ü")
        let reader = LogReader(log.connection)
        let key = try #require(try reader.keys(ofStream: "1000").first)
        let evidence = try #require(try reader.evidence(at: 2))
        #expect(evidence.form == .raw)
        let decoded = try #require(try FactSource.current.fact(evidence))
        let stored = try #require(try reader.facts(of: key).last)
        #expect(decoded == stored.fact)
        #expect(decoded.linkedOwner == Self.ann)
        #expect(
            String(decoding: evidence.received, as: UTF8.self)
                == #"{"appAccountToken":"\#(Self.ann)","bundleId":"com.example.app","#
                + #""environment":"Production","linkedAt":\#(LogFixture.day(3).milliseconds),"#
                + #""operator":"olga","originalTransactionId":"1000","ticket":"SUP \"1\" \\ ü"}"#
        )
    }

    @Test func applesTokenWinsOverALinkAndAMissingOneClearsNothing() throws {
        let log = try LogFixture()
        try log.append([Self.bought(log, "1000")])
        _ = try Self.link(log, "1000", to: Self.ann)
        let renewed = log.event(
            "1000",
            "renewed",
            .didRenew,
            at: LogFixture.day(30),
            LogFixture.month(1001, 30) { $0.appAccountToken = Self.bob },
            LogFixture.renewal()
        )
        try log.append([renewed])
        #expect(try owner(log, "1000", on: 35) == Self.bob)
        let without = log.event(
            "1000",
            "again",
            .didRenew,
            at: LogFixture.day(60),
            LogFixture.month(1002, 60),
            LogFixture.renewal()
        )
        try log.append([without])
        #expect(try owner(log, "1000", on: 65) == Self.bob)
    }

    @Test func whatAppleAttributesIsNotLinked() throws {
        let log = try LogFixture()
        try log.append([Self.bought(log, "1000", owner: Self.bob)])
        #expect(throws: OwnerLinking.Refusal.ownedByAnother("1000", owner: Self.bob)) {
            try Self.link(log, "1000", to: Self.ann)
        }
        #expect(try Self.link(log, "1000", to: Self.bob) == .ownedAlready)
        #expect(try log.count("ledger.event") == 1)
    }

    @Test func whatCannotBeLinkedIsRefusedWithItsReason() throws {
        var log = try LogFixture()
        #expect(throws: OwnerLinking.Refusal.unknownSubscription("9")) {
            try Self.link(log, "9")
        }
        try log.append([
            log.event(
                "2000",
                "once",
                .oneTimeCharge,
                at: LogFixture.t0,
                LogFixture.month(2000) {
                    $0.productType = .consumable
                    $0.expiresDate = nil
                }
            ),
            Self.bought(log, "1000"),
        ])
        #expect(throws: OwnerLinking.Refusal.noSubscription("2000")) {
            try Self.link(log, "2000")
        }
        #expect(throws: OwnerLinking.Refusal.unusable(field: "--operator")) {
            try Self.link(log, "1000", operator: "  ")
        }
        #expect(throws: OwnerLinking.Refusal.unusable(field: "--ticket")) {
            try Self.link(log, "1000", ticket: "a\nb")
        }
        log.app.environment = .sandbox
        try log.append([Self.bought(log, "1000")])
        #expect(throws: OwnerLinking.Refusal.self) { try Self.link(log, "1000") }
        let linked = try Self.link(log, "1000", environment: .sandbox)
        #expect(linked == .linked(position: 4, before: nil))
        // The other environment's subscription of that id stays nobody's.
        #expect(try owner(log, "1000", on: 5) == nil)
    }

    // MARK: - Entitlement per person

    private func products(
        _ log: LogFixture,
        of owner: UniqueID,
        on day: Double
    ) throws -> [String] {
        try Projector(log.connection).project()
        let rows = try log.connection.query(
            """
            select product_id || case when entitled then '' else ' (no access)' end
            from read_model.owner_entitlement_at($1) where app_account_token = $2
            order by subscription_group_identifier
            """,
            [.instant(milliseconds: LogFixture.day(day).milliseconds), .uuid(owner.bits)]
        )
        return (0..<rows.count).map { rows.text($0, 0) ?? "" }
    }

    private static func configure(_ log: LogFixture) throws {
        var rules = AppRules(environment: log.app.environment)
        rules.products = [
            "gold.month": ProductRules(groupID: "group1", level: 1, period: .oneMonth),
            "silver.month": ProductRules(groupID: "group1", level: 2, period: .oneMonth),
            "news.month": ProductRules(groupID: "group2", level: 1, period: .oneMonth),
        ]
        try RuleBook(log.connection).record(rules, of: log.app)
    }

    @Test func s23_twoGroupsAtOnceAreTwoEntitlements() throws {
        let log = try LogFixture()
        try Self.configure(log)
        try log.append([
            Self.bought(log, "1000", owner: Self.ann),
            Self.bought(log, "2000", product: "news.month", owner: Self.ann) {
                $0.subscriptionGroupID = "group2"
            },
        ])
        #expect(try products(log, of: Self.ann, on: 5) == ["gold.month", "news.month"])
    }

    @Test func withoutAKnownGroupNoSubscriptionHidesAnother() throws {
        let log = try LogFixture()
        try log.append([
            Self.bought(log, "1000", owner: Self.ann) { $0.subscriptionGroupID = nil },
            Self.bought(log, "2000", product: "news.month", owner: Self.ann) {
                $0.subscriptionGroupID = nil
            },
        ])
        #expect(
            try Set(products(log, of: Self.ann, on: 5)) == ["gold.month", "news.month"]
        )
    }

    @Test func s24_aFamilyMembersSubscriptionCountsForTheSameCustomer() throws {
        let log = try LogFixture()
        try Self.configure(log)
        try log.append([
            Self.bought(log, "1000", product: "silver.month", owner: Self.ann) {
                $0.appTransactionID = AppleID(77)
            },
            Self.bought(log, "2000") {
                $0.appTransactionID = AppleID(77)
                $0.ownership = .familyShared
            },
        ])
        // The family's gold ranks above one's own silver.
        #expect(try products(log, of: Self.ann, on: 5) == ["gold.month"])
        #expect(try log.count("read_model.unattributed_subscription") == 0)
        let via = try log.connection.query(
            "select via from read_model.owner_subscription"
                + " where original_transaction_id = '2000'"
        )
        #expect(via.text(0, 0) == "family")
        try log.append([
            log.event(
                "2000",
                "revoke",
                .revoke,
                at: LogFixture.day(8),
                LogFixture.month(2000) {
                    $0.appTransactionID = AppleID(77)
                    $0.ownership = .familyShared
                    $0.revocationDate = LogFixture.day(8)
                }
            )
        ])
        #expect(try products(log, of: Self.ann, on: 9) == ["silver.month"])
    }

    @Test func twoOwnersOfOneCustomerGetNothingOnAGuess() throws {
        let log = try LogFixture()
        try log.append([
            Self.bought(log, "1000", product: "silver.month", owner: Self.ann) {
                $0.appTransactionID = AppleID(77)
            },
            Self.bought(log, "3000", product: "silver.month", owner: Self.bob) {
                $0.appTransactionID = AppleID(77)
            },
            Self.bought(log, "2000") {
                $0.appTransactionID = AppleID(77)
                $0.ownership = .familyShared
            },
        ])
        #expect(try products(log, of: Self.ann, on: 5) == ["silver.month"])
        #expect(try products(log, of: Self.bob, on: 5) == ["silver.month"])
        #expect(try log.count("read_model.unattributed_subscription") == 1)
    }

    @Test func theHigherLevelCountsAlsoWhereTheLowerLastsLonger() throws {
        let log = try LogFixture()
        try Self.configure(log)
        try log.append([
            Self.bought(log, "1000", owner: Self.ann),
            Self.bought(log, "2000", product: "silver.month", owner: Self.ann) {
                $0.expiresDate = LogFixture.day(365)
            },
            // A product that no configuration knows is the lowest, however long it lasts.
            Self.bought(log, "3000", product: "mystery", owner: Self.ann) {
                $0.expiresDate = LogFixture.day(700)
            },
        ])
        #expect(try products(log, of: Self.ann, on: 5) == ["gold.month"])
        #expect(try products(log, of: Self.ann, on: 100) == ["silver.month"])
        #expect(try products(log, of: Self.ann, on: 400) == ["mystery"])
    }

    @Test func sandboxNeverCountsForAPerson() throws {
        var log = try LogFixture()
        log.app.environment = .sandbox
        try log.append([Self.bought(log, "1000", owner: Self.ann)])
        #expect(try products(log, of: Self.ann, on: 5) == [])
        #expect(
            try log.count(
                "read_model.owner_entitlement_at_sandbox('\(LogFixture.day(5))')"
            ) == 1
        )
    }
}
