package import AppStore
internal import HTTP
internal import Ledger

/// Makes the client of verifyReceipt of what is configured.
package enum ReceiptDesk {
    /// A client over HTTPS, at Apple's addresses or those that the settings name in their place.
    ///
    /// - Parameters:
    ///   - settings: another address for an environment serves `/verifyReceipt` too.
    ///   - secretFile: the file with the app's shared secret; only its owner may read it.
    ///   - excludesOld: whether only the newest period of each subscription is asked for.
    ///   - surroundings: clock and sleep.
    /// - Returns: the client.
    /// - Throws: `InputError` for the file, `AppStoreClients.NotSetUp` for the rest.
    package static func client(
        _ settings: AppStoreSettings,
        secretFile: String,
        excludesOld: Bool,
        surroundings: APISurroundings
    ) throws -> ReceiptClient {
        ReceiptClient(
            productionURL: try address(settings, .production),
            sandboxURL: try address(settings, .sandbox),
            secret: try secret(file: secretFile),
            excludesOld: excludesOld,
            transport: try HTTPTransport(settings, responseLimitBytes: ReceiptBody.sizeMaxBytes),
            surroundings: surroundings
        )
    }

    private static func address(
        _ settings: AppStoreSettings,
        _ environment: Environment
    ) throws(AppStoreClients.NotSetUp) -> String {
        let isProduction = environment == .production
        let given = isProduction ? settings.productionURL : settings.sandboxURL
        guard given != nil else {
            return isProduction ? ReceiptClient.productionURL : ReceiptClient.sandboxURL
        }
        return try settings.host(environment).baseURL + "/verifyReceipt"
    }

    /// Reads a shared secret; Apple's have 32 hexadecimal digits.
    ///
    /// - Throws: `InputError`, which holds nothing of the secret.
    package static func secret(file: String) throws(InputError) -> String {
        let text = try SecretFile.text(
            path: file,
            harm: "has the shared secret can read your customers' purchases"
        )
        let lines = text.split { $0 == "\n" || $0 == "\r\n" || $0 == "\r" }
        let secret = lines.first.map { String($0) } ?? ""
        let isPlain = secret.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: false
            }
        }
        guard lines.count == 1, isPlain, (8...128).contains(secret.utf8.count) else {
            throw InputError(
                code: .unreadable,
                message: "\(file) holds no shared secret: wanted is one line of letters and "
                    + "digits, as App Store Connect shows it"
            )
        }
        return secret
    }
}
