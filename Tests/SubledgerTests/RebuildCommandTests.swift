import Foundation
import Glibc
import Postgres
import TestSupport
import Testing

/// `subledger rebuild` and its relatives as real processes.
@Suite struct RebuildCommandTests {
    /// A working folder and a database with a company's notifications.
    private struct Company: Sendable {
        let folder: WorkingFolder
        let database: TestDatabase

        init(_ subscriptions: Int) throws {
            folder = try WorkingFolder()
            database = try TestDatabase.create(on: .shared)
            for words in [
                ["simulate", "--subscriptions", "\(subscriptions)", "--seed", "7"]
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

        func count(_ sql: String) throws -> Int64 {
            try database.connect().query("select count(*) from \(sql)").int(0, 0) ?? -1
        }
    }

    private struct Failure: Error { var text: String }

    @Test func rowsAreVerifiedAndWhatIsWrongIsNamed() throws {
        let company = try Company(15)
        let right = try company.run(["rebuild", "--verify", "--jobs", "3"])
        #expect(right.status == 0, "\(right.errors)")
        #expect(right.output.contains(": 0 differ"))
        let phases = right.errors.split(separator: "\n").map { Data($0.utf8) }
        for line in phases {
            let object = try JSONSerialization.jsonObject(with: line) as? [String: Any]
            #expect(object?["phase"] as? String == "verify")
        }
        try company.database.connect().execute(
            """
            update read_model.entitlement_interval set entitled = not entitled
            where ctid = (select min(ctid) from read_model.entitlement_interval)
            """
        )
        let wrong = try company.run(["rebuild", "entitlement", "--verify", "--json"])
        #expect(wrong.status == 5)
        let lines = wrong.output.split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines[0].contains("\"read_model\":\"entitlement\""))
        #expect(lines[1].contains("\"different\":1"))
        #expect(try company.run(["rebuild", "--projection", "entitlement"]).status == 0)
        #expect(try company.run(["rebuild", "--verify"]).status == 0)
    }

    @Test func schemasOfWhatWasKnownAreMadeListedAndDropped() throws {
        let company = try Company(8)
        let made = try company.run([
            "rebuild", "--known-at-position", "20", "--into", "then", "--json", "--memory", "1",
        ])
        #expect(made.status == 0, "\(made.errors)")
        #expect(made.output.contains("\"schema\":\"then\",\"known_at\":\"2"))
        #expect(made.output.contains("\"known_at_position\":20"))
        #expect(try company.count("\"then\".lifecycle") > 0)
        let listed = try company.run(["generations", "list"])
        #expect(listed.output.contains("then"))
        #expect(listed.output.contains("whole"))
        let json = try company.run(["generations", "list", "--json"])
        let object = try JSONSerialization.jsonObject(with: Data(json.output.utf8))
        let schemas = (object as? [String: Any])?["schemas"] as? [[String: Any]]
        #expect(schemas?.map { $0["name"] as? String } == ["then"])
        #expect(try company.run(["generations", "drop", "then"]).status == 0)
        #expect(try company.run(["generations", "drop", "then"]).status == 1)
        for words in [
            ["--known-at", "2025-01-01"], ["--into", "x"], ["--diff", "--verify"],
            ["--known-at", "2025-01-01", "--into", "Bad"], ["--jobs", "0"],
            ["--known-at-position", "1", "--into", "x", "churn"],
        ] {
            #expect(try company.run(["rebuild"] + words).status == 2, "\(words)")
        }
    }

    @Test func aRaisedPolicyIsShownFirstAndWantsAYes() throws {
        let company = try Company(40)
        #expect(try company.run(["rebuild"]).status == 0)
        let set = try company.run([
            "policy", "set", "--retroactive", "--billing-retry-access", "allow",
            "--operator", "olga", "--ticket", "SUP-1", "--no-project",
        ])
        #expect(set.status == 0, "\(set.errors)")
        let live = try company.count(
            "read_model.generation where state = 'live' and generation = 2"
        )
        #expect(live == 4)
        let asked = try company.run(["rebuild"])
        #expect(asked.status == 1)
        #expect(asked.errors.contains("access policy 2 of com.example.subledger (Sandbox)"))
        #expect(asked.errors.contains("--yes"))
        #expect(asked.output.contains("gains access"))
        #expect(try company.count("read_model.generation where generation = 3") == 0)
        #expect(try company.run(["rebuild", "--yes"]).status == 0)
        #expect(try company.count("read_model.current where generation = 3") == 4)
        #expect(try company.run(["rebuild"]).status == 0, "nothing was raised since")
    }

