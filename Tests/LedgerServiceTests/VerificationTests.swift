import EventLog
import Ledger
import Postgres
import Synchronization
import Testing

@testable import LedgerService

/// Every subscription whose live rows are not those that its events give is named.
@Suite struct VerificationTests {
    private static func built(_ lives: Int = 60) throws -> LogFixture {
        let log = try LogFixture()
        try log.appendLives(lives)
        try Projector(log.connection).project()
        return log
    }

    private static func verify(
        _ log: LogFixture,
        _ names: [String] = []
    ) throws -> (report: Verification.Report, differences: [Verification.Difference]) {
        let found = Mutex<[Verification.Difference]>([])
        let report = try Verification(names, workers: 2, connect: log.connect).run { difference in
            found.withLock { $0.append(difference) }
        }
        let differences = found.withLock { $0.sorted { $0.key < $1.key } }
        #expect(report.different == Int64(differences.count))
        return (report, differences)
    }

    @Test func rightRowsHaveNoDifference() throws {
        let log = try Self.built()
        let (report, differences) = try Self.verify(log)
        #expect(differences == [])
        #expect(report.streams == 60)
        #expect(report.readModels == ReadModels.names)
        #expect(try report.events == log.count("ledger.fact"))
    }

    @Test func aChangedAMissingAndASurplusRowAreNamed() throws {
        let log = try Self.built()
        try log.connection.execute(
            """
            update read_model.entitlement_interval set entitled = not entitled
            where stream = '700007' and valid_from = (
                select min(valid_from) from read_model.entitlement_interval
                where stream = '700007');
            delete from read_model.lifecycle_moment where stream = '700011';
            insert into read_model.subscription (generation, app_id, stream, anomalies,
                known_to_position)
            values (1, 1, 'nobody', '{}', 1)
            """
        )
        let (report, differences) = try Self.verify(log)
        #expect(differences.map(\.key.stream) == ["700007", "700011", "nobody"])
        #expect(differences.map(\.readModel) == ["entitlement", "churn", "entitlement"])
        #expect(differences.map(\.live.rows).suffix(2) == [0, 1])
        #expect(differences.last?.fresh.rows == 0)
        #expect(differences.first?.app?.bundleID == "com.example.app")
        #expect(report.streams == 60)
        #expect(try Self.verify(log, ["billing_recovery"]).differences == [])
        _ = try Rebuild(connect: log.connect).run()
        #expect(try Self.verify(log).differences == [])
    }

    @Test func whatHasNewsIsLeftOutAndCounted() throws {
        let log = try Self.built(10)
        try log.append([
            log.event("700003", "late", .refund, at: LogFixture.day(400), LogFixture.month(300))
        ])
        let (report, differences) = try Self.verify(log)
        #expect(differences == [])
        #expect(report.stale == 1)
        #expect(report.streams == 9)
        try Projector(log.connection).project()
        #expect(try Self.verify(log).report.stale == 0)
    }

    @Test func rowsOfAnotherVersionAreNotCompared() throws {
        let log = try Self.built(3)
        try log.connection.execute("update read_model.current set version = 99")
        let error = #expect(throws: ReadModelError.self) { try Self.verify(log) }
        #expect(error?.code == .outOfDate)
    }

    @Test func littleMemoryAndManyWorkersGiveTheSameRows() throws {
        let log = try Self.built()
        let usual = try Rebuild(connect: log.connect).run()
        let slim = try Rebuild(workers: 5, memoryBytes: 1, connect: log.connect).run()
        #expect(usual.readModels.map(\.digest) == slim.readModels.map(\.digest))
    }

    @Test func whatWasRaisedSinceTheLastBuildIsNamed() throws {
        let log = try Self.built(5)
        #expect(try Rebuild.raised(log.connection) == [])
        for access in [BillingRetryAccess.allow, .untilGraceEnds] {
            _ = try RuleBook(log.connection).changePolicy(
                of: log.app,
                from: .retroactively(from: nil),
                operator: "olga",
                ticket: "SUP-1"
            ) { $0.billingRetryAccess = access }
        }
        let raised = try Rebuild.raised(log.connection)
        #expect(raised.count == 2)
        #expect(raised.first?.hasPrefix("access policy 2 of com.example.app (Production)") == true)
        _ = try Rebuild(connect: log.connect).run()
        #expect(try Rebuild.raised(log.connection) == [])
        try log.connection.execute("update read_model.current set version = 98, decoder = 99")
        #expect(try Rebuild.raised(log.connection).count == 2)
    }
}
