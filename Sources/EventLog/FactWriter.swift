internal import Ledger
internal import Postgres

/// Writes a fact as the fields of a row of `ledger.fact`, all but the position.
///
/// What PostgreSQL cannot hold (U+0000, instants outside 1970 to 9999) becomes null and is named
/// among the anomalies; it never fails.
struct FactWriter {
    /// The row's fields after the position.
    private(set) var fields = RowBuffer()
    private(set) var anomalies: [String]

    /// Encodes a fact, or that there is none to fold.
    init(_ event: NewEvent, appID: Int32, decoder: Int16) {
        anomalies = event.decodeAnomalies.filter { !$0.utf8.contains(0) }
        fields.text(event.stream)
        fields.int32(appID)
        fields.int16(decoder)
        if let fact = event.fact, isFoldable(fact) {
            write(fact)
        } else {
            fields.null()
            fields.text(event.kind.description)
            fields.text(event.provenance.text)
            writeConsent(of: event)
        }
        fields.textArray(anomalies.isEmpty ? nil : anomalies)
    }

    /// Of what is never folded as such only a withdrawn consent says something: whose, and when.
    private mutating func writeConsent(of event: NewEvent) {
        let customer = event.rescindsConsentOf?.description
        for name in FactColumns.names.dropFirst(6) {
            switch name {
            case "notification_type": fields.text(customer.flatMap { _ in event.notificationType })
            case "signed_at":
                fields.instant(milliseconds: customer.flatMap { _ in event.signedAt?.milliseconds })
            case "app_transaction_id": text(customer, "app_transaction_id")
            default: fields.null()
            }
        }
    }

    /// A fact without a storable instant of its own cannot be put in order.
    private mutating func isFoldable(_ fact: Fact) -> Bool {
        guard !fact.factAt.isStorable else { return true }
        anomalies.append("fact_at:out_of_range")
        return false
    }

    private mutating func write(_ fact: Fact) {
        instant(fact.factAt, "fact_at")
        text(fact.kind.description, "kind")
        fields.text(fact.provenance.text)
        text(fact.notificationType?.description, "notification_type")
        text(fact.subtype?.description, "subtype")
        instant(fact.signedAt, "signed_at")
        fields.int32(fact.status)
        fields.bool(fact.extensionAnswer?.success)
        instant(
            fact.extensionAnswer?.effectiveDate ?? fact.extensionStep?.until,
            "extension_effective_date"
        )
        fields.uuid(fact.linkedOwner?.bits)
        fields.uuid(fact.extensionStep?.request.bits)
        fields.int32(fact.extensionStep?.detail)
        text(fact.consumptionRequestReason?.description, "consumption_request_reason")
        if let transaction = fact.transaction, isKeepable(transaction) {
            write(transaction)
        } else {
            for _ in 0..<34 { fields.null() }
        }
        if let renewal = fact.renewal, isKeepable(renewal) {
            write(renewal)
        } else {
            for _ in 0..<23 { fields.null() }
        }
    }

    private mutating func isKeepable(_ transaction: TransactionFact) -> Bool {
        let isNamed = !transaction.transactionID.description.utf8.contains(0)
        if !isNamed { anomalies.append("transaction_id:not_representable") }
        if !transaction.signedDate.isStorable {
            anomalies.append("transaction_signed_date:out_of_range")
        }
        return isNamed && transaction.signedDate.isStorable
    }

    private mutating func isKeepable(_ renewal: RenewalFact) -> Bool {
        if !renewal.signedDate.isStorable { anomalies.append("renewal_signed_date:out_of_range") }
        return renewal.signedDate.isStorable
    }

