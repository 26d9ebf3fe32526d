import EventLog
import Ledger
import Postgres
import Schema
import Testing

struct RuleBookTests {
    private static let rules = AppRules(
        environment: .sandbox,
        gracePeriodDays: 16,
        products: [
            "gold": ProductRules(groupID: "g", level: 1, period: .oneMonth),
            "silver": ProductRules(groupID: "g", level: 2, period: .oneYear),
        ]
    )

    @Test func theSameRulesAreRecordedOnce() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let book = RuleBook(try log.connect(as: LogDatabase.roles.appender))
        let first = try book.record(Self.rules, of: Sample.app)
        #expect(first.rulesVersion == 1)
        #expect(first.policyVersion == 1)
        let second = try book.record(Self.rules, of: Sample.app)
        #expect(second.rulesVersion == nil)
        #expect(second.policyVersion == nil)
    }

    @Test func aChangeIsANewVersionBesideTheOld() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let book = RuleBook(try log.connect(as: LogDatabase.roles.appender))
        try book.record(Self.rules, of: Sample.app)
        var changed = Self.rules
        changed.products["silver"]?.level = 3
        changed.policies = [AccessPolicy(billingRetryAccess: .days(7))]
        let change = try book.record(changed, of: Sample.app, operator: "Ada")
        #expect(change.rulesVersion == 2)
        #expect(change.policyVersion == 2)
        #expect(try log.count("select count(*) from ledger.app_product") == 4)
        // The old policy stays in force for the time before.
        let rows = try log.connect().query(
            "select effective_from > now() - interval '1 hour' from ledger.access_policy"
                + " order by version"
        )
        #expect(rows.bool(0, 0) == false)
        #expect(rows.bool(1, 0) == true)
    }

    /// An app whose events came first had the default until somebody configured it.
    @Test func theFirstPolicyOfAnAppWithEventsDoesNotReachBack() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        _ = try log.appender().append(Sample.notifications(1))
        let book = RuleBook(try log.connect(as: LogDatabase.roles.appender))
        var rules = Self.rules
        rules.policies = [AccessPolicy(billingRetryAccess: .allow)]
        #expect(try book.record(rules, of: Sample.app).policyVersion == 2)
        let rows = try log.connect().query(
            "select billing_retry_access from ledger.access_policy order by version"
        )
        #expect(rows.text(0, 0) == "deny")
        #expect(rows.text(1, 0) == "allow")
    }
}
