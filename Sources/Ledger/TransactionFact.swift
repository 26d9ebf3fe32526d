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
    /// The start of the period or the charge.
    @Packed public var purchaseDate: Timestamp?
    /// The end of the paid period; nil for what is no subscription.
    @Packed public var expiresDate: Timestamp?
    /// When a refund or a family revocation took it back.
    @Packed public var revocationDate: Timestamp?
    /// Apple's `productId`.
    @Packed public var productID: Symbol?
    /// Set when several transactions stand for one period (seats).
    @Packed public var additionalReason: Symbol?
    /// Apple's `type`.
    public var productType: ProductType? {
        get { storedProductType }
        set {
            storedProductType = newValue
            note(newValue, .productType)
        }
    }
    private var storedProductType: ProductType?
    /// Whether Apple says that an upgrade superseded it.
    public var isUpgraded: Bool = false
    /// Apple's `transactionReason`.
    public var reason: TransactionReason? {
        get { storedReason }
        set {
            storedReason = newValue
            note(newValue, .reason)
        }
    }
    private var storedReason: TransactionReason?
    /// How many seats a seat refund took back.
    public var revokedSeatQuantity: Int32?
    /// The account token that the app set.
    public var appAccountToken: UniqueID?
    /// When the commitment ends.
    @Packed public var commitmentExpiresDate: Timestamp?
    /// Apple's billing plan type.
    public var billingPlanType: BillingPlanType?
    /// Apple's `inAppOwnershipType`.
    public var ownership: Ownership? {
        get { storedOwnership }
        set {
            storedOwnership = newValue
            note(newValue, .ownership)
        }
    }
    private var storedOwnership: Ownership?
    /// Apple's `offerDiscountType`.
    public var offerDiscountType: OfferDiscountType? {
        get { storedOfferDiscountType }
        set {
            storedOfferDiscountType = newValue
            note(newValue, .discount)
        }
    }
    private var storedOfferDiscountType: OfferDiscountType?
    /// 1 introductory, 2 promotional, 3 offer code, 4 win-back; other numbers are kept.
    public var offerType: Int32? {
        get { storedOfferType }
        set {
            storedOfferType = newValue
            unknowns.set(.offer, newValue.map { !(1...4).contains($0) } ?? false)
        }
    }
    private var storedOfferType: Int32?
    /// Milliunits of `currency`; not for accounting.
    public var price: Int64?
    /// ISO 4217.
    @Packed public var currency: Symbol?
    /// ISO 3166-1 alpha-3.
    @Packed public var storefront: Symbol?
    /// How many were bought; seats for a multiseat purchase.
    public var quantity: Int32?
    /// Apple's `revocationType`.
    public var revocationType: RevocationType? {
        get { storedRevocationType }
        set {
            storedRevocationType = newValue
            note(newValue, .revocation)
        }
    }
    private var storedRevocationType: RevocationType?
    /// The chain's id before a migration.
    @Packed public var previousOriginalTransactionID: AppleID?
    /// Apple's `webOrderLineItemId`, the purchase event across devices.
    @Packed public var webOrderLineItemID: AppleID?
    /// Milliunits of a percent, 100000 = 100 %.
    public var revocationPercentage: Int32?
    /// 1 an issue with the app, 0 other.
    public var revocationReason: Int32?
    /// When the chain was born.
    @Packed public var originalPurchaseDate: Timestamp?
    /// Apple's `subscriptionGroupIdentifier`.
    @Packed public var subscriptionGroupID: Symbol?
    /// Apple's `offerIdentifier`.
    @Packed public var offerIdentifier: Symbol?
    /// ISO 8601 duration of the whole offer.
    @Packed public var offerPeriod: Symbol?
    /// One customer's copy of the app.
    @Packed public var appTransactionID: AppleID?
    /// Which payment of a commitment this is, from 1.
    public var billingPeriodNumber: Int32?
    /// How many payments the commitment has.
    public var totalBillingPeriods: Int32?

    /// Which values this program does not know.
    private(set) var unknowns = UnknownValues()

    private mutating func note<Word: OpenVocabulary>(_ word: Word?, _ which: UnknownValues) {
        unknowns.set(which, word?.unknownText != nil)
    }

    /// What stands where there is no transaction; all such are equal.
    static var none: TransactionFact {
        // Signed before anything, so that a maximum need not ask whether it is there.
        TransactionFact(transactionID: AppleID(0), signedDate: .absent, digest: 0)
    }

    /// Makes a fact with its identity; everything else is set afterwards.
    public init(transactionID: AppleID, signedDate: Timestamp, digest: UInt64) {
        self.transactionID = transactionID
        self.signedDate = signedDate
        self.digest = digest
    }
}
