import Ledger
import Postgres
import TestSupport
import Testing

@testable import Projections

/// What the views answer, through PostgreSQL.
@Suite struct ChurnViewTests {
    /// Fixed, since how often each thing occurs depends on it.
    private static let seed: UInt64 = 4_711
    private static let asOf = "timestamptz '2026-01-20 12:00:00Z'"

    private static func lives(_ count: UInt64) -> [ChurnLife] {
        (0..<count).map { ChurnRandomLife.life(seed: seed + $0) }
    }

    private static func instant(_ text: String) -> Timestamp {
        Timestamp(parsing: text) ?? .earliest
    }

    /// The bounds of the months of a zone.
    private static func bounds(_ database: ChurnDatabase, _ zone: String) throws -> [String: Months]
    {
        let rows = try database.connection.query(
            """
            select month::text, (extract(epoch from starts) * 1000)::bigint,
                (extract(epoch from ends) * 1000)::bigint
            from read_model.calendar_months('2023-06-01', '2026-03-01', $1)
            """,
            [.text(zone)]
        )
        var months: [String: Months] = [:]
        for row in 0..<rows.count {
            months[rows.text(row, 0) ?? ""] = Months(
                starts: Timestamp(milliseconds: rows.int(row, 1) ?? 0),
                ends: Timestamp(milliseconds: rows.int(row, 2) ?? 0)
            )
        }
        return months
    }

    private struct Months {
        var starts: Timestamp
        var ends: Timestamp
    }

    // MARK: - The balance

    @Test(arguments: ["UTC", "Pacific/Kiritimati", "America/Los_Angeles"])
    func everyMonthOfEveryProductAndCurrencyBalances(zone: String) throws {
        let database = try ChurnDatabase()
        let lives = Self.lives(700)
        try database.write(lives)
        let oracles = lives.map { ChurnOracle($0.history) }
        let asOf = Self.instant("2026-01-20T12:00:00Z")
        let bounds = try Self.bounds(database, zone)
        let rows = try database.rows(
            "select * from read_model.churn_monthly('2023-06-01', '2026-03-01', '\(zone)', "
                + "as_of => \(Self.asOf))"
        )
        #expect(rows.count > 100, "seed \(Self.seed)")
        // Nothing balances because it is empty.
        for column in [
            "active_start", "new_paid", "trial_converted", "reactivated", "recovered",
            "switched_in", "churn_voluntary", "churn_involuntary", "churn_price",
            "churn_product", "churn_refund", "churn_other", "lapsed_unconfirmed",
            "switched_out", "corrections", "active_end", "at_risk_intent", "at_risk_grace",
            "at_risk_price",
        ] {
            let sum = rows.reduce(0) { $0 + $1.int(column) }
            #expect(sum >= 3, "seed \(Self.seed): \(column) occurs \(sum) times")
        }
        var active: [String: [ChurnLife.Key: Int]] = [:]
        for row in rows {
            let gains = ["new_paid", "trial_converted", "reactivated", "recovered", "switched_in"]
            let losses = [
                "churn_voluntary", "churn_involuntary", "churn_price", "churn_product",
                "churn_refund", "churn_other", "lapsed_unconfirmed", "switched_out",
            ]
            let end =
                row.int("active_start") + gains.reduce(0) { $0 + row.int($1) }
                - losses.reduce(0) { $0 + row.int($1) } + row.int("corrections")
            #expect(row.int("active_end") == end, "seed \(Self.seed): \(row)")
            #expect(row.int("access_churn") == losses.prefix(6).reduce(0) { $0 + row.int($1) })
            let risks = ["intent", "billing", "grace", "price"].reduce(0) {
                $0 + row.int("at_risk_\($1)")
            }
            #expect(0 <= risks && risks <= row.int("active_end"), "seed \(Self.seed): \(row)")
            let month = row["month"] ?? ""
            if row.int("active_start") > 0 {
                active["\(month) start", default: [:]][row.key] = row.int("active_start")
            }
            if row.int("active_end") > 0 {
                active["\(month) end", default: [:]][row.key] = row.int("active_end")
            }
        }
        for (month, bound) in bounds where bound.starts <= asOf {
            func count(_ instant: Timestamp) -> [ChurnLife.Key: Int] {
                oracles.compactMap { $0.key(at: instant) }.reduce(into: [:]) {
                    $0[$1, default: 0] += 1
                }
            }
            let start = Timestamp(milliseconds: bound.starts.milliseconds - 1)
            let end = min(asOf, Timestamp(milliseconds: bound.ends.milliseconds - 1))
            #expect(active["\(month) start"] ?? [:] == count(start), "seed \(Self.seed) \(month)")
            #expect(active["\(month) end"] ?? [:] == count(end), "seed \(Self.seed) \(month)")
            var risks: [String: Int] = [:]
            for oracle in oracles {
                guard let risk = oracle.risk(at: end) else { continue }
                risks[risk, default: 0] += 1
            }
            let ofMonth = rows.filter { $0["month"] == month }
            for reason in ["intent", "billing", "grace", "price"] {
                let sum = ofMonth.reduce(0) { $0 + $1.int("at_risk_\(reason)") }
                #expect(sum == risks[reason] ?? 0, "seed \(Self.seed) \(month) \(reason)")
            }
        }
        for month in Set(rows.compactMap { $0["month"] }) {
            let ofMonth = rows.filter { $0["month"] == month }
            let into = ofMonth.reduce(0) { $0 + $1.int("switched_in") }
            let out = ofMonth.reduce(0) { $0 + $1.int("switched_out") }
            #expect(into == out, "seed \(Self.seed) \(month)")
        }
    }

