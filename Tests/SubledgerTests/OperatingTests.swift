import Foundation
import HTTP
import Postgres
import TestSupport
import Testing

/// The commands of whoever keeps the service running, with the built program and a database.
@Suite struct OperatingTests {
    /// A migrated database of its own and a folder with simulated notifications.
    private struct Place {
        let folder: WorkingFolder
        let database: TestDatabase
        let texts: [String]

        init() throws {
            folder = try WorkingFolder()
            database = try TestDatabase.create(on: .shared)
            let words = ["simulate", "--subscriptions", "2", "--seed", "11", "--out", "n.ndjson"]
            try #require(
                Subledger.run(words + ["--root", "r.pem"], in: folder.path).status == 0
            )
            texts = try Array(Set(folder.lines("n.ndjson"))).compactMap { line in
                let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
                return (object as? [String: Any])?["signedPayload"] as? String
            }
            #expect(try run("migrate").status == 0)
        }

        func run(_ words: String..., conninfo: String? = nil) throws -> Subledger.Run {
            try Subledger.run(words, in: folder.path, database: conninfo ?? database.conninfo)
        }

        func quarantine(_ text: String) throws -> String {
            let rows = try database.connect().query(
                """
                insert into ledger.quarantine (stream, digest, reason, received)
                values ('sha256:' || encode(sha256($1), 'hex'), sha256($1), 'sqlstate_22P05', $1)
                returning encode(digest, 'hex')
                """,
                [.bytes(Array(text.utf8))]
            )
            return rows.text(0, 0) ?? ""
        }

