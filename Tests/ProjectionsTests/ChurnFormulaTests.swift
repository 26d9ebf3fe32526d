import Ledger
import Testing

@testable import Projections

/// What reads indexes alone and in few passes says the same as the formula written down plainly.
@Suite struct ChurnFormulaTests {
    private static let seed: UInt64 = 8_150

    /// Random lives, and one of more weeks than a row of an index holds.
    private static func database() throws -> ChurnDatabase {
        let database = try ChurnDatabase()
        var lives = (0..<300).map { ChurnRandomLife.life(seed: seed + $0) }
        var weekly = ChurnLife()
        for week in 0..<130 {
            let start = Double(week * 7) - 900
            weekly.notify(
                week == 0 ? .subscribed : .didRenew,
                week == 0 ? .initialBuy : nil,
                start,
                ChurnLife.period(
                    UInt64(week + 1),
                    start,
                    start + 7,
                    product: "gold.week",
                    reason: week == 0 ? .purchase : .renewal
                ),
                ChurnLife.renewal()
            )
        }
        lives.append(weekly)
        try database.write(lives)
        let long = try database.rows(
            """
            select kind from read_model.lifecycle_moment
            where cardinality(charged_at) > 100 or cardinality(paid_ordinals) > 100
            order by kind
            """
        )
        #expect(Set(long.map { $0["kind"] }) == ["charge", "cohort"])
        return database
    }

    /// How many rows both queries give, and how many only one of them.
    private static func compare(
        _ database: ChurnDatabase,
        _ found: String,
        with plain: String
    ) throws -> (same: Int, other: Int) {
        let rows = try database.rows(
            """
            with found as (\(found)), plain as (\(plain))
            select
                (select count(*) from (table found intersect all table plain) a) as same,
                (select count(*) from (table found except all table plain) b)
                    + (select count(*) from (table plain except all table found) c) as other
            """
        )
        return (rows[0].int("same"), rows[0].int("other"))
    }

    @Test(arguments: [
        ("2023-06-01", "2026-02-01", "UTC", "2026-01-20 12:00:00Z"),
        ("2025-03-10", "2025-11-01", "America/Los_Angeles", "2025-09-15 00:00:00Z"),
    ])
    func chargesAreCountedOneByOne(from: String, to: String, zone: String, asOf: String) throws {
        let database = try Self.database()
        let result = try Self.compare(
            database,
            """
            select month, product_id, currency, charges, charged
            from read_model.refund_rate('\(from)', '\(to)', '\(zone)', as_of => '\(asOf)')
            where charges > 0
            """,
            with: """
                select n.month, m.product_id, m.currency, count(*), sum(m.amount_milliunits)
                from read_model.calendar_months('\(from)', '\(to)', '\(zone)') n
                cross join read_model.lifecycle_moment m
                cross join lateral unnest(m.charged_at) as c (at)
                where m.app_id = 1 and m.kind = 'charge' and c.at <= '\(asOf)'
                    and c.at >= n.starts and c.at < n.ends
                group by n.month, m.product_id, m.currency
                """
        )
        #expect(result.same > 50 && result.other == 0, "\(result), seed \(Self.seed)")
    }

    @Test(arguments: [
        ("2023-06-01", "2026-02-01", "UTC", "2026-01-20 12:00:00Z"),
        ("2023-06-10", "2025-02-01", "America/Los_Angeles", "2025-09-15 00:00:00Z"),
    ])
    func cohortsAreCountedOneByOne(from: String, to: String, zone: String, asOf: String) throws {
        let database = try Self.database()
        let result = try Self.compare(
            database,
            """
            select
                month, product_id, plan_period, currency, period, size, opportunity, retained,
                retained_revenue
            from read_model.cohort_retention('\(from)', '\(to)', '\(zone)', as_of => '\(asOf)')
            """,
            with: """
                select
                    m.month, m.product_id, m.plan_period, m.currency, p.period, m.size, count(*),
                    count(*) filter (where p.period = any (m.paid_ordinals)),
                    coalesce(sum(m.paid_amounts[array_position(m.paid_ordinals, p.period)]), 0)
                from (
                    select
                        n.month, m.*,
                        greatest(0, read_model.periods_between(
                            (date_trunc('day', m.effective_at at time zone '\(zone)')
                                + interval '1 day') at time zone '\(zone)',
                            '\(asOf)', m.plan_period
                        )) as last_period,
                        count(*) over (
                            partition by n.month, m.product_id, m.plan_period, m.currency
                        ) as size
                    from read_model.calendar_months('\(from)', '\(to)', '\(zone)') n
                    join read_model.lifecycle_moment m
                        on m.effective_at >= n.starts and m.effective_at < n.ends
                    where m.app_id = 1 and m.kind = 'cohort' and m.effective_at <= '\(asOf)'
                ) m
                cross join lateral generate_series(0, m.last_period) as p (period)
                group by m.month, m.product_id, m.plan_period, m.currency, p.period, m.size
                """
        )
        #expect(result.same > 300 && result.other == 0, "\(result), seed \(Self.seed)")
    }
}