    @Test func everyMonthsValueBalancesAndIsTheSumOfWhatIsHeld() throws {
        let database = try ChurnDatabase()
        let lives = Self.lives(250)
        try database.write(lives)
        let rows = try database.rows(
            "select * from read_model.mrr_monthly('2023-06-01', '2026-03-01', "
                + "as_of => \(Self.asOf))"
        )
        #expect(rows.count > 100, "seed \(Self.seed)")
        let columns = [
            "mrr_start", "mrr_new", "mrr_reactivation", "mrr_expansion", "mrr_contraction",
            "mrr_churn", "mrr_lapsed_unconfirmed", "mrr_correction", "mrr_currency", "mrr_fx",
        ]
        for column in columns.dropLast() {
            let times = rows.count { $0.int(column) != 0 }
            #expect(times >= 3, "seed \(Self.seed): \(column) occurs \(times) times")
        }
        for row in rows {
            let end = columns.reduce(0) { $0 + row.int($1) }
            #expect(row.int("mrr_end") == end, "seed \(Self.seed): \(row)")
            #expect(row.int("mrr_fx") == 0)
            #expect(row.int("mrr_start") >= 0)
            #expect(row.int("mrr_churn") <= 0)
        }
        let end = Self.instant("2025-10-31T23:59:59.999Z")
        var held: [ChurnLife.Key: Int] = [:]
        for life in lives {
            let last = life.moments.last { $0.at <= end && $0.delta != 0 }
            let worth = life.moments.filter { $0.at <= end }.reduce(0) { $0 + $1.monthlyDelta }
            guard worth > 0, let holding = last?.holding else { continue }
            let key = ChurnLife.Key(product: holding.productID, currency: holding.currency)
            held[key, default: 0] += Int(worth)
        }
        var told: [ChurnLife.Key: Int] = [:]
        for row in rows where row["month"] == "2025-10-01" && row.int("mrr_end") != 0 {
            told[row.key] = row.int("mrr_end")
        }
        #expect(told == held, "seed \(Self.seed)")
    }

    // MARK: - Time

    @Test func whatIsForetoldIsNeverChurn() throws {
        let database = try ChurnDatabase()
        var life = ChurnLife()
        life.subscribe()
        try database.write([life])
        func row(_ asOf: String) throws -> [String: String]? {
            try database.rows(
                "select * from read_model.churn_monthly('2026-01-01', '2026-02-01', "
                    + "as_of => timestamptz '\(asOf)')"
            ).first
        }
        let before = try row("2026-01-30T00:00:00Z")
        #expect(before?.int("active_end") == 1)
        #expect(before?.int("lapsed_unconfirmed") == 0)
        let after = try row("2026-01-31T12:00:00Z")
        #expect(after?.int("active_end") == 0)
        #expect(after?.int("lapsed_unconfirmed") == 1)
        #expect(after?.int("access_churn") == 0)
        #expect(try row("2025-12-31T12:00:00Z") == nil)
    }

