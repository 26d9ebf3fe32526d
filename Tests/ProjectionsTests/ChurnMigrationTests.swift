import Ledger
import Postgres
import TestSupport
import Testing

@testable import Projections

/// A migration gives a subscription another id and is neither a loss nor a gain.
@Suite struct ChurnMigrationTests {
    /// Fixed, since how often each thing occurs depends on it.
    private static let seed: UInt64 = 20_261_130
    private static let range =
        "'2023-06-01', '2026-03-01', as_of => timestamptz '2026-01-20 12:00:00Z'"

    /// Writes lives under ids that count from 0 in each life, as `ChurnLife.cut` names them.
    private static func write(
        _ database: ChurnDatabase,
        _ lives: [[ChurnLife]]
    ) throws {
        var rows = ProjectedRows(Churn.tables)
        for (place, parts) in lives.enumerated() {
            for (number, life) in parts.enumerated() {
                let base = UInt64(place + 1) * 100
                var life = life
                life.renumber { AppleID(base + $0) }
                let stream = "\(base + UInt64(number))"
                let subject = Subject(appID: 1, stream: stream, rules: life.rules)
                Churn().write(life.history, of: subject, into: &rows)
            }
        }
        let columns = Churn.tables[0].columns.joined(separator: ", ")
        try database.connection.copyIn(
            "copy read_model.lifecycle_moment_g1 (\(columns)) from stdin (format binary)"
        ) { try $0.write(rows.tables[0].buffer) }
    }

    @Test(arguments: ["churn_monthly", "mrr_monthly", "churn_by_cause", "trial_conversion"])
    func randomLivesAnswerTheSameMigratedOrNot(function: String) throws {
        let lives = (0..<300).map { ChurnRandomLife.migrated(seed: Self.seed + $0) }
        let whole = try ChurnDatabase()
        try Self.write(whole, lives.map { [$0.whole] })
        let parts = try ChurnDatabase()
        try Self.write(parts, lives.map(\.parts))
        let migrations = lives.reduce(0) { $0 + $1.parts.count - 1 }
        #expect(migrations > 100, "seed \(Self.seed)")
        // How long a run lasted is only known to the day over a migration.
        let sql = "select * from read_model.\(function)(\(Self.range))"
        let expected = try whole.rows(sql)
        let told = try parts.rows(sql)
        #expect(expected.count > 30)
        #expect(told.count == expected.count, "seed \(Self.seed)")
        for (expected, told) in zip(expected, told) {
            for (column, value) in expected where column != "tenure_days_mean" {
                #expect(told[column] == value, "seed \(Self.seed): \(column) of \(expected)")
            }
        }
    }

    @Test func cohortsGoOnWithTheFirstPaymentOfTheLife() throws {
        var life = ChurnLife()
        life.subscribe(renewals: 5)
        let database = try ChurnDatabase()
        try Self.write(database, [life.cut(at: [60, 120])])
        let rows = try database.rows(
            "select * from read_model.cohort_retention('2026-01-01', '2027-01-01', "
                + "as_of => '2026-07-10')"
        )
        #expect(rows.map { $0["month"] } == Array(repeating: "2026-01-01", count: 7))
        #expect(rows.map { $0.int("period") } == [0, 1, 2, 3, 4, 5, 6])
        #expect(rows.map { $0.int("retained") } == [1, 1, 1, 1, 1, 1, 0])
        #expect(rows.map { $0.int("retained_revenue") } == Array(repeating: 9990, count: 6) + [0])
        #expect(rows.map { $0.int("size") } == Array(repeating: 1, count: 7))
    }

    @Test func aLifeThatComesBackUnderAnotherIdIsReactivated() throws {
        var life = ChurnLife()
        life.subscribe()
        life.notify(
            .expired,
            .voluntary,
            30.01,
            ChurnLife.period(1, 0, 30, reason: .purchase),
            ChurnLife.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
            }
        )
        let next = ChurnLife.period(2, 140, 170, reason: .purchase)
        life.notify(.subscribed, .resubscribe, 140, next, ChurnLife.renewal())
        let database = try ChurnDatabase()
        try Self.write(database, [life.cut(at: [140])])
        let rows = try database.rows(
            "select * from read_model.churn_monthly('2026-01-01', '2026-06-01', "
                + "as_of => '2026-05-25')"
        )
        #expect(rows.map { $0.int("new_paid") } == [1, 0])
        #expect(rows.map { $0.int("churn_voluntary") } == [1, 0])
        #expect(rows.map { $0.int("reactivated_new_run") } == [0, 1])
    }

    @Test func oneOfTwoThatNameTheSameOldOneIsTheMigrationAndTheOtherIsNew() throws {
        var life = ChurnLife()
        life.subscribe(renewals: 3)
        let parts = life.cut(at: [60])
        let database = try ChurnDatabase()
        try Self.write(database, [[parts[0], parts[1]], [], []])
        var again = parts[1]
        again.renumber { AppleID(100 + $0) }
        try database.write([again])
        let rows = try database.rows(
            "select * from read_model.churn_monthly('2026-01-01', '2026-04-01', "
                + "as_of => '2026-03-25')"
        )
        #expect(rows.map { $0.int("active_end") } == [1, 1, 2])
        #expect(rows.map { $0.int("new_paid") } == [1, 0, 1])
    }
}
