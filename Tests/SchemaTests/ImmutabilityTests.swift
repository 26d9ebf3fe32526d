import EventLog
import Postgres
import Schema
import TestSupport
import Testing

struct ImmutabilityTests {
    /// The tables that are meant to change; every other table of the log is immutable.
    private static let mutable: Set<String> = [
        "head", "mark", "poll", "fact", "schema_lock", "refusal", "forward", "forward_stream",
        "history_window", "send_attempt", "turn",
    ]

    private static let statements = ["update", "delete", "truncate"]

    /// Every immutable table and partition with one of its columns, from the catalogue.
    private static func tables(_ connection: Connection) throws -> [(name: String, column: String)]
    {
        let rows = try connection.query(
            """
            select relation.oid::regclass::text, attribute.attname::text,
                coalesce(parent.relname, relation.relname)::text
            from pg_class as relation
            join pg_attribute as attribute on attribute.attrelid = relation.oid
                and attribute.attnum = 1
            left join pg_inherits on inhrelid = relation.oid
            left join pg_class as parent on parent.oid = inhparent
            where relation.relnamespace = 'ledger'::regnamespace
                and relation.relkind in ('r', 'p')
            order by 1
            """
        )
        return (0..<rows.count).compactMap { row in
            guard
                let name = rows.text(row, 0), let column = rows.text(row, 1),
                let base = rows.text(row, 2), !mutable.contains(base)
            else { return nil }
            return (name, column)
        }
    }

    private static func sql(_ statement: String, _ table: String, _ column: String) -> String {
        switch statement {
        case "update": "update \(table) set \(column) = \(column)"
        case "delete": "delete from \(table)"
        default: "truncate \(table) cascade"
        }
    }

    /// The SQLSTATE that a statement fails with, or nil when it is obeyed.
    private static func refusal(_ sql: String, _ connection: Connection) throws -> String? {
        try connection.execute("begin")
        defer { try? connection.execute("rollback") }
        do {
            try connection.execute(sql)
            return nil
        } catch {
            return error.sqlState
        }
    }

    @Test func theCatalogueListsAllTables() throws {
        let connection = try LogDatabase.shared.connect()
        let names = Set(try Self.tables(connection).map(\.name))
        for table in ["event", "evidence", "batch", "quarantine", "conflict", "jws_header"] {
            #expect(names.contains("ledger.\(table)"))
        }
        for partition in ["event_00", "event_31", "evidence_00", "evidence_31"] {
            #expect(names.contains("ledger.\(partition)"))
        }
    }

    /// Privileges refuse with 42501, triggers with 2F002; a superuser meets the triggers only.
    @Test(arguments: ["owner", "appender", "projector", "reader", "auditor", "superuser"])
    func noRoleCanChangeTheLog(_ role: String) throws {
        let connection = try LogDatabase.shared.connect()
        let tables = try Self.tables(connection)
        if role != "superuser" {
            try connection.execute("set role \(LogDatabase.roles.prefix)_\(role)")
        }
        for (table, column) in tables {
            for statement in Self.statements {
                let state = try Self.refusal(Self.sql(statement, table, column), connection)
                let wanted: Set = role == "superuser" ? ["2F002"] : ["42501", "2F002"]
                #expect(
                    state.map(wanted.contains) == true,
                    "\(role): \(statement) \(table): \(state ?? "obeyed")"
                )
            }
        }
    }

    /// The owner can give the privileges back to itself; the triggers stand behind them.
    @Test func anOwnerWithAllPrivilegesMeetsTheTriggers() throws {
        let connection = try LogDatabase.shared.connect()
        let tables = try Self.tables(connection)
        try connection.execute("set role \(LogDatabase.roles.owner)")
        for (table, column) in tables {
            for statement in Self.statements {
                let grant = "grant all on all tables in schema ledger to current_user; "
                let sql = Self.sql(statement, table, column)
                let state = try Self.refusal(grant + sql, connection)
                #expect(state == "2F002", "\(statement) \(table): \(state ?? "obeyed")")
            }
        }
    }

    @Test func aReplicationRoleDoesNotSwitchTheTriggersOff() throws {
        let connection = try LogDatabase.shared.connect()
        try connection.execute("set session_replication_role = replica")
        for (table, column) in try Self.tables(connection) {
            let state = try Self.refusal(Self.sql("update", table, column), connection)
            #expect(state == "2F002", "update \(table): \(state ?? "obeyed")")
        }
    }

    /// An upsert is an update in disguise.
    @Test func anUpsertCannotChangeARow() throws {
        let connection = try LogDatabase.shared.connect()
        let state = try Self.refusal(
            """
            insert into ledger.app (app_id, bundle_id, environment) values (1, 'a', 'Sandbox');
            insert into ledger.app (app_id, bundle_id, environment) values (1, 'a', 'Sandbox')
            on conflict (app_id) do update set bundle_id = 'b'
            """,
            connection
        )
        #expect(state == "2F002")
    }
}