    /// The zone, an instant and the month that it belongs to there.
    @Test(arguments: [
        ("UTC", "2024-02-29T23:59:59.999Z", "2024-02-01"),
        ("UTC", "2024-03-01T00:00:00Z", "2024-03-01"),
        ("Pacific/Kiritimati", "2024-02-29T09:59:59.999Z", "2024-02-01"),
        ("Pacific/Kiritimati", "2024-02-29T10:00:00Z", "2024-03-01"),
        ("America/Sao_Paulo", "2024-03-01T02:59:59.999Z", "2024-02-01"),
        ("America/Sao_Paulo", "2024-03-01T03:00:00Z", "2024-03-01"),
        // Summer time began on 4 November 2018 and ended on 17 February 2019.
        ("America/Sao_Paulo", "2018-11-01T02:59:59.999Z", "2018-10-01"),
        ("America/Sao_Paulo", "2018-11-01T03:00:00Z", "2018-11-01"),
        ("America/Sao_Paulo", "2019-01-01T01:59:59.999Z", "2018-12-01"),
        ("America/Sao_Paulo", "2019-01-01T02:00:00Z", "2019-01-01"),
        ("America/Sao_Paulo", "2019-03-01T02:59:59.999Z", "2019-02-01"),
    ])
    func aMonthIsThatOfTheZone(zone: String, text: String, month: String) throws {
        let database = try ChurnDatabase()
        let start = Self.instant(text)
        var life = ChurnLife()
        let day =
            Double(start.milliseconds - ChurnLife.t0.milliseconds) / 86_400_000
        var period = ChurnLife.period(1, day, day + 365, product: "gold.year", reason: .purchase)
        period.purchaseDate = start
        life.notify(.subscribed, .initialBuy, day, period, ChurnLife.renewal())
        try database.write([life])
        // The session's own zone must not matter.
        try database.connection.execute("set time zone 'Asia/Kathmandu'")
        let rows = try database.rows(
            "select * from read_model.churn_monthly('2018-10-01', '2024-04-01', '\(zone)') "
                + "where new_paid > 0"
        )
        #expect(rows.map { $0["month"] } == [month])
        #expect(rows.first?.int("active_start") == 0)
    }

    @Test func sandboxIsAskedForByNameOnly() throws {
        let database = try ChurnDatabase()
        var life = ChurnLife()
        life.subscribe()
        try database.write([life], app: 2)
        let call = "select * from read_model.churn_monthly('2026-01-01', '2026-02-01'"
        #expect(try database.rows(call + ")").isEmpty)
        #expect(try database.rows(call + ", environment => 'Sandbox')").count == 1)
    }

    // MARK: - Money

    @Test func amountsAreConvertedByTheRateOfTheirDayAndTheRatesWorkIsToldApart() throws {
        let database = try ChurnDatabase()
        var life = ChurnLife()
        let euro = ChurnLife.period(
            1,
            9,
            374,
            product: "gold.year",
            reason: .purchase,
            price: 120_000
        ) {
            $0.currency = "EUR"
        }
        life.notify(.subscribed, .initialBuy, 9, euro, ChurnLife.renewal())
        try database.write([life])
        let call =
            "select * from read_model.mrr_monthly('2026-01-01', '2026-03-01', "
            + "as_of => '2026-03-01', target_currency => 'USD')"
        #expect(throws: PostgresError.self) { try database.rows(call) }
        try database.connection.execute(
            """
            insert into ledger.fx_rate (rate_date, from_currency, to_currency, version, rate) values
                ('2026-01-10', 'EUR', 'USD', 1, 9), ('2026-01-10', 'EUR', 'USD', 2, 1.10),
                ('2026-01-31', 'EUR', 'USD', 1, 1.20), ('2026-02-28', 'EUR', 'USD', 1, 1.15)
            """
        )
        let rows = try database.rows(call)
        #expect(rows.map { $0["currency"] } == ["USD", "USD"])
        #expect(rows.map { $0.int("mrr_start") } == [0, 12_000])
        #expect(rows.map { $0.int("mrr_new") } == [11_000, 0])
        #expect(rows.map { $0.int("mrr_fx") } == [1_000, -500])
        #expect(rows.map { $0.int("mrr_end") } == [12_000, 11_500])
    }

