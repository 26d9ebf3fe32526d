import AppStore
import EventLog
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// Each thing that can be wrong is made wrong, and found.
@Suite struct DoctorTests {
    private let log: LogFixture

    init() throws {
        log = try LogFixture()
        try log.appendLives(3)
        try Projector(log.connection).project()
    }

    private func diagnosis(
        _ name: String,
        acceptance: Acceptance = Acceptance(),
        now: Int64? = nil
    ) throws -> Diagnosis? {
        // The database's own clock, so that a busy machine makes no skew.
        let rows = try log.connection.query("select clock_timestamp()")
        let time = Timestamp(milliseconds: now ?? rows.instant(0, 0) ?? 0)
        let doctor = Doctor(
            try log.connect(),
            isEmbedded: false,
            acceptance: acceptance,
            now: { time }
        )
        return doctor.examine().first { $0.name == name }
    }

    private func expect(
        _ name: String,
        _ level: Diagnosis.Level,
        _ part: String = "",
        location: SourceLocation = #_sourceLocation
    ) throws {
        let found = try #require(try diagnosis(name), sourceLocation: location)
        #expect(found.level == level, "\(found)", sourceLocation: location)
        #expect(found.finding.contains(part), "\(found)", sourceLocation: location)
        #expect(found.level == .ok || found.remedy != nil, sourceLocation: location)
    }

    @Test func aHealthyLogIsFoundHealthy() throws {
        for name in [
            "version", "schema", "privileges", "immutability", "chain", "epoch", "read_models",
            "projection", "parked", "quarantine", "refusals",
        ] {
            try expect(name, .ok)
        }
        // The test server flushes nothing, and has no other login than its superuser.
        try expect("fsync", .fail)
        try expect("full_page_writes", .fail)
        try expect("synchronous_commit", .warn)
        try expect("login", .warn, "superuser")
        try expect("apps", .warn)
    }

    @Test func aDatabaseWithoutALedgerIsToldToMigrate() throws {
        let database = try TestDatabase.create()
        let doctor = Doctor(
            try database.connect(),
            isEmbedded: false,
            acceptance: Acceptance(),
            now: { LogFixture.t0 }
        )
        let found = doctor.examine()
        #expect(found.first { $0.name == "schema" }?.level == .fail)
        #expect(!found.contains { $0.name == "chain" })
    }

    @Test func aDroppedOrDisabledTriggerIsFound() throws {
        try log.connection.execute("alter table ledger.event_07 disable trigger refuse_statement")
        try expect("immutability", .fail, "ledger.event_07")
        try log.connection.execute(
            "alter table ledger.event_07 enable always trigger refuse_statement"
        )
        try expect("immutability", .ok)
        // Only "always" holds in a session that plays a replica.
        try log.connection.execute("alter table ledger.quarantine enable trigger refuse_row")
        try expect("immutability", .fail, "ledger.quarantine")
    }

    @Test func aTriggerThatRefusesNothingIsFound() throws {
        try log.connection.execute(
            """
            create or replace function ledger.refuse_change() returns trigger language plpgsql as
                'begin return null; end'
            """
        )
        try expect("immutability", .fail, "was obeyed")
    }

    @Test func aPrivilegeTooManyIsFound() throws {
        try log.connection.execute("grant update on ledger.event to public")
        try expect("privileges", .fail, "everybody may update ledger.event")
    }

    @Test func aChangedEndOfTheLogIsFound() throws {
        try log.connection.execute(
            """
            alter table ledger.event disable trigger all;
            alter table ledger.evidence disable trigger all;
            """
        )
        // Each event is in a partition whose triggers are its own.
        let parts = try log.connection.query(
            "select relation::text from ledger.parts('ledger.event') order by 1"
        )
        for row in 0..<parts.count {
            try log.connection.execute(
                "alter table \(parts.text(row, 0) ?? "") disable trigger all"
            )
        }
        try log.connection.execute(
            """
            update ledger.event set notification_type = 'REFUND'
            where position = (select max(position) from ledger.event)
            """
        )
        try expect("chain", .fail)
        try expect("immutability", .fail)
    }

