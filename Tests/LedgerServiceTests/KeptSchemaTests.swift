import EventLog
import Ledger
import Postgres
import Schema
import Synchronization
import Testing

@testable import LedgerService

/// The read models as they were known, in a schema of their own.
@Suite struct KeptSchemaTests {
    /// A log of which the first half was there when somebody reported, with what was reported.
    private struct Reported {
        let log: LogFixture
        let position: Int64
        let report: [String]
        let digests: [Digest]

        init() throws {
            log = try LogFixture()
            let events = log.simulatedEvents(40, seed: 4)
            // What is signed late comes late, and then changes what was said of the months before.
            try log.append(events.enumerated().filter { $0.offset % 3 > 0 }.map(\.element))
            _ = try Rebuild(connect: log.connect).run()
            position = try log.head()
            report = try log.churn(in: "read_model")
            digests = try log.liveDigests()
            _ = try RuleBook(log.connection).changePolicy(
                of: log.app,
                from: .retroactively(from: nil),
                operator: "olga",
                ticket: "SUP-1"
            ) { $0.billingRetryAccess = .allow }
            try log.append(events.enumerated().filter { $0.offset % 3 == 0 }.map(\.element))
            _ = try Rebuild(connect: log.connect).run()
        }
    }

    @Test func aClosedMonthIsReportedAsItWas() throws {
        let reported = try Reported()
        let log = reported.log
        #expect(reported.report.count > 12)
        #expect(try log.churn(in: "read_model") != reported.report)
        let live = try log.liveDigests()
        let rows = try log.connection.query(
            "select recorded_at from ledger.event where position = $1",
            [.int(reported.position)]
        )
        let instant = Timestamp(milliseconds: try #require(rows.instant(0, 0)))
        let (report, prefix) = try Rebuild(connect: log.connect).run(
            known: .instant(instant),
            into: "as_reported"
        )
        #expect(prefix.position == reported.position)
        #expect(report.readModels.map(\.digest) == reported.digests)
        #expect(try log.churn(in: "as_reported") == reported.report)
        #expect(try log.liveDigests() == live, "the live rows are left alone")
        let kept = try #require(
            try KeptSchema.all(log.connection).first { $0.name == "as_reported" }
        )
        #expect(kept.finishedAt != nil)
        #expect(kept.events == report.events)
        #expect(kept.knownToPosition == reported.position)
    }

