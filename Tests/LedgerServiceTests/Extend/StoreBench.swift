import AppStore
import AppStoreSimulator
import Crypto
import EventLog
import Glibc
import Ledger
import Postgres
import SimulatorServer
import TestSupport

@testable import LedgerService

/// A ledger beside a fake App Store that answers over HTTPS, and the desk between them.
final class StoreBench {
    static let bundleID = "com.example.subledger"

    let store: LocalAppStore
    let clock: SimulatedClock
    let database: TestDatabase
    let app = AppKey(bundleID: bundleID, environment: .sandbox)
    let verifier: Verifier
    let clients: AppStoreClients
    let gateway: AppStoreExtensionGateway
    let opening: Int64
    var settings = ExtensionSettings()
    private let folder: ScratchFolder

    /// Opens a store at a time that is past, so that its clock can be set forward.
    ///
    /// - Parameters:
    ///   - subscriptions: how many lives.
    ///   - timeout: how long one request may take; nil for the usual.
    ///   - change: changes the options of the store.
    /// - Throws: where the database or the server cannot be started.
    init(
        subscriptions: Int = 60,
        timeout: Duration? = nil,
        changing change: (inout FakeAppStore.Options) -> Void = { _ in }
    ) throws {
        opening = (Int64(time(nil)) - 60 * 86_400) * 1000
        let database = try TestDatabase.create(template: "ledger with read models") {
            try Migrator($0, extra: ReadModels.migrations).migrate()
        }
        self.database = database
        clock = SimulatedClock(at: opening, speed: 0)
        store = try LocalAppStore(
            environment: .sandbox,
            subscriptions: subscriptions,
            seed: 11,
            clock: clock,
            changing: { options in
                options.rareFactor = 4
                options.rateFactor = 1000
                change(&options)
            }
        )
        store.server.withStore { $0.hasReceiver = true }
        folder = try ScratchFolder()
        var anchors = TrustAnchors()
        try anchors.add(store.rootDER, name: "simulated root")
        let accepted = AcceptedApp(
            bundleID: Self.bundleID,
            appAppleID: nil,
            environments: [.sandbox]
        )
        verifier = Verifier(anchors: anchors, apps: [accepted])
        var configuration = Configuration()
        configuration.appStore.issuerID = store.credentials.issuerID
        configuration.appStore.keyID = store.credentials.keyID
        configuration.appStore.keyText = store.key.pem
        configuration.appStore.sandboxURL = store.baseURL
        configuration.appStore.certificateAuthority = try folder.file(
            "ca.pem",
            Array(store.authorityPEM.utf8)
        )
        let surroundings = APISurroundings(
            now: { Timestamp(milliseconds: Int64(time(nil)) * 1000) },
            sleep: { duration in
                usleep(UInt32(duration.rawValue) * 1000)
                return true
            }
        )
        clients = try AppStoreClients(
            apps: [accepted],
            configuration: configuration,
            share: 1,
            transport: HTTPTransport(configuration.appStore, timeout: timeout),
            surroundings: surroundings
        )
        gateway = AppStoreExtensionGateway(
            clients,
            surroundings: surroundings,
            verifier: verifier,
            connect: { try database.connect() }
        )
        try RuleBook(database.connect()).record(AppRules(environment: .sandbox), of: app)
    }

    deinit { store.server.stop() }

    var now: Timestamp { Timestamp(milliseconds: clock.now) }

    func advance(_ duration: Milliseconds) {
        store.server.advance(byMilliseconds: duration.rawValue)
    }

    func extensions(hasGateway: Bool = true) throws -> Extensions {
        let clock = clock
        let result = try Extensions(
            reading: database.connect(),
            appending: database.connect(),
            gateway: hasGateway ? gateway : nil,
            settings: settings,
            now: { Timestamp(milliseconds: clock.now) }
        )
        result.serviceIdentity = "subledger test"
        return result
    }

    /// What goes wrong with the next requests to extend.
    func fault(_ action: FaultPlan.Action, times: Int = 1, at endpoint: StoreEndpoint = .extend) {
        let rule = FaultPlan.RequestFault(action, endpoint: endpoint, times: times)
        store.server.withStore { $0.addFault(rule) }
    }

    var overviews: [FakeAppStore.Overview] { store.server.withStore { $0.overviews } }

    /// The fake App Store's own books since its opening.
    var books: [ExtensionEntry] {
        store.server.withStore { $0.extensions }.filter { $0.at >= opening }
    }

    /// Reads subscriptions that Apple would extend into the ledger.
    func eligible(_ count: Int) throws -> [String] {
        var found: [String] = []
        for overview in overviews where found.count < count {
            guard overview.extensionError == nil, (overview.transaction?.price ?? 0) > 0,
                overview.transaction?.offer == nil, overview.extensionsUsed == 0
            else { continue }
            try gateway.refreshStatuses(of: overview.originalTransactionID, in: app)
            found.append(overview.originalTransactionID)
        }
        try project()
        return found
    }

    func project() throws { try Projector(database.connect()).project() }

    /// The rows of the audit once everything is folded.
    func audit() throws -> [ExtensionAuditRow] {
        try project()
        return try ExtensionQuery().rows(limit: 10_000, database.connect())
    }

    /// The audit's row of a request.
    func row(_ request: UniqueID) throws -> ExtensionAuditRow? {
        try audit().first { $0["request_identifier"] == request.description }
    }

    /// Delivers all that the fake App Store has to tell by now.
    func deliverAll() throws {
        let appender = try Appender(database.connect())
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

    static func wish(
        _ subscription: String,
        days: Int = 7,
        ticket: String = "SUP-1",
        change: (inout ExtensionWish) -> Void = { _ in }
    ) -> ExtensionWish {
        ExtensionBench.wish(subscription, days: days, ticket: ticket, change: change)
    }
}
