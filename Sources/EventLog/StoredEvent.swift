public import Ledger

/// One row of `ledger.event`, as it was read back.
public struct StoredEvent: Hashable, Sendable {
    /// The dense, global number.
    public var position: Int64
    /// The app and stream that it belongs to.
    public var key: SubscriptionKey
    /// The idempotency key.
    public var eventKey: String
    /// What kind of event it is.
    public var kind: EventKind
    /// Apple's `notificationType`.
    public var notificationType: String?
    /// Apple's `subtype`.
    public var subtype: String?
    /// How far it can be trusted.
    public var provenance: Provenance
    /// When Apple signed the envelope.
    public var signedAt: Timestamp?
    /// When it was committed.
    public var recordedAt: Timestamp
    /// What the events of one response have in common.
    public var correlation: String?
    /// SHA-256 of the content without `signedDate`.
    public var contentDigest: [UInt8]
    /// SHA-256 over salt, operator, ticket, the received bytes and an unusual body around them.
    public var sealedDigest: [UInt8]
    /// Who of ours caused it.
    public var `operator`: String?
    /// On which ticket.
    public var ticket: String?
}

/// What was received for one event, recomposed byte for byte.
public struct StoredEvidence: Hashable, Sendable {
    /// The event that it belongs to.
    public var event: StoredEvent
    /// The bytes as received.
    public var received: [UInt8]
    /// What the bytes are.
    public var form: ReceivedForm
    /// How they are stored.
    public var codec: EvidenceCodec
    /// Who vouched for each layer; empty for what is not decomposed.
    public var layers: [EvidenceLayer]
    /// The random bytes that go into the event's sealed digest.
    public var salt: [UInt8]
    /// The body that the bytes were posted in, where it was not the usual one.
    public var posted: PostedBody?

    /// The body that a notification came in, byte for byte; for what was not posted the usual one.
    public var body: [UInt8] { posted?.body(around: received) ?? PostedBody.usual(received) }
}

/// How the bytes of an event are stored, the column `ledger.evidence.codec`.
public enum EvidenceCodec: Int16, Hashable, Sendable {
    /// A JWS taken apart: header ids, payloads, signatures.
    case decomposed = 0
    /// A JWS as received, since taking it apart would have lost something.
    case jws = 1
    /// Unsigned bytes as received.
    case raw = 2
    /// A response with signed texts in it, those taken apart.
    case response = 3

    /// What the bytes are, put together.
    public var form: ReceivedForm {
        switch self {
        case .decomposed, .jws: .jws
        case .raw: .raw
        case .response: .response
        }
    }
}
