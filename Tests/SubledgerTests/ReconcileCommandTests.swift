import AppStoreSimulator
import Crypto
import Foundation
import Glibc
import SimulatorServer
import TestSupport
import Testing

/// `backfill` and `sync`, run against the fake App Store.
@Suite struct ReconcileCommandTests {
    /// What is wrong with one app's key is told, and the other apps are read all the same.
    @Test func whatIsWrongWithOneAppKeepsNothingFromTheOthers() throws {
        let opening = Int64(time(nil)) * 1000
        let store = try LocalAppStore(
            environment: .sandbox,
            subscriptions: 6,
            seed: 11,
            clock: SimulatedClock(at: opening, speed: 1),
            changing: { $0.rateFactor = 1000 }
        )
        defer { store.server.stop() }
        store.server.withStore { $0.hasReceiver = true }
        let folder = try WorkingFolder()
        let database = try TestDatabase.create(on: .shared)
        try folder.file("root.pem", store.rootPEM)
        try folder.file("ca.pem", store.authorityPEM)
        let key = try folder.file("SubscriptionKey_SIMULATED1.p8", store.key.pem)
        #expect(unsafe chmod(key, 0o600) == 0)
        // The store knows the second app alone, so that it refuses whoever asks for the first.
        try folder.file(
            "subledger.json",
            """
            {"app_store": {"issuer_id": "\(store.credentials.issuerID)",
            "key_id": "\(store.credentials.keyID)", "key_file": "\(key)", "ca_file": "ca.pem",
            "sandbox_url": "\(store.baseURL)"},
            "apps": [
            {"bundle_id": "com.example.another", "environments": ["Sandbox"], "anchors": ["root.pem"]},
            {"bundle_id": "com.example.subledger", "environments": ["Sandbox"],
            "anchors": ["root.pem"]}]}
            """
        )
        func run(_ words: String...) throws -> Subledger.Run {
            try Subledger.run(words, in: folder.path, database: database.conninfo)
        }
        func sync(_ id: String, of app: String) throws -> Subledger.Run {
            try run("sync", "--allow-unsafe-server", "--bundle-id", app, id)
        }
        #expect(try run("migrate").status == 0)
        let id = store.server.withStore { $0.overviews }.first?.originalTransactionID ?? ""
        // It is not in the ledger yet: the store is asked which app has it.
        let found = try run("sync", "--allow-unsafe-server", id)
        #expect(found.status == 0, "\(found.errors)")
        let foreign = try sync(id, of: "com.example.another")
        #expect(foreign.status == 1 && foreign.errors.contains("not among"), "\(foreign.errors)")
        let read = try run("backfill", "--allow-unsafe-server")
        #expect(read.status == 1, "\(read.errors)")
        #expect(read.errors.contains("com.example.another Sandbox: "), "\(read.errors)")
        #expect(read.output.contains("com.example.subledger Sandbox: "), "\(read.output)")
        let synced = try run("sync", "--allow-unsafe-server", "--all")
        #expect(synced.status == 0, "\(synced.errors)")
    }
}
