import Foundation
import Postgres
import TestSupport
import Testing

/// What is asked of the read models on the command line, over one simulated company.
@Suite(.serialized) struct ReadModelCommandTests {
    /// A working folder and a database with the company's notifications.
    private struct Company: Sendable {
        let folder: WorkingFolder
        let database: TestDatabase

        init() throws {
            folder = try WorkingFolder()
            database = try TestDatabase.create(on: .shared)
            for words in [
                ["simulate", "--subscriptions", "60", "--seed", "7"]
                    + ["--out", "n.ndjson", "--root", "r.pem"],
                ["migrate"],
                ["ingest", "n.ndjson", "--root", "r.pem", "--allow-unsafe-server"]
                    + ["--accept-bundle", "com.example.subledger"],
            ] {
                let run = try run(words)
                guard run.status == 0 else { throw Failure(text: run.errors) }
            }
        }

        func run(_ words: [String]) throws -> Subledger.Run {
            try Subledger.run(words, in: folder.path, database: database.conninfo)
        }

        /// The rows of a query, each field as text.
        func rows(_ sql: String) throws -> [[String]] {
            let rows = try database.connect().query(sql)
            let count = sql.split(separator: "from")[0].split(separator: ",").count
            return (0..<rows.count).map { row in (0..<count).map { rows.text(row, $0) ?? "" } }
        }
    }

    private struct Failure: Error { var text: String }

    private static let company: Result<Company, any Error> = Result {
        // What is static is never let go; the folder should go all the same.
        atexit {
            guard let company = try? ReadModelCommandTests.company.get() else { return }
            try? FileManager.default.removeItem(atPath: company.folder.path)
        }
        return try Company()
    }

    private func run(_ words: String...) throws -> Subledger.Run {
        try Self.company.get().run(words)
    }

    private func object(_ run: Subledger.Run) throws -> Any {
        try JSONSerialization.jsonObject(with: Data(run.output.utf8))
    }

    private static let year = ["--from", "2025-01-01", "--to", "2026-01-01"]
    private static let asOf = ["--as-of", "2026-01-01", "--environment", "Sandbox"]

    private func churn(_ words: String...) throws -> Subledger.Run {
        try Self.company.get().run(["churn"] + Self.year + Self.asOf + words)
    }

    private func subscribers(_ run: Subledger.Run, _ key: String = "subscribers") throws -> [Row] {
        let answer = try #require(try object(run) as? [String: [Row]], "\(run.errors)")
        return try #require(answer[key])
    }

    private typealias Row = [String: Any]

    // MARK: - churn

    @Test func churnByMonthBalancesAndChartsNothingWhereNobodyLooks() throws {
        let json = try churn("--json")
        #expect(json.status == 0, "\(json.errors)")
        let rows = try subscribers(json)
        #expect(rows.map { $0["month"] as? String }.first == "2025-01-01")
        #expect(rows.count == 12)
        for row in rows {
            func number(_ name: String) -> Int { row[name] as? Int ?? 0 }
            let gains = ["new_paid", "trial_converted", "reactivated", "recovered", "switched_in"]
            let losses = [
                "churn_voluntary", "churn_involuntary", "churn_price", "churn_product",
                "churn_refund", "churn_other", "lapsed_unconfirmed", "switched_out",
            ]
            let end =
                number("active_start") + gains.reduce(0) { $0 + number($1) }
                - losses.reduce(0) { $0 + number($1) } + number("corrections")
            #expect(number("active_end") == end)
            #expect(number("switched_in") == number("switched_out"))
            #expect(number("known_to_position") > 100)
        }
        #expect(rows.reduce(0) { $0 + ($1["access_churn"] as? Int ?? 0) } > 5)
        for row in try subscribers(json, "mrr") {
            let parts = [
                "mrr_start", "mrr_new", "mrr_reactivation", "mrr_expansion", "mrr_contraction",
                "mrr_churn", "mrr_lapsed_unconfirmed", "mrr_correction", "mrr_currency",
            ]
            #expect(row["mrr_end"] as? Int == parts.reduce(0) { $0 + (row[$1] as? Int ?? 0) })
        }

        let table = try churn()
        #expect(table.status == 0)
        #expect(table.output.hasPrefix("month    start"))
        #expect(table.output.contains("Sandbox by month in UTC, as of 2026-01-01"))
        #expect(!table.output.contains("█"), "a chart is for terminals")
    }

