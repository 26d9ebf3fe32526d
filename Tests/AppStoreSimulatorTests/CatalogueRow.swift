import AppStoreSimulator

/// One row of the catalogue of notifications: Apple's type and subtype, and the object that speaks.
struct CatalogueRow: Hashable, CustomStringConvertible {
    var type: String
    var subtype: String?
    var object: Object

    enum Object: Hashable {
        /// A transaction and renewal info of the subscription.
        case subscription
        /// A transaction that is no subscription's.
        case purchase
        case summary
        case externalPurchaseToken
        case appData
        case unclaimInfo
        /// Neither a transaction nor another object.
        case nothing
    }

    var description: String { "\(type)/\(subtype ?? "-") about \(object)" }

    init(_ type: String, _ subtype: String? = nil, _ object: Object = .subscription) {
        self.type = type
        self.subtype = subtype
        self.object = object
    }

    /// The row that a notification plays; nil for what is none.
    init?(_ notice: Notice) {
        let object: Object
        switch notice.form {
        case .answer: return nil
        case .summary: object = .summary
        case .externalPurchaseToken: object = .externalPurchaseToken
        case .appData: object = .appData
        case .unclaimInfo: object = .unclaimInfo
        case .data:
            if notice.transaction?.oneTime != nil {
                object = .purchase
            } else if notice.transaction != nil, notice.renewal != nil {
                object = .subscription
            } else {
                object = .nothing
            }
        }
        self.init(notice.type, notice.subtype, object)
    }

    /// All rows: the lifecycle reference, sections 2.1 to 2.4, in their order, and the words that
    /// stand for those that Apple may add.
    static let all: [CatalogueRow] = [
        // Entry and renewal.
        CatalogueRow("SUBSCRIBED", "INITIAL_BUY"),
        CatalogueRow("SUBSCRIBED", "RESUBSCRIBE"),
        CatalogueRow("DID_RENEW"),
        CatalogueRow("DID_RENEW", "BILLING_RECOVERY"),
        CatalogueRow("OFFER_REDEEMED"),
        CatalogueRow("OFFER_REDEEMED", "UPGRADE"),
        CatalogueRow("OFFER_REDEEMED", "DOWNGRADE"),
        CatalogueRow("ONE_TIME_CHARGE", nil, .purchase),
        // Intent and plan.
        CatalogueRow("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED"),
        CatalogueRow("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_ENABLED"),
        CatalogueRow("DID_CHANGE_RENEWAL_STATUS"),
        CatalogueRow("DID_CHANGE_RENEWAL_PREF", "UPGRADE"),
        CatalogueRow("DID_CHANGE_RENEWAL_PREF", "DOWNGRADE"),
        CatalogueRow("DID_CHANGE_RENEWAL_PREF"),
        CatalogueRow("DID_CHANGE_RENEWAL_PREF", "INCREASE_QUANTITY"),
        CatalogueRow("DID_CHANGE_RENEWAL_PREF", "DECREASE_QUANTITY"),
        CatalogueRow("PRICE_INCREASE", "PENDING"),
        CatalogueRow("PRICE_INCREASE", "ACCEPTED"),
        CatalogueRow("PRICE_CHANGE"),
        CatalogueRow("METADATA_UPDATE"),
        CatalogueRow("MIGRATION"),
        CatalogueRow("MIGRATE"),
        // Billing trouble and end.
        CatalogueRow("DID_FAIL_TO_RENEW", "GRACE_PERIOD"),
        CatalogueRow("DID_FAIL_TO_RENEW"),
        CatalogueRow("GRACE_PERIOD_EXPIRED"),
        CatalogueRow("EXPIRED", "VOLUNTARY"),
        CatalogueRow("EXPIRED", "BILLING_RETRY"),
        CatalogueRow("EXPIRED", "PRICE_INCREASE"),
        CatalogueRow("EXPIRED", "PRODUCT_NOT_FOR_SALE"),
        CatalogueRow("EXPIRED"),
        // Money back, sharing, extension, system.
        CatalogueRow("CONSUMPTION_REQUEST"),
        CatalogueRow("CONSUMPTION_REQUEST", nil, .purchase),
        CatalogueRow("REFUND"),
        CatalogueRow("REFUND", nil, .purchase),
        CatalogueRow("REFUND", "SEATS"),
        CatalogueRow("REFUND_DECLINED"),
        CatalogueRow("REFUND_REVERSED"),
        CatalogueRow("REVOKE"),
        CatalogueRow("RENEWAL_EXTENDED"),
        CatalogueRow("RENEWAL_EXTENSION", "FAILURE"),
        CatalogueRow("RENEWAL_EXTENSION", "SUMMARY", .summary),
        CatalogueRow("RENEWAL_EXTENSION", "SUCCESS", .summary),
        CatalogueRow("EXTERNAL_PURCHASE_TOKEN", "CREATED", .externalPurchaseToken),
        CatalogueRow("EXTERNAL_PURCHASE_TOKEN", "ACTIVE_TOKEN_REMINDER", .externalPurchaseToken),
        CatalogueRow("EXTERNAL_PURCHASE_TOKEN", "UNREPORTED", .externalPurchaseToken),
        CatalogueRow("RESCIND_CONSENT", nil, .appData),
        CatalogueRow("UNCLAIM_SEATS", nil, .unclaimInfo),
        CatalogueRow("TEST", nil, .nothing),
        // Anything else.
        CatalogueRow("LOYALTY_CREDIT"),
        CatalogueRow("LOYALTY_CREDIT", "EARNED"),
        CatalogueRow("DID_CHANGE_RENEWAL_PREF", "SIDEGRADE"),
    ]
}
