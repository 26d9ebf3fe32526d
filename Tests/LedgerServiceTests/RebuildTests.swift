import Dispatch
import EventLog
import Ledger
import Postgres
import Synchronization
import Testing

@testable import LedgerService

@Suite struct RebuildTests {
    @Test func rebuildingGivesTheRowsThatLiveProjectingGave() throws {
        let log = try LogFixture()
        try log.appendLives(120)
        let projected = try Projector(log.connection).project()
        #expect(projected.streams == 120)
        #expect(projected.parked.isEmpty)
        #expect(try log.count("ledger.mark") == 0)
        let live = try log.allRows()
        let report = try Rebuild(connect: log.connect).run()
        #expect(report.streams == 120)
        #expect(report.events == Int64(projected.events))
        #expect(report.readModels.first?.digest.rows == Int64(live.count))
        #expect(try log.allRows() == live)
    }

    @Test func twoRebuildsAndTheLiveRowsHaveOneDigest() throws {
        let log = try LogFixture()
        try log.appendLives(60)
        try Projector(log.connection).project()
        let live = try Digest(ofLive: "entitlement", log.connection)
        let first = try Rebuild(workers: 1, connect: log.connect).run()
        let second = try Rebuild(["entitlement"], workers: 3, connect: log.connect).run()
        #expect(first.readModels.map(\.name) == ReadModels.names)
        #expect(first.readModels[0].digest == live)
        #expect(second.readModels.map(\.name) == ["entitlement"])
        #expect(second.readModels[0].digest == live)
        #expect(try Digest(ofLive: "entitlement", log.connection) == live)
        #expect(first.readModels[0].generation < second.readModels[0].generation)
    }

    @Test func aRowThatWasTamperedWithChangesTheDigest() throws {
        let log = try LogFixture()
        try log.appendLives(20)
        try Projector(log.connection).project()
        let before = try Digest(ofLive: "entitlement", log.connection)
        try log.connection.execute(
            """
            update read_model.entitlement_interval set entitled = not entitled
            where ctid = (select min(ctid) from read_model.entitlement_interval)
            """
        )
        #expect(try Digest(ofLive: "entitlement", log.connection) != before)
        let report = try Rebuild(connect: log.connect).run()
        #expect(report.readModels[0].digest == before)
    }

