import Foundation
import Postgres
import TestSupport
import Testing

/// Files, a database and the commands between them.
@Suite struct LedgerFileTests {
    /// A working folder with simulated notifications and a migrated database.
    private struct Site {
        let folder: WorkingFolder
        let database: TestDatabase
        let isDurable: Bool

        init(on server: TestServer, subscriptions: Int = 12) throws {
            folder = try WorkingFolder()
            database = try TestDatabase.create(on: server)
            isDurable = server === TestServer.durable
            let simulated = try Subledger.run(
                "simulate",
                "--subscriptions",
                "\(subscriptions)",
                "--seed",
                "7",
                "--out",
                "n.ndjson",
                "--truth",
                "t.ndjson",
                "--root",
                "r.pem",
                in: folder.path
            )
            #expect(simulated.status == 0, "\(simulated.errors)")
            let migrated = try run("migrate")
            #expect(migrated.status == 0, "\(migrated.errors)")
        }

        @discardableResult
        func run(_ words: String...) throws -> Subledger.Run {
            try Subledger.run(words, in: folder.path, database: database.conninfo)
        }

        var ingestWords: [String] {
            ["ingest", "n.ndjson", "--json", "--root", "r.pem"]
                + ["--accept-bundle", "com.example.subledger"]
                + (isDurable ? [] : ["--allow-unsafe-server"])
        }

        func ingest(_ words: String...) throws -> Subledger.Run {
            try Subledger.run(
                ingestWords + words,
                in: folder.path,
                database: database.conninfo
            )
        }

        /// A member of a report.
        func count(_ name: String, _ run: Subledger.Run) throws -> Int {
            let object = try JSONSerialization.jsonObject(with: Data(run.output.utf8))
            let report = try #require(object as? [String: Any], "\(run.output) \(run.errors)")
            return try #require(report[name] as? Int)
        }

        func number(_ sql: String) throws -> Int64? {
            try database.connect().query(sql).int(0, 0)
        }
    }

    @Test func aFileIsIngestedOnceAndAnswersComeOut() throws {
        let site = try Site(on: .shared)
        let lines = try site.folder.lines("n.ndjson").count
        let first = try site.ingest()
        #expect(first.status == 0, "\(first.errors)")
        #expect(first.errors.contains("UNSAFE SERVER"))
        #expect(try site.count("read", first) == lines)
        let events = try site.count("appended", first)
        #expect(events == Set(try site.folder.lines("n.ndjson")).count)

        let second = try site.ingest()
        #expect(try site.count("appended", second) == 0)
        #expect(try site.count("duplicate", second) == lines)
        #expect(try site.number("select position from ledger.head") == Int64(events))

        let answers = try site.run("entitlements", "--json", "--at", "2026-01-01")
        #expect(answers.status == 0)
        let list = try #require(
            JSONSerialization.jsonObject(with: Data(answers.output.utf8)) as? [[String: Any]]
        )
        #expect(list.count <= 12 && list.count > 8)
        #expect(answers.errors.isEmpty, "nothing is stale")
        let id = try #require(list[0]["original_transaction_id"] as? String)

        let explained = try site.run("explain", id)
        #expect(explained.status == 0)
        #expect(explained.output.contains("because of #"))
        let listed = try site.run("events", id, "--json")
        #expect(listed.status == 0)
        #expect(listed.output.contains("SUBSCRIBED"))
        let evidence = try site.run("evidence", "1")
        #expect(evidence.status == 0)
        #expect(evidence.errors.contains("not Apple's"))
        let received = "{\"signedPayload\":\"\(evidence.output.dropLast())\"}"
        #expect(try site.folder.lines("n.ndjson").contains(received))

