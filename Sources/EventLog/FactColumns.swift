/// The columns of `ledger.fact`, in the one order in which they are written and read.
enum FactColumns {
    /// The names after `position`.
    static let names = [
        "stream", "app_id", "decoder", "fact_at", "kind", "provenance", "notification_type",
        "subtype", "signed_at", "status", "extension_success", "extension_effective_date",
        "linked_owner", "extension_request", "extension_detail", "consumption_request_reason",
        // The signed transaction.
        "transaction_id", "transaction_signed_date", "transaction_digest",
        "web_order_line_item_id", "product_id", "subscription_group_identifier", "type",
        "purchase_date", "original_purchase_date", "expires_date", "quantity",
        "in_app_ownership_type", "transaction_reason", "additional_reason", "is_upgraded",
        "revocation_date", "revocation_reason", "revocation_type", "revocation_percentage",
        "revoked_seat_quantity", "offer_type", "offer_identifier", "offer_discount_type",
        "offer_period", "price", "currency", "storefront", "app_account_token",
        "app_transaction_id", "billing_plan_type", "commitment_expires_date",
        "billing_period_number", "total_billing_periods", "previous_original_transaction_id",
        // The signed renewal info.
        "renewal_signed_date", "renewal_digest", "renewal_product_id", "auto_renew_product_id",
        "auto_renew_status", "expiration_intent", "is_in_billing_retry_period",
        "grace_period_expires_date", "price_increase_status", "renewal_date", "renewal_price",
        "renewal_currency", "recent_subscription_start_date", "renewal_offer_type",
        "renewal_offer_identifier", "renewal_offer_discount_type", "renewal_app_account_token",
        "renewal_app_transaction_id", "renewal_billing_plan_type",
        "commitment_auto_renew_status", "commitment_auto_renew_product_id",
        "commitment_renewal_date", "renewal_quantity",
    ]

    /// `position` and the names, as a COPY that reads them lists them.
    static let read = (["position"] + names).joined(separator: ", ")

    /// The same and what only the log's own readers want.
    static let written = read + ", decode_anomalies"

    /// How many columns a written row has.
    static let writtenCount = names.count + 2
}
