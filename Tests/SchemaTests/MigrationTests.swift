import EventLog
import Foundation
import Postgres
import Schema
import TestSupport
import Testing

struct MigrationTests {
    /// The folder of the migrations, found from this file's own place.
    private static let folder = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "schema/migrations")

    private static func padded(_ number: Int) -> String {
        String(repeating: "0", count: max(0, 4 - String(number).count)) + String(number)
    }

    @Test func theListOfMigrationsEqualsTheFolder() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path).sorted()
        let listed = Schema.migrations.map { migration in
            "\(Self.padded(migration.number))_\(migration.name).sql"
        }
        #expect(listed == files)
        for migration in Schema.migrations {
            let file = "\(Self.padded(migration.number))_\(migration.name).sql"
            let text = try String(contentsOf: Self.folder.appending(path: file), encoding: .utf8)
            #expect(migration.sql == text)
        }
    }

    @Test func migratingTwiceDoesNothingTheSecondTime() throws {
        try withDatabase { connection in
            let migrator = try Migrator(connection, roles: Roles(prefix: "twice"))
            #expect(try migrator.migrate().count == Schema.migrations.count)
            #expect(try migrator.migrate().isEmpty)
            #expect(try migrator.status().allSatisfy(\.isApplied))
            try migrator.check()
        }
    }

    @Test func aChangedMigrationStopsTheProgram() throws {
        let database = try TestDatabase.create()
        defer { withExtendedLifetime(database) {} }
        let connection = try database.connect()
        let roles = Roles(prefix: "changed")
        let table = Migration(
            component: "sample",
            number: 1,
            name: "table",
            sql: "create table ledger.sample (id integer)"
        )
        try Migrator(connection, extra: [table], roles: roles).migrate()
        var changed = table
        changed.sql += " "
        let migrator = try Migrator(connection, extra: [changed], roles: roles)
        let onMigrate = #expect(throws: EventLogError.self) { try migrator.migrate() }
        #expect(onMigrate?.code == .schema)
        let onCheck = #expect(throws: EventLogError.self) { try migrator.check() }
        #expect(onCheck?.code == .schema)
    }

    @Test func aFailingMigrationLeavesNothingBehind() throws {
        try withDatabase { connection in
            let broken = Migration(
                component: "sample",
                number: 1,
                name: "broken",
                sql: "create table ledger.half (id integer); select 1 / 0"
            )
            let migrator = try Migrator(
                connection,
                extra: [broken],
                roles: Roles(prefix: "broken")
            )
            #expect(throws: EventLogError.self) { try migrator.migrate() }
            let half = try connection.query("select to_regclass('ledger.half') is null")
            #expect(half.bool(0, 0) == true)
            #expect(try migrator.status().filter { !$0.isApplied }.map(\.migration) == [broken])
        }
    }

    @Test func aDatabaseWithoutALedgerIsNamedWithTheRemedy() throws {
        try withDatabase { connection in
            let migrator = try Migrator(connection)
            let error = #expect(throws: EventLogError.self) { try migrator.check() }
            #expect(error?.code == .schema)
            #expect(error?.message.contains("subledger migrate") == true)
        }
    }

    @Test func severalProgramsMayMigrateAtOnce() async throws {
        let database = try TestDatabase.create()
        defer { withExtendedLifetime(database) {} }
        let applied = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let connection = try database.connect()
                    let roles = Roles(prefix: "crowd")
                    return try Migrator(connection, roles: roles).migrate().count
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(applied == Schema.migrations.count)
    }

    @Test func theRolesMayBeMadeBeforehand() throws {
        try withDatabase { connection in
            let roles = Roles(prefix: "before\"hand")
            for statement in roles.statements { try connection.execute(statement) }
            try Migrator(connection, roles: roles).migrate()
            let owner = try connection.query(
                "select tableowner::text from pg_tables where tablename = 'event'"
            )
            #expect(owner.text(0, 0) == roles.owner)
        }
    }

    @Test func everyTableSaysWhatARowIs() throws {
        let connection = try LogDatabase.shared.connect()
        let rows = try connection.query(
            """
            select oid::regclass::text from pg_class
            where relnamespace in ('ledger'::regnamespace, 'read_model'::regnamespace)
                and relkind in ('r', 'p', 'v') and not relispartition
                and obj_description(oid, 'pg_class') is null
            """
        )
        #expect((0..<rows.count).map { rows.text($0, 0) ?? "" } == [])
    }
}
