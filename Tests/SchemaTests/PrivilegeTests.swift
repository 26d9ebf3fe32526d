import EventLog
import Postgres
import Schema
import TestSupport
import Testing

struct PrivilegeTests {
    private static func isAllowed(
        _ privilege: String,
        _ table: String,
        _ role: String,
        _ connection: Connection
    ) throws -> Bool {
        let rows = try connection.query(
            "select has_table_privilege($1, $2, $3)",
            [.text("\(LogDatabase.roles.prefix)_\(role)"), .text(table), .text(privilege)]
        )
        return rows.bool(0, 0) == true
    }

    @Test(arguments: [
        ("owner", "ledger.event", "delete", false),
        ("owner", "ledger.event_07", "truncate", false),
        ("owner", "ledger.evidence_31", "update", false),
        ("owner", "ledger.batch", "update", false),
        ("reader", "ledger.evidence", "select", false),
        ("reader", "ledger.event", "select", false),
        ("reader", "read_model.current", "select", true),
        ("reader", "read_model.current", "update", false),
        ("auditor", "ledger.evidence", "select", true),
        ("auditor", "ledger.event", "insert", false),
        ("appender", "ledger.event", "insert", true),
        ("appender", "ledger.head", "update", true),
        ("appender", "ledger.mark", "delete", false),
        ("appender", "read_model.claim", "select", false),
        ("projector", "ledger.event", "insert", false),
        ("projector", "ledger.evidence", "select", true),
        ("projector", "ledger.mark", "delete", true),
        ("projector", "ledger.mark", "insert", true),
        ("projector", "ledger.head", "update", false),
        ("projector", "read_model.current", "update", true),
    ])
    func aRoleMayDoWhatItsWorkNeeds(
        _ role: String,
        _ table: String,
        _ privilege: String,
        _ isAllowed: Bool
    ) throws {
        let connection = try LogDatabase.shared.connect()
        let found = try Self.isAllowed(privilege, table, role, connection)
        #expect(found == isAllowed, "\(role) \(privilege) \(table)")
    }

    /// Who did what, on which ticket and from where, is the auditor's.
    @Test(arguments: [
        ("ledger.access_policy", "billing_retry_access", true),
        ("ledger.access_policy", "operator", false), ("ledger.access_policy", "ticket", false),
        ("ledger.app_rules", "grace_period_days", true), ("ledger.app_rules", "operator", false),
        ("ledger.app_rules", "ticket", false), ("ledger.refusal", "reason", true),
        ("ledger.refusal", "peer", false),
    ])
    func aReaderSeesNoOperators(_ table: String, _ column: String, _ isAllowed: Bool) throws {
        let connection = try LogDatabase.shared.connect()
        for (role, wanted) in [("reader", isAllowed), ("auditor", true)] {
            let rows = try connection.query(
                "select has_column_privilege($1, $2, $3, 'select')",
                [
                    .text("\(LogDatabase.roles.prefix)_\(role)"), .text(table), .text(column),
                ]
            )
            #expect(rows.bool(0, 0) == wanted, "\(role) \(table).\(column)")
        }
    }

    @Test func noRoleCanLogIn() throws {
        let connection = try LogDatabase.shared.connect()
        let rows = try connection.query(
            "select count(*) from pg_roles where rolname = any($1) and not rolcanlogin",
            [.textArray(LogDatabase.roles.all)]
        )
        #expect(rows.int(0, 0) == 5)
    }

    /// A distributed PostgreSQL can only check what holds within one stream.
    @Test func everyKeyOfAPartitionedTableHoldsTheStream() throws {
        let connection = try LogDatabase.shared.connect()
        let rows = try connection.query(
            """
            select conname::text from pg_constraint
            join pg_class on pg_class.oid = conrelid
            where connamespace = 'ledger'::regnamespace and relkind = 'p' and contype in ('p', 'u')
                and not exists (
                    select from pg_attribute
                    where attrelid = conrelid and attnum = any(conkey) and attname = 'stream'
                )
            """
        )
        #expect(rows.count == 0)
        let collations = try connection.query(
            """
            select count(*) from pg_attribute
            join pg_class on pg_class.oid = attrelid
            where relnamespace in ('ledger'::regnamespace, 'read_model'::regnamespace)
                and relkind in ('r', 'p') and attname = 'stream' and attcollation <> (
                    select oid from pg_collation where collname = 'C' limit 1
                )
            """
        )
        #expect(collations.int(0, 0) == 0)
    }

    /// Sequences, advisory locks and NOTIFY exist on one node only, or leave gaps.
    @Test func nothingThatIsBoundToOneNodeCarriesTheLog() throws {
        let connection = try LogDatabase.shared.connect()
        let sequences = try connection.query(
            "select count(*) from pg_class where relkind = 'S'"
                + " and relnamespace in ('ledger'::regnamespace, 'read_model'::regnamespace)"
        )
        #expect(sequences.int(0, 0) == 0)
        for migration in Schema.migrations {
            for word in ["advisory", "pg_notify", "serial", "generated ", "xid8", "xmin"] {
                #expect(!migration.sql.contains(word), "\(migration.name) uses \(word)")
            }
        }
    }
}
