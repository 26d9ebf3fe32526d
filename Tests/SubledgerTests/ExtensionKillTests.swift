import AppStore
import AppStoreSimulator
import Crypto
import EventLog
import Foundation
import Glibc
import Ledger
import Postgres
import SimulatorServer
import TestSupport
import Testing

@testable import LedgerService

/// The real program is killed while it extends, between its request and Apple's answer and at any
/// other moment: nothing is extended twice, nothing is forgotten, and the audit has what Apple has.
@Suite struct ExtensionKillTests {
    /// How many programs are killed; 50 by hand, with `SUBLEDGER_EXTENSION_KILLS`.
    private static let kills =
        ProcessInfo.processInfo.environment["SUBLEDGER_EXTENSION_KILLS"].flatMap { Int($0) } ?? 4

    @Test func aProgramThatIsKilledLeavesWhatCanBeSettled() throws {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        let desk = try KilledDesk(seed: seed, kills: Self.kills)
        try desk.killAll(Self.kills)
        try desk.settleAll()
        try desk.compare()
    }
}

/// Equal seeds give equal numbers (SplitMix64).
private struct Numbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

/// The fake App Store, the ledger's database and the folder that the program runs in.
private final class KilledDesk {
    private let store: LocalAppStore
    private let clock: SimulatedClock
    private let folder: WorkingFolder
    private let database: TestDatabase
    private let app = AppKey(bundleID: "com.example.subledger", environment: .sandbox)
    private let opening: Int64
    private var random: Numbers
    private var killedWithin = 0

    init(seed: UInt64, kills: Int) throws {
        random = Numbers(state: seed)
        opening = Int64(time(nil)) * 1000
        clock = SimulatedClock(at: opening, speed: 1)
        store = try LocalAppStore(
            environment: .sandbox,
            subscriptions: 40 + 12 * kills,
            seed: 11,
            clock: clock,
            changing: { $0.rateFactor = 1000 }
        )
        store.server.withStore { $0.hasReceiver = true }
        folder = try WorkingFolder()
        database = try TestDatabase.create(on: .shared)
        try folder.file("root.pem", store.rootPEM)
        try folder.file("ca.pem", store.authorityPEM)
        let key = try folder.file("SubscriptionKey_SIMULATED1.p8", store.key.pem)
        guard unsafe chmod(key, 0o600) == 0 else { throw CocoaError(.fileWriteNoPermission) }
        try folder.file(
            "subledger.json",
            """
            {"app_store": {"issuer_id": "\(store.credentials.issuerID)",
            "key_id": "\(store.credentials.keyID)", "key_file": "\(key)", "ca_file": "ca.pem",
            "sandbox_url": "\(store.baseURL)"},
            "apps": [{"bundle_id": "\(app.bundleID)", "environments": ["Sandbox"],
            "anchors": ["root.pem"]}]}
            """
        )
        #expect(try run(["migrate"]).status == 0)
    }

    deinit { store.server.stop() }

    private func run(_ words: [String]) throws -> Subledger.Run {
        try Subledger.run(words, in: folder.path, database: database.conninfo)
    }

    private func number(_ sql: String) throws -> Int64 {
        try database.connect().query(sql).int(0, 0) ?? -1
    }

    // MARK: - Killing

    func killAll(_ count: Int) throws {
        let ids = store.server.withStore { $0.overviews }.filter { overview in
            overview.extensionError == nil && (overview.transaction?.price ?? 0) > 0
                && overview.transaction?.offer == nil
        }.map(\.originalTransactionID).prefix(count)
        #expect(ids.count == count)
        let synced = try run(["sync", "--allow-unsafe-server"] + ids)
        #expect(synced.status == 0, "\(synced.errors)")
        // Apple takes its time, so that there is a while between request and answer.
        store.server.withStore { store in
            store.addFault(FaultPlan.RequestFault(.latency(600), endpoint: .extend))
        }
        for (place, id) in ids.enumerated() { try kill(id, place) }
        store.server.withStore { $0.setFaults(FaultPlan()) }
    }

    /// Starts an extension and ends it: half of them between request and answer, the others at any
    /// moment of their life.
    private func kill(_ id: String, _ place: Int) throws {
        let process = Subledger.process(
            [
                "extend", id, "--days", "\(1 + place % 60)", "--reason", "service-issue",
                "--ticket", "SUP-\(place)", "--operator", "olga", "--allow-unsafe-server",
            ],
            in: folder.path,
            database: database.conninfo
        )
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        let before = try number("select count(*) from ledger.extension_step")
        try process.run()
        if place.isMultiple(of: 2) {
            let connection = try database.connect()
            for _ in 0..<6000 where process.isRunning {
                let steps = try connection.query("select count(*) from ledger.extension_step")
                if (steps.int(0, 0) ?? 0) > before { break }
                usleep(2000)
            }
            usleep(UInt32(Int.random(in: 0...500, using: &random)) * 1000)
        } else {
            usleep(UInt32(Int.random(in: 0...1500, using: &random)) * 1000)
        }
        let isWithin = process.isRunning
        _ = Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        if isWithin { killedWithin += 1 }
    }

