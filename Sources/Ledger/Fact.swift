/// What one event tells about a subscription: the decoded part that the fold needs.
///
/// It holds no reference, so facts are copied and sorted without counting references. Everything
/// that Apple may leave out is optional; absence is never 0.
public struct Fact: Hashable, Sendable {
    // In order of how often the fold looks at it.

    /// The instant that orders facts, never when we recorded them.
    ///
    /// The inner `signedDate`; for unsigned facts Apple's own instant or when our client
    /// received them.
    public var factAt: Timestamp
    /// When Apple signed the envelope; for an API response's JWS its own `signedDate`.
    @Packed public var signedAt: Timestamp?
    /// Apple's status of the subscription, 1 active, 2 expired, 3 billing retry, 4 billing grace
    /// period, 5 revoked; other numbers are kept.
    public var status: Int32? {
        get { storedStatus }
        set {
            storedStatus = newValue
            unknowns.set(.status, newValue.map { !(1...5).contains($0) } ?? false)
        }
    }
    private var storedStatus: Int32?
    /// How far the fact can be trusted.
    public var provenance: Provenance
    /// What the event counts as in the state machine.
    private(set) var trigger: Trigger
    /// Which values this program does not know, beside those of the transaction.
    private var unknowns = UnknownValues()
    /// Whether there is a step of an extension request, an answer to one or a link.
    private(set) var hasOwnWord = false
    // Stored beside a flag, not as optionals: reading one field of a wide optional costs a call.
    private(set) var hasTransaction = false
    private(set) var hasRenewal = false
    /// What more Apple said of the notification.
    public var subtype: Subtype? {
        get { storedSubtype }
        set {
            storedSubtype = newValue
            classify()
        }
    }
    private var storedSubtype: Subtype?
    /// Why the customer wishes for a refund, as `CONSUMPTION_REQUEST` says.
    public var consumptionRequestReason: ConsumptionRequestReason? {
        get { storedConsumptionReason.map { ConsumptionRequestReason($0.text) } }
        set {
            storedConsumptionReason = newValue.map { Symbol($0.description) }
            unknowns.set(.consumptionReason, newValue?.unknownText != nil)
        }
    }
    // Apple's spelling, since it is rare: four bytes that were there, where the word takes eight.
    @Packed private(set) var storedConsumptionReason: Symbol?
    private(set) var storedTransaction = TransactionFact.none
    private(set) var storedRenewal = RenewalFact.none
    /// What kind of event it is.
    public var kind: EventKind {
        get { storedKind }
        set {
            storedKind = newValue
            classify()
        }
    }
    private var storedKind: EventKind
    /// Apple's reason for the notification, nil for other kinds.
    public var notificationType: NotificationType? {
        get { storedNotificationType }
        set {
            storedNotificationType = newValue
            classify()
        }
    }
    private var storedNotificationType: NotificationType?
    /// What an answer to an extension request said.
    public var extensionAnswer: ExtensionAnswer? {
        get { storedExtensionAnswer }
        set {
            storedExtensionAnswer = newValue
            findOwnWord()
        }
    }
    private var storedExtensionAnswer: ExtensionAnswer?
    /// What one of our own events tells of a request to extend.
    public var extensionStep: ExtensionStep? {
        get { storedExtensionStep }
        set {
            storedExtensionStep = newValue
            findOwnWord()
        }
    }
    private var storedExtensionStep: ExtensionStep?
    /// The owner that an operator linked.
    public var linkedOwner: UniqueID? {
        get { storedLinkedOwner }
        set {
            storedLinkedOwner = newValue
            findOwnWord()
        }
    }
    private var storedLinkedOwner: UniqueID?

    /// The decoded `signedTransactionInfo`.
    public var transaction: TransactionFact? {
        get { hasTransaction ? storedTransaction : nil }
        set {
            hasTransaction = newValue != nil
            storedTransaction = newValue ?? .none
        }
    }
    /// The decoded `signedRenewalInfo`.
    public var renewal: RenewalFact? {
        get { hasRenewal ? storedRenewal : nil }
        set {
            hasRenewal = newValue != nil
            storedRenewal = newValue ?? .none
        }
    }

    /// The customer's copy of the app, as the transaction or else the renewal info has it.
    public var appTransactionID: AppleID? {
        if hasTransaction, let id = storedTransaction.appTransactionID { return id }
        return hasRenewal ? storedRenewal.appTransactionID : nil
    }

    /// Makes a fact with nothing in it.
    public init(kind: EventKind, provenance: Provenance, factAt: Timestamp) {
        storedKind = kind
        self.provenance = provenance
        self.factAt = factAt
        trigger = Trigger(kind, nil, nil)
    }

    private mutating func findOwnWord() {
        hasOwnWord = extensionAnswer != nil || linkedOwner != nil || extensionStep != nil
    }

    private mutating func classify() {
        trigger = Trigger(kind, notificationType, subtype)
        unknowns.set(.type, notificationType?.unknownText != nil)
        unknowns.set(.subtype, subtype?.unknownText != nil)
    }

    /// Whether a value is there that this program does not know: a notification's type or subtype,
    /// a status, why a refund is wished for, or one of the transaction's words.
    var hasUnknownValue: Bool { !unknowns.isEmpty || !storedTransaction.unknowns.isEmpty }
}

