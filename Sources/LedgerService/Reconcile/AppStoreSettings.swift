package import AppStore
internal import Ledger

/// How Apple's Server API is asked: what the configuration file and the environment say of it.
///
/// What is nil is not said. The key itself is never in the configuration file: it is in a file of
/// its own or in the environment.
package struct AppStoreSettings: Hashable, Sendable {
    /// Apple's id of the team.
    package var issuerID: String?
    /// Apple's id of the key.
    package var keyID: String?
    /// The `.p8` file.
    package var keyFile: String?
    /// The text of the `.p8` file, from the environment.
    package var keyText: String?
    /// Which of Apple's host names are used.
    package var hosts: APIHost.Generation?
    /// Another address for Production.
    package var productionURL: String?
    /// Another address for Sandbox.
    package var sandboxURL: String?
    /// The PEM file with the certificates that may vouch for the host, instead of the system's.
    package var certificateAuthority: String?
    /// The proxy to go through.
    package var proxy: String?
    /// How much of Apple's limits is used, in percent.
    package var sharePercent: Int64?
    /// How often `serve` reads what notifications were sent; 0 for never.
    package var backfillMinutes: Int64?
    /// Whether `serve` asks for subscriptions whose news is missing.
    package var sync: Bool?

    /// How much of Apple's limits is used when nobody says anything.
    package static let sharePercentDefault: Int64 = 25
    /// How often notifications are read when nobody says anything.
    package static let backfillMinutesDefault: Int64 = 15

    static let shareRange: ClosedRange<Int64> = 1...100
    static let backfillRange: ClosedRange<Int64> = 0...1440

    /// Says nothing.
    package init() {}

    /// Whether there is enough to ask Apple with.
    package var isComplete: Bool {
        issuerID != nil && keyID != nil && (keyFile != nil || keyText != nil)
    }

    /// Whether anything at all is said of who asks.
    package var isBegun: Bool {
        issuerID != nil || keyID != nil || keyFile != nil || keyText != nil
    }

    /// What is said here, and where nothing is, what the weaker ones say.
    ///
    /// File and text of the key are two ways to say the same, so they are taken from one place.
    package func overridden(by stronger: AppStoreSettings) -> AppStoreSettings {
        var result = self
        if stronger.keyFile != nil || stronger.keyText != nil {
            result.keyFile = stronger.keyFile
            result.keyText = stronger.keyText
        }
        result.issuerID = stronger.issuerID ?? issuerID
        result.keyID = stronger.keyID ?? keyID
        result.hosts = stronger.hosts ?? hosts
        result.productionURL = stronger.productionURL ?? productionURL
        result.sandboxURL = stronger.sandboxURL ?? sandboxURL
        result.certificateAuthority = stronger.certificateAuthority ?? certificateAuthority
        result.proxy = stronger.proxy ?? proxy
        result.sharePercent = stronger.sharePercent ?? sharePercent
        result.backfillMinutes = stronger.backfillMinutes ?? backfillMinutes
        result.sync = stronger.sync ?? sync
        return result
    }

    /// What is missing to ask Apple, nil where nothing is.
    package var contradiction: String? {
        guard isBegun, !isComplete else { return nil }
        var missing: [String] = []
        if issuerID == nil { missing.append("issuer_id") }
        if keyID == nil { missing.append("key_id") }
        if keyFile == nil && keyText == nil { missing.append("key_file") }
        return "\(missing.joined(separator: " and ")) missing; issuer id, key id and key belong "
            + "together"
    }
}

// MARK: - The environment

extension AppStoreSettings {
    /// The variables that are read, in the order of the documentation.
    package static let variables = [
        "SUBLEDGER_APP_STORE_ISSUER_ID", "SUBLEDGER_APP_STORE_KEY_ID",
        "SUBLEDGER_APP_STORE_KEY_FILE", "SUBLEDGER_APP_STORE_KEY",
        "SUBLEDGER_APP_STORE_PRODUCTION_URL", "SUBLEDGER_APP_STORE_SANDBOX_URL",
        "SUBLEDGER_APP_STORE_CA_FILE", "SUBLEDGER_APP_STORE_PROXY",
    ]

    /// Reads the variables of the environment; an empty one counts as unset.
    ///
    /// - Parameter value: a variable's value.
    package init(environment value: (String) -> String?) {
        self.init()
        func text(_ name: String) -> String? { value(name).flatMap { $0.isEmpty ? nil : $0 } }
        issuerID = text("SUBLEDGER_APP_STORE_ISSUER_ID")
        keyID = text("SUBLEDGER_APP_STORE_KEY_ID")
        keyFile = text("SUBLEDGER_APP_STORE_KEY_FILE")
        keyText = text("SUBLEDGER_APP_STORE_KEY")
        productionURL = text("SUBLEDGER_APP_STORE_PRODUCTION_URL")
        sandboxURL = text("SUBLEDGER_APP_STORE_SANDBOX_URL")
        certificateAuthority = text("SUBLEDGER_APP_STORE_CA_FILE")
        proxy = text("SUBLEDGER_APP_STORE_PROXY")
    }
}

// MARK: - The configuration file

extension AppStoreSettings {
    /// Reads the section `app_store`; paths are meant from the file's own folder.
    init(_ reader: ConfigurationReader, folder: String) {
        self.init()
        func path(_ name: String) -> String? {
            reader.string(name).map { $0.hasPrefix("/") ? $0 : folder + $0 }
        }
        func url(_ name: String) -> String? {
            guard let text = reader.string(name) else { return nil }
            if APIHost(.sandbox, baseURL: text) == nil {
                reader.report(
                    name,
                    "\"\(text)\"; wanted is https:// and a host, such as \"https://localhost:8443\""
                )
            }
            return text
        }
        issuerID = reader.string("issuer_id")
        keyID = reader.string("key_id")
        keyFile = path("key_file")
        if reader.has("key") {
            reader.report(
                "key",
                "a private key does not belong into this file: name a file of its own in key_file, "
                    + "or use SUBLEDGER_APP_STORE_KEY"
            )
        }
        hosts = reader.word("hosts", APIHost.Generation.self)
        productionURL = url("production_url")
        sandboxURL = url("sandbox_url")
        certificateAuthority = path("ca_file")
        proxy = reader.string("proxy")
        sharePercent = reader.integer(
            "share_percent",
            in: Self.shareRange,
            remedy: "1 to 100 percent of Apple's hourly limits"
        )
        backfillMinutes = reader.integer(
            "backfill_minutes",
            in: Self.backfillRange,
            remedy: "0 to 1440; 0 for never"
        )
        sync = reader.bool("sync")
        reader.refuseUnknownKeys()
    }

    /// Reads the section `app_store` of one app: who asks for it, where that is another team.
    init(ofApp reader: ConfigurationReader, folder: String) {
        self.init()
        issuerID = reader.string("issuer_id")
        keyID = reader.string("key_id")
        keyFile = reader.string("key_file").map { $0.hasPrefix("/") ? $0 : folder + $0 }
        reader.refuseUnknownKeys()
    }
}
