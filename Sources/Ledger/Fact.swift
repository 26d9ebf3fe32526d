/// What one event tells about a subscription: the decoded part that the fold needs.
///
/// It holds no reference, so facts are copied and sorted without counting references. Everything
/// that Apple may leave out is optional; absence is never 0.
public struct Fact: Hashable, Sendable {
    /// What kind of event it is.
    public var kind: EventKind
    /// How far the fact can be trusted.
    public var provenance: Provenance
    /// Apple's reason for the notification, nil for other kinds.
    public var notificationType: NotificationType?
    /// What more Apple said of it.
    public var subtype: Subtype?
    /// When Apple signed the envelope; for an API response's JWS its own `signedDate`.
    public var signedAt: Timestamp?
    /// The instant that orders facts, never when we recorded them.
    ///
    /// The inner `signedDate`; for unsigned facts Apple's own instant or when our client
    /// received them.
    public var factAt: Timestamp
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
    /// Apple's status of the subscription, 1 active, 2 expired, 3 billing retry, 4 billing grace
    /// period, 5 revoked; other numbers are kept.
    public var status: Int32?
    /// What an answer to an extension request said.
    public var extensionAnswer: ExtensionAnswer?
    /// The owner that an operator linked.
    public var linkedOwner: UniqueID?

    // Stored beside a flag, not as optionals: reading one field of a wide optional costs a call.
    private(set) var hasTransaction = false
    private(set) var hasRenewal = false
    private(set) var storedTransaction = TransactionFact.none
    private(set) var storedRenewal = RenewalFact.none

    /// The customer's copy of the app, as the transaction or else the renewal info has it.
    public var appTransactionID: AppleID? {
        if hasTransaction, let id = storedTransaction.appTransactionID { return id }
        return hasRenewal ? storedRenewal.appTransactionID : nil
    }

    /// Makes a fact with nothing in it.
    public init(kind: EventKind, provenance: Provenance, factAt: Timestamp) {
        self.kind = kind
        self.provenance = provenance
        self.factAt = factAt
    }
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
    /// Apple answered it.
    case extensionAnswered
    /// An operator asked for a mass extension.
    case massExtensionRequested
    /// Apple answered a mass extension request.
    case massExtensionAnswered
    /// An operator linked an owner.
    case ownerLinked
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
        ("extension_answered", .extensionAnswered),
        ("mass_extension_requested", .massExtensionRequested),
        ("mass_extension_answered", .massExtensionAnswered),
        ("owner_linked", .ownerLinked),
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

/// The part of a decoded `JWSTransaction` that the fold needs.
///
/// Apple: appstoreserverapi/jwstransactiondecodedpayload. Dates are instants, money is integer
/// milliunits of `currency`.
public struct TransactionFact: Hashable, Sendable {
    /// One charge or period.
    public var transactionID: AppleID
    /// When Apple signed this object.
    public var signedDate: Timestamp
    /// The first eight bytes of the SHA-256 of the payload without `signedDate`; it breaks ties.
    public var digest: UInt64
    /// Apple's `webOrderLineItemId`, the purchase event across devices.
    public var webOrderLineItemID: AppleID?
    /// Apple's `productId`.
    public var productID: Symbol?
    /// Apple's `subscriptionGroupIdentifier`.
    public var subscriptionGroupID: Symbol?
    /// Apple's `type`.
    public var productType: ProductType?
    /// The start of the period or the charge.
    public var purchaseDate: Timestamp?
    /// When the chain was born.
    public var originalPurchaseDate: Timestamp?
    /// The end of the paid period; nil for what is no subscription.
    public var expiresDate: Timestamp?
    /// How many were bought; seats for a multiseat purchase.
    public var quantity: Int32?
    /// Apple's `inAppOwnershipType`.
    public var ownership: Ownership?
    /// Apple's `transactionReason`.
    public var reason: TransactionReason?
    /// Set when several transactions stand for one period (seats).
    public var additionalReason: Symbol?
    /// Whether Apple says that an upgrade superseded it.
    public var isUpgraded: Bool = false
    /// When a refund or a family revocation took it back.
    public var revocationDate: Timestamp?
    /// 1 an issue with the app, 0 other.
    public var revocationReason: Int32?
    /// Apple's `revocationType`.
    public var revocationType: RevocationType?
    /// Milliunits of a percent, 100000 = 100 %.
    public var revocationPercentage: Int32?
    /// How many seats a seat refund took back.
    public var revokedSeatQuantity: Int32?
    /// 1 introductory, 2 promotional, 3 offer code, 4 win-back; other numbers are kept.
    public var offerType: Int32?
    /// Apple's `offerIdentifier`.
    public var offerIdentifier: Symbol?
    /// Apple's `offerDiscountType`.
    public var offerDiscountType: OfferDiscountType?
    /// ISO 8601 duration of the whole offer.
    public var offerPeriod: Symbol?
    /// Milliunits of `currency`; not for accounting.
    public var price: Int64?
    /// ISO 4217.
    public var currency: Symbol?
    /// ISO 3166-1 alpha-3.
    public var storefront: Symbol?
    /// The account token that the app set.
    public var appAccountToken: UniqueID?
    /// One customer's copy of the app.
    public var appTransactionID: AppleID?
    /// Apple's billing plan type.
    public var billingPlanType: BillingPlanType?
    /// When the commitment ends.
    public var commitmentExpiresDate: Timestamp?
    /// Which payment of a commitment this is, from 1.
    public var billingPeriodNumber: Int32?
    /// How many payments the commitment has.
    public var totalBillingPeriods: Int32?
    /// The chain's id before a migration.
    public var previousOriginalTransactionID: AppleID?

