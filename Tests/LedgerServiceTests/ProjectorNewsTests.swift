import EventLog
import Glibc
import Ledger
import Postgres
import TestSupport
import Testing

@testable import LedgerService

/// What a projector that goes on and on looks at.
@Suite struct ProjectorNewsTests {
    private func renewal(_ log: LogFixture, _ stream: String, _ number: Int) -> NewEvent {
        log.event(
            stream,
            "\(stream)-\(number)",
            number == 0 ? .subscribed : .didRenew,
            at: LogFixture.day(Double(number * 30)),
            LogFixture.month(UInt64(number + 1), Double(number * 30)),
            LogFixture.renewal()
        )
    }

    @Test func whatIsAppendedLaterIsFoldedAtOnce() throws {
        let log = try LogFixture()
        try log.append([renewal(log, "7001", 0)])
        let projector = Projector(log.connection)
        #expect(try projector.projectNews(shouldStop: { false }).streams == 1)
        // A stream that sorts before those seen is news as well.
        try log.append([renewal(log, "6001", 0), renewal(log, "7001", 1)])
        #expect(try projector.projectNews(shouldStop: { false }).streams == 2)
        #expect(try projector.projectNews(shouldStop: { false }) == Projector.Report())
        let live = try log.allRows()
        _ = try Rebuild(connect: log.connect).run()
        #expect(try log.allRows() == live)
    }

    @Test func marksOfOldEventsAreFoundAllTheSame() throws {
        let log = try LogFixture()
        try log.appendLives(5)
        let projector = Projector(log.connection)
        #expect(try projector.projectNews(shouldStop: { false }).streams == 5)
        // As a policy that has changed, and as a projector that died with its claims.
        try Projector.markAll(ofApp: 1, log.connection)
        var streams = 0
        var tries = 0
        while streams < 5, tries < 6000 {
            streams += try projector.projectNews(shouldStop: { false }).streams
            tries += 1
            usleep(10_000)
        }
        #expect(streams == 5)
    }

    @Test func marksLongGoneCostNothingWhileAnOldSnapshotIsOpen() throws {
        let log = try LogFixture()
        try log.appendLives(3)
        try Projector(log.connection).project()
        let holder = try log.connect()
        try holder.execute("begin isolation level repeatable read")
        _ = try holder.query("select count(*) from ledger.mark")
        // As after some minutes of load: marks that came and went and cannot be cleaned up.
        try log.connection.execute(
            """
            insert into ledger.mark (stream, app_id, position)
            select '7' || n % 997, 1, n from generate_series(1000, 20000) n;
            delete from ledger.mark where position >= 1000;
            analyze ledger.mark;
            insert into ledger.mark (stream, app_id, position) values ('700001', 1, 20001)
            """
        )
        func pages(_ which: String, _ binds: [Bind]) throws -> Int64 {
            try log.connection.execute("begin; set local enable_seqscan = off")
            defer { try? log.connection.execute("rollback") }
            let rows = try log.connection.query(
                "explain (analyze, buffers, format text) " + Projector.candidates(which),
                binds
            )
            for row in 0..<rows.count {
                let line = rows.text(row, 0) ?? ""
                guard let hit = line.firstRange(of: "shared hit=") else { continue }
                return Int64(line[hit.upperBound...].prefix(while: \.isNumber)) ?? -1
            }
            return -1
        }
        let news = try pages(Projector.news, [.int(20_000)])
        #expect((1...40).contains(news), "\(news) pages")
        let all = try pages(Projector.everything, [.text(""), .int(Int64(Int32.min))])
        #expect(all > 10 * news, "it would have been slow: \(all) pages")
        try holder.execute("rollback")
    }
}
