/// The part of a decoded `JWSRenewalInfo` that the fold needs.
///
/// Apple: appstoreserverapi/jwsrenewalinfodecodedpayload.
public struct RenewalFact: Hashable, Sendable {
    /// When Apple signed this object.
    public var signedDate: Timestamp
    /// The first eight bytes of the SHA-256 of the payload without `signedDate`; it breaks ties.
    public var digest: UInt64
    /// The end of the grace period; may persist after it is over.
    @Packed public var gracePeriodExpiresDate: Timestamp?
    /// The expiry of the most recent purchase.
    @Packed public var renewalDate: Timestamp?
    /// The product of the next period.
    @Packed public var autoRenewProductID: Symbol?
    /// Whether Apple is trying to collect.
    public var isInBillingRetryPeriod: Bool?
    /// 0 off, 1 on.
    public var autoRenewStatus: Int32?
    /// 1 cancelled, 2 billing error, 3 no consent to a price increase, 4 product not for sale,
    /// 5 other; other numbers are kept.
    public var expirationIntent: Int32?
    /// 0 consent pending, 1 consented or informed.
    public var priceIncreaseStatus: Int32?
    /// Milliunits of `currency`.
    public var renewalPrice: Int64?
    /// ISO 4217.
    @Packed public var currency: Symbol?
    /// The seats of the next period.
    public var renewalQuantity: Int32?
    /// Apple's `productId`.
    @Packed public var productID: Symbol?
    /// Apple's `offerIdentifier`.
    @Packed public var offerIdentifier: Symbol?
    /// The start of the run, gaps under 60 days ignored.
    @Packed public var recentSubscriptionStartDate: Timestamp?
    /// The next period's offer type.
    public var offerType: Int32?
    /// Apple's `offerDiscountType`.
    public var offerDiscountType: OfferDiscountType?
    /// The account token that the app set.
    public var appAccountToken: UniqueID?
    /// One customer's copy of the app.
    @Packed public var appTransactionID: AppleID?
    /// Apple's billing plan type.
    public var billingPlanType: BillingPlanType?
    /// Whether the commitment renews: 0 off, 1 on.
    public var commitmentAutoRenewStatus: Int32?
    /// The product of the next commitment.
    @Packed public var commitmentAutoRenewProductID: Symbol?
    /// When the commitment renews.
    @Packed public var commitmentRenewalDate: Timestamp?

    /// What stands where there is no renewal info; all such are equal.
    static var none: RenewalFact { RenewalFact(signedDate: .absent, digest: 0) }

    /// Makes a fact with its identity; everything else is set afterwards.
    public init(signedDate: Timestamp, digest: UInt64) {
        self.signedDate = signedDate
        self.digest = digest
    }
}
