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
        try desk.killMass()
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
    /// What the mass extension is for; nothing else of this product is extended.
    private var massProduct = ""

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
        let overviews = store.server.withStore { $0.overviews }
        massProduct = try product(forAllOf: overviews)
        let massProduct = massProduct
        let ids = overviews.filter { overview in
            overview.extensionError == nil && (overview.transaction?.price ?? 0) > 0
                && overview.transaction?.offer == nil
                && overview.transaction?.productID != massProduct
        }.map(\.originalTransactionID).prefix(count)
        #expect(ids.count == count)
        let those = overviews.filter { $0.transaction?.productID == massProduct }
        let all = ids + those.map(\.originalTransactionID)
        let synced = try run(["sync", "--allow-unsafe-server"] + all)
        #expect(synced.status == 0, "\(synced.errors)")
        // Apple takes its time, so that there is a while between request and answer.
        store.server.withStore { store in
            store.addFault(FaultPlan.RequestFault(.latency(600), endpoint: .extend))
            store.addFault(FaultPlan.RequestFault(.latency(600), endpoint: .massExtend))
        }
        for (place, id) in ids.enumerated() {
            try kill(
                ["extend", id, "--days", "\(1 + place % 60)", "--ticket", "SUP-\(place)"],
                isOnceAsked: place.isMultiple(of: 2)
            )
        }
    }

    private static let massRequests = """
        select count(*) from ledger.extension_request where kind = 'mass_extension_requested'
        """

    /// The product that most subscriptions have which can be extended.
    private func product(forAllOf overviews: [FakeAppStore.Overview]) throws -> String {
        let products = overviews.filter { $0.extensionError == nil }
            .compactMap { $0.transaction?.productID }
        let counts = Dictionary(products.map { ($0, 1) }, uniquingKeysWith: +)
        return try #require(counts.max { ($0.value, $0.key) < ($1.value, $1.key) }?.key)
    }

    /// Starts mass extensions and ends them, until one has come as far as to be in the ledger.
    func killMass() throws {
        var isAsked = false
        for attempt in 0..<20 where !isAsked {
            try kill(
                [
                    "extend", "mass", "--product", massProduct, "--bundle-id", app.bundleID,
                    "--environment", "Sandbox", "--days", "77", "--ticket", "INC-\(attempt)",
                ],
                isOnceAsked: attempt > 2
            )
            isAsked = try number(Self.massRequests) > 0
        }
        #expect(isAsked)
        store.server.withStore { $0.setFaults(FaultPlan()) }
    }

    /// Starts an extension and ends it: between request and answer, or at any moment of its life.
    private func kill(_ words: [String], isOnceAsked: Bool) throws {
        let process = Subledger.process(
            words + ["--reason", "service-issue", "--operator", "olga", "--allow-unsafe-server"],
            in: folder.path,
            database: database.conninfo
        )
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        let before = try number("select count(*) from ledger.extension_step")
        try process.run()
        if isOnceAsked {
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
        store.server.advance(byMilliseconds: Milliseconds.hours(3).rawValue)
        let mass = try database.connect().query(
            "select request_identifier from read_model.mass_request"
        )
        for row in 0..<mass.count {
            let request = UniqueID(bits: try #require(mass.uuid(row, 0)))
            #expect(try extensions.massStatus(request).isComplete)
        }
        try deliverAll()
        try Projector(database.connect()).project()
        #expect(try extensions.unsettled().isEmpty)
    }

    private func extensions() throws -> Extensions {
        let configuration = try Configuration(path: folder.path + "/subledger.json")
        let acceptance = try Acceptance(configuration)
        let surroundings = APISurroundings(
            now: { Self.now() },
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
            now: { Timestamp(milliseconds: Self.now().milliseconds + waited) }
        )
    }

    private static func now() -> Timestamp {
        Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
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
        let books = store.server.withStore { $0.extensions }.filter { $0.at >= opening }
        let rows = try ExtensionQuery().rows(limit: 10_000, database.connect())
        let requests = try compareRequests(books.filter { $0.source == .request }, rows)
        let ours = rows.filter { $0["mass_request_id"] != nil }
        let requested = Set(books.filter { $0.source == .mass }.compactMap(\.requestIdentifier))
        let theirs = books.filter { entry in
            // Who follows a purchaser that a mass request extends is laid to it too.
            entry.source == .mass
                || entry.source == .followed && requested.contains(entry.requestIdentifier ?? "")
        }
        let mass = try compareMass(theirs, ours)
        print("\(killedWithin) killed while they ran, \(requests) requests, \(mass) by product")
        #expect(try LedgerAudit(database.connect()).run().difference == nil)
    }

    private func compareRequests(
        _ books: [ExtensionEntry],
        _ rows: [ExtensionAuditRow]
    ) throws -> Int {
        let theirs = books.filter { !$0.isRepeat && $0.effectiveDate != nil }.map { entry in
            line(entry, [entry.requestIdentifier, "\(entry.days ?? 0)", "confirmed"])
        }
        let ours = rows.filter { $0["scope"] == "single" && $0["request_identifier"] != nil }
            .map { line($0, ["request_identifier", "days_requested", "outcome"]) }
        #expect(ours.sorted() == theirs.sorted())
        #expect(Set(books.map(\.originalTransactionID)).count == theirs.count, "none came twice")
        return ours.count
    }

    private func compareMass(
        _ books: [ExtensionEntry],
        _ rows: [ExtensionAuditRow]
    ) throws -> Int {
        let theirs = books.map { entry in
            let isDone = entry.effectiveDate != nil
            return line(
                entry,
                [entry.requestIdentifier, isDone ? "confirmed" : "refused_by_apple"]
            )
        }
        let ours = rows.map { line($0, ["mass_request_id", "outcome"]) }
        #expect(ours.sorted() == theirs.sorted())
        #expect(ours.count > 5)
        return ours.count
    }

    /// What both know of an extension, the end afterwards only where it was moved.
    private func line(_ entry: ExtensionEntry, _ words: [String?]) -> String {
        let all: [String?] =
            [entry.originalTransactionID] + words + [
                entry.expiresBefore.map { Timestamp(milliseconds: $0).description },
                entry.effectiveDate.map { Timestamp(milliseconds: $0).description },
                entry.notificationUUID,
            ]
        return all.map { $0 ?? "–" }.joined(separator: " ")
    }

    private func line(_ row: ExtensionAuditRow, _ names: [String]) -> String {
        (["original_transaction_id"] + names
            + ["expires_before", "expires_confirmed", "notification_uuid"])
            .map { row[$0] ?? "–" }.joined(separator: " ")
    }
}
