import AppStore
import AppStoreSimulator
import Crypto
import EventLog
import Glibc
import Ledger
import LedgerService
import Postgres
import SimulatorServer
import TestSupport
import Testing

/// Everything that Apple sent is lost, and recovered over HTTPS: the read models are those of a
/// perfect delivery.
@Suite struct RecoveryTests {
    private static let seed: UInt64 = 20_261_130
    private static let bundleID = "com.example.subledger"
    private let folder: ScratchFolder

    init() throws { folder = try ScratchFolder() }

    /// How many subscriptions; more by hand, with `SUBLEDGER_LOST_SUBSCRIPTIONS`.
    private static var subscriptions: Int {
        let text = unsafe getenv("SUBLEDGER_LOST_SUBSCRIPTIONS").map { unsafe String(cString: $0) }
        return text.flatMap { Int($0) } ?? 700
    }

    private static func database() throws -> TestDatabase {
        try TestDatabase.create(template: "ledger with read models") {
            try Migrator($0, extra: ReadModels.migrations).migrate()
        }
    }

    /// The rows of every read model, without the positions of the deciding events: what was
    /// recovered stands in another order.
    private func rows(_ database: TestDatabase) throws -> [String: [String]] {
        let connection = try database.connect()
        try Projector(connection).project()
        let tables = try connection.query(
            """
            select relation.oid::regclass::text from pg_class as relation
            where relation.relnamespace = 'read_model'::regnamespace and relation.relkind = 'p'
            order by 1
            """
        )
        var result: [String: [String]] = [:]
        for row in 0..<tables.count {
            let name = tables.text(row, 0) ?? ""
            let found = try connection.query(
                """
                select (select jsonb_object_agg(key, value) from jsonb_each(to_jsonb(t))
                    where key not like '%position%' and key <> 'generation')::text
                from \(name) as t order by 1
                """
            )
            result[name] = (0..<found.count).map { found.text($0, 0) ?? "" }
        }
        return result
    }

    @Test func whatWasLostIsRecoveredAndTheReadModelsAreThoseOfAPerfectDelivery() throws {
        let now = Int64(time(nil)) * 1000
        let opening = now - 28 * 86_400_000
        let change: (inout FakeAppStore.Options) -> Void = { options in
            options.opening = opening
            // Every life begins after the opening, so that nothing was delivered before.
            options.yearsBefore = 0
            options.daysAfter = 60
            options.rateFactor = 100
            options.faults = FaultPlan()
        }
        let store = try LocalAppStore(
            environment: .sandbox,
            subscriptions: Self.subscriptions,
            seed: Self.seed,
            clock: SimulatedClock(at: now, speed: 0),
            changing: change
        )
        defer { store.server.stop() }
        var anchors = TrustAnchors()
        try anchors.add(store.rootDER, name: "simulated root")
        let app = AcceptedApp(
            bundleID: Self.bundleID,
            appAppleID: nil,
            environments: [.sandbox]
        )
        let verifier = Verifier(anchors: anchors, apps: [app])

        // The same lives once more, every notification delivered as it is sent.
        var options = store.server.withStore { $0.options }
        options.hasReceiver = true
        var perfect = FakeAppStore(options)
        perfect.move(to: now)
        var lines: [UInt8] = []
        var count = 0
        while let copies = perfect.takeDispatch() {
            for copy in copies {
                lines += copy.body + [0x0A]
                perfect.record(.success, of: copy)
            }
            count += 1
        }
        #expect(count >= 500)
        let delivered = try Self.database()
        let key = AppKey(bundleID: Self.bundleID, environment: .sandbox)
        try RuleBook(delivered.connect()).record(AppRules(environment: .sandbox), of: key)
        let reader = try LineReader(path: try folder.file("lines", lines))
        let report = try Ingest(verifier: verifier) { try delivered.connect() }
            .run(reader, now: Timestamp(milliseconds: now))
        #expect(report.rejected == 0 && report.quarantined == 0)

        let recovered = try Self.database()
        let start = ContinuousClock.now
        let backfill = try backfill(store, app, verifier, recovered)
        let duration = ContinuousClock.now - start
        #expect(backfill.rejected.isEmpty && backfill.quarantined == 0 && backfill.conflict == 0)
        let notifications = "select count(*) from ledger.event where kind = 'notification'"
        let events = try recovered.connect().query(notifications).int(0, 0)
        #expect(events == Int64(count))
        print("\(count) lost, \(backfill.recovered) recovered in \(duration)")

        let keys = "select event_key from ledger.event where kind = 'notification' order by 1"
        let (left, right) = try (delivered.connect().query(keys), recovered.connect().query(keys))
        let sent = (0..<left.count).map { left.text($0, 0) ?? "" }
        let found = Set((0..<right.count).map { right.text($0, 0) ?? "" })
        #expect(sent.allSatisfy { found.contains($0) })
        #expect(left.count == right.count)
        let (want, have) = try (rows(delivered), rows(recovered))
        #expect(want.keys.sorted() == have.keys.sorted())
        for (table, rows) in want {
            #expect(have[table]?.count == rows.count, "\(table)")
            #expect(have[table] == rows, "\(table)")
        }
        #expect(want["read_model.entitlement_interval"]?.isEmpty == false)
    }

    private func backfill(
        _ store: LocalAppStore,
        _ app: AcceptedApp,
        _ verifier: Verifier,
        _ database: TestDatabase
    ) throws -> Backfill.Report {
        var configuration = Configuration()
        configuration.appStore.issuerID = store.credentials.issuerID
        configuration.appStore.keyID = store.credentials.keyID
        configuration.appStore.keyText = store.key.pem
        configuration.appStore.sandboxURL = store.baseURL
        configuration.appStore.certificateAuthority = try folder.file(
            "ca.pem",
            Array(store.authorityPEM.utf8)
        )
        let now: @Sendable () -> Timestamp = { Timestamp(milliseconds: Int64(time(nil)) * 1000) }
        let clients = try AppStoreClients(
            apps: [app],
            configuration: configuration,
            share: 1,
            surroundings: APISurroundings(
                now: now,
                sleep: { duration in
                    usleep(UInt32(duration.rawValue) * 1000)
                    return true
                }
            )
        )
        let account = clients.accounts[0]
        try RuleBook(database.connect()).record(AppRules(environment: .sandbox), of: account.app)
        let recorder = ResponseRecorder(run: "recovery", verifier: verifier) {
            try database.connect()
        }
        return try Backfill(account, recorder, now: now).run()
    }
}
