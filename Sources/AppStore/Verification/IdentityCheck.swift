public import Ledger

/// An app whose signed texts are accepted.
public struct AcceptedApp: Hashable, Sendable {
    /// Apple's bundle id.
    public var bundleID: String
    /// Apple's number for the app; needed for Production.
    public var appAppleID: Int64?
    /// The environments that are accepted for it.
    public var environments: Set<Environment>

    /// Makes an app.
    public init(bundleID: String, appAppleID: Int64?, environments: Set<Environment>) {
        self.bundleID = bundleID
        self.appAppleID = appAppleID
        self.environments = environments
    }
}

/// Whether a text is meant for us.
struct IdentityCheck: Sendable {
    let apps: [AcceptedApp]?
    let environment: Environment?

    /// The environment of a text that is ours; throws for any other.
    ///
    /// The bundle id comes first, then the environment, then in Production the app Apple id.
    func check(_ claims: Claims) throws(Rejection) -> Environment {
        let candidates = try apps(for: claims)
        guard let claimed = claims.environment else {
            throw Self.unreadable(
                Rejection(reason: .environment, detail: "the payload names no environment")
            )
        }
        guard claimed == .production || claimed == .sandbox else {
            throw Self.unreadable(
                Rejection(reason: .environment, detail: "the environment is not a known one")
            )
        }
        if let environment, environment != claimed {
            throw Rejection(
                reason: .environment,
                detail: "it is of \(claimed), \(environment) is asked for"
            )
        }
        guard let candidates else { return claimed }
        let accepting = candidates.filter { $0.environments.contains(claimed) }
        guard !accepting.isEmpty else {
            throw Rejection(
                reason: .environment,
                detail: "\(claimed) is not accepted for the app; add it to the app's environments"
            )
        }
        let namesApp = claims.kind == .notification || claims.kind == .appTransaction
        guard claimed == .production, namesApp else { return claimed }
        guard accepting.contains(where: { $0.appAppleID != nil }) else {
            throw Rejection(
                reason: .appAppleID,
                detail: "Production needs the app's Apple id; it is not configured"
            )
        }
        guard let id = claims.appAppleID, accepting.contains(where: { $0.appAppleID == id }) else {
            throw Rejection(
                reason: .appAppleID,
                detail: "appAppleId is missing or is not the accepted app's"
            )
        }
        return claimed
    }

    /// Whether what can be made out of a payload speaks for one of our apps, or for none at all.
    func mayBeOurs(_ payload: [UInt8]) -> Bool {
        guard let apps else { return true }
        return RawClaims.bundleIDs(in: payload).allSatisfy { claimed in
            apps.contains { $0.bundleID == claimed }
        }
    }

    /// The accepted apps of a bundle id; nil where identity is not checked.
    private func apps(for claims: Claims) throws(Rejection) -> [AcceptedApp]? {
        // A renewal info names no app.
        guard let apps, claims.kind != .renewalInfo else { return self.apps }
        guard let bundleID = claims.bundleID else {
            throw Self.unreadable(
                Rejection(reason: .bundleID, detail: "the payload names no bundle id")
            )
        }
        let candidates = apps.filter { $0.bundleID == bundleID }
        guard !candidates.isEmpty else {
            throw Rejection(
                reason: .bundleID,
                detail: "it belongs to an app that is not accepted here"
            )
        }
        return candidates
    }

    /// Marks a rejection whose bytes were signed and should be kept.
    static func unreadable(_ rejection: Rejection) -> Rejection {
        var rejection = rejection
        rejection.belongsInQuarantine = true
        return rejection
    }
}
