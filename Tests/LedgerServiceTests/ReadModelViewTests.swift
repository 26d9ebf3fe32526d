import EventLog
import Ledger
import Postgres
import Projections
import Schema
import TestSupport
import Testing

@testable import LedgerService

@Suite struct ReadModelViewTests {
    /// The columns of the published views: they are only ever added to, at the end.
    private static let published = [
        "original_transaction_id text", "environment text", "bundle_id text", "product_id text",
        "state text", "cause text", "entitled boolean", "entitled_apple boolean",
        "valid_from timestamp with time zone", "valid_until timestamp with time zone",
        "state_from timestamp with time zone", "state_until timestamp with time zone",
        "access_until_apple timestamp with time zone", "access_until timestamp with time zone",
        "expires_date timestamp with time zone",
        "grace_period_expires_date timestamp with time zone", "confidence text",
        "renewal_intent text", "pending_product_id text", "price_consent text",
        "has_billing_trouble boolean", "offer text", "ownership text",
        "subscription_group_identifier text", "level integer", "app_account_token uuid",
        "app_transaction_id text", "transaction_id text", "price bigint", "currency text",
        "policy_version integer", "known_to_position bigint", "positions bigint[]",
        "app_id integer",
    ]

    private static let views = [
        "entitlement_all", "entitlement_timeline", "entitlement_timeline_sandbox",
        "entitlement_now", "entitlement_now_sandbox", "owner_timeline", "owner_entitlement_now",
        "owner_entitlement_now_sandbox",
    ]

    /// What the views about owners have besides.
    private static let publishedOfOwners = [
        "via text", "owned_from timestamp with time zone", "owned_until timestamp with time zone",
    ]

    @Test(arguments: views) func publishedColumnsStayAsTheyAreAndAreExplained(view: String) throws {
        let log = try LogFixture()
        let rows = try log.connection.query(
            """
            select attname || ' ' || format_type(atttypid, atttypmod),
                col_description(attrelid, attnum)
            from pg_attribute
            where attrelid = ('read_model.' || $1)::regclass and attnum > 0
            order by attnum
            """,
            [.text(view)]
        )
        #expect(
            (0..<rows.count).map { rows.text($0, 0) }
                == Self.published + (view.hasPrefix("owner") ? Self.publishedOfOwners : [])
        )
        for row in 0..<rows.count { #expect(rows.text(row, 1)?.isEmpty == false) }
        let comment = try log.connection.query(
            "select obj_description(('read_model.' || $1)::regclass)",
            [.text(view)]
        )
        #expect(comment.text(0, 0) != nil)
    }

    @Test func everyTableHasExactlyTheColumnsThatItsProjectionWrites() throws {
        let log = try LogFixture()
        for table in Catalogue.all.flatMap({ $0.tables }) {
            let rows = try log.connection.query(
                """
                select attname from pg_attribute
                where attrelid = ('read_model.' || $1)::regclass and attnum > 0
                    and not attisdropped
                order by attnum
                """,
                [.text(table.name)]
            )
            let columns = (0..<rows.count).map { rows.text($0, 0) ?? "" }
            #expect(columns == ["generation"] + table.columns)
        }
    }

    /// Sandbox never unlocks Production, not even under the same id and owner.
    @Test func noViewForProductionShowsSandbox() throws {
        var log = try LogFixture()
        let owner = UniqueID(bits: 7)
        let month = LogFixture.month(1) {
            $0.appAccountToken = owner
            $0.expiresDate = Timestamp(milliseconds: 4_000_000_000_000)
        }
        log.app.environment = .sandbox
        try log.append([log.event("7001", "a", .subscribed, at: LogFixture.t0, month)])
        try Projector(log.connection).project()
        let owned = "where app_account_token = '00000000-0000-0000-0000-000000000007'"
        for view in [
            "entitlement_timeline", "entitlement_now", "owner_entitlement_now",
            "entitlement_at('2025-10-20Z')", "owner_entitlement_at('2025-10-20Z')",
        ] {
            #expect(try log.count("read_model.\(view)") == 0, "\(view)")
            #expect(try log.count("read_model.\(view) \(owned)") == 0, "\(view)")
        }
        for view in [
            "entitlement_now_sandbox", "entitlement_timeline_sandbox",
            "entitlement_at_sandbox('2025-10-20Z')",
        ] {
            #expect(try log.count("read_model.\(view) \(owned)") > 0, "\(view)")
            let others = "where environment <> 'Sandbox'"
            #expect(try log.count("read_model.\(view) \(others)") == 0, "\(view)")
        }
        log.app.environment = .production
        try log.append([log.event("7001", "b", .subscribed, at: LogFixture.day(1), month)])
        try Projector(log.connection).project()
        #expect(try log.count("read_model.entitlement_now \(owned)") == 1)
        let mixed = "where environment <> 'Production'"
        #expect(try log.count("read_model.entitlement_now \(mixed)") == 0)
    }