    @Test func aHeadThatIsNotTheLastBatchsIsFound() throws {
        try log.connection.execute("update ledger.head set position = position + 1")
        try expect("chain", .fail, "the head says")
    }

    @Test func aClockThatIsWrongIsFound() throws {
        let rows = try log.connection.query("select clock_timestamp()")
        let there = rows.instant(0, 0) ?? 0
        let slow = try diagnosis("clock", now: there - 3_600_000)
        #expect(slow?.level == .fail)
        let off = try diagnosis("clock", now: there - 20_000)
        #expect(off?.level == .warn)
    }

    @Test func whatWaitsAndIsParkedIsFound() throws {
        try log.connection.execute("update ledger.fact set decoder = 99 where stream = '700002'")
        try log.connection.execute(
            "insert into ledger.mark select stream, app_id, max(position) from ledger.fact"
                + " where stream in ('700001', '700002') group by stream, app_id"
        )
        try expect("projection", .warn, "2 subscriptions")
        try Projector(log.connection).project()
        try expect("projection", .ok)
        try expect("parked", .warn, "700002")
    }

    @Test func readModelsOfAnotherVersionAreFound() throws {
        try log.connection.execute(
            "update read_model.current set version = 77 where projection = 'entitlement'"
        )
        try expect("read_models", .fail, "entitlement")
    }

    @Test func whatIsQuarantinedOrRefusedIsFound() throws {
        let appender = try Appender(log.connect())
        try appender.quarantine(QuarantinedDocument(received: [1, 2], reason: "duplicate_key"))
        try expect("quarantine", .warn, "1 genuine")
        try log.connection.execute(
            """
            insert into ledger.refusal (reason, size_bytes, bundle_id)
            values ('bad_json', 1, null), ('environment', 2, 'com.example.app'),
                ('environment', 2, 'com.example.else')
            """
        )
        try expect("refusals", .ok, "3 in the last day, none")
        var acceptance = Acceptance()
        acceptance.accept(
            AcceptedApp(bundleID: "com.example.app", appAppleID: nil, environments: [.sandbox])
        )
        let found = try diagnosis("refusals", acceptance: acceptance)
        #expect(found?.level == .warn)
        #expect(found?.finding.contains("most often for environment") == true)
    }

    @Test(arguments: [
        ("401", "could not be read"), ("503", "could not be read"), ("rejected", "not taken"),
    ])
    func whatAppleDidNotAnswerIsFound(_ outcome: String, _ finding: String) throws {
        #expect(try diagnosis("apple_answers") == nil)
        try log.connection.query(
            """
            insert into ledger.poll (stream, app_id, source, polls, first_at, last_at, outcome)
            select 'app:' || bundle_id, app_id, 'notification_history', 1, now(), now(), $1
            from ledger.app order by app_id limit 1
            """,
            [.text(outcome)]
        )
        try expect("apple_answers", .warn, finding)
        try log.connection.execute("update ledger.poll set outcome = 'ok'")
        #expect(try diagnosis("apple_answers") == nil)
    }

    @Test func aDayThatWasNotReadIsFound() throws {
        for days in [3, 1] {
            try log.connection.execute(
                """
                insert into ledger.history_window (app_id, only_failures, window_from, window_to,
                    completed_at)
                select app_id, false, now() - interval '\(days) days',
                    now() - interval '\(days - 1) days', now()
                from ledger.app order by app_id limit 1
                """
            )
        }
        try expect("history", .warn, "was not read")
        try log.connection.execute(
            "update ledger.history_window set window_to = window_to + interval '25 hours'"
                + " where window_from < now() - interval '2 days'"
        )
        try expect("history", .ok, "is known up to")
    }
}