    private mutating func write(_ transaction: TransactionFact) {
        fields.text(transaction.transactionID.description)
        fields.instant(milliseconds: transaction.signedDate.milliseconds)
        fields.int64(Int64(bitPattern: transaction.digest))
        text(transaction.webOrderLineItemID?.description, "web_order_line_item_id")
        text(transaction.productID?.text, "product_id")
        text(transaction.subscriptionGroupID?.text, "subscription_group_identifier")
        text(transaction.productType?.description, "type")
        instant(transaction.purchaseDate, "purchase_date")
        instant(transaction.originalPurchaseDate, "original_purchase_date")
        instant(transaction.expiresDate, "expires_date")
        fields.int32(transaction.quantity)
        text(transaction.ownership?.description, "in_app_ownership_type")
        text(transaction.reason?.description, "transaction_reason")
        text(transaction.additionalReason?.text, "additional_reason")
        fields.bool(transaction.isUpgraded)
        instant(transaction.revocationDate, "revocation_date")
        fields.int32(transaction.revocationReason)
        text(transaction.revocationType?.description, "revocation_type")
        fields.int32(transaction.revocationPercentage)
        fields.int32(transaction.revokedSeatQuantity)
        fields.int32(transaction.offerType)
        text(transaction.offerIdentifier?.text, "offer_identifier")
        text(transaction.offerDiscountType?.description, "offer_discount_type")
        text(transaction.offerPeriod?.text, "offer_period")
        fields.int64(transaction.price)
        text(transaction.currency?.text, "currency")
        text(transaction.storefront?.text, "storefront")
        fields.uuid(transaction.appAccountToken?.bits)
        text(transaction.appTransactionID?.description, "app_transaction_id")
        text(transaction.billingPlanType?.description, "billing_plan_type")
        instant(transaction.commitmentExpiresDate, "commitment_expires_date")
        fields.int32(transaction.billingPeriodNumber)
        fields.int32(transaction.totalBillingPeriods)
        text(
            transaction.previousOriginalTransactionID?.description,
            "previous_original_transaction_id"
        )
    }

    private mutating func write(_ renewal: RenewalFact) {
        fields.instant(milliseconds: renewal.signedDate.milliseconds)
        fields.int64(Int64(bitPattern: renewal.digest))
        text(renewal.productID?.text, "renewal_product_id")
        text(renewal.autoRenewProductID?.text, "auto_renew_product_id")
        fields.int32(renewal.autoRenewStatus)
        fields.int32(renewal.expirationIntent)
        fields.bool(renewal.isInBillingRetryPeriod)
        instant(renewal.gracePeriodExpiresDate, "grace_period_expires_date")
        fields.int32(renewal.priceIncreaseStatus)
        instant(renewal.renewalDate, "renewal_date")
        fields.int64(renewal.renewalPrice)
        text(renewal.currency?.text, "renewal_currency")
        instant(renewal.recentSubscriptionStartDate, "recent_subscription_start_date")
        fields.int32(renewal.offerType)
        text(renewal.offerIdentifier?.text, "renewal_offer_identifier")
        text(renewal.offerDiscountType?.description, "renewal_offer_discount_type")
        fields.uuid(renewal.appAccountToken?.bits)
        text(renewal.appTransactionID?.description, "renewal_app_transaction_id")
        text(renewal.billingPlanType?.description, "renewal_billing_plan_type")
        fields.int32(renewal.commitmentAutoRenewStatus)
        text(renewal.commitmentAutoRenewProductID?.text, "commitment_auto_renew_product_id")
        instant(renewal.commitmentRenewalDate, "commitment_renewal_date")
        fields.int32(renewal.renewalQuantity)
    }

    private mutating func text(_ value: String?, _ column: String) {
        if let value, value.utf8.contains(0) {
            anomalies.append("\(column):not_representable")
            fields.null()
        } else {
            fields.text(value)
        }
    }

    private mutating func instant(_ value: Timestamp?, _ column: String) {
        if let value, !value.isStorable {
            anomalies.append("\(column):out_of_range")
            fields.null()
        } else {
            fields.instant(milliseconds: value?.milliseconds)
        }
    }
}