    /// What stands where there is no transaction; all such are equal.
    static let none = TransactionFact(
        transactionID: AppleID(0),
        signedDate: .earliest,
        digest: 0
    )

    /// Makes a fact with its identity; everything else is set afterwards.
    public init(transactionID: AppleID, signedDate: Timestamp, digest: UInt64) {
        self.transactionID = transactionID
        self.signedDate = signedDate
        self.digest = digest
    }
}

/// The part of a decoded `JWSRenewalInfo` that the fold needs.
///
/// Apple: appstoreserverapi/jwsrenewalinfodecodedpayload.
public struct RenewalFact: Hashable, Sendable {
    /// When Apple signed this object.
    public var signedDate: Timestamp
    /// The first eight bytes of the SHA-256 of the payload without `signedDate`; it breaks ties.
    public var digest: UInt64
    /// Apple's `productId`.
    public var productID: Symbol?
    /// The product of the next period.
    public var autoRenewProductID: Symbol?
    /// 0 off, 1 on.
    public var autoRenewStatus: Int32?
    /// 1 cancelled, 2 billing error, 3 no consent to a price increase, 4 product not for sale,
    /// 5 other; other numbers are kept.
    public var expirationIntent: Int32?
    /// Whether Apple is trying to collect.
    public var isInBillingRetryPeriod: Bool?
    /// The end of the grace period; may persist after it is over.
    public var gracePeriodExpiresDate: Timestamp?
    /// 0 consent pending, 1 consented or informed.
    public var priceIncreaseStatus: Int32?
    /// The expiry of the most recent purchase.
    public var renewalDate: Timestamp?
    /// Milliunits of `currency`.
    public var renewalPrice: Int64?
    /// ISO 4217.
    public var currency: Symbol?
    /// The start of the run, gaps under 60 days ignored.
    public var recentSubscriptionStartDate: Timestamp?
    /// The next period's offer type.
    public var offerType: Int32?
    /// Apple's `offerIdentifier`.
    public var offerIdentifier: Symbol?
    /// Apple's `offerDiscountType`.
    public var offerDiscountType: OfferDiscountType?
    /// The account token that the app set.
    public var appAccountToken: UniqueID?
    /// One customer's copy of the app.
    public var appTransactionID: AppleID?
    /// Apple's billing plan type.
    public var billingPlanType: BillingPlanType?
    /// Whether the commitment renews: 0 off, 1 on.
    public var commitmentAutoRenewStatus: Int32?
    /// The product of the next commitment.
    public var commitmentAutoRenewProductID: Symbol?
    /// When the commitment renews.
    public var commitmentRenewalDate: Timestamp?
    /// The seats of the next period.
    public var renewalQuantity: Int32?

    /// What stands where there is no renewal info; all such are equal.
    static let none = RenewalFact(signedDate: .earliest, digest: 0)

    /// Makes a fact with its identity; everything else is set afterwards.
    public init(signedDate: Timestamp, digest: UInt64) {
        self.signedDate = signedDate
        self.digest = digest
    }
}

/// What Apple answered to an extension request; unsigned.
///
/// Apple: appstoreserverapi/extendrenewaldateresponse.
public struct ExtensionAnswer: Hashable, Sendable {
    /// Whether Apple says that it extended.
    public var success: Bool
    /// The new end of the period.
    public var effectiveDate: Timestamp?

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
