import Ledger
import Postgres
import Synchronization
import Testing

@testable import LedgerService

@Suite(.timeLimit(.minutes(2))) struct RebuildTests {
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
}