    /// The rules of an edited configuration are recorded by the yes, not by the question.
    @Test func aNoToAnEditedConfigurationLeavesRulesRowsAndMarks() throws {
        let company = try Company(40)
        func configure(_ more: String) throws {
            try company.folder.file(
                "subledger.json",
                """
                {"apps": [{"bundle_id": "com.example.subledger", "environments": ["Sandbox"],
                "anchors": ["r.pem"]\(more)}]}
                """
            )
        }
        try configure("")
        #expect(try company.run(["rebuild"]).status == 0)
        let rules = try company.count("ledger.app_rules")
        // Shorter leeways: some had access for two hours in which no news came.
        try configure(#", "clock_profile": "sandbox""#)
        let seen = try company.run(["rebuild", "--diff"])
        #expect(seen.status == 0 && seen.output.contains("loses access"), "\(seen.output)")
        let asked = try company.run(["rebuild"])
        #expect(asked.status == 1)
        #expect(asked.errors.contains("the configuration says other rules"), "\(asked.errors)")
        #expect(asked.output.contains("loses access"))
        #expect(try company.count("ledger.app_rules") == rules)
        #expect(try company.count("ledger.mark") == 0, "nothing is folded by other rules")
        let churn = try company.run(["rebuild", "churn"])
        #expect(churn.status == 1, "what it records counts for access, too")
        #expect(try company.run(["rebuild", "--yes"]).status == 0)
        #expect(try company.count("ledger.app_rules") == rules + 1)
        #expect(try company.count("ledger.mark") == 0)
        let verified = try company.run(["rebuild", "--verify", "--json"])
        #expect(verified.status == 0 && verified.output.contains("\"stale\":0"))
        #expect(try !company.run(["rebuild", "--diff"]).output.contains("loses access"))
    }

    @Test func ctrlCAtAnyMomentLeavesTheLiveRowsAndNothingElse() throws {
        let company = try Company(60)
        #expect(try company.run(["rebuild"]).status == 0)
        let digest = { try company.run(["rebuild", "--verify"]).output.contains(": 0 differ") }
        var interrupted = 0
        for milliseconds in [5, 40, 90, 150, 220, 300, 450] {
            let process = Subledger.process(
                ["rebuild"],
                in: company.folder.path,
                database: company.database.conninfo
            )
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            usleep(UInt32(milliseconds) * 1000)
            kill(process.processIdentifier, SIGINT)
            process.waitUntilExit()
            if process.terminationStatus != 0 { interrupted += 1 }
            let rows = try company.count("read_model.entitlement_all")
            #expect(rows > 0, "after \(milliseconds) ms")
            // Whatever is left half-made is shown by no view; the next rebuild removes it.
            #expect(try company.count("read_model.current") == 4)
        }
        #expect(interrupted > 0, "none was quick enough to be interrupted")
        #expect(try company.run(["rebuild"]).status == 0)
        #expect(try digest())
        #expect(try company.count("read_model.generation where state = 'building'") == 0)
        // Retired ones go when nobody can read them any more; what was half-made is gone at once.
        #expect(
            try company.count("pg_class where relname ~ '^subscription_g[0-9]+$'")
                == company.count(
                    "read_model.generation where projection = 'entitlement'"
                        + " and state in ('live', 'retired')"
                )
        )
    }

    /// The short form of `subledger bench rebuild-kills`.
    @Test func rebuildsThatAreKilledLeaveOneWholeGenerationToWhoeverReads() throws {
        let folder = try WorkingFolder()
        let run = try Subledger.run(
            ["bench", "rebuild-kills", "--kills", "6", "--subscriptions", "300", "--seed", "3"],
            in: folder.path
        )
        #expect(run.status == 0, "\(run.output)\(run.errors)")
        #expect(!run.output.hasPrefix("0 rebuilds killed"))
        #expect(run.output.contains("whole answers"))
    }

    /// The short form of `subledger bench rebuild`, of the shape that has most to divide.
    @Test func theRebuildBenchmarkNamesItsBoundsAndItsParts() throws {
        let folder = try WorkingFolder()
        let run = try Subledger.run(
            ["bench", "rebuild", "--subscriptions", "400", "--runs", "1", "--shape", "one-slice"]
                + ["--window-fold", "--redecode"],
            in: folder.path
        )
        #expect(run.status == 0, "\(run.output)\(run.errors)")
        #expect(run.output.hasPrefix("events 4000, subscriptions 400, rows "))
        for part in ["raw COPY out", "raw COPY in", "keys alone", "window fold", "facts replaced"] {
            #expect(run.output.contains(part), "\(run.output)")
        }
        #expect(run.output.contains("digests of live and rebuilt rows agree"))
        #expect(
            try Subledger.run(["bench", "rebuild", "--shape", "odd"], in: folder.path).status == 2
        )
    }

    @Test func anEventThatCannotBeReadIsPassedOverByName() throws {
        let company = try Company(3)
        let refused = try company.run([
            "events", "skip", "1", "--operator", "olga", "--ticket", "SUP-9", "--why", "torn",
            "--allow-unsafe-server",
        ])
        #expect(refused.status == 1)
        #expect(refused.errors.contains("event 1 can be read"))
        #expect(try company.run(["events", "skip", "1"]).status == 2)
        try company.database.connect().execute("update ledger.fact set decoder = 0")
        let redecoded = try company.run(["redecode", "--json"])
        #expect(redecoded.status == 0, "\(redecoded.errors)")
        #expect(redecoded.output.contains("\"skipped\":0"))
        #expect(try company.count("ledger.fact where decoder = 0") == 0)
        #expect(try company.run(["redecode"]).output.hasPrefix("0 rows"))
    }
}