    @Test func theSessionsTimeZoneChangesNoAnswer() throws {
        let log = try LogFixture()
        try log.appendLives(20)
        try Projector(log.connection).project()
        let question = """
            select md5(string_agg(e::text, ',' order by original_transaction_id)) from (
                select original_transaction_id, state, entitled, extract(epoch from valid_from),
                    extract(epoch from state_until), positions
                from read_model.entitlement_at('2025-11-08T09:00:00Z')
            ) e
            """
        let utc = try log.connection.query(question).text(0, 0)
        try log.connection.execute("set time zone 'Pacific/Kiritimati'")
        #expect(try log.connection.query(question).text(0, 0) == utc)
        #expect(utc != nil)
    }

    @Test func timelinesHaveNoGapAndNoOverlapAndAnOpenEnd() throws {
        let log = try LogFixture()
        try log.appendLives(200, seed: 11)
        try Projector(log.connection).project()
        let wrong = """
            (select valid_until, lead(valid_from, 1, 'infinity') over (
                partition by app_id, original_transaction_id order by valid_from) as next
             from read_model.entitlement_all) t where valid_until <> next
            """
        #expect(try log.count(wrong) == 0)
        let bounds = """
            read_model.entitlement_all where not (state_from <= valid_from
                and valid_until <= state_until
                and (access_until is null) = not entitled
                and (access_until_apple is null) = not entitled_apple
                and coalesce(access_until, valid_until) >= valid_until)
            """
        #expect(try log.count(bounds) == 0)
        #expect(try log.count("read_model.entitlement_all") > 400)
    }

    @Test func theHighestEntitledLevelCountsForAnOwnerAndNotTheLongest() throws {
        let log = try LogFixture()
        try log.append([
            log.event(
                "7001",
                "a",
                .subscribed,
                at: LogFixture.t0,
                LogFixture.month(1, product: "gold.month") {
                    $0.appAccountToken = UniqueID(bits: 7)
                }
            )
        ])
        try log.append([
            log.event(
                "7002",
                "b",
                .subscribed,
                at: LogFixture.day(1),
                LogFixture.month(2, 1, product: "silver.month") {
                    $0.appAccountToken = UniqueID(bits: 7)
                }
            )
        ])
        try log.connection.execute(
            """
            insert into ledger.app_rules (app_id, version, grace_scope)
                values (1, 1, 'all_renewals');
            insert into ledger.app_product (app_id, version, product_id,
                subscription_group_identifier, level, period)
                values (1, 1, 'gold.month', 'group1', 1, '1m'),
                    (1, 1, 'silver.month', 'group1', 2, '1m')
            """
        )
        try Projector(log.connection).project()
        let rows = try log.connection.query(
            "select product_id, level from read_model.owner_entitlement_at($1)",
            [.instant(milliseconds: LogFixture.day(5).milliseconds)]
        )
        #expect(rows.count == 1)
        #expect(rows.text(0, 0) == "gold.month")
        #expect(rows.int(0, 1) == 1)
        // When gold is over, silver counts.
        let later = try log.connection.query(
            "select product_id from read_model.owner_entitlement_at($1)",
            [.instant(milliseconds: LogFixture.day(30.5).milliseconds)]
        )
        #expect(later.text(0, 0) == "silver.month")
    }

    @Test func eachRoleMayDoItsWorkAndNoMore() throws {
        let database = try TestDatabase.create()
        let owner = try database.connect()
        let roles = Roles(prefix: "views_\(database.name)")
        try Migrator(owner, extra: ReadModels.migrations, roles: roles).migrate()
        @Sendable func connect(as role: String) throws -> Connection {
            let connection = try database.connect()
            try connection.execute("set role \(Roles.quoted(role))")
            return connection
        }
        let month = LogFixture.month(1)
        let log = try LogFixture()
        let event = log.event("7001", "a", .subscribed, at: LogFixture.t0, month)
        _ = try Appender(connect(as: roles.appender)).append([event])
        let projector = roles.projector
        #expect(try Projector(connect(as: projector)).project().streams == 1)
        _ = try Rebuild { try connect(as: projector) }.run()
        #expect(try Rebuild { try connect(as: projector) }.run().streams == 1)
        // A superuser's rebuild leaves the projector able to go on.
        _ = try Rebuild { try database.connect() }.run()
        _ = try Rebuild { try connect(as: projector) }.run()
        for role in [roles.reader, roles.auditor] {
            let reader = try connect(as: role)
            let query = EntitlementQuery(at: LogFixture.day(1))
            #expect(try query.answers(reader).count == 1)
            #expect(try Staleness(reader).staleStreams == 0)
            for statement in [
                "delete from read_model.subscription", "update read_model.current set version = 9",
                "delete from ledger.mark",
            ] {
                let error = #expect(throws: PostgresError.self) { try reader.execute(statement) }
                #expect(error?.sqlState == "42501", "\(role): \(statement)")
            }
        }
    }
}
