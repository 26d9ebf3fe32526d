import Testing

@testable import Projections

/// Levels are sums of all that came before, read from the shorter side.
@Suite struct ChurnLevelTests {
    /// Fixed, since how often each thing occurs depends on it.
    private static let seed: UInt64 = 4_711
    private static let asOf = "timestamptz '2026-01-20 12:00:00Z'"

    /// Each month by itself reads its level from the other side than it does among all of them.
    @Test func aLevelIsTheSameFromEitherSide() throws {
        let database = try ChurnDatabase()
        try database.write((0..<250).map { ChurnRandomLife.life(seed: Self.seed + $0) })
        for function in ["churn_monthly", "mrr_monthly"] {
            let call = "read_model.\(function)"
            let alone = try database.rows(
                """
                select e.is_behind, r.* from read_model.calendar_months(
                    '2023-06-01', '2026-03-01', 'UTC') m
                cross join lateral read_model.level_edge(m.starts, m.ends, \(Self.asOf)) e
                cross join lateral \(call)(
                    m.month, (m.month + interval '1 month')::date, as_of => \(Self.asOf)) r
                order by r.month, r.product_id, r.currency
                """
            )
            let together = try database.rows(
                """
                select e.is_behind, r.* from read_model.level_edge(
                    '2023-06-01Z', '2026-03-01Z', \(Self.asOf)) e
                cross join \(call)('2023-06-01', '2026-03-01', as_of => \(Self.asOf)) r
                order by r.month, r.product_id, r.currency
                """
            )
            func told(_ rows: [[String: String]]) -> [[String: String]] {
                rows.map { row in row.filter { $0.key != "is_behind" } }
            }
            #expect(told(alone) == told(together), "\(function), seed \(Self.seed)")
            #expect(Set(together.compactMap { $0["is_behind"] }) == ["false"])
            #expect(Set(alone.compactMap { $0["is_behind"] }) == ["true", "false"])
        }
    }
}
