internal import Crypto
public import Ledger

/// A signed text that is trusted, decoded.
public struct VerifiedDocument: Sendable {
    /// What kind of text it is.
    public let kind: DocumentKind
    /// The compact text as it was given.
    public let received: [UInt8]
    /// The decoded payload.
    public let payload: JSONDocument
    /// When it was signed.
    public let signedDate: Timestamp
    /// Apple's bundle id; nil for a renewal info, which names none.
    public let bundleID: String?
    /// Apple's number for the app; Apple leaves it out in Sandbox.
    public let appAppleID: Int64?
    /// Production or Sandbox.
    public let environment: Environment
    /// Apple's reason for a notification.
    public let notificationType: String?
    /// What more Apple said of it.
    public let subtype: String?
    /// What a second delivery of the same notification has in common with the first.
    public let notificationUUID: String?
    /// The signed texts within it, in the order `signedTransactionInfo`, `signedRenewalInfo`.
    public let nested: [NestedDocument]
    /// Who vouched, for the text itself and then for each of `nested`.
    public let layers: [LayerTrust]
    /// The chain of transactions it is about, nil where it is about none (a test, a summary).
    ///
    /// One-time purchases have one too; their stream folds to no subscription.
    public let originalTransactionID: String?
    /// SHA-256 of what it says, whenever it was signed; see ``CanonicalContent``.
    public let contentDigest: [UInt8]
    /// What the fold needs of it; nil for what is never folded.
    public let fact: Fact?
    /// Whether it has a type, a subtype or another value that this program does not know.
    public let isUnrecognised: Bool
    /// What could not be decoded, as `field:problem`.
    public let decodeAnomalies: [String]
    /// Why it cannot be given a place in the log and must be kept in quarantine; nil for nearly all.
    public let quarantineReason: String?

    /// The `appTransactionId` of the customer for whom a guardian withdrew consent, where that is
    /// what it tells.
    public var rescindsConsentOf: AppleID? {
        guard notificationType.map({ NotificationType($0) }) == .rescindConsent else { return nil }
        let customer = nested.first { $0.kind == .appTransaction }?.payload["appTransactionId"]
        return customer?.text.flatMap { $0.isEmpty ? nil : AppleID($0) }
    }

    init(outer: SignedLayer, nested layers: [NestedLayer], environment: Environment) {
        kind = outer.claims.kind
        received = outer.jws.text
        payload = outer.payload
        signedDate = outer.signedDate
        bundleID = outer.claims.bundleID
        appAppleID = outer.claims.appAppleID
        self.environment = environment
        nested = layers.map { NestedDocument($0) }
        self.layers = [LayerTrust(outer.chain)] + layers.map { LayerTrust($0.layer.chain) }
        let content = CanonicalContent(
            payload,
            nested: nested.map { ($0.node, $0.contentDigest) }
        )
        contentDigest = content.digest
        let decoded = FactDecoder.decode(
            kind: kind,
            payload: payload,
            contentDigest: contentDigest,
            nested: nested
        )
        notificationType = decoded.notificationType
        subtype = decoded.subtype
        notificationUUID = decoded.notificationUUID
        originalTransactionID = decoded.originalTransactionID
        fact = decoded.fact
        isUnrecognised = decoded.isUnrecognised
        decodeAnomalies = decoded.anomalies
        quarantineReason = decoded.quarantineReason
    }
}

/// A signed text within a notification, verified as well.
public struct NestedDocument: Sendable {
    /// The name of the member that holds it, such as `signedTransactionInfo`.
    public let field: String
    /// What kind of text it is.
    public let kind: DocumentKind
    /// The compact text as it stands in the notification.
    public let received: [UInt8]
    /// The decoded payload.
    public let payload: JSONDocument
    /// When it was signed.
    public let signedDate: Timestamp
    /// SHA-256 of what it says, whenever it was signed.
    public let contentDigest: [UInt8]
    /// The node of its text in the outer payload.
    let node: Int

    init(_ nested: NestedLayer) {
        field = nested.field
        kind = nested.kind
        received = nested.layer.jws.text
        payload = nested.layer.payload
        signedDate = nested.layer.signedDate
        contentDigest = CanonicalContent(payload).digest
        node = nested.node
    }
}

/// Who vouched for one signed text.
public struct LayerTrust: Hashable, Sendable {
    /// SHA-256 of the header in base64url.
    public let headerDigest: [UInt8]
    /// SHA-256 of the root certificate that vouched.
    public let anchorFingerprint: [UInt8]
    /// The root certificate that vouched.
    public let anchorDER: [UInt8]

    init(_ chain: VerifiedChain) {
        headerDigest = chain.headerDigest
        anchorFingerprint = chain.anchor.certificate.fingerprint
        anchorDER = chain.anchor.certificate.der
    }
}
