import EventLog
import Ledger
import Postgres
import TestSupport
import Testing

@testable import LedgerService

@Suite struct ParkedStreamsTests {
    private let log: LogFixture

    init() throws {
        log = try LogFixture()
        try log.appendLives(5)
        try spoil("700002")
        try spoil("700004")
        #expect(try Projector(log.connection).project().parked.count == 2)
    }

    private func spoil(_ stream: String) throws {
        try log.connection.execute("update ledger.fact set decoder = 99 where stream = '\(stream)'")
    }

    private func repair(_ stream: String) throws {
        try log.connection.execute(
            "update ledger.fact set decoder = \(FactSource.current.version) where stream = '\(stream)'"
        )
    }

    @Test func aParkedStreamIsListedWithItsAppAndReason() throws {
        let streams = try ParkedStreams(log.connection).all()
        #expect(streams.map(\.key.stream) == ["700002", "700004"])
        #expect(streams.allSatisfy { $0.app == log.app && $0.position > 0 })
        #expect(streams[0].error.contains("700002"))
    }

    @Test func whatCanBeFoldedNowIsAndTheRestStaysWithItsReason() throws {
        try repair("700002")
        let parked = ParkedStreams(log.connection)
        let before = try parked.all()
        let tried = try parked.retry(stream: nil)
        #expect(Set(tried.map(\.stream)) == ["700002", "700004"])
        let remaining = try parked.settle(tried)
        #expect(remaining.map(\.key.stream) == ["700004"])
        #expect(remaining.first?.position == before.last?.position)
        #expect(try log.rows("subscription").count == 4)
        #expect(try Staleness(log.connection).staleStreams == 1)
    }

    @Test func oneOfThemCanBeTriedAlone() throws {
        try repair("700002")
        try repair("700004")
        let parked = ParkedStreams(log.connection)
        let tried = try parked.retry(stream: "700004")
        #expect(try parked.settle(tried) == [])
        #expect(try parked.all().map(\.key.stream) == ["700002"])
        #expect(try parked.retry(stream: "1") == [])
    }

    /// The rights of the role that folds are enough.
    @Test func theProjectorsRightsAreEnough() throws {
        try repair("700002")
        let session = try log.connect()
        // The database is a copy, whose roles are named after the original.
        let rows = try session.query(
            "select pg_get_userbyid(nspowner)::text from pg_namespace where nspname = 'read_model'"
        )
        try session.execute("set role \(rows.text(0, 0) ?? "")")
        let parked = ParkedStreams(session)
        #expect(try parked.settle(parked.retry(stream: "700002")) == [])
    }

    /// Another program is at the stream: it is waited for, and what it does counts.
    @Test func aStreamThatAnotherProgramHoldsIsWaitedFor() throws {
        try repair("700002")
        let holder = try log.connect()
        try holder.execute(
            "begin; select from read_model.claim where stream = '700002' for update"
        )
        let parked = ParkedStreams(log.connection)
        let tried = try parked.retry(stream: "700002")
        let held = try parked.settle(tried, patience: .milliseconds(150))
        #expect(held.map(\.position) == [0], "it is still to be tried")
        try holder.execute("rollback")
        #expect(try parked.settle(tried) == [])
    }
}