    @Test func churnAsCommaSeparatedValuesSaysTheSame() throws {
        let rows = try subscribers(churn("--json", "--by", "product"))
        let csv = try churn("--csv", "--by", "product")
        let lines = csv.output.split(separator: "\n").map { $0.split(separator: ",") }
        #expect(lines.count == rows.count + 1)
        #expect(lines[0].prefix(4) == ["month", "product_id", "currency", "active_start"])
        for (line, row) in zip(lines.dropFirst(), rows) {
            #expect(String(line[1]) == row["product_id"] as? String)
            #expect(Int(line[3]) == row["active_start"] as? Int)
        }
        #expect(try churn("--csv", "--json").status == 2)
    }

    @Test func churnByCauseSumsToChurnByMonthInEveryZone() throws {
        for zone in ["UTC", "America/Los_Angeles", "Pacific/Kiritimati"] {
            let months = try subscribers(churn("--json", "--zone", zone))
            let causes = try subscribers(churn("--json", "--zone", zone, "--by", "cause"))
            let monthly = months.reduce(0) { $0 + ($1["access_churn"] as? Int ?? 0) }
            let byCause = causes.filter { $0["cause"] as? String != "lapsed_unconfirmed" }
                .reduce(0) { $0 + ($1["access_churn"] as? Int ?? 0) }
            #expect(monthly == byCause && monthly > 0, "\(zone)")
        }
        let unknown = try churn("--zone", "Mars/Base")
        #expect(unknown.status == 2)
        #expect(unknown.errors.contains("Mars/Base"))
    }

    @Test(arguments: [
        (["churn"], "needs --from DAY and --to DAY"),
        (["churn", "--from", "2025-02-30", "--to", "2026-01-01"], "--from takes a day"),
        (["churn", "--from", "2026-01-01", "--to", "2025-01-01"], "later than --from"),
        (
            ["churn", "--from", "2025-01-01", "--to", "2026-01-01", "--by", "week"],
            "month, product or cause"
        ),
        (["billing-recovery", "--by", "week"], "goes with --rate"),
        (["billing-recovery", "--rate"], "needs --from DAY and --to DAY"),
        (["owner", "link", "1"], "--owner TOKEN is missing"),
    ])
    func whatCannotBeAskedIsAUsageError(words: [String], message: String) throws {
        let run = try Self.company.get().run(words)
        #expect(run.status == 2)
        #expect(run.errors.contains(message), "\(run.errors)")
    }

    // MARK: - fx import

    @Test func amountsInOneCurrencyNeedEveryRateAndAreImportedWholeOrNotAtAll() throws {
        let company = try Self.company.get()
        let missing = try churn("--json", "--currency", "USD")
        #expect(missing.status != 0)
        #expect(missing.errors.contains("no exchange rate from"), "\(missing.errors)")
        #expect(missing.errors.contains("USD"))

        try company.folder.file("bad.csv", "2025-01-01,EUR,USD,1.1\n2025-01-01,EUR,USD,0\nx\n")
        let bad = try run("fx", "import", "bad.csv")
        #expect(bad.status == 1)
        #expect(bad.errors.contains("line 2: the rate is a number above 0"))
        #expect(bad.errors.contains("line 3:"))
        #expect(bad.errors.contains("nothing was imported"))
        #expect(try company.rows("select count(*)::text from ledger.fx_rate") == [["0"]])

        let currencies = try company.rows(
            "select distinct currency from read_model.lifecycle where currency <> 'USD'"
        )
        #expect(currencies.count > 1)
        var lines = ""
        for currency in currencies {
            for month in 1...12 {
                for year in 2024...2026 {
                    let day = "\(year)-\(month < 10 ? "0" : "")\(month)-01"
                    lines += "\(day),\(currency[0]),USD,1.\(month)\n"
                }
            }
        }
        try company.folder.file("good.csv", lines)
        let count = currencies.count * 36
        let good = try run("fx", "import", "good.csv")
        #expect(good.status == 0, "\(good.errors)")
        #expect(good.output == "\(count) rates appended, 0 known already\n")
        let again = try run("fx", "import", "good.csv")
        #expect(again.output == "0 rates appended, \(count) known already\n")

        // A month of 31 days ends beyond the reach of its first day's rate.
        let answer = try churn("--json", "--currency", "USD")
        #expect(answer.status == 0, "\(answer.errors)")
        let rows = try subscribers(answer, "mrr")
        #expect(Set(rows.compactMap { $0["currency"] as? String }) == ["USD"])
        #expect(rows.count == 12)
        #expect(rows.contains { $0["mrr_fx"] as? Int != 0 })
    }

