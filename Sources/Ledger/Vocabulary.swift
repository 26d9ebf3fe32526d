// Apple's open vocabularies, in Apple's words and Swift's case.

/// Why Apple sent a notification (`notificationType`).
///
/// Apple: appstoreservernotifications/notificationtype.
public enum NotificationType: OpenVocabulary {
    /// Apple's value of that name.
    case subscribed
    /// Apple's value of that name.
    case didRenew
    /// Apple's value of that name.
    case didChangeRenewalPref
    /// Apple's value of that name.
    case didChangeRenewalStatus
    /// Apple's value of that name.
    case offerRedeemed
    /// Apple's value of that name.
    case didFailToRenew
    /// Apple's value of that name.
    case gracePeriodExpired
    /// Apple's value of that name.
    case expired
    /// Apple's value of that name.
    case priceIncrease
    /// Apple's value of that name.
    case priceChange
    /// Apple's value of that name.
    case metadataUpdate
    /// Apple's value of that name.
    case migration
    /// Apple's value of that name.
    case refund
    /// Apple's value of that name.
    case refundDeclined
    /// Apple's value of that name.
    case refundReversed
    /// Apple's value of that name.
    case revoke
    /// Apple's value of that name.
    case consumptionRequest
    /// Apple's value of that name.
    case renewalExtended
    /// Apple's value of that name.
    case renewalExtension
    /// Apple's value of that name.
    case oneTimeCharge
    /// Apple's value of that name.
    case externalPurchaseToken
    /// Apple's value of that name.
    case rescindConsent
    /// Apple's value of that name.
    case unclaimSeats
    /// Apple's value of that name.
    case test
    /// A value that this program does not know yet.
    case unknown(Symbol)

    /// The values known to this program, with Apple's spelling.
    public static let known: [(text: String, value: NotificationType)] = [
        ("SUBSCRIBED", .subscribed),
        ("DID_RENEW", .didRenew),
        ("DID_CHANGE_RENEWAL_PREF", .didChangeRenewalPref),
        ("DID_CHANGE_RENEWAL_STATUS", .didChangeRenewalStatus),
        ("OFFER_REDEEMED", .offerRedeemed),
        ("DID_FAIL_TO_RENEW", .didFailToRenew),
        ("GRACE_PERIOD_EXPIRED", .gracePeriodExpired),
        ("EXPIRED", .expired),
        ("PRICE_INCREASE", .priceIncrease),
        ("PRICE_CHANGE", .priceChange),
        ("METADATA_UPDATE", .metadataUpdate),
        ("MIGRATION", .migration),
        // Apple's changelog spells it so.
        ("MIGRATE", .migration),
        ("REFUND", .refund),
        ("REFUND_DECLINED", .refundDeclined),
        ("REFUND_REVERSED", .refundReversed),
        ("REVOKE", .revoke),
        ("CONSUMPTION_REQUEST", .consumptionRequest),
        ("RENEWAL_EXTENDED", .renewalExtended),
        ("RENEWAL_EXTENSION", .renewalExtension),
        ("ONE_TIME_CHARGE", .oneTimeCharge),
        ("EXTERNAL_PURCHASE_TOKEN", .externalPurchaseToken),
        ("RESCIND_CONSENT", .rescindConsent),
        ("UNCLAIM_SEATS", .unclaimSeats),
        ("TEST", .test),
    ]

    /// The text of an unknown value.
    public var unknownText: Symbol? {
        if case .unknown(let text) = self { text } else { nil }
    }
}

/// What more Apple says of a notification (`subtype`).
///
/// Apple: appstoreservernotifications/subtype.
public enum Subtype: OpenVocabulary {
    /// Apple's value of that name.
    case initialBuy
    /// Apple's value of that name.
    case resubscribe
    /// Apple's value of that name.
    case billingRecovery
    /// Apple's value of that name.
    case upgrade
    /// Apple's value of that name.
    case downgrade
    /// Apple's value of that name.
    case autoRenewEnabled
    /// Apple's value of that name.
    case autoRenewDisabled
    /// Apple's value of that name.
    case gracePeriod
    /// Apple's value of that name.
    case voluntary
    /// Apple's value of that name.
    case billingRetry
    /// Apple's value of that name.
    case priceIncrease
    /// Apple's value of that name.
    case productNotForSale
    /// Apple's value of that name.
    case pending
    /// Apple's value of that name.
    case accepted
    /// Apple's value of that name.
    case summary
    /// Apple's value of that name.
    case success
    /// Apple's value of that name.
    case failure
    /// Apple's value of that name.
    case unreported
    /// Apple's value of that name.
    case created
    /// Apple's value of that name.
    case activeTokenReminder
    /// Apple's value of that name.
    case seats
    /// Apple's value of that name.
    case increaseQuantity
    /// Apple's value of that name.
    case decreaseQuantity
    /// A value that this program does not know yet.
    case unknown(Symbol)

