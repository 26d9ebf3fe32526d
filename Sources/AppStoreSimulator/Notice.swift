/// One App Store Server Notification before it is signed: what Apple says, and when.
///
/// Instants are milliseconds since 1970. What never changes within a chain stands in `Chain`.
public struct Notice: Hashable, Sendable {
    /// Apple's `notificationUUID`.
    public var uuid: String
    /// Apple's `notificationType`.
    public var type: String
    /// Apple's `subtype`.
    public var subtype: String?
    /// When the envelope is signed.
    public var signedDate: Int64
    /// Apple's `status`, 1…5.
    public var status: Int?
    /// Apple's `consumptionRequestReason`.
    public var consumptionRequestReason: String?
    /// What becomes `signedTransactionInfo`.
    public var transaction: NoticeTransaction?
    /// What becomes `signedRenewalInfo`.
    public var renewal: NoticeRenewal?

    /// Makes a notice.
    public init(
        uuid: String,
        type: String,
        subtype: String? = nil,
        signedDate: Int64,
        status: Int? = nil,
        transaction: NoticeTransaction? = nil,
        renewal: NoticeRenewal? = nil
    ) {
        self.uuid = uuid
        self.type = type
        self.subtype = subtype
        self.signedDate = signedDate
        self.status = status
        self.transaction = transaction
        self.renewal = renewal
    }
}

/// What a signed transaction says of itself.
public struct NoticeTransaction: Hashable, Sendable {
    /// Apple's `transactionId`.
    public var transactionID: String
    /// Apple's `webOrderLineItemId`.
    public var webOrderLineItemID: String
    /// Apple's `productId`.
    public var productID: String
    /// Apple's `purchaseDate`.
    public var purchaseDate: Int64
    /// Apple's `expiresDate`.
    public var expiresDate: Int64
    /// Apple's `transactionReason`.
    public var reason: Reason
    /// Apple's `isUpgraded`.
    public var isUpgraded = false
    /// What took it back.
    public var revocation: Revocation?
    /// The offer that the period was bought with.
    public var offer: NoticeOffer?
    /// Milliunits of the chain's currency.
    public var price: Int64
    /// When this object is signed.
    public var signedDate: Int64

    /// Apple's `transactionReason`.
    public enum Reason: String, Hashable, Sendable {
        /// The customer bought.
        case purchase = "PURCHASE"
        /// Apple renewed.
        case renewal = "RENEWAL"
    }

    /// What took a transaction back.
    public struct Revocation: Hashable, Sendable {
        /// Apple's `revocationDate`.
        public var date: Int64
        /// Apple's `revocationReason`.
        public var reason: Int
        /// Apple's `revocationType`.
        public var type: String
        /// Apple's `revocationPercentage`, 100000 = 100 %.
        public var percentage: Int

        /// Makes a full refund, or a part of one.
        public init(
            date: Int64,
            reason: Int = 0,
            type: String = "REFUND_FULL",
            percentage: Int = 100_000
        ) {
            self.date = date
            self.reason = reason
            self.type = type
            self.percentage = percentage
        }
    }

    /// Makes a transaction.
    public init(
        transactionID: String,
        productID: String,
        purchaseDate: Int64,
        expiresDate: Int64,
        reason: Reason,
        price: Int64 = 9_990,
        signedDate: Int64
    ) {
        self.transactionID = transactionID
        self.webOrderLineItemID = transactionID
        self.productID = productID
        self.purchaseDate = purchaseDate
        self.expiresDate = expiresDate
        self.reason = reason
        self.price = price
        self.signedDate = signedDate
    }
}

/// An offer of a period: introductory, promotional, by code or to win back.
public struct NoticeOffer: Hashable, Sendable {
    /// Apple's `offerType`, 1…4.
    public var type: Int
    /// Apple's `offerDiscountType`.
    public var discountType: String
    /// Apple's `offerPeriod`.
    public var period: String
    /// Apple's `offerIdentifier`; introductory offers have none.
    public var identifier: String?

    /// Makes an offer.
    public init(type: Int, discountType: String, period: String, identifier: String? = nil) {
        self.type = type
        self.discountType = discountType
        self.period = period
        self.identifier = identifier
    }
}

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
