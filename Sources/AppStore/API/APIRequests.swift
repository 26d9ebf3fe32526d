public import Ledger

/// Why a renewal date is extended, as Apple numbers it.
public enum ExtendReasonCode: Int, Hashable, Sendable, CaseIterable {
    /// Not said.
    case undeclared = 0
    /// To satisfy a customer.
    case customerSatisfaction = 1
    /// Something else.
    case other = 2
    /// A service issue or an outage.
    case serviceIssue = 3
}

/// What is said with the extension of one subscription.
public struct RenewalExtension: Hashable, Sendable {
    /// By how many days, 1 to 90.
    public var days: Int
    /// Why.
    public var reason: ExtendReasonCode
    /// What Apple knows a repeated request again by, 1 to 128 characters.
    public var requestIdentifier: String

    /// Says it.
    public init(days: Int, reason: ExtendReasonCode, requestIdentifier: String) {
        self.days = days
        self.reason = reason
        self.requestIdentifier = requestIdentifier
    }

    func body() throws(APIRefusal) -> [UInt8] {
        try RenewalExtension.check(days: days)
        guard (1...128).contains(requestIdentifier.unicodeScalars.count) else {
            throw APIRefusal(
                AppleErrorCode(4_000_011),
                "a request identifier has 1 to 128 characters"
            )
        }
        let json =
            "{\"extendByDays\":\(days),\"extendReasonCode\":\(reason.rawValue),"
            + "\"requestIdentifier\":\(JSONQuoting.quoted(requestIdentifier))}"
        return Array(json.utf8)
    }

    static func check(days: Int) throws(APIRefusal) {
        guard (1...90).contains(days) else {
            throw APIRefusal(AppleErrorCode(4_000_009), "\(days) days; wanted is 1 to 90")
        }
    }
}

/// What is said with the extension of all active subscribers of a product.
public struct MassRenewalExtension: Hashable, Sendable {
    /// By how many days, 1 to 90.
    public var days: Int
    /// Why.
    public var reason: ExtendReasonCode
    /// What Apple knows the request again by.
    public var requestIdentifier: UniqueID
    /// Whose subscribers.
    public var productID: String
    /// In which storefronts, ISO 3166-1 alpha-3; nil for all.
    public var storefronts: [String]?

    /// Says it.
    public init(
        days: Int,
        reason: ExtendReasonCode,
        requestIdentifier: UniqueID,
        productID: String,
        storefronts: [String]? = nil
    ) {
        self.days = days
        self.reason = reason
        self.requestIdentifier = requestIdentifier
        self.productID = productID
        self.storefronts = storefronts
    }

    func body() throws(APIRefusal) -> [UInt8] {
        try RenewalExtension.check(days: days)
        guard !productID.isEmpty else {
            throw APIRefusal(AppleErrorCode(4_000_023), "empty; wanted is a product id")
        }
        var json =
            "{\"extendByDays\":\(days),\"extendReasonCode\":\(reason.rawValue),"
            + "\"requestIdentifier\":\"\(requestIdentifier)\","
            + "\"productId\":\(JSONQuoting.quoted(productID))"
        if let storefronts {
            guard !storefronts.isEmpty else {
                throw APIRefusal(
                    AppleErrorCode(4_000_027),
                    "the list of storefronts is empty; leave it out for all"
                )
            }
            for code in storefronts {
                guard code.utf8.count == 3, code.utf8.allSatisfy({ 0x41...0x5A ~= $0 }) else {
                    throw APIRefusal(
                        AppleErrorCode(4_000_028),
                        "\(code); wanted are three capital letters, such as USA"
                    )
                }
            }
            let list = storefronts.map { "\"\($0)\"" }.joined(separator: ",")
            json += ",\"storefrontCountryCodes\":[\(list)]"
        }
        return Array((json + "}").utf8)
    }
}

/// What is told Apple about a purchase whose refund a customer asks for (v2).
public struct ConsumptionInformation: Hashable, Sendable {
    /// Whether it was delivered.
    public enum DeliveryStatus: String, Hashable, Sendable, CaseIterable {
        /// It was, and works.
        case delivered = "DELIVERED"
        /// Not, for its quality.
        case qualityIssue = "UNDELIVERED_QUALITY_ISSUE"
        /// Not: the wrong thing was.
        case wrongItem = "UNDELIVERED_WRONG_ITEM"
        /// Not: the server was out.
        case serverOutage = "UNDELIVERED_SERVER_OUTAGE"
        /// Not, for another reason.
        case other = "UNDELIVERED_OTHER"
    }

    /// What we would like Apple to do.
    public enum RefundPreference: String, Hashable, Sendable, CaseIterable {
        /// No refund.
        case decline = "DECLINE"
        /// All of it.
        case grantFull = "GRANT_FULL"
        /// The part that was not consumed.
        case grantProrated = "GRANT_PRORATED"
    }

    /// Whether the customer agreed that this is told; Apple takes it only with true.
    public var customerConsented: Bool
    /// Whether it was delivered.
    public var deliveryStatus: DeliveryStatus
    /// Whether a sample could be tried before.
    public var sampleContentProvided: Bool
    /// How much was consumed, in milliunits of a percent; never for a subscription that renews.
    public var consumptionPercentage: Int?
    /// What we would like Apple to do.
    public var refundPreference: RefundPreference?

    /// Says what Apple requires.
    public init(
        customerConsented: Bool,
        deliveryStatus: DeliveryStatus,
        sampleContentProvided: Bool
    ) {
        self.customerConsented = customerConsented
        self.deliveryStatus = deliveryStatus
        self.sampleContentProvided = sampleContentProvided
    }

    func body() throws(APIRefusal) -> [UInt8] {
        guard customerConsented else {
            throw APIRefusal(
                AppleErrorCode(4_000_035),
                "without the customer's consent nothing may be told"
            )
        }
        var json =
            "{\"customerConsented\":true,\"deliveryStatus\":\"\(deliveryStatus.rawValue)\","
            + "\"sampleContentProvided\":\(sampleContentProvided)"
        if let percentage = consumptionPercentage {
            // Apple names these two rules without a number that was ever seen.
            guard (0...100_000).contains(percentage) else {
                throw APIRefusal(
                    AppleErrorCode(4_000_000),
                    "ConsumptionPercentageOutOfRange: \(percentage); wanted is 0 to 100000"
                )
            }
            guard deliveryStatus == .delivered || percentage == 0 else {
                throw APIRefusal(
                    AppleErrorCode(4_000_000),
                    "UndeliveredConsumptionPercentageNonZero: \(percentage)"
                )
            }
            json += ",\"consumptionPercentage\":\(percentage)"
        }
        if let refundPreference {
            json += ",\"refundPreference\":\"\(refundPreference.rawValue)\""
        }
        return Array((json + "}").utf8)
    }
}