    // MARK: - billing-recovery

    @Test func whoIsInTroubleIsListedAndTheRateAddsUp() throws {
        let company = try Self.company.get()
        let instant = try company.rows(
            "select (opened_at + interval '1 hour')::text from read_model.billing_recovery_all"
                + " where ends_at > opened_at + interval '2 hours' order by opened_at limit 1"
        )[0][0]
        let at = instant.replacing(" ", with: "T").replacing("+00", with: "Z")
        let words = ["billing-recovery", "--environment", "Sandbox", "--at", at]
        let json = try company.run(words + ["--json"])
        #expect(json.status == 0, "\(json.errors)")
        let list = try #require(try object(json) as? [Row])
        #expect(!list.isEmpty)
        for trouble in list {
            #expect(trouble["cause"] is String)
            #expect(["on", "off", "unknown"].contains(trouble["renewal_intent"] as? String))
        }
        let csv = try company.run(words + ["--csv"])
        #expect(csv.output.split(separator: "\n").count == list.count + 1)
        let table = try company.run(words)
        #expect(table.output.contains("failed payment"))
        #expect(try run("billing-recovery", "--at", at, "--json").output == "[]\n", "Production")

        let rate = try company.run(
            ["billing-recovery", "--rate", "--from", "2024-01-01", "--to", "2026-01-01"]
                + ["--by", "month", "--zone", "America/Los_Angeles", "--environment", "Sandbox"]
                + ["--csv"]
        )
        #expect(rate.status == 0, "\(rate.errors)")
        let lines = rate.output.split(separator: "\n").map {
            $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
        let names = lines[0]
        func sum(_ name: String) -> Int {
            let column = names.firstIndex(of: name) ?? 0
            let all = names.firstIndex(of: "all_currencies") ?? 0
            return lines.dropFirst().filter { $0[all] == "true" }
                .reduce(0) { $0 + (Int($1[column]) ?? 0) }
        }
        let ends = ["open", "recovered", "cancelled", "expired", "unknown"]
        #expect(sum("failures") > 3)
        #expect(sum("failures") == ends.reduce(0) { $0 + sum($1) })
    }

    // MARK: - owner link, entitlements --owner

    @Test func aLinkedSubscriptionIsAmongWhatItsOwnerHas() throws {
        let company = try Self.company.get()
        let id = try #require(
            try company.rows(
                "select original_transaction_id from read_model.unattributed_subscription_sandbox"
                    + " order by 1"
            ).first?.first
        )
        let ann = "0a0a0a0a-0000-4000-8000-00000000000a"
        let author = ["--operator", "olga", "--ticket", "SUP-1", "--allow-unsafe-server"]
        func link(_ id: String, _ owner: String) throws -> Subledger.Run {
            try company.run(["owner", "link", id, "--owner", owner, "--json"] + author)
        }
        let unknown = try link("12345", ann)
        #expect(unknown.status != 0)
        #expect(unknown.errors.contains("12345"), "\(unknown.errors)")
        #expect(try link(id, "ann").status == 2)

        let linked = try #require(try object(link(id, ann)) as? Row)
        #expect(linked["outcome"] as? String == "linked")
        let repeated = try #require(try object(link(id, ann)) as? Row)
        #expect(repeated["outcome"] as? String == "repeated")

        let answer = try run("entitlements", "--owner", ann, "--json")
        let list = try #require(try object(answer) as? [Row])
        #expect(list.map { $0["original_transaction_id"] as? String } == [id])
        #expect(list.first?["via"] as? String == "own")
        #expect(list.first?["counts"] as? Bool == true)
        let table = try run("entitlements", "--owner", ann)
        #expect(table.output.contains("*  own  \(id)"), "\(table.output)")
        #expect(table.output.contains("1 subscription at"))
        let none = try run("entitlements", "--owner", "0b0b0b0b-0000-4000-8000-00000000000b")
        #expect(none.output.hasPrefix("0 subscriptions at"))
    }

