internal import AppStore
internal import Glibc
internal import HTTP
internal import Ledger
internal import LedgerService
internal import Synchronization

/// `subledger serve`.
enum ServeCommand {
    static let command = Command(
        name: "serve",
        summary: "Receive notifications, keep the read models live, and answer questions.",
        options: [
            .database, .config, .acceptBundle, .appAppleID, .root,
            .value("--listen", "ADDRESS:PORT", "where to listen (default 127.0.0.1:8080)"),
            .value(
                "--tls-certificate",
                "FILE",
                "PEM file with the certificate chain, for TLS here"
            ),
            .value("--tls-key", "FILE", "PEM file with its private key"),
            .list("--trusted-proxy", "NETWORK", "believe X-Forwarded-For from there; repeats"),
            .flag("--apple-only", "take deliveries from Apple's network 17.0.0.0/8 alone"),
            .value("--drain", "SECONDS", "how long requests may take after SIGTERM (default 20)"),
            .value("--readers", "N", "how many questions are answered at once (default 4)"),
            .allowUnsafeServer, .allowOwner,
        ],
        details: """
            POST /v1/notifications takes App Store Server Notifications V2 of both environments; 200
            is answered after the commit. Questions need a token: `subledger token create`.
            /healthz and /readyz need none. SIGTERM and Ctrl-C answer what was accepted and end;
            SIGHUP reads tokens, certificate and keys again. The section "service" of
            subledger.json and variables such as SUBLEDGER_LISTEN say the same as the options,
            which are the strongest. What happens goes to standard error, one JSON object a line.
            With a key of Apple's (section "app_store") it also asks Apple for what did not
            arrive: docs/reconcile.md.
            """,
        run: run
    )

    private static let hangups = Atomic<Int>(0)

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let configuration = try Configuration.find(arguments)
        let acceptance = try Acceptance(arguments, configuration)
        let settings = try ServiceSettings(arguments, configuration)
        var options = try options(settings)
        options.forward = configuration?.forward ?? []
        options.silence = settings.silence ?? options.silence
        let drain = settings.drainSeconds ?? ServiceSettings.drainSecondsDefault
        let database = try Database.open(arguments, configuration)
        try database.refuseUnsafeServer(arguments)
        try database.refuseOwner(arguments)
        // A ledger that was restored is not written until somebody has looked at it.
        _ = try database.connect(as: .appender)
        if let configuration { try IngestCommand.storeRules(configuration, in: database) }

