internal import AppStore
internal import EventLog
internal import Ledger
internal import LedgerService
internal import Synchronization

/// What every command needs that asks Apple: the clients, and what writes the answers down.
struct AppleDesk {
    /// Who asks.
    let clients: AppStoreClients
    /// Writes what Apple answers.
    let recorder: ResponseRecorder
    /// The database.
    let database: Database

    /// The options that such a command takes.
    static let options: [Option] = [
        .database, .config, .json, .acceptBundle, .appAppleID, .root,
        .value("--bundle-id", "ID", "only this app"),
        .value("--environment", "Sandbox|Production", "only this environment"),
    ]

    /// Reads the key and opens the database.
    ///
    /// What is wrong with the configuration is told before a server is started for it.
    init(_ arguments: Arguments) throws {
        let configuration = try Configuration.find(arguments)
        let acceptance = try Acceptance(arguments, configuration)
        clients = try Self.clients(acceptance, configuration, surroundings: Self.surroundings)
        for warning in clients.warnings { printError("subledger: warning: \(warning)") }
        database = try Database.open(arguments, configuration)
        if let configuration {
            try IngestCommand.storeRules(configuration, in: database)
        }
        let database = database
        recorder = ResponseRecorder(
            run: Self.newRun(),
            verifier: acceptance.verifier()
        ) { try database.connect(as: .appender) }
    }

    /// The clients of what is configured.
    static func clients(
        _ acceptance: Acceptance,
        _ configuration: Configuration?,
        surroundings: APISurroundings,
        measures: AppStoreMeasures? = nil
    ) throws -> AppStoreClients {
        try AppStoreClients(
            apps: acceptance.apps,
            configuration: configuration,
            environment: AppStoreSettings(environment: { environment($0) }),
            surroundings: surroundings,
            observe: { measures?.count($0) }
        )
    }

    /// Whether the configuration or the environment begins to say who asks Apple.
    static func isBegun(_ configuration: Configuration?) -> Bool {
        let settings = (configuration?.appStore ?? AppStoreSettings())
            .overridden(by: AppStoreSettings(environment: { environment($0) }))
        return settings.isBegun || configuration?.apps.contains { $0.appStore != nil } == true
    }

    /// What reaches Apple for extensions.
    static func gateway(
        _ acceptance: Acceptance,
        _ clients: AppStoreClients,
        _ database: Database
    ) -> AppStoreExtensionGateway {
        let appender = database.sessions(as: .appender)
        return AppStoreExtensionGateway(
            clients,
            surroundings: surroundings,
            verifier: acceptance.verifier(),
            connect: { try appender.open() }
        )
    }

    /// The accounts that the options leave.
    func accounts(_ arguments: Arguments) throws -> [AppStoreClients.Account] {
        let bundleID = arguments.value("--bundle-id")
        let environment = try EntitlementsCommand.environment(arguments)
        let accounts = clients.accounts.filter { account in
            (bundleID ?? account.app.bundleID) == account.app.bundleID
                && (environment ?? account.app.environment) == account.app.environment
        }
        guard !accounts.isEmpty else {
            throw CommandFailure.usage("no accepted app is left by --bundle-id and --environment")
        }
        return accounts
    }

    /// The clock, and a sleep that Ctrl-C ends.
    static let surroundings = APISurroundings(
        now: { .now },
        sleep: { duration in
            var left = duration.rawValue
            while left > 0, !Interruption.isRequested {
                let part = min(left, 100)
                sleep(milliseconds: Int(part))
                left -= part
            }
            return !Interruption.isRequested
        }
    )

    /// A name for a run of the program.
    private static func newRun() -> String {
        let high = UInt128(UInt64.random(in: .min ... .max))
        return UniqueID(bits: high << 64 | UInt128(UInt64.random(in: .min ... .max))).description
    }
}

/// The clients that a process shares, and what replaces them when a key is read again.
final class AskingClients: Sendable {
    /// What is counted of them.
    let measures = AppStoreMeasures()
    private let state: Mutex<AppStoreClients>

    /// Reads the key.
    init(_ acceptance: Acceptance, _ configuration: Configuration?) throws {
        state = Mutex(try Self.made(acceptance, configuration, measures))
    }

    /// The clients as they are now.
    var clients: AppStoreClients { state.withLock { $0 } }

    /// Reads the key again; where it cannot be used the clients stay as they are.
    func reload(_ acceptance: Acceptance, _ configuration: Configuration?) throws {
        let made = try Self.made(acceptance, configuration, measures)
        state.withLock { $0 = made }
    }

    private static func made(
        _ acceptance: Acceptance,
        _ configuration: Configuration?,
        _ measures: AppStoreMeasures
    ) throws -> AppStoreClients {
        try AppleDesk.clients(
            acceptance,
            configuration,
            surroundings: AppleDesk.surroundings,
            measures: measures
        )
    }
}