    /// The values known to this program, with Apple's spelling.
    public static let known: [(text: String, value: Subtype)] = [
        ("INITIAL_BUY", .initialBuy),
        ("RESUBSCRIBE", .resubscribe),
        ("BILLING_RECOVERY", .billingRecovery),
        ("UPGRADE", .upgrade),
        ("DOWNGRADE", .downgrade),
        ("AUTO_RENEW_ENABLED", .autoRenewEnabled),
        ("AUTO_RENEW_DISABLED", .autoRenewDisabled),
        ("GRACE_PERIOD", .gracePeriod),
        ("VOLUNTARY", .voluntary),
        ("BILLING_RETRY", .billingRetry),
        ("PRICE_INCREASE", .priceIncrease),
        ("PRODUCT_NOT_FOR_SALE", .productNotForSale),
        ("PENDING", .pending),
        ("ACCEPTED", .accepted),
        ("SUMMARY", .summary),
        ("SUCCESS", .success),
        ("FAILURE", .failure),
        ("UNREPORTED", .unreported),
        ("CREATED", .created),
        ("ACTIVE_TOKEN_REMINDER", .activeTokenReminder),
        ("SEATS", .seats),
        ("INCREASE_QUANTITY", .increaseQuantity),
        ("DECREASE_QUANTITY", .decreaseQuantity),
    ]

    /// The text of an unknown value.
    public var unknownText: Symbol? {
        if case .unknown(let text) = self { text } else { nil }
    }
}

/// Why a customer wishes for a refund (`consumptionRequestReason`).
///
/// Apple: appstoreservernotifications/consumptionrequestreason.
public enum ConsumptionRequestReason: OpenVocabulary {
    /// Apple's value of that name.
    case unintendedPurchase
    /// Apple's value of that name.
    case fulfillmentIssue
    /// Apple's value of that name.
    case unsatisfiedWithPurchase
    /// Apple's value of that name.
    case legal
    /// Apple's value of that name.
    case other
    /// A value that this program does not know yet.
    case unknown(Symbol)

    /// The values known to this program, with Apple's spelling.
    public static let known: [(text: String, value: ConsumptionRequestReason)] = [
        ("UNINTENDED_PURCHASE", .unintendedPurchase),
        ("FULFILLMENT_ISSUE", .fulfillmentIssue),
        ("UNSATISFIED_WITH_PURCHASE", .unsatisfiedWithPurchase),
        ("LEGAL", .legal),
        ("OTHER", .other),
    ]

    /// The text of an unknown value.
    public var unknownText: Symbol? {
        if case .unknown(let text) = self { text } else { nil }
    }
}

/// How a customer came to a transaction (`inAppOwnershipType`).
///
/// Apple: appstoreserverapi/inappownershiptype.
public enum Ownership: OpenVocabulary {
    /// Apple's value of that name.
    case purchased
    /// Apple's value of that name.
    case familyShared
    /// Apple's value of that name.
    case assigned
    /// A value that this program does not know yet.
    case unknown(Symbol)

    /// The values known to this program, with Apple's spelling.
    public static let known: [(text: String, value: Ownership)] = [
        ("PURCHASED", .purchased),
        ("FAMILY_SHARED", .familyShared),
        ("ASSIGNED", .assigned),
    ]

    /// The text of an unknown value.
    public var unknownText: Symbol? {
        if case .unknown(let text) = self { text } else { nil }
    }
}

/// Whether a customer or a renewal made a transaction (`transactionReason`).
///
/// Apple: appstoreserverapi/transactionreason.
public enum TransactionReason: OpenVocabulary {
    /// Apple's value of that name.
    case purchase
    /// Apple's value of that name.
    case renewal
    /// A value that this program does not know yet.
    case unknown(Symbol)

