/// What a signed renewal info says.
public struct NoticeRenewal: Hashable, Sendable {
    /// Apple's `productId`.
    public var productID: String
    /// Apple's `autoRenewProductId`.
    public var autoRenewProductID: String
    /// Apple's `autoRenewStatus`.
    public var autoRenewStatus: Int
    /// Apple's `expirationIntent`.
    public var expirationIntent: Int?
    /// Apple's `isInBillingRetryPeriod`.
    public var isInBillingRetryPeriod: Bool?
    /// Apple's `gracePeriodExpiresDate`.
    public var gracePeriodExpiresDate: Int64?
    /// Apple's `priceIncreaseStatus`.
    public var priceIncreaseStatus: Int?
    /// Apple's `renewalDate`.
    public var renewalDate: Int64
    /// Apple's `renewalPrice`, milliunits.
    public var renewalPrice: Int64
    /// Apple's `recentSubscriptionStartDate`.
    public var recentSubscriptionStartDate: Int64
    /// The offer of the next period.
    public var offer: NoticeOffer?
    /// Apple's `renewalQuantity`: the seats of the next period.
    public var quantity: Int?
    /// What becomes of a 12-month commitment.
    public var commitment: NoticeCommitmentRenewal?
    /// Apple's `eligibleWinBackOfferIds`.
    public var winBackOffers: [String]?
    /// Apple's `appAccountToken`, where it was replaced after the purchase.
    public var appAccountToken: String?
    /// What an Advanced Commerce subscription consists of.
    public var advancedCommerce: NoticeItem?
    /// When this object is signed.
    public var signedDate: Int64

    /// Makes a renewal info with auto-renew on and nothing pending.
    public init(
        productID: String,
        autoRenewStatus: Int = 1,
        renewalDate: Int64,
        renewalPrice: Int64 = 9_990,
        recentSubscriptionStartDate: Int64,
        signedDate: Int64
    ) {
        self.productID = productID
        self.autoRenewProductID = productID
        self.autoRenewStatus = autoRenewStatus
        self.renewalDate = renewalDate
        self.renewalPrice = renewalPrice
        self.recentSubscriptionStartDate = recentSubscriptionStartDate
        self.signedDate = signedDate
    }
}
