import EventLog
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

@Suite struct ProjectorTests {
    @Test func aSecondRunFindsNothingToDo() throws {
        let log = try LogFixture()
        try log.appendLives(30)
        try Projector(log.connection).project()
        let again = try Projector(log.connection).project()
        #expect(again == Projector.Report())
    }

    @Test func foldingTheSameEventsAgainWritesNoRow() throws {
        let log = try LogFixture()
        try log.appendLives(30)
        try Projector(log.connection).project()
        try Projector.markAll(ofApp: 1, log.connection)
        let again = try Projector(log.connection).project()
        #expect(again.streams == 30)
        #expect(again.rowsWritten == 0)
        #expect(again.rowsDeleted == 0)
    }

    @Test func anEventReplacesOnlyTheRowsThatDiffer() throws {
        let log = try LogFixture()
        var periods: [NewEvent] = []
        for period in 0..<12 {
            let start = Double(period * 30)
            periods.append(
                log.event(
                    "7001",
                    "\(period)",
                    period == 0 ? .subscribed : .didRenew,
                    at: LogFixture.day(start),
                    LogFixture.month(UInt64(period + 1), start),
                    LogFixture.renewal()
                )
            )
        }
        try log.append(Array(periods.dropLast()))
        try Projector(log.connection).project()
        let rows = try log.rows("entitlement_interval").count
        try log.append([periods[11]])
        let report = try Projector(log.connection).project()
        #expect(report.streams == 1)
        // The bounds of the state stand in every row of its run, so those are written anew.
        #expect(report.rowsWritten > 0)
        #expect(try log.rows("entitlement_interval").count > rows)
        let live = try log.allRows()
        _ = try Rebuild(connect: log.connect).run()
        #expect(try log.allRows() == live)
    }

    @Test func aStreamThatCannotBeFoldedIsParkedAndDoesNotStallTheOthers() throws {
        let log = try LogFixture()
        try log.appendLives(20)
        try log.connection.execute("update ledger.fact set decoder = 99 where stream = '700007'")
        let report = try Projector(log.connection).project()
        #expect(report.streams == 19)
        #expect(report.parked.map(\.key.stream) == ["700007"])
        #expect(try log.rows("subscription").count == 19)
        let staleness = try Staleness(log.connection)
        #expect(staleness.staleStreams == 1)
        #expect(staleness.parked.map(\.key.stream) == ["700007"])
        #expect(staleness.parked.first?.error.contains("700007") == true)
        // It is not tried again and again.
        #expect(try Projector(log.connection).project() == Projector.Report())
    }

    @Test func aParkedStreamIsTriedAgainWhenItHasNews() throws {
        let log = try LogFixture()
        try log.appendLives(3)
        try log.connection.execute("update ledger.fact set decoder = 99 where stream = '700002'")
        try Projector(log.connection).project()
        try log.connection.execute(
            "update ledger.fact set decoder = \(FactSource.current.version) where stream = '700002'"
        )
        try log.append([
            log.event(
                "700002",
                "late",
                .didRenew,
                at: LogFixture.day(500),
                LogFixture.month(77, 500)
            )
        ])
        let report = try Projector(log.connection).project()
        #expect(report.streams == 1)
        #expect(try Staleness(log.connection).parked == [])
        #expect(try log.rows("subscription").count == 3)
    }

    /// The server ends the session between the rows and the end of the marks.
    @Test func aProjectorKilledInTheMiddleOfAStreamHasNotTouchedIt() throws {
        let log = try LogFixture()
        try log.appendLives(10)
        try log.connection.execute(
            """
            create function public.kill_me() returns trigger language plpgsql as
                'begin perform pg_terminate_backend(pg_backend_pid()); return null; end';
            create trigger kill_me before delete on ledger.mark
                for each statement execute function public.kill_me()
            """
        )
        let victim = try log.connect()
        let error = #expect(throws: ReadModelError.self) { try Projector(victim).project() }
        #expect(error?.code == .unavailable)
        #expect(try log.allRows() == [])
        #expect(try Staleness(log.connection).staleStreams == 10)
        try log.connection.execute("drop trigger kill_me on ledger.mark")
        #expect(try Projector(log.connection).project().streams == 10)
        let live = try log.allRows()
        _ = try Rebuild(connect: log.connect).run()
        #expect(try log.allRows() == live)
    }

    @Test func manyProjectorsShareTheStreamsAndNoneIsFoldedByTwoAtOnce() throws {
        let log = try LogFixture()
        try log.appendLives(300)
        let connect = log.connect
        let errors = Mutex<[String]>([])
        onThreads(4) { _ in
            do {
                try Projector(connect()).project()
            } catch {
                errors.withLock { $0.append("\(error)") }
            }
        }
        #expect(errors.withLock { $0 } == [])
        // One may have ended while another still held what it could not claim.
        try Projector(log.connection).project()
        #expect(try log.count("ledger.mark") == 0)
        let live = try log.allRows()
        _ = try Rebuild(connect: connect).run()
        #expect(try log.allRows() == live)
    }

    @Test func aChangedPolicyIsFoldedIntoEverySubscriptionOfItsApp() throws {
        let log = try LogFixture()
        try log.appendLives(15)
        try Projector(log.connection).project()
        try log.connection.transaction { connection in
            try connection.execute(
                """
                insert into ledger.access_policy (app_id, version, effective_from,
                    billing_retry_access, missing_grace_date, refund_ends_access,
                    rescinded_consent_suspends)
                values (1, 2, '2020-01-01Z', 'allow', 'deny', false, true)
                """
            )
            try Projector.markAll(ofApp: 1, connection)
        }
        #expect(try Projector(log.connection).project().streams == 15)
        #expect(try log.count("read_model.entitlement_now where policy_version = 2") == 15)
        let live = try log.allRows()
        _ = try Rebuild(connect: log.connect).run()
        #expect(try log.allRows() == live)
    }

    @Test func whatIsNoSubscriptionHasNoRowAndLeavesNoMark() throws {
        let log = try LogFixture()
        var coins = TransactionFact(
            transactionID: AppleID(7009),
            signedDate: LogFixture.t0,
            digest: 1
        )
        coins.productType = .consumable
        coins.productID = "coins.100"
        coins.purchaseDate = LogFixture.t0
        try log.append([
            log.event("7009", "coins", .oneTimeCharge, at: LogFixture.t0, coins),
            log.event("app:1", "test", .test, at: LogFixture.t0, nil),
        ])
        try Projector(log.connection).project()
        #expect(try log.allRows() == [])
        #expect(try log.count("ledger.mark") == 0)
        #expect(try Rebuild(connect: log.connect).run().readModels[0].digest == Digest())
    }

    /// Two apps, or two environments, never mix even where an id repeats.
    @Test func oneStreamNameInTwoAppsIsTwoSubscriptions() throws {
        var log = try LogFixture()
        let month = LogFixture.month(1)
        try log.append([log.event("7001", "a", .subscribed, at: LogFixture.t0, month)])
        log.app.bundleID = "com.example.other"
        let later = LogFixture.month(1, 10)
        try log.append([log.event("7001", "b", .subscribed, at: LogFixture.day(10), later)])
        try Projector(log.connection).project()
        let answers = try EntitlementQuery(at: LogFixture.day(35), subscription: "7001")
            .answers(log.connection)
        #expect(answers.map(\.app.bundleID) == ["com.example.app", "com.example.other"])
        #expect(answers.map(\.state) == ["expired", "active"])
        let live = try log.allRows()
        _ = try Rebuild(connect: log.connect).run()
        #expect(try log.allRows() == live)
    }
}
