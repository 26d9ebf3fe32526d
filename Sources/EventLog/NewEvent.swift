public import Ledger

/// What names an app in the log: the bundle id and one of its environments.
public struct AppKey: Hashable, Sendable {
    /// Apple's `bundleId`.
    public var bundleID: String
    /// Which of Apple's servers the events come from.
    public var environment: Environment

    /// Makes a key.
    public init(bundleID: String, environment: Environment) {
        self.bundleID = bundleID
        self.environment = environment
    }
}

/// In which form a document was received.
public enum ReceivedForm: Hashable, Sendable {
    /// A compact JWS.
    case jws
    /// Unsigned bytes, kept as they came.
    case raw
    /// A body of Apple's Server API: unsigned, with signed texts in it.
    case response
}

/// Who vouched for one JWS layer of a document.
public struct EvidenceLayer: Hashable, Sendable {
    /// SHA-256 of the header's base64url text.
    public var headerDigest: [UInt8]
    /// SHA-256 of the anchor's DER bytes.
    public var anchorFingerprint: [UInt8]
    /// The anchor's certificate.
    public var anchorDER: [UInt8]

    /// Makes a layer.
    public init(headerDigest: [UInt8], anchorFingerprint: [UInt8], anchorDER: [UInt8]) {
        self.headerDigest = headerDigest
        self.anchorFingerprint = anchorFingerprint
        self.anchorDER = anchorDER
    }
}

/// A fact that wants to become an event of the log.
public struct NewEvent: Sendable {
    /// The app that it belongs to; a new one gets its row in `ledger.app` on the way.
    public var app: AppKey
    /// The `originalTransactionId`, or `app:`, `api:`, `mass:` for what belongs to no
    /// subscription.
    public var stream: String
    /// The idempotency key, `n:<notificationUUID>` for a notification.
    public var eventKey: String
    /// What kind of event it is.
    public var kind: EventKind
    /// Apple's `notificationType`, as received.
    public var notificationType: String?
    /// Apple's `subtype`, as received.
    public var subtype: String?
    /// How far it can be trusted.
    public var provenance: Provenance
    /// When Apple signed the envelope.
    public var signedAt: Timestamp?
    /// What the events of one response have in common.
    public var correlation: String?
    /// The bytes as received.
    public var received: [UInt8]
    /// The body that they were posted in, where it is not the usual one.
    public var posted: PostedBody?
    /// What the bytes are.
    public var form: ReceivedForm
    /// Who vouched for each JWS layer, outer first.
    public var layers: [EvidenceLayer]
    /// SHA-256 of the content without `signedDate`: equal for a repeat, different for a conflict.
    public var contentDigest: [UInt8]
    /// Who of ours caused it.
    public var `operator`: String?
    /// On which ticket.
    public var ticket: String?
    /// What the fold needs of it; nil for what is never folded.
    public var fact: Fact?
    /// The `appTransactionId` of the customer for whom a guardian withdrew consent, where it tells
    /// of that; it concerns all of that customer's subscriptions.
    public var rescindsConsentOf: AppleID?
    /// What of the content could not be decoded, by stable names.
    public var decodeAnomalies: [String]
    /// What is said of a request to extend; it gets a row of its own beside the event.
    public var note: ExtensionNote?
    /// What was made of its evidence beforehand.
    var preparation: EvidencePreparation?

    /// Makes an event with what every one has; the rest is set afterwards.
    public init(
        app: AppKey,
        stream: String,
        eventKey: String,
        kind: EventKind,
        notificationType: String? = nil,
        subtype: String? = nil,
        provenance: Provenance = .jws,
        signedAt: Timestamp? = nil,
        correlation: String? = nil,
        received: [UInt8],
        form: ReceivedForm,
        layers: [EvidenceLayer] = [],
        contentDigest: [UInt8],
        operator: String? = nil,
        ticket: String? = nil,
        fact: Fact? = nil,
        decodeAnomalies: [String] = []
    ) {
        self.app = app
        self.stream = stream
        self.eventKey = eventKey
        self.kind = kind
        self.notificationType = notificationType
        self.subtype = subtype
        self.provenance = provenance
        self.signedAt = signedAt
        self.correlation = correlation
        self.received = received
        self.form = form
        self.layers = layers
        self.contentDigest = contentDigest
        self.operator = `operator`
        self.ticket = ticket
        self.fact = fact
        self.decodeAnomalies = decodeAnomalies
    }
}

/// What became of an event that was handed to the log.
///
/// Whatever it says is durable.
public enum AppendOutcome: Hashable, Sendable {
    /// It is a new event at this position.
    case appended(position: Int64)
    /// The same fact was there already, at this position.
    case duplicate(position: Int64)
    /// Another fact has this key, at this position; the bytes went to `ledger.conflict`.
    case conflict(position: Int64)
    /// The database cannot hold it as an event; the bytes went to `ledger.quarantine`.
    case quarantined(reason: String)
}

/// How many events one append transaction may hold.
public enum BatchLimit: Sendable {
    /// 200 events: a webhook waits for the answer.
    case live
    /// 1,000 events: a file is read. The head is held for some 50 ms then, so that a webhook that
    /// comes meanwhile hardly waits.
    case bulk

    /// The number.
    public var count: Int {
        switch self {
        case .live: 200
        case .bulk: 1000
        }
    }
}
