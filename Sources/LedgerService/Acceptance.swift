public import AppStore
public import Ledger

/// Which apps' data is accepted, and which roots vouch for it: what a verifier needs to know.
public struct Acceptance: Sendable {
    /// The apps, each bundle id once.
    public private(set) var apps: [AcceptedApp] = []
    /// Apple's roots and those that were added.
    public private(set) var anchors = TrustAnchors()
    /// Asks issuers whether they took certificates back; nil unless the configuration wants that.
    public private(set) var revocation: (any RevocationTransport)?

    /// The largest certificate file that is read.
    static let certificateSizeMaxBytes = 1 << 20

    /// Accepts nothing yet.
    public init() {}

    /// Accepts what a configuration lists, and reads the certificate files that it names.
    ///
    /// - Throws: `InputError` or `AppStoreError` naming the certificate file that is at fault.
    public init(_ configuration: Configuration) throws {
        for app in configuration.apps {
            accept(
                AcceptedApp(
                    bundleID: app.bundleID,
                    appAppleID: app.appAppleID,
                    environments: Set(app.environments)
                )
            )
            for path in app.anchors { try addAnchor(path) }
        }
        if configuration.asksOCSP { revocation = try OCSPTransport() }
    }

    /// Accepts an app's data; environments add up when the app is there already.
    public mutating func accept(_ app: AcceptedApp) {
        guard let index = apps.firstIndex(where: { $0.bundleID == app.bundleID }) else {
            apps.append(app)
            return
        }
        apps[index].environments.formUnion(app.environments)
        apps[index].appAppleID = app.appAppleID ?? apps[index].appAppleID
    }

    /// Trusts the root certificates of a file, PEM or DER, for Sandbox data.
    ///
    /// - Throws: `InputError` or `AppStoreError` naming the file.
    public mutating func addAnchor(_ path: String) throws {
        let bytes = try fileBytes(path: path, sizeMaxBytes: Self.certificateSizeMaxBytes)
        try anchors.add(bytes, name: path)
    }

    /// A verifier for all that is accepted.
    ///
    /// - Parameter unknownChains: how many chains that were never seen may be built; nil for any
    ///   number.
    /// - Returns: the verifier; each one has a memory of chains of its own.
    public func verifier(unknownChains: ChainRate? = nil) -> Verifier {
        Verifier(
            anchors: anchors,
            apps: apps,
            unknownChains: unknownChains,
            revocation: revocation
        )
    }

    /// What an operator should know of the added roots, such as that one has expired.
    public func warnings(now: Timestamp) -> [String] { anchors.warnings(now: now) }
}
