import EventLog
import LedgerService
import Postgres
import Schema
import Synchronization
import TestSupport
import Testing

/// Two releases on one database: which of them works there, and which says why it does not.
@Suite struct ReleaseTests {
    private static func schema() throws -> TestDatabase {
        try TestDatabase.create(template: "ledger") { connection in
            try Migrator(connection, extra: ReadModels.migrations).migrate()
        }
    }

    private static let next = Migration(
        component: "log",
        number: 9001,
        name: "next",
        sql: "alter table ledger.poll add column note text"
    )

    /// Migrations only add, so the previous release goes on while the next one has migrated.
    @Test func theReleaseBeforeGoesOnOverASchemaThatWasExpanded() throws {
        let database = try Self.schema()
        let old = try Migrator(database.connect(), extra: ReadModels.migrations)
        let new = try Migrator(database.connect(), extra: ReadModels.migrations + [Self.next])
        let refusal = #expect(throws: EventLogError.self) { try new.check() }
        #expect(refusal?.code == .schema)
        #expect(refusal?.message.contains("9001") == true)
        #expect(try new.migrate().map(\.number) == [9001])
        try old.check()
        #expect(try old.migrate().isEmpty)
        try new.check()
    }

    @Test func aMigrationUnderAnotherTextStopsBothReleases() throws {
        let database = try Self.schema()
        var other = Self.next
        _ = try Migrator(database.connect(), extra: ReadModels.migrations + [other]).migrate()
        other.sql += " "
        let changed = try Migrator(database.connect(), extra: ReadModels.migrations + [other])
        for look in [changed.check, { try changed.migrate() }] as [() throws -> Void] {
            let refusal = #expect(throws: EventLogError.self) { try look() }
            #expect(refusal?.code == .schema)
        }
    }

    @Test func onlyOneOfTwoReleasesThatMigrateAtOnceMigrates() throws {
        let database = try Self.schema()
        let applied = Mutex<[Int]>([])
        onThreads(4) { _ in
            let count = try? Migrator(
                database.connect(),
                extra: ReadModels.migrations + [Self.next]
            ).migrate().count
            applied.withLock { $0.append(count ?? -1) }
        }
        #expect(applied.withLock { $0.sorted() } == [0, 0, 0, 1])
    }
}