    @Test func anUnknownNameIsRefusedWithTheKnownOnes() {
        let error = #expect(throws: ReadModelError.self) {
            _ = try Rebuild(["entitlment"]) { throw ReadModelError(.unavailable, "not reached") }
        }
        #expect(error?.code == .unknownProjection)
        #expect(error?.message.contains("entitlement") == true)
    }

    @Test func anUnreadableEventStopsItByNameAndLeavesTheLiveRows() throws {
        let log = try LogFixture()
        try log.appendLives(50)
        try Projector(log.connection).project()
        let live = try log.allRows()
        try log.connection.execute(
            """
            update ledger.fact set decoder = 99
            where position = (select max(position) from ledger.fact where stream = '700025')
            """
        )
        let error = #expect(throws: ReadModelError.self) {
            _ = try Rebuild(connect: log.connect).run()
        }
        #expect(error?.code == .unreadableEvent)
        #expect(error?.message.contains("700025") == true, "\(String(describing: error))")
        #expect(try log.allRows() == live)
        #expect(try log.count("read_model.generation where state = 'building'") == 0)
    }

    @Test(arguments: [Rebuild.Progress.Phase.fold, .keys, .catchUp])
    func killedInAnyPhaseItLeavesTheLiveRowsAndTheNextOneTidiesUp(
        phase: Rebuild.Progress.Phase
    ) throws {
        let log = try LogFixture()
        try log.appendLives(40)
        try Projector(log.connection).project()
        let live = try log.allRows()
        let isThere = Atomic(false)
        let killed = try Rebuild(cleansUp: false, connect: log.connect)
        let error = #expect(throws: ReadModelError.self) {
            try killed.run(
                shouldStop: { isThere.load(ordering: .relaxed) },
                progress: { if $0.phase == phase { isThere.store(true, ordering: .relaxed) } }
            )
        }
        #expect(error?.code == .stopped)
        #expect(try log.allRows() == live)
        #expect(try log.count("pg_class where relname like 'subscription_g2%'") > 0)
        let report = try Rebuild(connect: log.connect).run()
        #expect(report.readModels[0].generation == 3)
        #expect(try log.allRows() == live)
        #expect(try log.count("pg_class where relname ~ '_g[12](_|$)'") == 0)
        #expect(
            try log.count("read_model.generation where state = 'live'") == ReadModels.names.count
        )
    }

    @Test func aStreamTooLongToBeFoldedIsParkedAndLeftOut() throws {
        let log = try LogFixture()
        try log.appendLives(5)
        try Projector(log.connection).project()
        let live = try log.allRows()
        try log.connection.query(
            """
            insert into ledger.fact
                (position, app_id, decoder, stream, kind, provenance, fact_at)
            select 1000000 + n, app_id, decoder, '800000', kind, provenance, fact_at
            from (select * from ledger.fact where fact_at is not null limit 1) as sample
            cross join generate_series(0, $1::integer) as n
            """,
            [.int(Int64(Projector.streamEventsMax))]
        )
        let report = try Rebuild(connect: log.connect).run()
        #expect(report.tooLong.map(\.stream) == ["800000"])
        #expect(try log.allRows() == live)
        #expect(
            try log.count(
                "read_model.parked where stream = '800000' and error like '%100000 events%'"
            ) == 1
        )
        // Live it goes the same way, and what is parked is no difference.
        try log.connection.execute("insert into ledger.mark values ('800000', 1, 1100000)")
        let projected = try Projector(log.connection).project()
        #expect(projected.parked.map(\.key.stream) == ["800000"])
        let compared = try Verification(connect: log.connect).run { _ in }
        #expect(compared.different == 0)
        #expect(compared.streams == 5)
    }

    @Test func aSecondRebuildIsRefusedWhileOneRuns() throws {
        let log = try LogFixture()
        try log.appendLives(10)
        let refusal = Mutex<ReadModelError?>(nil)
        let connect = log.connect
        _ = try Rebuild(connect: connect).run(progress: { _ in
            do throws(ReadModelError) {
                _ = try Rebuild(connect: connect).run()
            } catch {
                refusal.withLock { $0 = error }
            }
        })
        #expect(refusal.withLock { $0?.code } == .rebuildRuns)
        #expect(try Rebuild(connect: connect).run().streams == 10)
    }

    @Test func whatComesMeanwhileIsInTheNewGeneration() throws {
        let log = try LogFixture()
        try log.appendLives(60, seed: 3)
        try Projector(log.connection).project()
        let connect = log.connect
        let late = Mutex<[NewEvent]>(
            (1...40).map { number in
                log.event(
                    "\(700_000 + number * 2)",
                    "late-\(number)",
                    .didRenew,
                    at: LogFixture.day(400),
                    LogFixture.month(UInt64(number * 1000), 400),
                    LogFixture.renewal()
                )
            }
        )
        // In every phase some events come and are projected, so that their marks are gone.
        _ = try Rebuild(connect: connect).run(progress: { _ in
            let some = late.withLock { late in
                let some = Array(late.prefix(15))
                late.removeFirst(some.count)
                return some
            }
            do {
                _ = try Appender(connect()).append(some)
                try Projector(connect()).project()
            } catch {
                Issue.record(error)
            }
        })
        #expect(late.withLock { $0.isEmpty })
        #expect(try log.count("ledger.mark") == 0)
        let caughtUp = try log.allRows()
        #expect(try log.count("ledger.event where event_key like 'n:late-%'") == 40)
        let fresh = try Rebuild(connect: connect).run()
        #expect(try log.allRows() == caughtUp)
        #expect(try Digest(ofLive: "entitlement", log.connection) == fresh.readModels[0].digest)
    }

    @Test func theDigestCountsWhatWasCaughtUp() throws {
        let log = try LogFixture()
        try log.appendLives(30, seed: 5)
        let connect = log.connect
        let isFirst = Atomic(true)
        let event = log.event(
            "700001",
            "late",
            .didRenew,
            at: LogFixture.day(400),
            LogFixture.month(9_999_999, 400)
        )
        let report = try Rebuild(connect: connect).run(progress: { progress in
            guard progress.phase == .keys, isFirst.exchange(false, ordering: .relaxed) else {
                return
            }
            do { _ = try Appender(connect()).append([event]) } catch { Issue.record(error) }
        })
        #expect(report.readModels[0].digest == (try Digest(ofLive: "entitlement", log.connection)))
    }

    @Test func rulesThatChangeMeanwhileCountInTheNewGeneration() throws {
        let log = try LogFixture()
        try log.appendLives(30)
        try Projector(log.connection).project()
        let connect = log.connect
        let isFirst = Atomic(true)
        _ = try Rebuild(connect: connect).run(progress: { progress in
            guard progress.phase == .keys, isFirst.exchange(false, ordering: .relaxed) else {
                return
            }
            do {
                try connect().execute(
                    """
                    insert into ledger.access_policy (app_id, version, effective_from,
                        billing_retry_access, missing_grace_date, refund_ends_access,
                        rescinded_consent_suspends)
                    values (1, 7, '2020-01-01Z', 'allow', 'deny', false, true)
                    """
                )
            } catch {
                Issue.record(error)
            }
        })
        let policies = "read_model.entitlement_now where policy_version = 7"
        #expect(try log.count(policies) == 30)
    }

    /// A rebuild of all read models is what the marks stand for; of one it is not.
    @Test func marksEndWithARebuildOfAllReadModels() throws {
        let log = try LogFixture()
        try log.appendLives(10)
        try Projector(log.connection).project()
        try Projector.markAll(ofApp: 1, log.connection)
        #expect(try log.count("ledger.mark") == 10)
        _ = try Rebuild(["churn"], connect: log.connect).run()
        #expect(try log.count("ledger.mark") == 10)
        // What is parked is left to a projector, which takes it off that list.
        try log.connection.execute(
            """
            insert into read_model.parked (stream, app_id, position, error)
            select stream, app_id, position, 'test' from ledger.mark order by stream limit 1
            """
        )
        // Folded already as far as it is known; more has come since.
        try log.connection.execute(
            "insert into ledger.mark select stream, app_id, 1000000 from ledger.mark limit 1"
        )
        _ = try Rebuild(connect: log.connect).run()
        #expect(try log.count("ledger.mark where position = 1000000") == 1)
        #expect(try log.count("ledger.mark where position < 1000000") == 1)
    }

    @Test func rowsOfAnotherVersionAreNotWrittenUntilTheyAreRebuilt() throws {
        let log = try LogFixture()
        try log.appendLives(5)
        try Projector(log.connection).project()
        try log.connection.execute("update read_model.current set version = version + 1")
        try log.append([log.event("9", "late", .subscribed, at: LogFixture.t0, LogFixture.month(9))]
        )
        let error = #expect(throws: ReadModelError.self) {
            try Projector(log.connection).project()
        }
        #expect(error?.code == .outOfDate)
        #expect(error?.message.contains("subledger rebuild") == true)
        #expect(try log.count("ledger.mark") == 1)
        _ = try Rebuild(connect: log.connect).run()
        #expect(try Projector(log.connection).project().streams == 0, "its mark has ended, too")
        #expect(try log.rows("subscription").count == 6)
    }
}