    // MARK: - Settling

    /// The program settles what can be told at once; after the wait, which is made short here by
    /// setting the desk's clock forward, the rest is sent once more.
    ///
    /// Apple's own clock follows later: what it signs must not be from our future.
    func settleAll() throws {
        #expect(killedWithin > 0)
        let first = try run(["extend", "resolve", "--operator", "peter", "--allow-unsafe-server"])
        #expect([0, 1].contains(first.status), "\(first.errors)")
        try Projector(database.connect()).project()
        let extensions = try extensions()
        for request in try extensions.unsettled() {
            let result = try extensions.resolve(request, by: .service)
            #expect([.accepted, .confirmed].contains(result.outcome), "\(result)")
        }
        store.server.advance(byMilliseconds: Milliseconds.minutes(16).rawValue)
        try deliverAll()
        try Projector(database.connect()).project()
        #expect(try extensions.unsettled().isEmpty)
    }

    private func extensions() throws -> Extensions {
        let configuration = try Configuration(path: folder.path + "/subledger.json")
        let acceptance = try Acceptance(configuration)
        let surroundings = APISurroundings(
            now: { Timestamp(milliseconds: Int64(time(nil)) * 1000) },
            sleep: { duration in
                usleep(UInt32(duration.rawValue) * 1000)
                return true
            }
        )
        let database = database
        let waited = Milliseconds.minutes(16).rawValue
        return try Extensions(
            reading: database.connect(),
            appending: database.connect(),
            gateway: AppStoreExtensionGateway(
                AppStoreClients(
                    apps: acceptance.apps,
                    configuration: configuration,
                    surroundings: surroundings
                ),
                surroundings: surroundings,
                verifier: verifier(),
                connect: { try database.connect() }
            ),
            now: { Timestamp(milliseconds: Int64(time(nil)) * 1000 + waited) }
        )
    }

    private func verifier() throws -> Verifier {
        let acceptance = try Acceptance(Configuration(path: folder.path + "/subledger.json"))
        return Verifier(anchors: acceptance.anchors, apps: acceptance.apps)
    }

    private func deliverAll() throws {
        let appender = try Appender(database.connect())
        let verifier = try verifier()
        while let dispatches = store.server.withStore({ $0.takeDispatch() }) {
            for dispatch in dispatches {
                let text = try SignedInput.signedText(ofLine: dispatch.body).get()
                guard case .trusted(let document) = verifier.verify(text, now: .latest),
                    case .event(let event, _) = Admission(document)
                else { throw EventLogError(.invalid, "a notification does not verify") }
                _ = try appender.append([event])
                store.server.withStore { $0.record(.success, of: dispatch) }
            }
        }
    }

    // MARK: - The comparison

    func compare() throws {
        let opening = opening
        let books = store.server.withStore { $0.extensions }.filter {
            $0.at >= opening && $0.source == .request
        }
        let theirs = books.filter { !$0.isRepeat && $0.effectiveDate != nil }.map { entry in
            [
                entry.originalTransactionID, entry.requestIdentifier ?? "",
                "\(entry.days ?? 0)", "confirmed",
                Timestamp(milliseconds: entry.expiresBefore ?? 0).description,
                Timestamp(milliseconds: entry.effectiveDate ?? 0).description,
                entry.notificationUUID ?? "",
            ].joined(separator: " ")
        }
        let rows = try ExtensionQuery().rows(limit: 1000, database.connect())
        let ours = rows.filter { $0["scope"] == "single" && $0["request_identifier"] != nil }
            .map { row in
                [
                    "original_transaction_id", "request_identifier", "days_requested", "outcome",
                    "expires_before", "expires_confirmed", "notification_uuid",
                ].map { row[$0] ?? "–" }.joined(separator: " ")
            }
        #expect(ours.sorted() == theirs.sorted())
        #expect(Set(books.map(\.originalTransactionID)).count == theirs.count, "none came twice")
        print("\(killedWithin) killed while they ran, \(ours.count) requests, \(books.count) sent")
        #expect(try LedgerAudit(database.connect()).run().difference == nil)
    }
}
