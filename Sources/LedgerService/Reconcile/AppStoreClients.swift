package import AppStore
package import EventLog
internal import HTTP
package import Ledger

/// The clients of all accepted apps, one for each app and environment.
package struct AppStoreClients: Sendable {
    /// Why Apple cannot be asked; the message says what to do.
    package struct NotSetUp: Error, Hashable, Sendable, CustomStringConvertible {
        /// What is missing or wrong.
        package var description: String
    }

    /// One app in one environment, and who asks for it.
    package struct Account: Sendable {
        /// The app.
        package var app: AppKey
        /// The client.
        package var client: AppStoreClient
        /// Whether the app was never released, so that Production knows nothing of it.
        package var isUnreleased: Bool
    }

    /// The accounts, in the order of the configuration, Production first.
    package private(set) var accounts: [Account] = []
    /// What an operator should know, such as that a key file is named as one of another kind.
    package private(set) var warnings: [String] = []

    /// Makes the clients.
    ///
    /// - Parameters:
    ///   - apps: the accepted apps.
    ///   - configuration: what the file says.
    ///   - environment: what the environment says, which is stronger.
    ///   - share: which part of Apple's limits they use; nil for the configured one.
    ///   - transport: what carries the requests; nil for HTTPS.
    ///   - surroundings: clock, sleep and chance.
    ///   - observe: told of each request.
    /// - Throws: `NotSetUp`, `InputError`, `APIKeyError`.
    package init(
        apps: [AcceptedApp],
        configuration: Configuration?,
        environment: AppStoreSettings = AppStoreSettings(),
        share: Double? = nil,
        transport: (any Transport)? = nil,
        surroundings: APISurroundings,
        observe: @escaping @Sendable (AppStoreClient.Attempt) -> Void = { _ in }
    ) throws {
        let common = (configuration?.appStore ?? AppStoreSettings()).overridden(by: environment)
        let carrier = try transport ?? HTTPTransport(common)
        var keys: [AppStoreSettings: APIKey] = [:]
        for app in apps {
            let own = configuration?.apps.first { $0.bundleID == app.bundleID }
            let settings = own?.appStore.map { common.overridden(by: $0) } ?? common
            guard settings.isComplete else {
                throw NotSetUp(
                    description: settings.contradiction ?? """
                        there is no key to ask Apple for \(app.bundleID) with: make an In-App \
                        Purchase key in App Store Connect (Users and Access, Integrations) and name \
                        issuer_id, key_id and key_file in the section app_store of \
                        \(Configuration.defaultPath)
                        """
                )
            }
            var key = keys[settings]
            if key == nil {
                key = try settings.key()
                if let warning = settings.keyWarning { warnings.append(warning) }
            }
            keys[settings] = key
            guard let key else { continue }
            let share = share ?? settings.share
            for environment in [Environment.production, .sandbox]
            where app.environments.contains(environment) {
                let access = APIAccess(
                    host: try settings.host(environment),
                    bundleID: app.bundleID,
                    key: key
                )
                accounts.append(
                    Account(
                        app: AppKey(bundleID: app.bundleID, environment: environment),
                        client: AppStoreClient(
                            access: access,
                            transport: carrier,
                            surroundings: surroundings,
                            patience: APIPatience(share: share),
                            observe: observe
                        ),
                        isUnreleased: own?.isUnreleased ?? false
                    )
                )
            }
        }
        guard !accounts.isEmpty else {
            throw NotSetUp(
                description: "no app is accepted, so there is nothing to ask Apple about"
            )
        }
    }

    /// The same clients with other surroundings; both share limits and tokens.
    package func with(_ surroundings: APISurroundings) -> AppStoreClients {
        var result = self
        for place in accounts.indices {
            result.accounts[place].client = accounts[place].client.with(surroundings: surroundings)
        }
        return result
    }

    /// The account of an app in an environment.
    package func account(_ app: AppKey) -> Account? { accounts.first { $0.app == app } }
}

extension AppStoreSettings {
    /// The share of Apple's limits, 0 to 1.
    package var share: Double {
        Double(sharePercent ?? Self.sharePercentDefault) / 100
    }

    /// Reads the key.
    ///
    /// - Throws: `NotSetUp`, `InputError` or `APIKeyError`; none holds anything of the key.
    package func key() throws -> APIKey {
        guard let keyID, let issuerID else {
            throw AppStoreClients.NotSetUp(description: contradiction ?? "there is no key")
        }
        if let keyText {
            do {
                return try APIKey(keyID: keyID, issuerID: issuerID, text: keyText)
            } catch {
                throw APIKeyError("SUBLEDGER_APP_STORE_KEY cannot be used: \(error.message)")
            }
        }
        guard let keyFile else {
            throw AppStoreClients.NotSetUp(description: contradiction ?? "there is no key")
        }
        let text = try SecretFile.text(path: keyFile)
        do {
            return try APIKey(keyID: keyID, issuerID: issuerID, text: text)
        } catch {
            throw APIKeyError("\(keyFile) cannot be used: \(error.message)")
        }
    }

    /// Something odd about the key file's name; nil for nothing.
    package var keyWarning: String? {
        guard let keyFile, keyText == nil, let keyID else { return nil }
        let name = keyFile.split(separator: "/").last.map { String($0) } ?? keyFile
        return APIKey.warning(fileName: name, keyID: keyID)
    }

    /// The host of an environment.
    ///
    /// - Throws: `NotSetUp` for an address that cannot be one.
    package func host(_ environment: Environment) throws(AppStoreClients.NotSetUp) -> APIHost {
        let given = environment == .production ? productionURL : sandboxURL
        guard let given else {
            return APIHost(environment, generation: hosts ?? .current)
        }
        guard let host = APIHost(environment, baseURL: given) else {
            throw AppStoreClients.NotSetUp(
                description: "\(given) is no base URL for \(environment); wanted is https:// and a "
                    + "host"
            )
        }
        return host
    }
}
