internal import AppStoreSimulator
internal import Crypto
internal import Glibc
internal import HTTP
internal import Ledger
internal import LedgerService
internal import Postgres
internal import SimulatorServer

/// `subledger simulate serve`.
enum SimulateServeCommand {
    static let command = Command(
        name: "simulate serve",
        summary: "Be a fake App Store: Apple's Server API and notifications.",
        options: [
            .value("--out", "FOLDER", "where keys and certificates go (default ./appstore)"),
            .value("--listen", "ADDRESS:PORT", "where to listen (default 127.0.0.1:8443)"),
            .value("--environment", "NAME", "production (default), sandbox or both"),
            .value("--tls-certificate", "FILE", "PEM file with a certificate of your own"),
            .value("--tls-key", "FILE", "PEM file with its private key"),
            .value("--subscriptions", "N", "how many subscriptions (default 2000)"),
            .value("--seed", "S", "equal seeds give equal lives (default 1)"),
            .value("--rare", "N", "how many times as often as by nature rare things happen"),
            .value("--clock", "INSTANT", "the simulated instant at the start (default now)"),
            .value("--speed", "X", "simulated seconds in a real one (default 1)"),
            .value("--webhook", "URL", "post notifications there"),
            .value("--webhook-root", "FILE", "trust this certificate (PEM) behind the webhook"),
            .value("--faults", "FILE", "what is to go wrong, JSON"),
            .value("--bundle", "ID", "the app (default com.example.subledger)"),
            .value("--key", "FILE", "a .p8 key that requests are signed with; else one is made"),
        ],
        details: """
            Clients trust FOLDER/tls-ca.pem for TLS and FOLDER/root.pem for what is signed, and sign
            their requests with the key that FOLDER/appstore.json names with its ids. With
            --environment both the sandbox listens at the next port. Keys in FOLDER are used again.
            /simulator/v1 shows and changes what goes on: clock, subscriptions, refunds, extensions,
            deliveries, faults. docs/simulator.md describes all of it. Ctrl-C ends it.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let folder = arguments.value("--out") ?? "appstore"
        let listen = try listen(arguments)
        let environments = try environments(arguments)
        let opening = (try arguments.instant("--clock") ?? .now).milliseconds
        let day: Int64 = 86_400_000
        let time = FakeAppStore.signingTime
        guard time.lowerBound + 730 * day..<time.upperBound - 400 * day ~= opening else {
            throw CommandFailure.usage("--clock takes an instant from 2024 to 2030")
        }
        let speed = try arguments.integer("--speed", in: 0...Int64(SimulatedClock.speedMax)) ?? 1
        let clock = SimulatedClock(at: opening, speed: Double(speed))
        let faults = try faults(arguments)
        let poster = try poster(arguments)
        try makeFolder(folder)
        let files = try SimulatorFiles(folder: folder, key: arguments.value("--key"))
        let identity = try identity(arguments, files, listen.address)

        var servers: [FakeAppStoreServer] = []
        defer { for server in servers { server.stop() } }
        var urls: [(StoreEnvironment, String)] = []
        for (index, environment) in environments.enumerated() {
            var options = FakeAppStore.Options(
                environment: environment,
                subscriptions: Int(
                    try arguments.integer("--subscriptions", in: 1...200_000) ?? 2000
                ),
                seed: UInt64(try arguments.integer("--seed", in: 0...Int64.max) ?? 1),
                opening: opening,
                credentials: try files.credentials()
            )
            if let factor = try arguments.integer("--rare", in: 0...20) {
                options.rareFactor = Double(factor)
            }
            options.bundleID = arguments.value("--bundle") ?? options.bundleID
            options.hasReceiver = poster != nil
            options.faults = faults
            let store = FakeAppStore(options)
            if index == 0 { try files.write("root.pem", store.authority.rootPEM) }
            let port = listen.port == 0 ? 0 : listen.port + UInt16(index)
            var http = HTTPServerConfiguration(address: listen.address, port: port)
            http.tls = identity
            var configuration = FakeAppStoreServer.Configuration(http: http, clock: clock)
            if let poster { configuration.deliver = { poster.post($0) } }
            let server = try FakeAppStoreServer(store, configuration)
            servers.append(server)
            urls.append((environment, url(listen.address, server.port)))
        }
        let bundle = arguments.value("--bundle") ?? "com.example.subledger"
        try files.describe(urls, bundleID: bundle)
        for (environment, url) in urls {
            printError("\(environment.rawValue): \(url)")
        }
        printError("What a client needs is in \(folder)/appstore.json. Ctrl-C ends it.")
        Interruption.cooperatively {
            while !Interruption.isRequested { sleep(milliseconds: 50) }
        }
        poster?.stop()
        Interruption.settle()
        return .done
    }

    private static func listen(_ arguments: Arguments) throws -> ListenAddress {
        guard let text = arguments.value("--listen") else {
            return ListenAddress(address: .loopback, port: 8443)
        }
        guard let address = ListenAddress(text) else {
            throw CommandFailure.usage(
                "--listen takes an IPv4 or IPv6 address and a port such as 127.0.0.1:8443, "
                    + "not “\(text)”"
            )
        }
        return address
    }

    private static func environments(_ arguments: Arguments) throws -> [StoreEnvironment] {
        switch arguments.value("--environment") ?? "production" {
        case "production": [.production]
        case "sandbox": [.sandbox]
        case "both": [.production, .sandbox]
        case let other:
            throw CommandFailure.usage(
                "--environment takes production, sandbox or both, not “\(other)”"
            )
        }
    }

    private static func faults(_ arguments: Arguments) throws -> FaultPlan {
        guard let path = arguments.value("--faults") else { return FaultPlan() }
        guard let text = FileSystem.text(path, limitBytes: 1 << 20) else {
            throw CommandFailure.input("cannot read \(path)")
        }
        guard let json = WireValue(reading: Array(text.utf8)) else {
            throw CommandFailure.input("\(path) is no JSON")
        }
        do {
            return try FaultPlan(json)
        } catch {
            throw CommandFailure.input("\(path): \(error)")
        }
    }

    private static func poster(_ arguments: Arguments) throws -> WebhookPoster? {
        guard let text = arguments.value("--webhook") else { return nil }
        do throws(HTTPClientError) {
            let root = arguments.value("--webhook-root")
            return try WebhookPoster(
                try HTTPURL(text),
                trustAnchors: root.map { .file($0) } ?? .system
            )
        } catch {
            throw CommandFailure.usage("--webhook: \(error)")
        }
    }

    private static func identity(
        _ arguments: Arguments,
        _ files: SimulatorFiles,
        _ address: IPAddress
    ) throws -> TLSIdentity {
        let certificate = arguments.value("--tls-certificate")
        let key = arguments.value("--tls-key")
        switch (certificate, key) {
        case (let certificate?, let key?):
            return try TLSIdentity(certificateFile: certificate, keyFile: key)
        case (nil, nil): return try files.identity(address)
        default: throw CommandFailure.usage("--tls-certificate and --tls-key go together")
        }
    }

    private static func url(_ address: IPAddress, _ port: UInt16) -> String {
        // The certificate names this machine in every way that it is called by default.
        let isLocal =
            address == .loopback || address.description == "0.0.0.0"
            || address.description == "::"
        let host = address.isIPv4 ? address.description : "[\(address)]"
        return "https://\(isLocal ? "localhost" : host):\(port)"
    }
}