        /// A login that may serve and nothing else, made as `--print-login` says.
        func login(_ name: String) throws -> String {
            let statements = try run("migrate", "--print-login", name).output
            try database.connect().execute(statements)
            return database.conninfo(user: name)
        }
    }

    private func object(_ run: Subledger.Run) throws -> Any {
        try JSONSerialization.jsonObject(with: Data(run.output.utf8))
    }

    @Test func aQuarantinedDocumentIsListedShownAndReplayed() throws {
        let place = try Place()
        let first = try place.quarantine(place.texts[0])
        let second = try place.quarantine(place.texts[1])
        let accept = ["--root", "r.pem", "--accept-bundle", "com.example.subledger"]
        func run(_ words: [String]) throws -> Subledger.Run {
            try Subledger.run(words, in: place.folder.path, database: place.database.conninfo)
        }
        let listed = try #require(
            try object(run(["quarantine", "list", "--json"])) as? [[String: Any]]
        )
        #expect(Set(listed.compactMap { $0["sha256"] as? String }) == [first, second])
        #expect(listed.allSatisfy { $0["resolution"] is NSNull })
        let name = String(first.prefix(12))
        #expect(try run(["quarantine", "list"]).output.contains(name))

        let shown = try run(["quarantine", "show", name, "--root", "r.pem"])
        #expect(shown.status == 0)
        #expect(shown.output == place.texts[0] + "\n", "byte for byte")
        // The database had refused it, and may again.
        #expect(shown.errors.contains("where the database holds it now"), "\(shown.errors)")
        let foreign = try run([
            "quarantine", "show", name, "--root", "r.pem", "--accept-bundle", "com.example.b",
        ])
        #expect(foreign.errors.contains("not usable: bundle_id"), "\(foreign.errors)")

        // Not ours, as far as this command line says: it stays.
        let other = ["--root", "r.pem", "--accept-bundle", "com.example.b", "--operator", "me"]
        let stays = try run(["quarantine", "replay", name] + other)
        #expect(stays.status == 1)
        #expect(stays.output.contains("remains: bundle_id"), "\(stays.output)")

        let replayed = try run(["quarantine", "replay", "--all", "--operator", "me"] + accept)
        #expect(replayed.status == 0, "\(replayed.errors)")
        #expect(replayed.output.contains("appended: event 1"))
        #expect(replayed.output.contains("appended: event 2"))
        let left = try object(run(["quarantine", "list", "--json"])) as? [Any]
        #expect(left?.isEmpty == true)
        let all = try object(run(["quarantine", "list", "--all", "--json"])) as? [[String: Any]]
        #expect(all?.count == 2)
        // What came out of quarantine is folded as any other event.
        #expect(try run(["audit", "verify"]).status == 0)
        let marks = try place.database.connect().query("select count(*) from ledger.mark")
        #expect(marks.int(0, 0) == 0)

        for (words, status, message) in [
            (["show", "0123456789"], Int32(1), "nothing in quarantine is called"),
            (["show", "xyz"], 2, "at least 8"),
            (["replay", name], 2, "--operator WHO is missing"),
            (["replay", "--operator", "me"], 2, "name documents by their ID"),
        ] {
            let run = try run(["quarantine"] + words)
            #expect(run.status == status, "\(words)")
            #expect(run.errors.contains(message), "\(run.errors)")
        }
    }

    @Test func aDismissedDocumentIsListedNoMore() throws {
        let place = try Place()
        let digest = try place.quarantine("a.b.c")
        let words = ["dismiss", digest, "--operator", "me", "--ticket", "OPS-7"]
        let dismissed = try Subledger.run(
            ["quarantine"] + words,
            in: place.folder.path,
            database: place.database.conninfo
        )
        #expect(dismissed.status == 0, "\(dismissed.errors)")
        let left = try object(place.run("quarantine", "list", "--json")) as? [Any]
        #expect(left?.isEmpty == true)
        let all = try object(place.run("quarantine", "list", "--all", "--json"))
        let resolution = (all as? [[String: Any]])?.first?["resolution"] as? [String: Any]
        #expect(resolution?["outcome"] as? String == "dismissed")
        #expect(resolution?["ticket"] as? String == "OPS-7")
    }

    @Test func aParkedStreamIsListedAndFoldedAgain() throws {
        let place = try Place()
        let ingested = try place.run(
            "ingest",
            "n.ndjson",
            "--root",
            "r.pem",
            "--accept-bundle",
            "com.example.subledger",
            "--no-project",
            "--allow-unsafe-server"
        )
        #expect(ingested.status == 0, "\(ingested.errors)")
        let connection = try place.database.connect()
        // As a projector leaves a stream that it could not fold: parked, with its marks.
        let parked = try connection.query(
            """
            insert into read_model.parked (stream, app_id, position, error)
            select stream, app_id, max(position), 'made up' from ledger.mark
            group by stream, app_id order by stream limit 1
            returning stream
            """
        )
        let stream = parked.text(0, 0) ?? ""
        let folded = try place.run(
            "ingest",
            "/dev/null",
            "--accept-bundle",
            "x",
            "--allow-unsafe-server"
        )
        #expect(folded.status == 0, "\(folded.errors)")
        let listed = try #require(
            try object(place.run("streams", "parked", "--json")) as? [[String: Any]]
        )
        #expect(listed.map { $0["stream"] as? String } == [stream])
        #expect(listed.first?["bundle_id"] as? String == "com.example.subledger")
        let retried = try place.run("streams", "retry")
        #expect(retried.status == 0)
        #expect(retried.output.hasPrefix("1 folded, 0 still parked"), "\(retried.output)")
        #expect(try place.run("streams", "retry", stream).status == 1)
    }

    // MARK: - Who serves

    @Test func aServiceRefusesToRunAsWhoCouldChangeTheLog() throws {
        let place = try Place()
        let words = ["serve", "--listen", "127.0.0.1:0", "--root", "r.pem"]
        let rest = ["--accept-bundle", "com.example.subledger", "--allow-unsafe-server"]
        let superuser = try Subledger.run(
            words + rest,
            in: place.folder.path,
            database: place.database.conninfo
        )
        #expect(superuser.status == 3)
        #expect(superuser.errors.contains("is a superuser"), "\(superuser.errors)")
        #expect(superuser.errors.contains("--allow-owner"))

        let login = "owner_\(place.database.name)"
        let connection = try place.database.connect()
        try connection.execute(
            """
            create role \(login) login;
            grant \(place.database.name)_owner, \(place.database.name)_appender,
                \(place.database.name)_projector, \(place.database.name)_reader,
                \(place.database.name)_auditor to \(login)
            """
        )
        let owner = try Subledger.run(
            words + rest,
            in: place.folder.path,
            database: place.database.conninfo(user: login)
        )
        #expect(owner.status == 3)
        #expect(owner.errors.contains("is the owner of the schema ledger"), "\(owner.errors)")
    }

    @Test func aLoginOfItsOwnIsEnoughToServe() throws {
        let place = try Place()
        let conninfo = try place.login("serve_\(place.database.name)")
        let served = try ServedProgram(
            in: place.folder,
            database: place.database,
            conninfo: conninfo
        )
        for line in try place.folder.lines("n.ndjson") {
            #expect(served.deliver(line)?.status == 200)
        }
        let token = try served.token("auditor")
        let events = try #require(served.get("/v1/events?limit=500", token: token))
        let rows = try #require(events.object["events"] as? [[String: Any]])
        #expect(rows.count { $0["kind"] as? String == "notification" } == place.texts.count)
        let metrics = try #require(served.get("/metrics", token: token))
        let page = String(decoding: metrics.body, as: UTF8.self)
        #expect(page.contains("subledger_quarantine_bytes_day 0\n"))
        #expect(page.contains("subledger_refusals_outnumber{environment=\"Sandbox\"} 0\n"))

        // Everything refused in Sandbox is told of.
        for number in 1...6 {
            #expect(served.deliver("{\"signedPayload\":\"\(number)\"}")?.status == 400)
        }
        let after = try #require(served.get("/metrics", token: token))
        let later = String(decoding: after.body, as: UTF8.self)
        #expect(later.contains("subledger_refusals_outnumber{environment=\"unknown\"} 1\n"))

        // The doctor as the same login finds nothing that fails, but for the test server's fsync.
        let url = "http://127.0.0.1:\(served.port)"
        let doctor = try place.run("doctor", "--json", "--url", url, conninfo: conninfo)
        let report = try #require(try object(doctor) as? [String: Any])
        let checks = try #require(report["checks"] as? [[String: Any]])
        let failing = checks.filter { $0["level"] as? String == "fail" }
        #expect(
            failing.compactMap { $0["name"] as? String } == ["fsync", "full_page_writes"],
            "\(doctor.output)"
        )
        let names = Set(checks.compactMap { $0["name"] as? String })
        #expect(names.isSuperset(of: ["login", "immutability", "chain", "endpoint", "ready"]))
        #expect(doctor.status == 1)
        #expect(served.terminate() == 0)
        let gone = try place.run("doctor", "--only-url", "--url", url)
        #expect(gone.status == 1)
        #expect(gone.output.contains("fail"), "\(gone.output)")
    }

    @Test func aDoctorWithoutADatabaseSaysSo() throws {
        let folder = try WorkingFolder()
        let nowhere = "host=\(folder.path) dbname=none"
        let run = try Subledger.run(["doctor"], in: folder.path, database: nowhere)
        #expect(run.status == 1)
        #expect(run.output.contains("fail  database"), "\(run.output)")
        #expect(run.output.contains("→ is it running"), "\(run.output)")
        #expect(run.output.contains("warn  public"), "\(run.output)")
    }

    @Test func theAddressThatAppleSeesIsAskedOverTLS() throws {
        let folder = try WorkingFolder()
        let certificates = TestCertificates()
        let identity = certificates.identity(to: 3_000_000)
        var configuration = HTTPServerConfiguration()
        configuration.tls = identity
        let fine = HTTPResponse(status: 200)
        let server = try HTTPServer(
            configuration: configuration,
            router: Router([
                Route(.get, "/healthz") { _ in .answer(fine) },
                Route(.get, "/readyz") { _ in .answer(fine) },
                Route(.post, "/v1/notifications") { _ in .answer(fine) },
            ])
        )
        defer { server.stop(within: .seconds(5)) }
        let url = "https://127.0.0.1:\(server.port)"
        try Data(certificates.rootPEM.utf8)
            .write(to: URL(filePath: folder.path + "/ca.pem"))
        try Data("{\"service\": {\"public_url\": \"\(url)\"}}".utf8)
            .write(to: URL(filePath: folder.path + "/subledger.json"))
        let nowhere = "host=\(folder.path) dbname=none"
        let good = try Subledger.run(
            ["doctor", "--ca", "ca.pem"],
            in: folder.path,
            database: nowhere
        )
        #expect(good.output.contains("ok    public "), "\(good.output)")
        #expect(good.output.contains("ok    public_path"), "\(good.output)")
        let untrusted = try Subledger.run(["doctor"], in: folder.path, database: nowhere)
        #expect(untrusted.output.contains("fail  public"), "\(untrusted.output)")
        #expect(untrusted.output.contains("not trusted"), "\(untrusted.output)")
        let only = try Subledger.run(
            ["doctor", "--only-url", "--ca", "ca.pem", "--url", url],
            in: folder.path
        )
        #expect(only.status == 0, "\(only.output)")
        // As deploy/Caddyfile has it: how the service is doing is nobody's business outside.
        let hidden = try HTTPServer(
            configuration: configuration,
            router: Router([Route(.get, "/healthz") { _ in .answer(fine) }])
        )
        defer { hidden.stop(within: .seconds(5)) }
        let outside = try Subledger.run(
            ["doctor", "--only-url", "--ca", "ca.pem"]
                + ["--url", "https://127.0.0.1:\(hidden.port)"],
            in: folder.path
        )
        #expect(outside.status == 0 && outside.output.contains("warn  ready"), "\(outside.output)")
        #expect(outside.output.contains("→ ask the service itself"), "\(outside.output)")
        let wrong = try Subledger.run(
            ["doctor", "--only-url", "--url", "ftp://h"],
            in: folder.path
        )
        #expect(wrong.status == 2)
    }
}