    /// The values known to this program, with Apple's spelling.
    public static let known: [(text: String, value: TransactionReason)] = [
        ("PURCHASE", .purchase),
        ("RENEWAL", .renewal),
    ]

    /// The text of an unknown value.
    public var unknownText: Symbol? {
        if case .unknown(let text) = self { text } else { nil }
    }
}

/// How an offer is paid (`offerDiscountType`).
///
/// Apple: appstoreserverapi/offerdiscounttype.
public enum OfferDiscountType: OpenVocabulary {
    /// Apple's value of that name.
    case freeTrial
    /// Apple's value of that name.
    case payAsYouGo
    /// Apple's value of that name.
    case payUpFront
    /// Apple's value of that name.
    case oneTime
    /// A value that this program does not know yet.
    case unknown(Symbol)

    /// The values known to this program, with Apple's spelling.
    public static let known: [(text: String, value: OfferDiscountType)] = [
        ("FREE_TRIAL", .freeTrial),
        ("PAY_AS_YOU_GO", .payAsYouGo),
        ("PAY_UP_FRONT", .payUpFront),
        ("ONE_TIME", .oneTime),
    ]

    /// The text of an unknown value.
    public var unknownText: Symbol? {
        if case .unknown(let text) = self { text } else { nil }
    }
}

/// What a revocation took back (`revocationType`).
///
/// Apple: appstoreserverapi/revocationtype.
public enum RevocationType: OpenVocabulary {
    /// Apple's value of that name.
    case refundFull
    /// Apple's value of that name.
    case refundProrated
    /// Apple's value of that name.
    case familyRevoke
    /// Apple's value of that name.
    case assignmentRevoke
    /// A value that this program does not know yet.
    case unknown(Symbol)

    /// The values known to this program, with Apple's spelling.
    public static let known: [(text: String, value: RevocationType)] = [
        ("REFUND_FULL", .refundFull),
        ("REFUND_PRORATED", .refundProrated),
        ("FAMILY_REVOKE", .familyRevoke),
        ("ASSIGNMENT_REVOKE", .assignmentRevoke),
    ]

    /// The text of an unknown value.
    public var unknownText: Symbol? {
        if case .unknown(let text) = self { text } else { nil }
    }
}

/// How a plan is billed (`billingPlanType`).
///
/// Apple: appstoreserverapi/billingplantype.
public enum BillingPlanType: OpenVocabulary {
    /// Apple's value of that name.
    case billedUpfront
    /// Apple's value of that name.
    case monthly
    /// A value that this program does not know yet.
    case unknown(Symbol)

    /// The values known to this program, with Apple's spelling.
    public static let known: [(text: String, value: BillingPlanType)] = [
        ("BILLED_UPFRONT", .billedUpfront),
        ("MONTHLY", .monthly),
    ]

    /// The text of an unknown value.
    public var unknownText: Symbol? {
        if case .unknown(let text) = self { text } else { nil }
    }
}

/// Which of Apple's servers a fact belongs to (`environment`).
///
/// Apple: appstoreserverapi/environment.
public enum Environment: OpenVocabulary {
    /// Apple's value of that name.
    case production
    /// Apple's value of that name.
    case sandbox
    /// A value that this program does not know yet.
    case unknown(Symbol)

    /// The values known to this program, with Apple's spelling.
    public static let known: [(text: String, value: Environment)] = [
        ("Production", .production),
        ("Sandbox", .sandbox),
    ]

    /// The text of an unknown value.
    public var unknownText: Symbol? {
        if case .unknown(let text) = self { text } else { nil }
    }
}

/// What is sold (`type`).
///
/// Apple: appstoreserverapi/type.
public enum ProductType: OpenVocabulary {
    /// Apple's value of that name.
    case autoRenewable
    /// Apple's value of that name.
    case nonConsumable
    /// Apple's value of that name.
    case consumable
    /// Apple's value of that name.
    case nonRenewing
    /// A value that this program does not know yet.
    case unknown(Symbol)

    /// The values known to this program, with Apple's spelling.
    public static let known: [(text: String, value: ProductType)] = [
        ("Auto-Renewable Subscription", .autoRenewable),
        ("Non-Consumable", .nonConsumable),
        ("Consumable", .consumable),
        ("Non-Renewing Subscription", .nonRenewing),
    ]

    /// The text of an unknown value.
    public var unknownText: Symbol? {
        if case .unknown(let text) = self { text } else { nil }
    }
}
