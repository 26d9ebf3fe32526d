/// Which object of a payload speaks, for notifications; or that it is no notification.
public enum NoticeForm: Hashable, Sendable {
    /// A notification's `data`.
    case data
    /// No notification: a signed transaction or renewal info as the Server API's answers have it
    /// (Get All Subscription Statuses, Get Transaction History), a bare JWS.
    case answer
    /// A notification's `summary` of a mass extension.
    case summary(MassExtension)
    /// A notification's `externalPurchaseToken`.
    case externalPurchaseToken(ExternalToken)
    /// A notification's `appData`: a guardian withdrew consent.
    case appData
    /// A notification's `unclaimInfo`: Apple took these developer-hosted seats back.
    case unclaimInfo(seatIDs: [String])

    /// What a mass extension came to.
    public struct MassExtension: Hashable, Sendable {
        /// Apple's `requestIdentifier`.
        public var requestIdentifier: String
        /// Apple's `productId`.
        public var productID: String
        /// Apple's `succeededCount`.
        public var succeeded: Int
        /// Apple's `failedCount`.
        public var failed: Int
        /// Apple's `storefrontCountryCodes`; nil for all of them.
        public var storefronts: [String]?
    }

    /// An external purchase token.
    public struct ExternalToken: Hashable, Sendable {
        /// Apple's `externalPurchaseId`; in the sandbox it begins with `SANDBOX`.
        public var id: String
        /// Apple's `tokenCreationDate`.
        public var created: Int64
        /// Apple's `tokenExpirationDate`, for custom links only.
        public var expires: Int64?
        /// Apple's `tokenType`, for custom links only.
        public var type: String?
    }
}

/// What a transaction says of its seats.
public struct NoticeSeats: Hashable, Sendable {
    /// Apple's `invitationManagement`: `APPLE` or `DEVELOPER`.
    public var invitationManagement: String
    /// Apple's `revokedSeatQuantity`.
    public var revoked: Int?
    /// Apple's `additionalTransactionReason`, where several transactions stand for one period.
    public var additionalReason: String?
}

/// Which payment of a 12-month commitment a transaction is.
public struct NoticeCommitment: Hashable, Sendable {
    /// Apple's `billingPeriodNumber`, from 1.
    public var number: Int
    /// Apple's `totalBillingPeriods`.
    public var total: Int
    /// Apple's `commitmentExpiresDate`.
    public var expires: Int64
    /// Apple's `commitmentPrice`, milliunits.
    public var price: Int64
}

/// What becomes of a 12-month commitment at its end.
public struct NoticeCommitmentRenewal: Hashable, Sendable {
    /// Apple's `commitmentAutoRenewStatus`.
    public var autoRenewStatus: Int
    /// Apple's `commitmentAutoRenewProductId`.
    public var autoRenewProductID: String
    /// Apple's `commitmentRenewalDate`.
    public var renewalDate: Int64
    /// Apple's `commitmentRenewalPrice`, milliunits.
    public var renewalPrice: Int64
}

/// The one item of an Advanced Commerce subscription.
public struct NoticeItem: Hashable, Sendable {
    /// Apple's `SKU`.
    public var sku: String
    /// Apple's `displayName`.
    public var displayName: String
    /// Apple's `price`, milliunits.
    public var price: Int64
}

/// What makes a transaction one of no subscription.
public struct OneTimePurchase: Hashable, Sendable {
    /// Apple's `originalTransactionId`: a purchase of its own.
    public var originalTransactionID: String
    /// Apple's `type`, such as `Consumable`.
    public var type: String
}
