import AppStore
import Crypto
import Glibc
import Ledger
import LedgerService
import Testing

@Suite struct AppStoreSettingsTests {
    private let folder: ScratchFolder

    init() throws { folder = try ScratchFolder() }

    private func settings(
        mode: mode_t,
        text: String = SigningKey(seed: [7]).pem
    ) throws -> AppStoreSettings {
        let path = try folder.file("SubscriptionKey_KEY.p8", Array(text.utf8))
        _ = unsafe chmod(path, mode)
        var settings = AppStoreSettings()
        settings.issuerID = "issuer"
        settings.keyID = "KEY"
        settings.keyFile = path
        return settings
    }

    @Test(arguments: [0o600, 0o400, 0o640, 0o440])
    func aKeyFileOfOnesOwnIsRead(_ mode: mode_t) throws {
        let settings = try settings(mode: mode)
        #expect(try settings.key().keyID == "KEY")
        #expect(settings.keyWarning == nil)
    }

    @Test(arguments: [0o644, 0o604, 0o660, 0o777])
    func aKeyFileThatOthersCanReadIsRefused(_ mode: mode_t) throws {
        let error = #expect(throws: InputError.self) { _ = try settings(mode: mode).key() }
        #expect(error?.message.contains("chmod 600") == true)
    }

    @Test func whatIsWrongWithAKeyNamesTheFileAndNotTheKey() throws {
        let text = Base64.encode(Array(SigningKey(seed: [7]).pem.utf8))
        let error = #expect(throws: APIKeyError.self) {
            _ = try settings(mode: 0o600, text: text).key()
        }
        #expect(error?.message.contains("SubscriptionKey_KEY.p8 cannot be used") == true)
        #expect(error?.message.contains(text.prefix(12)) == false)
    }

    @Test func theSectionIsReadAndTheEnvironmentIsStronger() throws {
        let file = """
            {"app_store": {"issuer_id": "i", "key_id": "K", "key_file": "k.p8", "hosts": "itunes",
            "share_percent": 10, "backfill_minutes": 5, "sync": false},
            "apps": [{"bundle_id": "b", "environments": ["Sandbox"], "unreleased": true,
            "app_store": {"issuer_id": "other"}}]}
            """
        let configuration = try Configuration(
            bytes: Array(file.utf8),
            path: "/etc/x/subledger.json"
        )
        let settings = configuration.appStore
        #expect(settings.keyFile == "/etc/x/k.p8" && settings.share == 0.1)
        #expect(settings.isComplete && settings.sync == false && settings.backfillMinutes == 5)
        #expect(
            try settings.host(.sandbox).baseURL == "https://api.storekit-sandbox.itunes.apple.com"
        )
        #expect(configuration.apps[0].isUnreleased)
        #expect(configuration.apps[0].appStore?.issuerID == "other")
        let stronger = AppStoreSettings(environment: { name in
            switch name {
            case "SUBLEDGER_APP_STORE_KEY": SigningKey(seed: [7]).pem.replacing("\n", with: "\\n")
            case "SUBLEDGER_APP_STORE_KEY_ID": "NEW"
            case "SUBLEDGER_APP_STORE_SANDBOX_URL": "https://localhost:8443/"
            default: ""
            }
        })
        let both = settings.overridden(by: stronger)
        // The text of the key takes the place of the file, which is not there.
        #expect(both.keyFile == nil && both.issuerID == "i")
        #expect(try both.key().keyID == "NEW")
        #expect(try both.host(.sandbox).baseURL == "https://localhost:8443")
    }

    @Test func whatIsWrongWithTheSectionIsNamedByField() throws {
        let file = """
            {"app_store": {"key": "-----BEGIN", "sandbox_url": "http://apple.example",
            "share_percent": 0, "hosts": "old", "isuer_id": "x"}}
            """
        let error = #expect(throws: ConfigurationError.self) {
            _ = try Configuration(bytes: Array(file.utf8), path: "f")
        }
        let fields = error?.problems.map(\.field) ?? []
        for name in ["key", "sandbox_url", "share_percent", "hosts", "isuer_id"] {
            #expect(fields.contains("app_store.\(name)"), "\(name)")
        }
        #expect(error?.description.contains("BEGIN") == false)
    }

    @Test func whatIsMissingIsSaidBeforeAppleIsAsked() throws {
        var half = AppStoreSettings()
        #expect(!half.isBegun && half.contradiction == nil)
        half.keyID = "KEY"
        #expect(half.contradiction?.contains("issuer_id and key_file") == true)
        let error = #expect(throws: AppStoreClients.NotSetUp.self) {
            _ = try AppStoreClients(
                apps: [AcceptedApp(bundleID: "b", appAppleID: nil, environments: [.sandbox])],
                configuration: nil,
                surroundings: APISurroundings(now: { .earliest }, sleep: { _ in false })
            )
        }
        #expect(error?.description.contains("In-App Purchase") == true)
    }
}