    // MARK: - policy, rebuild --diff

    @Test func aPolicyShowsWhoWouldGainBeforeItIsSetAndTheDifferenceIsGoneAfterwards() throws {
        let company = try Self.company.get()
        let change = ["--billing-retry-access", "allow", "--retroactive"]
        let diff = try company.run(["policy", "diff", "--json"] + change)
        #expect(diff.status == 0, "\(diff.errors)")
        let answer = try #require(try object(diff) as? Row)
        let summary = try #require(answer["summary"] as? Row)
        let groups = try #require(summary["groups"] as? [Row])
        #expect(groups.contains { $0["state"] as? String == "billing_retry" })
        #expect(groups.allSatisfy { $0["change"] as? String == "gains" })
        #expect((summary["different"] as? Int ?? 0) > 0)
        let csv = try company.run(["policy", "diff", "--csv"] + change)
        let differences = try #require(answer["differences"] as? [Row])
        #expect(csv.output.split(separator: "\n").count == differences.count + 1)

        func count(_ words: String...) throws -> Int? {
            let answer = try object(company.run(words + ["--json"])) as? Row
            return (answer?["summary"] as? Row)?["different"] as? Int
        }
        #expect(try count("rebuild", "--diff") == 0)
        let set = try company.run(
            ["policy", "set", "--operator", "olga", "--ticket", "SUP-2"] + change
        )
        #expect(set.status == 0, "\(set.errors)")
        #expect(
            try company.rows(
                "select count(*)::text from read_model.entitlement_all"
                    + " where state = 'billing_retry' and not entitled"
            ) == [["0"]]
        )
        #expect(try count("rebuild", "--diff") == 0)
        #expect(try count("policy", "diff", "--billing-retry-access", "deny") != nil)
    }

    // MARK: - audit monthly

    @Test func theExtensionsOfEachMonthAreThoseOfTheAudit() throws {
        let year = Self.year + ["--environment", "Sandbox"]
        let answer = try Self.company.get().run(["audit", "monthly", "--json"] + year)
        #expect(answer.status == 0, "\(answer.errors)")
        let months = try #require(try object(answer) as? [Row])
        #expect(months.allSatisfy { ($0["month"] as? String)?.hasPrefix("2025-") == true })
        func sum(_ name: String) -> Int { months.reduce(0) { $0 + ($1[name] as? Int ?? 0) } }
        let audit = try Self.company.get().rows(
            """
            select count(*)::text, trim_scale(sum(days_effective))::text
            from read_model.extension_audit where environment = 'Sandbox' and outcome = 'external'
                and at >= '2025-01-01T00:00:00Z' and at < '2026-01-01T00:00:00Z'
            """
        )
        #expect(sum("external") > 0)
        #expect([["\(sum("external"))", "\(sum("days_granted"))"]] == audit)
        #expect(sum("requests") == 0)

        let csv = try Self.company.get().run(["audit", "monthly", "--csv"] + year)
        #expect(csv.output.split(separator: "\n").count == months.count + 1)
        #expect(csv.output.hasPrefix("month,apple_reason,operator,requests,granted,days_granted,"))
        let table = try Self.company.get().run(["audit", "monthly"] + year)
        #expect(table.output.contains("\(sum("granted")) extensions in Sandbox"), "\(table.output)")
        let exports = try Self.company.get().rows(
            "select count(*)::text from ledger.event where kind = 'audit_exported'"
        )
        #expect(exports == [["2"]], "what leaves as --json or --csv is an event")

        #expect(try Self.company.get().run(["audit", "monthly"]).status == 2)
        #expect(try run("audit", "monthly", "--csv", "--json").status == 2)
        let zone = try Self.company.get().run(["audit", "monthly", "--zone", "Mars"] + year)
        #expect(zone.status == 2)
        #expect(zone.errors.contains("Mars"), "\(zone.errors)")
    }
}