        let log = ServiceLog(descriptor: 2) { .now }
        for warning in acceptance.warnings(now: .now) {
            log.write(.warning, "anchor") { $0.member("detail", warning) }
        }
        let appender = database.sessions(as: .appender)
        let projector = database.sessions(as: .projector)
        let reader = database.sessions(as: .reader)
        let auditor = database.sessions(as: .auditor)
        // A login that lacks one of the roles would be found out by the first delivery only.
        for sessions in [appender, projector, reader, auditor] { _ = try sessions.open() }
        options.extensions = configuration?.extensions ?? options.extensions
        let asking = try clients(configuration, acceptance, log)
        options.appStoreMeasures = asking?.measures
        let gateway = asking.map { AppleDesk.gateway(acceptance, $0.clients, database) }
        options.extensionGateway = gateway
        let service = try Service(
            options: options,
            verifier: acceptance.verifier(
                // Apple needs a new chain every few months, and a few at the start.
                unknownChains: ChainRate(burst: 50, perSecond: 5)
            ),
            sessions: Service.Sessions(
                appender: { try appender.open() },
                projector: { try projector.open() },
                reader: { try reader.open() },
                auditor: { try auditor.open() }
            ),
            log: log,
            now: { .now }
        )
        log.write(.info, "listening") { json in
            json.member("address", options.http.address.description)
            json.member("port", Int64(service.port))
            json.member("tls", options.http.tls != nil)
            json.member("apps", Int64(acceptance.apps.count))
        }
        let worker = asking.map { asking in
            reconciler(asking, configuration, acceptance, database, service, log)
        }
        if let worker { service.show(worker) }
        let reload = {
            // A file that cannot be used changes nothing.
            do {
                let tls = try settings.identity()
                try service.reload(tls: tls, within: .seconds(drain))
                if let asking {
                    try asking.reload(acceptance, configuration)
                    gateway?.use(asking.clients)
                }
            } catch {
                log.write(.warning, "not_reloaded") { $0.member("error", "\(error)") }
            }
            worker?.reload()
        }
        waitForTheEnd(within: drain, reload: reload) {
            do { try database.recordRows() } catch {
                log.write(.warning, "rows_not_recorded") { $0.member("error", "\(error)") }
            }
            do { try service.lookAtExtensions() } catch {
                log.write(.warning, "extensions_not_looked_at") { $0.member("error", "\(error)") }
            }
        }
        log.write(.info, "stopping")
        worker?.stop()
        let isDrained = service.stop(within: .seconds(drain))
        log.write(isDrained ? .info : .warning, "stopped") { $0.member("drained", isDrained) }
        Interruption.settle()
        return isDrained ? .done : .someRejected
    }

    /// Who asks Apple; nil where no key is configured.
    private static func clients(
        _ configuration: Configuration?,
        _ acceptance: Acceptance,
        _ log: ServiceLog
    ) throws -> AskingClients? {
        guard AppleDesk.isBegun(configuration) else {
            log.write(.info, "reconcile_off") { json in
                json.member("detail", "no key: what Apple sent and did not arrive is not asked for")
            }
            return nil
        }
        // What is wrong with the key is told now, not by the first failure.
        let asking = try AskingClients(acceptance, configuration)
        for warning in asking.clients.warnings {
            log.write(.warning, "app_store_key") { $0.member("detail", warning) }
        }
        return asking
    }

    /// What asks Apple meanwhile.
    private static func reconciler(
        _ asking: AskingClients,
        _ configuration: Configuration?,
        _ acceptance: Acceptance,
        _ database: Database,
        _ service: Service,
        _ log: ServiceLog
    ) -> ReconcileWorker {
        let settings = (configuration?.appStore ?? AppStoreSettings())
            .overridden(by: AppStoreSettings(environment: { environment($0) }))
        var options = ReconcileWorker.Options()
        options.backfillMinutes = settings.backfillMinutes ?? options.backfillMinutes
        options.syncs = settings.sync ?? options.syncs
        options.extensions = configuration?.extensions ?? ExtensionSettings()
        options.serviceIdentity = "subledger \(Program.version)"
        let appender = database.sessions(as: .appender)
        let auditor = database.sessions(as: .auditor)
        return ReconcileWorker(
            options: options,
            verifier: acceptance.verifier(),
            // All of one process share the limits.
            clients: { asking.clients.with($0) },
            connect: { try appender.open() },
            read: { try auditor.open() },
            changed: { service.wake() },
            log: log,
            now: { .now }
        )
    }

    /// How often changes beside the log are recorded as events.
    private static let recordingSeconds = 60

    private static func waitForTheEnd(
        within drain: Int64,
        reload: () -> Void,
        record: () -> Void
    ) {
        signal(SIGHUP) { _ in ServeCommand.hangups.add(1, ordering: .relaxed) }
        var seen = 0
        var nextRecord = ContinuousClock.now + .seconds(recordingSeconds)
        Interruption.cooperatively(within: Int(drain) * 1000 + 10_000) {
            while !Interruption.isRequested {
                sleep(milliseconds: 50)
                if ContinuousClock.now >= nextRecord {
                    record()
                    nextRecord = .now + .seconds(recordingSeconds)
                }
                let count = hangups.load(ordering: .relaxed)
                guard count != seen else { continue }
                seen = count
                reload()
            }
        }
    }

    private static func options(_ settings: ServiceSettings) throws -> Service.Options {
        let listen = settings.listen ?? ServiceSettings.listenDefault
        var http = HTTPServerConfiguration(address: listen.address, port: listen.port)
        if let contradiction = settings.contradiction { throw CommandFailure.usage(contradiction) }
        http.tls = try settings.identity()
        http.addressLimitExemptions = settings.trustedProxies ?? []
        var options = Service.Options(http: http)
        options.trustedProxies = http.addressLimitExemptions
        options.version = Program.version
        options.readers = settings.readers.map { Int($0) } ?? options.readers
        options.quarantineBytesPerDay =
            settings.quarantineBytesPerDay ?? options.quarantineBytesPerDay
        if settings.appleOnly == true, let apple = Service.Options.apple {
            options.deliverers = [apple]
        }
        return options
    }
}

extension ServiceSettings {
    /// The certificate and key that the files hold now; nil where none are configured.
    fileprivate func identity() throws(HTTPError) -> TLSIdentity? {
        guard let tlsCertificate, let tlsKey else { return nil }
        return try TLSIdentity(certificateFile: tlsCertificate, keyFile: tlsKey)
    }

    /// What the configuration, the environment and the command line say, each stronger than the
    /// one before it.
    init(_ arguments: Arguments, _ configuration: Configuration?) throws {
        self = try (configuration?.service ?? ServiceSettings())
            .overridden(by: ServiceSettings(environment: { environment($0) }))
            .overridden(by: ServiceSettings(arguments))
    }

    private init(_ arguments: Arguments) throws {
        self.init()
        if let text = arguments.value("--listen") {
            guard let address = ListenAddress(text) else {
                throw CommandFailure.usage(
                    "--listen takes an IPv4 or IPv6 address and a port such as 127.0.0.1:8080 or "
                        + "[::]:8080, not “\(text)”"
                )
            }
            listen = address
        }
        tlsCertificate = arguments.value("--tls-certificate")
        tlsKey = arguments.value("--tls-key")
        let proxies = arguments.values("--trusted-proxy")
        if !proxies.isEmpty {
            trustedProxies = try proxies.map { proxy in
                guard let range = AddressRange(proxy) else {
                    throw CommandFailure.usage("--trusted-proxy takes 10.0.0.0/8, not “\(proxy)”")
                }
                return range
            }
        }
        if arguments.has("--apple-only") { appleOnly = true }
        drainSeconds = try arguments.integer("--drain", in: 0...600)
        readers = try arguments.integer("--readers", in: 1...64)
    }
}
