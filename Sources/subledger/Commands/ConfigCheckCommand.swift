internal import AppStore
internal import HTTP
internal import Ledger
internal import LedgerService

/// `subledger config check`.
enum ConfigCheckCommand {
    static let command = Command(
        name: "config check",
        summary: "Check subledger.json and show what it says.",
        options: [.config, .json],
        details: """
            The format is described in docs/configuration.md. Nothing is changed and no database
            is needed; certificate files are opened. What is shown of the service is what the file
            and variables such as SUBLEDGER_LISTEN come to together. The key for Apple's Server API
            is read, so that a wrong file shows here; nobody is asked with it.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let path = arguments.value("--config") ?? Configuration.defaultPath
        let configuration = try Configuration(path: path)
        for warning in try Acceptance(configuration).warnings(now: .now) {
            printError("subledger: warning: \(warning)")
        }
        let settings = try ServiceSettings(arguments, configuration)
        if let contradiction = settings.contradiction { throw CommandFailure.input(contradiction) }
        if let certificate = settings.tlsCertificate, let key = settings.tlsKey {
            try TLSIdentity(certificateFile: certificate, keyFile: key).check()
        }
        for destination in configuration.forward {
            var client = HTTPClientConfiguration()
            if let file = destination.trustFile { client.trustAnchors = .file(file) }
            _ = try HTTPClient(client)
        }
        let appStore = configuration.appStore
            .overridden(by: AppStoreSettings(environment: { environment($0) }))
        if let contradiction = appStore.contradiction {
            throw CommandFailure.input("app_store: \(contradiction)")
        }
        if appStore.isComplete {
            _ = try appStore.key()
            for environment in [Environment.production, .sandbox] {
                _ = try appStore.host(environment)
            }
            if let warning = appStore.keyWarning { printError("subledger: warning: \(warning)") }
        }
        for app in configuration.apps {
            guard let own = app.appStore else { continue }
            _ = try appStore.overridden(by: own).key()
        }
        let output = Output.standard()
        if arguments.has("--json") {
            try output.line(json(configuration, settings, appStore))
        } else {
            try output.table(table(configuration))
            if configuration.apps.isEmpty { try output.line("no apps: nothing would be accepted") }
            let listen = settings.listen ?? ServiceSettings.listenDefault
            let tls = settings.tlsKey == nil ? "no TLS of its own" : "TLS"
            try output.line("serve would listen on \(listen), \(tls)")
            for destination in configuration.forward {
                let types = destination.types.sorted().joined(separator: ", ")
                try output.line(
                    "serve would forward \(types.isEmpty ? "all notifications" : types) to "
                        + "\(destination.name) at \(destination.url)"
                )
            }
            try output.line(appStore.summary)
        }
        try output.flush()
        return .done
    }

    private static func table(_ configuration: Configuration) -> TextTable {
        var table = TextTable(
            "~bundle_id",
            "#app_apple_id",
            "environments",
            "#grace",
            "#products",
            "billing retry"
        )
        for app in configuration.apps {
            table.add(
                app.bundleID,
                app.appAppleID.map { "\($0)" } ?? "–",
                app.environments.map { "\($0)" }.joined(separator: ", "),
                app.gracePeriodDays.map { "\($0) d" } ?? "–",
                "\(app.products.count)",
                app.accessPolicy.billingRetryAccess.text
            )
        }
        return table
    }

    private static func json(
        _ configuration: Configuration,
        _ settings: ServiceSettings,
        _ appStore: AppStoreSettings
    ) -> String {
        var json = JSONWriter(pretty: true)
        json.beginObject()
        json.key("apps")
        json.beginArray()
        for app in configuration.apps {
            json.beginObject()
            json.member("bundle_id", app.bundleID)
            json.member("app_apple_id", app.appAppleID)
            json.key("environments")
            json.beginArray()
            for environment in app.environments { json.string("\(environment)") }
            json.endArray()
            json.member("grace_period_days", app.gracePeriodDays)
            json.member("grace_scope", app.graceScope.rawValue)
            json.member("products", app.products.count)
            json.member("billing_retry_access", app.accessPolicy.billingRetryAccess.text)
            json.endObject()
        }
        json.endArray()
        json.key("forward")
        json.beginArray()
        for destination in configuration.forward { write(destination, to: &json) }
        json.endArray()
        json.key("service")
        write(settings, to: &json)
        json.key("app_store")
        write(appStore, to: &json)
        json.endObject()
        return json.text
    }

    /// Without path and query of the address, where some consumers have a secret.
    private static func write(_ destination: ForwardDestination, to json: inout JSONWriter) {
        json.beginObject()
        json.member("name", destination.name)
        json.member("origin", destination.url.origin)
        json.key("types")
        json.beginArray()
        for type in destination.types.sorted() { json.string(type) }
        json.endArray()
        json.member("ca_file", destination.trustFile)
        json.member("start_position", destination.startPosition)
        json.endObject()
    }

    /// Never the key, nor where a proxy's password may be.
    private static func write(_ settings: AppStoreSettings, to json: inout JSONWriter) {
        json.beginObject()
        json.member("set_up", settings.isComplete)
        json.member("issuer_id", settings.issuerID)
        json.member("key_id", settings.keyID)
        json.member("key_file", settings.keyText == nil ? settings.keyFile : nil)
        json.member("production_url", try? settings.host(.production).baseURL)
        json.member("sandbox_url", try? settings.host(.sandbox).baseURL)
        json.member("ca_file", settings.certificateAuthority)
        json.member(
            "share_percent",
            settings.sharePercent ?? AppStoreSettings.sharePercentDefault
        )
        json.member(
            "backfill_minutes",
            settings.backfillMinutes ?? AppStoreSettings.backfillMinutesDefault
        )
        json.member("sync", settings.sync ?? true)
        json.endObject()
    }

    private static func write(_ settings: ServiceSettings, to json: inout JSONWriter) {
        json.beginObject()
        json.member("listen", (settings.listen ?? ServiceSettings.listenDefault).description)
        json.member("tls_certificate", settings.tlsCertificate)
        json.member("tls_key", settings.tlsKey)
        json.key("trusted_proxies")
        json.beginArray()
        for proxy in settings.trustedProxies ?? [] { json.string(proxy.description) }
        json.endArray()
        json.member("apple_only", settings.appleOnly ?? false)
        json.member(
            "drain_seconds",
            settings.drainSeconds ?? ServiceSettings.drainSecondsDefault
        )
        json.member("readers", settings.readers ?? ServiceSettings.readersDefault)
        json.member(
            "quarantine_bytes_per_day",
            settings.quarantineBytesPerDay ?? ServiceSettings.quarantineBytesPerDayDefault
        )
        json.member("public_url", settings.publicURL?.origin)
        let silence = settings.silence ?? Silence.Limits()
        json.key("silence_hours")
        json.beginObject()
        json.member("Production", silence.productionHours)
        json.member("Sandbox", silence.sandboxHours)
        json.endObject()
        json.endObject()
    }
}

extension AppStoreSettings {
    /// What it comes to, in a line.
    fileprivate var summary: String {
        guard isComplete, let keyID else {
            return "Apple's Server API would not be asked: no key is named"
        }
        let share = sharePercent ?? Self.sharePercentDefault
        return "Apple's Server API would be asked with the key \(keyID), with \(share) % of its "
            + "limits"
    }
}
