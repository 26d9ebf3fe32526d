import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

/// After a restore nothing is written and nobody reads on by position until somebody has said so.
@Suite struct RestoredTests {
    /// Makes the ledger look as if it had come here from another server.
    private func move(_ database: TestDatabase) throws {
        let connection = try database.connect()
        try connection.execute("alter table ledger.epoch disable trigger all")
        try connection.execute("update ledger.epoch set server_identifier = '42'")
        try connection.execute("alter table ledger.epoch enable always trigger refuse_row")
        try connection.execute("alter table ledger.epoch enable always trigger refuse_statement")
    }

    private static let restored = [
        "db", "restored", "--operator", "olga", "--why", "the disk died", "--allow-unsafe-server",
    ]

    @Test func aRestoredLedgerIsServedInANewEpochOnly() throws {
        let served = try ServedProgram(on: .shared, subscriptions: 4)
        let lines = Array(Set(try served.notifications()))
        for line in lines { #expect(served.deliver(line)?.status == 200) }
        try served.waitUntilFolded()
        let token = try served.token("reader")
        let first = try #require(served.get("/v1/events?limit=1000", token: token)?.object)
        #expect(first["epoch"] as? Int == 1)
        let last = try #require(first["next_after"] as? Int)
        #expect(served.terminate() == 0)
        try move(served.database)

        let refused = try served.run(
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--root",
            "r.pem",
            "--allow-owner",
            "--accept-bundle",
            "com.example.subledger",
            "--allow-unsafe-server"
        )
        #expect(refused.status == 5)
        #expect(refused.errors.contains("subledger db restored"), "\(refused.errors)")
        let ingest = try served.run(
            "ingest",
            "n.ndjson",
            "--root",
            "r.pem",
            "--accept-bundle",
            "com.example.subledger",
            "--allow-unsafe-server"
        )
        #expect(ingest.status == 5)
        let doctor = try served.run("doctor")
        #expect(doctor.output.contains("epoch"), "\(doctor.output)")

        #expect(try served.run("db", "restored", "--operator", "olga").status == 2)
        let opened = try Subledger.run(
            Self.restored + ["--json"],
            in: served.folder.path,
            database: served.database.conninfo
        )
        #expect(opened.status == 0, "\(opened.errors)")
        #expect(opened.errors.contains("Apple was not asked"), "\(opened.errors)")
        #expect(opened.errors.contains("the read models are rebuilt"))
        let answer = try JSONSerialization.jsonObject(with: Data(opened.output.utf8))
        let epoch = try #require((answer as? [String: Any])?["epoch"] as? Int)
        let cut = try #require((answer as? [String: Any])?["cut_position"] as? Int)
        #expect(epoch > 1_700_000_000)
        #expect(cut >= last)
        let kept = try served.database.connect().query(
            "select operator from ledger.event where kind = 'epoch_opened' order by position"
        )
        #expect((0..<kept.count).map { kept.text($0, 0) }.last == "olga")

        try served.start()
        let old = try #require(served.get("/v1/events?after=\(last)&epoch=1", token: token))
        #expect(old.status == 409)
        #expect(old.reason == "epoch_ended")
        #expect(old.object["cut_after"] as? Int == cut)
        #expect(old.object["epoch"] as? Int == epoch)
        // It waits for news, but not for those of another epoch.
        let waiting = served.get("/v1/events?after=\(last)&epoch=1&wait_ms=30000", token: token)
        #expect(waiting?.status == 409)
        // One that the restored log never knew: nothing of what was read there is sure.
        let foreign = served.get("/v1/events?after=9&epoch=\(epoch - 1)", token: token)
        #expect(foreign?.object["cut_after"] as? Int == 0)
        let next = served.get("/v1/events?after=\(last)&epoch=\(epoch)", token: token)
        #expect(next?.status == 200)
        #expect(next?.object["epoch"] as? Int == epoch)
        #expect(served.terminate() == 0)
    }

    /// The server is replaced under a program that runs.
    @Test func aServiceThatRunsStoresNothingInALedgerThatMoved() throws {
        let served = try ServedProgram(on: .shared, subscriptions: 4)
        let lines = Array(Set(try served.notifications()))
        #expect(served.deliver(lines[0])?.status == 200)
        try move(served.database)
        let before = try served.number("select count(*) from ledger.event")
        // Its sessions break, as they do when a server goes away.
        try served.database.connect().execute(
            """
            select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()
            """
        )
        #expect(served.deliver(lines[1])?.status == 503)
        #expect(try served.number("select count(*) from ledger.event") == before)
        let opened = try Subledger.run(
            Self.restored + ["--no-backfill", "--no-rebuild"],
            in: served.folder.path,
            database: served.database.conninfo
        )
        #expect(opened.status == 0, "\(opened.errors)")
        #expect(served.deliver(lines[1])?.status == 200, "it goes on without a restart")
        #expect(served.terminate() == 0)
    }
}