        let rebuilt = try site.run("rebuild", "--json")
        #expect(rebuilt.status == 0)
        let again = try site.run("rebuild", "--json")
        func digest(_ run: Subledger.Run) -> Substring? {
            run.output.firstRange(of: "\"digest\":\"").map {
                run.output[$0.upperBound...].prefix(32)
            }
        }
        #expect(digest(rebuilt) != nil)
        #expect(digest(rebuilt) == digest(again))
        #expect(try site.run("audit", "verify").output.contains("whole"))
    }

    @Test func refusedLinesAreListedInAFileAndTellTheCaller() throws {
        let site = try Site(on: .shared, subscriptions: 3)
        var lines = try site.folder.lines("n.ndjson")
        lines.insert("not a notification", at: 1)
        lines.append("{\"signedPayload\": \"tru")
        try site.folder.file("n.ndjson", lines.joined(separator: "\n"))
        let run = try site.ingest("--rejects", "rejects.ndjson")
        #expect(run.status == 1)
        #expect(try site.count("rejected", run) == 2)
        let rejects = try site.folder.lines("rejects.ndjson")
        #expect(rejects.count == 2)
        #expect(rejects[0].hasPrefix("{\"line\":2,\"outcome\":\"rejected\",\"reason\":\""))
        #expect(rejects[1].contains("\"line\":\(lines.count),"))
        #expect(rejects[1].contains("\"reason\":\"bad_json\""))
    }

    @Test func anotherAppsDataIsRejectedAndLeavesNothing() throws {
        let site = try Site(on: .shared, subscriptions: 2)
        let run = try Subledger.run(
            "ingest",
            "n.ndjson",
            "--accept-bundle",
            "com.example.other",
            "--root",
            "r.pem",
            "--allow-unsafe-server",
            in: site.folder.path,
            database: site.database.conninfo
        )
        #expect(run.status == 1)
        #expect(run.errors.contains("line 1: rejected: bundle_id"))
        #expect(try site.number("select count(*) from ledger.event") == 0)
        #expect(try site.number("select count(*) from ledger.quarantine") == 0)
    }

    @Test func anUnsafeServerIsRefusedUnlessAllowed() throws {
        let site = try Site(on: .shared, subscriptions: 1)
        let run = try Subledger.run(
            "ingest",
            "n.ndjson",
            "--accept-bundle",
            "com.example.subledger",
            "--root",
            "r.pem",
            in: site.folder.path,
            database: site.database.conninfo
        )
        #expect(run.status == 3)
        #expect(run.errors.contains("fsync and full_page_writes off"))
        #expect(try site.number("select count(*) from ledger.event") == 0)
    }

    @Test func onlyMigrateChangesTheSchemaOfAServer() throws {
        let folder = try WorkingFolder()
        let database = try TestDatabase.create()
        let run = try Subledger.run("entitlements", in: folder.path, database: database.conninfo)
        #expect(run.status == 4)
        #expect(run.errors.contains("subledger migrate"))
        let schemas = try database.connect().query(
            "select count(*) from pg_namespace where nspname = 'ledger'"
        )
        #expect(schemas.int(0, 0) == 0)
    }

    @Test func whatIsLeftUnfoldedIsReportedAndFoldedByTheNext() throws {
        let site = try Site(on: .shared, subscriptions: 4)
        #expect(try site.ingest("--no-project").status == 0)
        let stale = try site.run("entitlements", "--json")
        #expect(stale.output == "[]\n")
        #expect(stale.errors.contains("\"stale_streams\":"))
        #expect(try site.ingest().status == 0)
        #expect(try site.run("entitlements").errors.isEmpty)
    }

    @Test func whatDoesNotExistIsSaidSo() throws {
        let site = try Site(on: .shared, subscriptions: 1)
        for words in [["explain", "77"], ["events", "77"], ["evidence", "77"]] {
            let run = try Subledger.run(
                words,
                in: site.folder.path,
                database: site.database.conninfo
            )
            #expect(run.status == 1)
            #expect(run.errors.contains("77"))
        }
        let unknown = try site.run("rebuild", "entitlment")
        #expect(unknown.status == 2)
        #expect(unknown.errors.contains("there are: entitlement"))
    }

    @Test func aNewAccessPolicyCountsFromNowOnAndIsKeptOnce() throws {
        let site = try Site(on: .shared, subscriptions: 2)
        func configure(_ policy: String) throws {
            try site.folder.file(
                "subledger.json",
                """
                {"apps": [{"bundle_id": "com.example.subledger", "environments": ["Sandbox"],
                  "anchors": ["r.pem"], "access_policy": {"billing_retry_access": "\(policy)"}}]}
                """
            )
        }
        try configure("deny")
        for _ in 0..<2 { #expect(try site.ingest().status == 0) }
        #expect(try site.number("select count(*) from ledger.access_policy") == 1)
        try configure("allow")
        #expect(try site.ingest().status == 0)
        #expect(try site.number("select count(*) from ledger.access_policy") == 2)
        #expect(
            try site.number(
                "select count(*) from ledger.access_policy where version = 2"
                    + " and effective_from > now() - interval '1 hour'"
            ) == 1
        )
        #expect(try site.run("entitlements").errors.isEmpty, "what it concerns is folded again")
    }

    /// Starts an ingest and returns when its first batch is committed, or it is over.
    private func startedIngest(_ site: Site, errors: Any?) throws -> Process {
        let process = Subledger.process(
            site.ingestWords,
            in: site.folder.path,
            database: site.database.conninfo
        )
        process.standardOutput = FileHandle.nullDevice
        process.standardError = errors
        try process.run()
        let connection = try site.database.connect()
        while process.isRunning {
            // Other kinds of events may come before the program listens to signals.
            let rows = try connection.query(
                "select exists (select from ledger.event where kind = 'notification')"
            )
            if rows.bool(0, 0) == true { break }
            usleep(1000)
        }
        return process
    }

    @Test func anIngestThatIsKilledIsResumedByRunningItAgain() throws {
        let site = try Site(on: .durable, subscriptions: 200)
        let process = try startedIngest(site, errors: FileHandle.nullDevice)
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        // The server may still be at the COMMIT that the program sent last.
        var others: Int64? = 1
        for _ in 0..<6_000 where others != 0 {
            others = try site.number(
                """
                select count(*) from pg_stat_activity
                where datname = current_database() and backend_type = 'client backend'
                    and pid <> pg_backend_pid()
                """
            )
            if others != 0 { usleep(10_000) }
        }
        #expect(others == 0, "the killed program's session is still at work")
        let before = try #require(try site.number("select position from ledger.head"))
        #expect(process.terminationReason == .uncaughtSignal, "it was still at work")

        let run = try site.ingest()
        #expect(run.status == 0, "\(run.errors)")
        let lines = try site.folder.lines("n.ndjson")
        let appended = try site.count("appended", run)
        #expect(appended > 0)
        #expect(try site.count("read", run) == lines.count)
        // All notifications are there once. A transaction signed on its own is no event where it
        // says what the log has; the same of them are as if nobody had been killed.
        let notifications = Set(lines).count { $0.contains("signedPayload") }
        let stored = "select count(*) from ledger.event where kind = 'notification'"
        #expect(try site.number(stored) == Int64(notifications))
        let whole = try Site(on: .durable, subscriptions: 200)
        #expect(try whole.count("appended", whole.ingest()) == Int(before) + appended)
        #expect(try site.count("appended", site.ingest()) == 0)
        #expect(try site.run("audit", "verify").status == 0)
    }

    @Test func aTerminatedIngestStopsAtABatchAndSaysSo() throws {
        let site = try Site(on: .durable, subscriptions: 100)
        let lines = try site.folder.lines("n.ndjson")
        // Far more lines than are read ahead, so that it is at work when the signal comes.
        let repeated = Array(repeating: lines.joined(separator: "\n"), count: 10)
        try site.folder.file("n.ndjson", repeated.joined(separator: "\n"))
        let pipe = Pipe()
        let process = try startedIngest(site, errors: pipe)
        process.terminate()
        let errors = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 128 + SIGTERM)
        #expect(String(decoding: errors, as: UTF8.self).contains("run the same command again"))
    }
}
