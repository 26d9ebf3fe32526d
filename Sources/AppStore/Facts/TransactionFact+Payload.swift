internal import Ledger

extension TransactionFact {
    /// Reads a decoded transaction; nil where it has no `transactionId` or `signedDate`, without
    /// which a fact has no place.
    init?(_ reader: inout FieldReader, digest: [UInt8]) {
        let id = reader.appleID("transactionId", "transaction_id")
        let signedDate = reader.instant("signedDate", "signed_date")
        guard let id, let signedDate else {
            if id == nil { reader.missing("transaction_id") }
            return nil
        }
        self.init(transactionID: id, signedDate: signedDate, digest: digest.prefixNumber)
        webOrderLineItemID = reader.appleID("webOrderLineItemId", "web_order_line_item_id")
        productID = reader.symbol("productId", "product_id")
        subscriptionGroupID = reader.symbol(
            "subscriptionGroupIdentifier",
            "subscription_group_identifier"
        )
        productType = reader.word("type", "type")
        purchaseDate = reader.instant("purchaseDate", "purchase_date")
        originalPurchaseDate = reader.instant("originalPurchaseDate", "original_purchase_date")
        expiresDate = reader.instant("expiresDate", "expires_date")
        quantity = reader.int32("quantity", "quantity")
        ownership = reader.word("inAppOwnershipType", "in_app_ownership_type")
        reason = reader.word("transactionReason", "transaction_reason")
        additionalReason = reader.symbol(
            "additionalTransactionReason",
            "additional_transaction_reason"
        )
        isUpgraded = reader.bool("isUpgraded", "is_upgraded") ?? false
        readRevocation(&reader)
        readOffer(&reader)
        price = reader.int64("price", "price")
        currency = reader.symbol("currency", "currency")
        storefront = reader.symbol("storefront", "storefront")
        appAccountToken = reader.uniqueID("appAccountToken", "app_account_token")
        appTransactionID = reader.appleID("appTransactionId", "app_transaction_id")
        billingPlanType = reader.word("billingPlanType", "billing_plan_type")
        previousOriginalTransactionID = reader.appleID(
            "previousOriginalTransactionId",
            "previous_original_transaction_id"
        )
        if var commitment = reader.object("commitmentInfo", "commitment_info") {
            commitmentExpiresDate = commitment.instant(
                "commitmentExpiresDate",
                "commitment_expires_date"
            )
            billingPeriodNumber = commitment.int32("billingPeriodNumber", "billing_period_number")
            totalBillingPeriods = commitment.int32("totalBillingPeriods", "total_billing_periods")
            reader.take(commitment)
        }
    }

    private mutating func readRevocation(_ reader: inout FieldReader) {
        revocationDate = reader.instant("revocationDate", "revocation_date")
        revocationReason = reader.code("revocationReason", "revocation_reason", known: 0...1)
        revocationType = reader.word("revocationType", "revocation_type")
        revocationPercentage = reader.int32("revocationPercentage", "revocation_percentage")
        revokedSeatQuantity = reader.int32("revokedSeatQuantity", "revoked_seat_quantity")
        // Where Apple nests it is not documented.
        if revokedSeatQuantity == nil, var seats = reader.object("multiSeatInfo", "multi_seat_info")
        {
            revokedSeatQuantity = seats.int32("revokedSeatQuantity", "revoked_seat_quantity")
            reader.take(seats)
        }
    }

    private mutating func readOffer(_ reader: inout FieldReader) {
        offerType = reader.code("offerType", "offer_type", known: 1...4)
        offerIdentifier = reader.symbol("offerIdentifier", "offer_identifier")
        offerDiscountType = reader.word("offerDiscountType", "offer_discount_type")
        offerPeriod = reader.symbol("offerPeriod", "offer_period")
    }
}

extension RenewalFact {
    /// Reads a decoded renewal info; nil where it has no `signedDate`.
    init?(_ reader: inout FieldReader, digest: [UInt8]) {
        guard let signedDate = reader.instant("signedDate", "signed_date") else { return nil }
        self.init(signedDate: signedDate, digest: digest.prefixNumber)
        productID = reader.symbol("productId", "product_id")
        autoRenewProductID = reader.symbol("autoRenewProductId", "auto_renew_product_id")
        autoRenewStatus = reader.code("autoRenewStatus", "auto_renew_status", known: 0...1)
        expirationIntent = reader.code("expirationIntent", "expiration_intent", known: 1...5)
        isInBillingRetryPeriod = reader.bool(
            "isInBillingRetryPeriod",
            "is_in_billing_retry_period"
        )
        gracePeriodExpiresDate = reader.instant(
            "gracePeriodExpiresDate",
            "grace_period_expires_date"
        )
        priceIncreaseStatus = reader.code(
            "priceIncreaseStatus",
            "price_increase_status",
            known: 0...1
        )
        renewalDate = reader.instant("renewalDate", "renewal_date")
        renewalPrice = reader.int64("renewalPrice", "renewal_price")
        currency = reader.symbol("currency", "currency")
        recentSubscriptionStartDate = reader.instant(
            "recentSubscriptionStartDate",
            "recent_subscription_start_date"
        )
        offerType = reader.code("offerType", "offer_type", known: 1...4)
        offerIdentifier = reader.symbol("offerIdentifier", "offer_identifier")
        offerDiscountType = reader.word("offerDiscountType", "offer_discount_type")
        appAccountToken = reader.uniqueID("appAccountToken", "app_account_token")
        appTransactionID = reader.appleID("appTransactionId", "app_transaction_id")
        billingPlanType = reader.word("renewalBillingPlanType", "renewal_billing_plan_type")
        renewalQuantity = reader.int32("renewalQuantity", "renewal_quantity")
        if var commitment = reader.object("commitmentInfo", "commitment_info") {
            commitmentAutoRenewStatus = commitment.code(
                "commitmentAutoRenewStatus",
                "commitment_auto_renew_status",
                known: 0...1
            )
            commitmentAutoRenewProductID = commitment.symbol(
                "commitmentAutoRenewProductId",
                "commitment_auto_renew_product_id"
            )
            commitmentRenewalDate = commitment.instant(
                "commitmentRenewalDate",
                "commitment_renewal_date"
            )
            reader.take(commitment)
        }
    }
}

extension [UInt8] {
    /// The first eight bytes as a number, most significant first.
    var prefixNumber: UInt64 { prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
}
