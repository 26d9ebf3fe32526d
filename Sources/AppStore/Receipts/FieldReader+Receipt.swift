internal import Ledger

extension FieldReader {
    /// An instant of a receipt in one of the forms that Apple used.
    ///
    /// In this order: `…_ms`, a whole number of milliseconds; the plain member, in early receipts
    /// the milliseconds as well, later `2025-10-09 08:53:20 Etc/GMT`; `…_formatted`, the same text
    /// in early receipts. `…_pst` is not used: it is a local time. Where members are there and none
    /// can be read, that is noted.
    mutating func receiptInstant(_ key: String) -> Timestamp? {
        var isThere = false
        for name in [key + "_ms", key, key + "_formatted"] {
            guard let text = plainText(name), !text.isEmpty else { continue }
            isThere = true
            if let instant = Self.receiptInstant(text) { return instant }
        }
        if isThere || plainText(key + "_pst") != nil { noteUnreadable(key, "not_an_instant") }
        return nil
    }

    /// Reads one of Apple's forms; nil for any other.
    static func receiptInstant(_ text: String) -> Timestamp? {
        let zones = [" Etc/GMT", " Etc/UTC", " GMT", " UTC"]
        if let zone = zones.first(where: { text.hasSuffix($0) }) {
            return Timestamp(parsing: text.dropLast(zone.utf8.count) + "Z")
        }
        guard let instant = Timestamp(parsing: text) else { return nil }
        let isNumber = text.utf8.allSatisfy { (0x30...0x39).contains($0) }
        // The store for apps opened in July 2008; a smaller number is one of seconds.
        return isNumber && instant.milliseconds < 1_215_000_000_000 ? nil : instant
    }

    /// Whether something renews: true or false, as a word, a number or itself.
    mutating func receiptFlag(_ key: String, _ name: String) -> Int32? {
        bool(key, name).map { $0 ? 1 : 0 }
    }

    /// The first of some members that says something.
    mutating func firstSymbol(_ keys: String...) -> Symbol? {
        for key in keys {
            if let symbol = symbol(key, key), !symbol.text.isEmpty { return symbol }
        }
        return nil
    }
}

extension TransactionFact {
    /// Reads a transaction of a receipt.
    init(
        receipt reader: inout FieldReader,
        transactionID: String,
        digest: [UInt8],
        asOf: Timestamp
    ) {
        self.init(
            transactionID: AppleID(transactionID),
            signedDate: asOf,
            digest: digest.prefixNumber
        )
        webOrderLineItemID = reader.appleID("web_order_line_item_id", "web_order_line_item_id")
        productID = reader.symbol("product_id", "product_id")
        subscriptionGroupID = reader.symbol(
            "subscription_group_identifier",
            "subscription_group_identifier"
        )
        purchaseDate = reader.receiptInstant("purchase_date")
        originalPurchaseDate = reader.receiptInstant("original_purchase_date")
        expiresDate = reader.receiptInstant("expires_date")
        quantity = reader.int32("quantity", "quantity")
        ownership = reader.word("in_app_ownership_type", "in_app_ownership_type")
        isUpgraded = reader.bool("is_upgraded", "is_upgraded") ?? false
        let cancelled = reader.receiptInstant("cancellation_date")
        // An upgrade was stamped with a cancellation too, and is no refund.
        if !isUpgraded {
            revocationDate = cancelled
            revocationReason = reader.code(
                "cancellation_reason",
                "cancellation_reason",
                known: 0...1
            )
        }
        appAccountToken = reader.uniqueID("app_account_token", "app_account_token")
        readOffer(receipt: &reader)
    }

    private mutating func readOffer(receipt reader: inout FieldReader) {
        let isTrial = reader.bool("is_trial_period", "is_trial_period") ?? false
        let isIntroductory =
            reader.bool("is_in_intro_offer_period", "is_in_intro_offer_period") ?? false
        if let code = reader.firstSymbol("offer_code_ref_name") {
            (offerType, offerIdentifier) = (3, code)
        } else if let promotion = reader.firstSymbol("promotional_offer_id") {
            (offerType, offerIdentifier) = (2, promotion)
        } else if isTrial || isIntroductory {
            offerType = 1
        }
        if isTrial { offerDiscountType = .freeTrial }
    }
}

extension RenewalFact {
    /// Reads what a receipt says of the next period.
    init(receipt reader: inout FieldReader, digest: [UInt8], asOf: Timestamp) {
        self.init(signedDate: asOf, digest: digest.prefixNumber)
        productID = reader.symbol("product_id", "product_id")
        autoRenewProductID = reader.symbol("auto_renew_product_id", "auto_renew_product_id")
        autoRenewStatus = reader.receiptFlag("auto_renew_status", "auto_renew_status")
        expirationIntent = reader.code("expiration_intent", "expiration_intent", known: 1...5)
        isInBillingRetryPeriod = reader.bool(
            "is_in_billing_retry_period",
            "is_in_billing_retry_period"
        )
        gracePeriodExpiresDate = reader.receiptInstant("grace_period_expires_date")
        priceIncreaseStatus =
            reader.code("price_increase_status", "price_increase_status", known: 0...1)
            ?? reader.code("price_consent_status", "price_consent_status", known: 0...1)
        if let code = reader.firstSymbol("offer_code_ref_name") {
            (offerType, offerIdentifier) = (3, code)
        } else if let promotion = reader.firstSymbol("promotional_offer_id") {
            (offerType, offerIdentifier) = (2, promotion)
        }
    }
}