/// What kind of event a row of the log is.
public enum EventKind: OpenVocabulary {
    /// An App Store Server Notification V2.
    case notification
    /// One subscription of Get All Subscription Statuses.
    case subscriptionStatus
    /// A signed transaction of the Server API.
    case transaction
    /// A signed renewal info on its own.
    case renewalInfo
    /// A signed app transaction.
    case appTransaction
    /// A transaction of a verifyReceipt response.
    case receipt
    /// A whole response of the Server API.
    case apiResponse
    /// An operator asked for an extension.
    case extensionRequested
    /// Our own rules refused it.
    case extensionRefused
    /// Another operator approved it.
    case extensionApproved
    /// Another operator rejected it.
    case extensionRejected
    /// Somebody tried to approve their own.
    case extensionApprovalRefused
    /// It was about to be sent to Apple.
    case extensionSubmitted
    /// Apple answered it.
    case extensionAnswered
    /// Apple's answer did not arrive, or says nothing of what was done.
    case extensionUnanswered
    /// What became of one without an answer was found out or decided.
    case extensionResolved
    /// An operator asked for a mass extension.
    case massExtensionRequested
    /// Another operator approved it.
    case massExtensionApproved
    /// Another operator rejected it.
    case massExtensionRejected
    /// Somebody tried to approve their own.
    case massExtensionApprovalRefused
    /// It was about to be sent to Apple.
    case massExtensionSubmitted
    /// Apple answered a mass extension request.
    case massExtensionAnswered
    /// Apple's answer did not arrive, or says nothing of what was done.
    case massExtensionUnanswered
    /// Apple told how far a mass extension is.
    case massExtensionStatus
    /// An operator linked an owner.
    case ownerLinked
    /// An operator had an event passed over that this program cannot read.
    case eventSkipped
    /// A kind that this program does not know.
    case unknown(Symbol)

    /// The values known to this program, as the log spells them.
    public static let known: [(text: String, value: EventKind)] = [
        ("notification", .notification),
        ("subscription_status", .subscriptionStatus),
        ("transaction", .transaction),
        ("renewal_info", .renewalInfo),
        ("app_transaction", .appTransaction),
        ("receipt", .receipt),
        ("api_response", .apiResponse),
        ("extension_requested", .extensionRequested),
        ("extension_refused", .extensionRefused),
        ("extension_approved", .extensionApproved),
        ("extension_rejected", .extensionRejected),
        ("extension_approval_refused", .extensionApprovalRefused),
        ("extension_submitted", .extensionSubmitted),
        ("extension_answered", .extensionAnswered),
        ("extension_unanswered", .extensionUnanswered),
        ("extension_resolved", .extensionResolved),
        ("mass_extension_requested", .massExtensionRequested),
        ("mass_extension_approved", .massExtensionApproved),
        ("mass_extension_rejected", .massExtensionRejected),
        ("mass_extension_approval_refused", .massExtensionApprovalRefused),
        ("mass_extension_submitted", .massExtensionSubmitted),
        ("mass_extension_answered", .massExtensionAnswered),
        ("mass_extension_unanswered", .massExtensionUnanswered),
        ("mass_extension_status", .massExtensionStatus),
        ("owner_linked", .ownerLinked),
        ("event_skipped", .eventSkipped),
    ]

    /// The text of an unknown value.
    public var unknownText: Symbol? {
        if case .unknown(let text) = self { text } else { nil }
    }
}

/// How far a fact can be trusted, the most trusted first.
public enum Provenance: UInt8, Hashable, Comparable, Sendable, CaseIterable {
    /// Signed by Apple.
    case jws
    /// Unsigned, but read from Apple's server over TLS.
    case tls
    /// From a verifyReceipt response body.
    case receipt
    /// Said by one of our own operators.
    case `operator`

    /// The more trusted provenance comes first.
    public static func < (left: Provenance, right: Provenance) -> Bool {
        left.rawValue < right.rawValue
    }

    /// The word that the log uses.
    public var text: String {
        switch self {
        case .jws: "jws"
        case .tls: "tls"
        case .receipt: "receipt"
        case .operator: "operator"
        }
    }

    /// The provenance of a word of the log, nil for an unknown one.
    public init?(text: String) {
        guard let match = Self.allCases.first(where: { $0.text == text }) else { return nil }
        self = match
    }
}

/// What Apple answered to an extension request; unsigned.
///
/// Apple: appstoreserverapi/extendrenewaldateresponse.
public struct ExtensionAnswer: Hashable, Sendable {
    /// Whether Apple says that it extended.
    public var success: Bool
    /// The new end of the period.
    @Packed public var effectiveDate: Timestamp?

    /// Makes an answer.
    public init(success: Bool, effectiveDate: Timestamp?) {
        self.success = success
        self.effectiveDate = effectiveDate
    }
}

/// A fact at its place in the log.
public struct Event: Hashable, Sendable {
    /// The dense, global number of the event; increases in commit order.
    public var position: Int64
    /// What the event tells.
    public var fact: Fact

    /// Makes an event.
    public init(position: Int64, fact: Fact) {
        self.position = position
        self.fact = fact
    }
}

/// Which values of a fact this program does not know.
///
/// Kept as a fact is filled, so that folding it asks one question, not ten.
struct UnknownValues: OptionSet, Hashable, Sendable {
    let rawValue: UInt8

    static let type = UnknownValues(rawValue: 1)
    static let subtype = UnknownValues(rawValue: 2)
    static let status = UnknownValues(rawValue: 4)
    static let consumptionReason = UnknownValues(rawValue: 8)
    static let offer = UnknownValues(rawValue: 1)
    static let ownership = UnknownValues(rawValue: 2)
    static let reason = UnknownValues(rawValue: 4)
    static let revocation = UnknownValues(rawValue: 8)
    static let discount = UnknownValues(rawValue: 16)
    static let productType = UnknownValues(rawValue: 32)

    mutating func set(_ value: UnknownValues, _ isSo: Bool) {
        if isSo { insert(value) } else { remove(value) }
    }
}
