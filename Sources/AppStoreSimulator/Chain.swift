/// What stays the same for one subscription chain, and the JSON of what Apple says about it.
public struct Chain: Hashable, Sendable {
    /// Apple's `originalTransactionId`.
    public var originalTransactionID: String
    /// Apple's `originalPurchaseDate`, ms since 1970.
    public var originalPurchaseDate: Int64
    /// Apple's `bundleId`.
    public var bundleID: String
    /// Apple's `appAppleId`.
    public var appAppleID: Int64?
    /// Apple's `environment`.
    public var environment: String
    /// Apple's `subscriptionGroupIdentifier`.
    public var groupID: String
    /// Apple's `appAccountToken`.
    public var appAccountToken: String?
    /// Apple's `appTransactionId`.
    public var appTransactionID: String
    /// Where the customer's account lives.
    public var storefront: Storefront

    /// A storefront and its currency.
    public struct Storefront: Hashable, Sendable {
        /// Apple's `storefront`, ISO 3166-1 alpha-3.
        public var code: String
        /// Apple's `storefrontId`.
        public var id: String
        /// ISO 4217.
        public var currency: String

        /// Makes a storefront.
        public init(code: String, id: String, currency: String) {
            self.code = code
            self.id = id
            self.currency = currency
        }

        /// The United States.
        public static let usa = Storefront(code: "USA", id: "143441", currency: "USD")
    }

    /// Makes a chain of the simulated app in the sandbox.
    public init(
        originalTransactionID: String,
        originalPurchaseDate: Int64,
        bundleID: String = "com.example.subledger",
        appAppleID: Int64? = 1_234_567_890,
        environment: String = "Sandbox",
        groupID: String = "20001001",
        appAccountToken: String? = nil,
        appTransactionID: String = "704000000000000001",
        storefront: Storefront = .usa
    ) {
        self.originalTransactionID = originalTransactionID
        self.originalPurchaseDate = originalPurchaseDate
        self.bundleID = bundleID
        self.appAppleID = appAppleID
        self.environment = environment
        self.groupID = groupID
        self.appAccountToken = appAccountToken
        self.appTransactionID = appTransactionID
        self.storefront = storefront
    }

    /// The payload of a signed transaction, with Apple's names in Apple's order.
    public func payload(_ transaction: NoticeTransaction) -> WireValue {
        var out = Members()
        out.add("transactionId", transaction.transactionID)
        out.add("originalTransactionId", originalTransactionID)
        out.add("webOrderLineItemId", transaction.webOrderLineItemID)
        out.add("bundleId", bundleID)
        out.add("productId", transaction.productID)
        out.add("subscriptionGroupIdentifier", groupID)
        out.add("purchaseDate", transaction.purchaseDate)
        out.add("originalPurchaseDate", originalPurchaseDate)
        out.add("expiresDate", transaction.expiresDate)
        out.add("quantity", 1)
        out.add("type", "Auto-Renewable Subscription")
        out.add("appAccountToken", appAccountToken)
        out.add("inAppOwnershipType", "PURCHASED")
        out.add("signedDate", transaction.signedDate)
        if let revocation = transaction.revocation {
            out.add("revocationReason", Int64(revocation.reason))
            out.add("revocationDate", revocation.date)
            out.add("revocationType", revocation.type)
            out.add("revocationPercentage", Int64(revocation.percentage))
        }
        if transaction.isUpgraded { out.members.append(WireMember("isUpgraded", true)) }
        out.add(transaction.offer)
        out.add("environment", environment)
        out.add("transactionReason", transaction.reason.rawValue)
        out.add("storefront", storefront.code)
        out.add("storefrontId", storefront.id)
        out.add("price", transaction.price)
        out.add("currency", storefront.currency)
        out.add("appTransactionId", appTransactionID)
        return .object(out.members)
    }

    /// The payload of a signed renewal info.
    public func payload(_ renewal: NoticeRenewal) -> WireValue {
        var out = Members()
        out.add("expirationIntent", renewal.expirationIntent.map(Int64.init))
        out.add("originalTransactionId", originalTransactionID)
        out.add("autoRenewProductId", renewal.autoRenewProductID)
        out.add("productId", renewal.productID)
        out.add("autoRenewStatus", Int64(renewal.autoRenewStatus))
        if let isRetrying = renewal.isInBillingRetryPeriod {
            out.members.append(WireMember("isInBillingRetryPeriod", .bool(isRetrying)))
        }
        out.add("priceIncreaseStatus", renewal.priceIncreaseStatus.map(Int64.init))
        out.add("gracePeriodExpiresDate", renewal.gracePeriodExpiresDate)
        out.add(renewal.offer)
        out.add("renewalPrice", renewal.renewalPrice)
        out.add("currency", storefront.currency)
        out.add("signedDate", renewal.signedDate)
        out.add("environment", environment)
        out.add("recentSubscriptionStartDate", renewal.recentSubscriptionStartDate)
        out.add("renewalDate", renewal.renewalDate)
        out.add("appAccountToken", appAccountToken)
        out.add("appTransactionId", appTransactionID)
        return .object(out.members)
    }

    /// The payload of a notification around two nested JWS.
    public func payload(
        _ notice: Notice,
        signedTransactionInfo: WireValue?,
        signedRenewalInfo: WireValue?
    ) -> WireValue {
        var data = Members()
        data.add("appAppleId", appAppleID)
        data.add("bundleId", bundleID)
        data.add("bundleVersion", "4102")
        data.add("environment", environment)
        if let signedTransactionInfo {
            data.members.append(WireMember("signedTransactionInfo", signedTransactionInfo))
        }
        if let signedRenewalInfo {
            data.members.append(WireMember("signedRenewalInfo", signedRenewalInfo))
        }
        data.add("status", notice.status.map(Int64.init))
        data.add("consumptionRequestReason", notice.consumptionRequestReason)
        var out = Members()
        out.add("notificationType", notice.type)
        out.add("subtype", notice.subtype)
        out.add("notificationUUID", notice.uuid)
        out.members.append(WireMember("data", .object(data.members)))
        out.add("version", "2.0")
        out.add("signedDate", notice.signedDate)
        return .object(out.members)
    }
}

/// Collects the members that are there; an absent value is left out, as Apple does.
private struct Members {
    var members: [WireMember] = []

    init() { members.reserveCapacity(28) }

    mutating func add(_ name: String, _ text: String?) {
        if let text { members.append(WireMember(name, .string(text))) }
    }

    mutating func add(_ name: String, _ number: Int64?) {
        if let number { members.append(WireMember(name, .integer(number))) }
    }

    mutating func add(_ offer: NoticeOffer?) {
        guard let offer else { return }
        add("offerType", Int64(offer.type))
        add("offerIdentifier", offer.identifier)
        add("offerDiscountType", offer.discountType)
        add("offerPeriod", offer.period)
    }
}