    @Test func refundsCountByPurchaseAndByRefund() throws {
        let database = try ChurnDatabase()
        var life = ChurnLife()
        life.subscribe(renewals: 2)
        var refunded = ChurnLife.period(1, 0, 30, reason: .purchase)
        refunded.revocationDate = ChurnLife.day(61)
        refunded.revocationPercentage = 100_000
        refunded.digest += 1
        life.notify(.refund, nil, 61, refunded)
        try database.write([life])
        let rows = try database.rows(
            "select * from read_model.refund_rate('2026-01-01', '2026-04-01', "
                + "as_of => '2026-03-31')"
        )
        // Charged on 1 and 31 January and on 2 March; the first paid back on 3 March.
        #expect(rows.map { $0["month"] } == ["2026-01-01", "2026-03-01"])
        #expect(rows.map { $0.int("charges") } == [2, 1])
        #expect(rows.map { $0.int("refunded_of_charges") } == [9990, 0])
        #expect(rows.map { $0["refund_rate_by_purchase"] } == ["0.500000", "0.000000"])
        #expect(rows.map { $0.int("refunded") } == [0, 9990])
        #expect(rows.map { $0["refund_rate_by_refund"] } == ["0.000000", "1.000000"])
    }

    // MARK: - Cohorts

    @Test func trialsAreToldByTheMonthInWhichTheyBegan() throws {
        let database = try ChurnDatabase()
        let lives = Self.lives(250)
        try database.write(lives)
        let rows = try database.rows(
            "select * from read_model.trial_conversion('2023-06-01', '2026-03-01', "
                + "as_of => \(Self.asOf))"
        )
        let asOf = Self.instant("2026-01-20T12:00:00Z")
        let moments = lives.flatMap(\.moments).filter { $0.at <= asOf }
        func count(_ kind: Moment.Kind) -> Int { moments.count { $0.kind == kind } }
        func sum(_ column: String) -> Int { rows.reduce(0) { $0 + $1.int(column) } }
        #expect(sum("started") == count(.trialStarted), "seed \(Self.seed)")
        #expect(sum("converted") == count(.trialConverted), "seed \(Self.seed)")
        let lost = ["lost_voluntary", "lost_billing", "lost_other", "lost_unconfirmed"]
        #expect(lost.reduce(0) { $0 + sum($1) } == count(.trialLost), "seed \(Self.seed)")
        for row in rows {
            let outcomes = (lost + ["converted", "open"]).reduce(0) { $0 + row.int($1) }
            #expect(row.int("started") == outcomes, "seed \(Self.seed)")
        }
    }

    @Test func aCohortIsMatureOnceEveryoneHadTheOpportunity() throws {
        let database = try ChurnDatabase()
        var stays = ChurnLife()
        stays.subscribe(renewals: 3)
        var leaves = ChurnLife()
        leaves.notify(
            .subscribed,
            .initialBuy,
            20,
            ChurnLife.period(1, 20, 50, reason: .purchase),
            ChurnLife.renewal()
        )
        try database.write([stays, leaves])
        let rows = try database.rows(
            "select * from read_model.cohort_retention('2026-01-01', '2026-02-01', "
                + "as_of => '2026-03-10')"
        )
        #expect(rows.map { $0.int("period") } == [0, 1, 2])
        #expect(rows.map { $0.int("size") } == [2, 2, 2])
        #expect(rows.map { $0.int("opportunity") } == [2, 2, 1])
        #expect(rows.map { $0.int("retained") } == [2, 1, 1])
        #expect(rows.map { $0["mature"] } == ["true", "true", "false"])
    }

    // MARK: - The published form

    @Test func theBalanceByCauseAgreesWithTheBalanceByMonth() throws {
        let database = try ChurnDatabase()
        try database.write(Self.lives(250))
        let range = "'2023-06-01', '2026-03-01', as_of => \(Self.asOf)"
        let sums = try database.rows(
            """
            select * from (
                select sum(access_churn) as monthly, sum(lapsed_unconfirmed) as lapsed
                from read_model.churn_monthly(\(range))
            ) m, (
                select sum(access_churn) filter (where cause <> 'lapsed_unconfirmed') as by_cause,
                    sum(access_churn) filter (where cause = 'lapsed_unconfirmed') as by_clock,
                    sum(mrr_lost) as mrr_lost
                from read_model.churn_by_cause(\(range))
            ) c, (
                select -sum(mrr_churn) - sum(mrr_lapsed_unconfirmed) as mrr
                from read_model.mrr_monthly(\(range))
            ) v
            """
        )
        let row = try #require(sums.first)
        #expect(row.int("monthly") > 0)
        #expect(row["monthly"] == row["by_cause"], "seed \(Self.seed)")
        #expect(row["lapsed"] == row["by_clock"], "seed \(Self.seed)")
        #expect(row["mrr"] == row["mrr_lost"], "seed \(Self.seed)")
    }
}
