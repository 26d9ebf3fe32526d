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
    /// Milliunits of the chain's currency; nil for what somebody else pays for.
    public var price: Int64?
    /// Apple's `quantity`: the seats of a multiseat purchase.
    public var quantity = 1
    /// The seats of a multiseat purchase.
    public var seats: NoticeSeats?
    /// The payment of a 12-month commitment that this is.
    public var commitment: NoticeCommitment?
    /// Apple's `appAccountToken`, where it was replaced after the purchase.
    public var appAccountToken: String?
    /// What an Advanced Commerce subscription consists of.
    public var advancedCommerce: NoticeItem?
    /// Set for what is no subscription.
    public var oneTime: OneTimePurchase?
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
        public var percentage: Int?

        /// Makes a full refund, or a part of one.
        public init(
            date: Int64,
            reason: Int = 0,
            type: String = "REFUND_FULL",
            percentage: Int? = 100_000
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
