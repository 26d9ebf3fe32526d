import Glibc
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

@Suite struct SwapTests {
    @Test func readersNeverSeeAnEmptyOrMixedAnswerWhileGenerationsAreSwapped() throws {
        let log = try LogFixture()
        try log.appendLives(80)
        try Projector(log.connection).project()
        let expected = try Self.answer(log.connection)
        let connect = log.connect
        let isOver = Atomic(false)
        let reads = Atomic(0)
        let wrong = Mutex<[String]>([])
        onThreads(3) { thread in
            do {
                let connection = try connect()
                if thread == 0 {
                    defer { isOver.store(true, ordering: .relaxed) }
                    // The others are to have begun, however busy the machine is.
                    while reads.load(ordering: .relaxed) < 2, wrong.withLock(\.isEmpty) {
                        usleep(1000)
                    }
                    for _ in 0..<6 { _ = try Rebuild(connect: connect).run() }
                } else {
                    while !isOver.load(ordering: .relaxed) {
                        let answer = try Self.answer(connection)
                        if answer != expected { wrong.withLock { $0.append(answer) } }
                        reads.add(1, ordering: .relaxed)
                    }
                }
            } catch {
                wrong.withLock { $0.append("\(error)") }
            }
        }
        #expect(wrong.withLock { $0 } == [])
        #expect(reads.load(ordering: .relaxed) > 10)
        #expect(try Current.read(log.connection).allSatisfy { $0.generation == 7 })
    }

    @Test func anOldSnapshotKeepsItsRowsAndLaterTheyGo() throws {
        let log = try LogFixture()
        try log.appendLives(20)
        try Projector(log.connection).project()
        let old = try log.connect()
        try old.execute("begin isolation level repeatable read read only; select 1")
        let before = try Self.answer(log.connection)
        try log.append([
            log.event(
                "700001",
                "late",
                .didRenew,
                at: LogFixture.day(900),
                LogFixture.month(5_555_555, 900)
            )
        ])
        _ = try Rebuild(connect: log.connect).run()
        #expect(try Self.answer(old) == before)
        #expect(try Self.answer(log.connection) != before)
        #expect(
            try log.count("read_model.generation where state = 'retired'") == ReadModels.names.count
        )
        try old.execute("commit")
        try Retirement.dropRetired(log.connection)
        #expect(try log.count("read_model.generation where state = 'retired'") == 0)
        #expect(try log.count("pg_class where relname ~ '_g1(_|$)'") == 0)
    }

    @Test func aReaderInTheMiddleOfATableDoesNotHoldTheSwapUp() throws {
        let log = try LogFixture()
        try log.appendLives(20)
        try Projector(log.connection).project()
        let reader = try log.connect()
        // An open transaction that has read holds a lock on the tables.
        try reader.execute("begin; select count(*) from read_model.entitlement_now")
        let report = try Rebuild(connect: log.connect).run()
        #expect(report.readModels[0].generation == 2)
        #expect(try Self.answer(reader) == Self.answer(log.connection))
        #expect(
            try log.count("read_model.generation where state = 'retired'") == ReadModels.names.count
        )
        try reader.execute("commit")
        try Retirement.dropRetired(log.connection)
        #expect(try log.count("read_model.generation where state = 'retired'") == 0)
    }

    @Test func aProjectorThatStandsStillHoldsASwapUpForSomeTimeOnly() throws {
        let log = try LogFixture()
        try log.appendLives(10)
        try Projector(log.connection).project()
        let frozen = try log.connect()
        try frozen.execute(Projector.begin)
        let limit = try frozen.query("show idle_in_transaction_session_timeout")
        #expect(limit.text(0, 0) == "90s")
        // The same in less time than a test may take.
        try frozen.execute("set local idle_in_transaction_session_timeout = '3s'")
        _ = try Current.read(frozen, lock: "for share")
        let start = ContinuousClock.now
        let report = try Rebuild(connect: log.connect).run()
        #expect(ContinuousClock.now - start > .seconds(1), "the swap waited")
        #expect(report.readModels[0].generation == 2)
        #expect(throws: PostgresError.self) { try frozen.execute("commit") }
    }

    /// Everything that the views show, in a few numbers.
    private static func answer(_ connection: Connection) throws -> String {
        let rows = try connection.query(
            """
            select count(*)::text || ' ' || count(distinct original_transaction_id)
                || ' ' || count(app_account_token) || ' ' || max(known_to_position)
                || ' ' || md5(string_agg(state || valid_from || valid_until, ','
                    order by original_transaction_id, valid_from))
            from read_model.entitlement_timeline
            """
        )
        return rows.text(0, 0) ?? "no answer"
    }
}
