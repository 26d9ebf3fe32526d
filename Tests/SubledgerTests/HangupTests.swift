import AppStoreSimulator
import Crypto
import Foundation
import Glibc
import SimulatorServer
import TestSupport
import Testing

@testable import HTTP

/// What a running service reads again on SIGHUP, without turning anybody away.
@Suite struct HangupTests {
    /// A folder and a database for a service that asks a fake App Store, with a key of Apple's that
    /// is not the one which that store knows, and a certificate of its own.
    private final class Site {
        let store: LocalAppStore
        let folder: WorkingFolder
        let database: TestDatabase
        let key: String
        var served: ServedProgram?

        init() throws {
            store = try LocalAppStore(
                environment: .sandbox,
                subscriptions: 20,
                seed: 11,
                clock: SimulatedClock(at: Int64(time(nil)) * 1000, speed: 1),
                changing: { $0.rateFactor = 1000 }
            )
            folder = try WorkingFolder()
            database = try TestDatabase.create(on: .shared)
            try folder.file("r.pem", store.rootPEM)
            try folder.file("ca.pem", store.authorityPEM)
            key = try folder.file("SubscriptionKey_SIMULATED1.p8", SigningKey.generateP256().pem)
            guard unsafe chmod(key, 0o600) == 0 else { throw CocoaError(.fileWriteNoPermission) }
            try folder.file(
                "subledger.json",
                """
                {"app_store": {"issuer_id": "\(store.credentials.issuerID)",
                "key_id": "\(store.credentials.keyID)", "key_file": "\(key)",
                "ca_file": "ca.pem", "sandbox_url": "\(store.baseURL)"},
                "service": {"tls_certificate": "tls.pem", "tls_key": "tls-key.pem"}}
                """
            )
            let migrated = try Subledger.run(
                "migrate",
                in: folder.path,
                database: database.conninfo
            )
            #expect(migrated.status == 0, "\(migrated.errors)")
        }

        deinit { store.server.stop() }

        func start() throws -> ServedProgram {
            try ServedProgram(in: folder, database: database, conninfo: database.conninfo)
        }

        /// Gives the service's files another certificate, and says who vouches for it.
        func renewCertificate() throws -> String {
            let tls = SimulatorTLS(atSeconds: Int64(time(nil)))
            try folder.file("tls.pem", tls.identity.certificatePEM)
            let key = try folder.file("tls-key.pem", tls.identity.keyPEM)
            guard unsafe chmod(key, 0o600) == 0 else { throw CocoaError(.fileWriteNoPermission) }
            return tls.authorityPEM
        }
    }

    /// Waits for something that is to come.
    private static func wait(for what: String, until holds: () throws -> Bool) throws {
        let end = ContinuousClock.now + .seconds(120)
        while try !holds() {
            try #require(ContinuousClock.now < end, "\(what) did not come")
            usleep(20_000)
        }
    }

    private static func client(trusting authority: String) throws -> HTTPClient {
        var configuration = HTTPClientConfiguration()
        configuration.trustAnchors = .pem(authority)
        return try HTTPClient(configuration)
    }

    @Test func theKeyAndTheCertificateAreReadAgain() throws {
        let site = try Site()
        let first = try site.renewCertificate()
        let served = try site.start()
        let live = try HTTPClientRequest(
            .get,
            HTTPURL("https://localhost:\(served.port)/healthz")
        )
        let old = try Self.client(trusting: first)
        #expect(try old.send(live).status == 200)
        try Self.wait(for: "Apple's refusal") { served.log.contains("reconcile_failed") }
        #expect(try served.number("select count(*) from ledger.event") == 0)

        // Neither file is of use: all stays as it is.
        try site.folder.file("SubscriptionKey_SIMULATED1.p8", "no key")
        try site.folder.file("tls.pem", "no certificate")
        served.hangUp()
        try Self.wait(for: "not_reloaded") { served.log.contains("not_reloaded") }
        #expect(try old.send(live).status == 200)

        let second = try site.renewCertificate()
        try site.folder.file("SubscriptionKey_SIMULATED1.p8", site.store.key.pem)
        served.hangUp()
        try Self.wait(for: "reloaded") { served.log.contains(#""reloaded""#) }
        let new = try Self.client(trusting: second)
        #expect(try new.send(live).status == 200)
        let refused = #expect(throws: HTTPClientError.self) {
            try Self.client(trusting: first).send(live)
        }
        #expect(refused?.code == .tls(.untrusted))
        // With the right key Apple's history is read at once, not at the next turn.
        try Self.wait(for: "what Apple had sent") {
            try served.number("select count(*) from ledger.event") > 0
        }
        #expect(!served.log.contains(site.store.key.pem.split(separator: "\n")[1]))
        #expect(served.terminate() == 0)
    }
}