    @Test func itHasEveryViewAndFunctionForTheSameRoles() throws {
        let log = try LogFixture()
        try log.append(log.simulatedEvents(20, seed: 4))
        let last = try log.head()
        let half = last / 2
        _ = try Rebuild(connect: log.connect).run(known: .position(half), into: "halfway")
        let connection = try log.connect()
        #expect(try Self.shapes(of: "read_model", connection).count > 300)
        let missing = try Self.shapes(of: "read_model", connection)
            .subtracting(Self.shapes(of: "halfway", connection))
        // What keeps the live rows up and lists the schemas is there once.
        let once = ["claim.", "parked.", "kept."]
        #expect(missing.filter { name in !once.contains { name.hasPrefix($0) } } == [])

        let owner = try connection.query(
            "select pg_get_userbyid(nspowner)::text from pg_namespace where nspname = 'read_model'"
        )
        let prefix = try #require(owner.text(0, 0)?.dropLast("_projector".count))
        let roles = Roles(prefix: String(prefix))
        try connection.execute("set role \(Roles.quoted(roles.reader))")
        for question in ["entitlement_now_sandbox", "billing_recovery_all", "lifecycle"] {
            try connection.execute("select count(*) from halfway.\(question)")
        }
        #expect(try !log.churn(in: "halfway", connection).isEmpty)
        let known = try connection.query("select halfway.known_to_position()")
        #expect(known.int(0, 0) == half)
        for hidden in ["log_evidence", "log_event", "extension_audit", "mass_request"] {
            let error = #expect(throws: PostgresError.self, "\(hidden)") {
                try connection.execute("select from halfway.\(hidden)")
            }
            #expect(error?.sqlState == "42501")
        }
        try connection.execute("set role \(Roles.quoted(roles.auditor))")
        try connection.execute("select count(*) from halfway.extension_audit")
        let end = try connection.query("select max(position) from halfway.log_event")
        #expect(end.int(0, 0) == half, "what its views see of the log ends where it does")
        try connection.execute("reset role")
        #expect(try KeptSchema.drop("halfway", log.connect))
        #expect(try log.count("pg_namespace where nspname = 'halfway'") == 0)
        #expect(try !KeptSchema.drop("halfway", log.connect))
    }

    /// Tables, views and functions with their columns and results.
    private static func shapes(
        of schema: String,
        _ connection: Connection
    ) throws -> Set<String> {
        let rows = try connection.query(
            """
            select c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
                || coalesce(': ' || col_description(c.oid, a.attnum), '')
            from pg_class c
            join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
            where c.relnamespace = $1::text::regnamespace and c.relkind in ('v', 'p', 'r')
                and c.relname !~ '_g[0-9]+$'
            union all
            select p.proname || '(' || pg_get_function_arguments(p.oid) || ')'
            from pg_proc p where p.pronamespace = $1::text::regnamespace
            """,
            [.text(schema)]
        )
        return Set(
            (0..<rows.count).map { row in
                (rows.text(row, 0) ?? "").replacing("\(schema).", with: "")
            }
        )
    }

    @Test func aNameThatIsTakenOrCannotBeOneIsRefused() throws {
        let log = try LogFixture()
        try log.appendLives(3)
        let rebuild = try Rebuild(connect: log.connect)
        for name in ["ledger", "read_model", "pg_x", "1st", "Nov", "a b", "", "a\"b"] {
            let error = #expect(throws: ReadModelError.self, "\(name)") {
                try rebuild.run(known: .position(1), into: name)
            }
            #expect(error?.code == .question, "\(name)")
        }
        try log.connection.execute("create schema theirs")
        let theirs = #expect(throws: ReadModelError.self) {
            try rebuild.run(known: .position(1), into: "theirs")
        }
        #expect(theirs?.message.contains("no rebuild made") == true)
        _ = try rebuild.run(known: .position(1), into: "ours")
        let ours = #expect(throws: ReadModelError.self) {
            try rebuild.run(known: .position(2), into: "ours")
        }
        #expect(ours?.message.contains("generations drop ours") == true)
        let ahead = #expect(throws: ReadModelError.self) {
            try rebuild.run(known: .position(999), into: "ahead")
        }
        #expect(ahead?.code == .notKnown)
        #expect(try KeptSchema.all(log.connection).map(\.name) == ["ours"])
    }

    @Test(arguments: [Rebuild.Progress.Phase.fold, .keys])
    func killedItLeavesAnUnfinishedOneThatTheNextTryReplaces(
        phase: Rebuild.Progress.Phase
    ) throws {
        let log = try LogFixture()
        try log.appendLives(20)
        let isThere = Atomic(false)
        func stopped(cleansUp: Bool) throws {
            isThere.store(false, ordering: .relaxed)
            let error = #expect(throws: ReadModelError.self) {
                try Rebuild(cleansUp: cleansUp, connect: log.connect).run(
                    known: .position(20),
                    into: "then",
                    shouldStop: { isThere.load(ordering: .relaxed) },
                    progress: { if $0.phase == phase { isThere.store(true, ordering: .relaxed) } }
                )
            }
            #expect(error?.code == .stopped)
        }
        try stopped(cleansUp: true)
        #expect(try KeptSchema.all(log.connection).isEmpty)
        try stopped(cleansUp: false)
        #expect(try KeptSchema.all(log.connection).map(\.finishedAt) == [nil])
        _ = try Rebuild(connect: log.connect).run(known: .position(20), into: "then")
        let kept = try KeptSchema.all(log.connection)
        #expect(kept.count == 1)
        #expect(kept.first?.finishedAt != nil)
    }
}

extension LogFixture {
    /// What a schema says of two years, a text for each month, product and currency.
    func churn(in schema: String, _ connection: Connection? = nil) throws -> [String] {
        let rows = try (connection ?? self.connection).query(
            """
            select (to_jsonb(c) - 'known_to_position')::text
            from \(schema).churn_monthly('2024-01-01', '2026-01-01', as_of => '2026-01-01Z') c
            order by 1
            """
        )
        return (0..<rows.count).map { rows.text($0, 0) ?? "" }
    }
}
