public import Ledger
internal import Postgres

/// Who has access to what, from when to when, and why.
///
/// `subscription` has one row for each subscription: what is known of it apart from any instant.
/// `entitlement_interval` has its timeline, `subscription_owner` its owners. What a question
/// "at T" needs is in one interval's row, the bounds of the state and of the access run included:
/// nothing is left to compute when it is asked.
public struct Entitlement: Projection {
    /// `entitlement`.
    public static let name = "entitlement"
    /// The version of the rows.
    public static let version: Int32 = 6
    /// `subscription`, `entitlement_interval`, `subscription_owner`.
    public static let tables = [subscription, interval, owner]

    /// Makes the projection.
    public init() {}

    /// Adds one subscription's rows; none where the stream holds no subscription.
    public func write(_ history: History, of subject: Subject, into rows: inout ProjectedRows) {
        guard let birth = history.timeline.first?.from else { return }
        let owners = OwnerRun.runs(of: history.ownership, from: birth)
        let present = owners.last.flatMap { $0.until == nil ? $0 : nil }
        rows.row(0) { Self.write(history, of: subject, owner: present, into: &$0) }
        let handovers = owners.flatMap { [$0.from, $0.until].compactMap(\.self) }
        for span in EntitlementSpan.spans(of: history.timeline, splitAt: handovers) {
            rows.row(1) { Self.write(span, of: subject, into: &$0) }
        }
        for run in owners {
            rows.row(2) { Self.write(run, of: subject, into: &$0) }
        }
    }
}

// MARK: - The tables

extension Entitlement {
    static let subscription = Table(
        name: "subscription",
        columns: [
            "app_id", "stream", "original_purchase_date", "product_id",
            "subscription_group_identifier", "level", "ownership", "app_account_token",
            "owner_since", "app_transaction_id", "previous_original_transaction_id",
            "transaction_id", "web_order_line_item_id", "transaction_signed_at", "purchase_date",
            "expires_date", "quantity", "price", "currency", "storefront", "billing_plan_type",
            "commitment_expires_date", "renewal_signed_at", "auto_renew_status",
            "auto_renew_product_id", "is_in_billing_retry_period", "grace_period_expires_date",
            "expiration_intent", "price_increase_status", "renewal_date", "renewal_price",
            "renewal_currency", "renewal_quantity", "commitment_auto_renew_status", "status",
            "last_signed_at", "anomalies", "known_to_position", "refund_requested_at",
            "refund_answer_by", "refund_decision", "refund_request_reason",
        ]
    )

    static let interval = Table(
        name: "entitlement_interval",
        columns: [
            "app_id", "stream", "valid_from", "valid_until", "state", "cause", "state_from",
            "state_until", "entitled_apple", "entitled", "access_until_apple", "access_until",
            "policy_version", "product_id", "level", "transaction_id", "expires_date",
            "grace_period_expires_date", "offer", "renewal_intent", "pending_product_id",
            "price_consent", "ownership", "price", "currency", "confidence",
            "has_billing_trouble", "positions",
        ],
        instantKey: "valid_from"
    )

    static let owner = Table(
        name: "subscription_owner",
        columns: [
            "app_id", "stream", "valid_from", "valid_until", "app_account_token", "position",
            "is_linked",
        ],
        instantKey: "valid_from"
    )
}

// MARK: - The rows

extension Entitlement {
    private static func write(
        _ history: History,
        of subject: Subject,
        owner: OwnerRun?,
        into row: inout RowBuffer
    ) {
        let transaction = history.latestTransaction
        let renewal = history.latestRenewal
        let product = transaction?.productID.flatMap { subject.rules.products[$0] }
        row.int32(subject.appID)
        row.text(subject.stream)
        row.instant(transaction?.originalPurchaseDate)
        row.text(transaction?.productID)
        row.text(transaction?.subscriptionGroupID ?? product?.groupID)
        row.int32(product.map { Int32(clamping: $0.level) })
        row.text(transaction?.ownership?.description)
        row.uuid(owner?.owner.bits)
        row.instant(owner?.from)
        row.text((transaction?.appTransactionID ?? renewal?.appTransactionID))
        row.text(history.previousOriginalTransactionID)
        row.text(transaction?.transactionID)
        row.text(transaction?.webOrderLineItemID)
        row.instant(transaction?.signedDate)
        row.instant(transaction?.purchaseDate)
        row.instant(transaction?.expiresDate)
        row.int32(transaction?.quantity)
        row.int64(transaction?.price)
        row.text(transaction?.currency)
        row.text(transaction?.storefront)
        row.text(transaction?.billingPlanType?.description)
        row.instant(transaction?.commitmentExpiresDate)
        row.instant(renewal?.signedDate)
        row.int32(renewal?.autoRenewStatus)
        row.text(renewal?.autoRenewProductID)
        row.bool(renewal?.isInBillingRetryPeriod)
        row.instant(renewal?.gracePeriodExpiresDate)
        row.int32(renewal?.expirationIntent)
        row.int32(renewal?.priceIncreaseStatus)
        row.instant(renewal?.renewalDate)
        row.int64(renewal?.renewalPrice)
        row.text(renewal?.currency)
        row.int32(renewal?.renewalQuantity)
        row.int32(renewal?.commitmentAutoRenewStatus)
        row.int32(history.latestStatus)
        row.instant(history.lastSignedAt)
        row.textArray(anomalies(of: history))
        row.int64(history.knownToPosition)
        let refund = history.refundCases.last
        row.instant(refund?.askedAt)
        row.instant(refund?.answerBy)
        row.text(refund?.decision?.rawValue)
        row.text(refund?.reason?.description)
    }

    /// The kinds of the anomalies, each once, in the order of their declaration.
    private static func anomalies(of history: History) -> [String] {
        guard !history.anomalies.isEmpty else { return [] }
        let seen = Set(history.anomalies.map(\.kind))
        return Anomaly.Kind.allCases.filter(seen.contains).map(\.rawValue)
    }

    private static func write(
        _ span: EntitlementSpan,
        of subject: Subject,
        into row: inout RowBuffer
    ) {
        let interval = span.interval
        let product = interval.productID.flatMap { subject.rules.products[$0] }
        row.int32(subject.appID)
        row.text(subject.stream)
        row.instant(interval.from)
        row.end(interval.until)
        row.text(interval.state.name)
        row.text(interval.state.cause)
        row.instant(span.stateFrom)
        row.end(span.stateUntil)
        row.bool(interval.entitledApple)
        row.bool(interval.entitled)
        if interval.entitledApple { row.end(span.accessUntilApple) } else { row.null() }
        if interval.entitled { row.end(span.accessUntil) } else { row.null() }
        row.int32(interval.policyVersion)
        row.text(interval.productID)
        row.int32(product.map { Int32(clamping: $0.level) })
        row.text(interval.transactionID)
        row.instant(interval.expiresDate)
        row.instant(interval.gracePeriodExpiresDate)
        row.text(interval.offer.rawValue)
        row.text(interval.renewalIntent.rawValue)
        row.text(interval.pendingProductID)
        row.text(interval.priceConsent.rawValue)
        row.text(interval.ownership.description)
        row.int64(interval.price)
        row.text(interval.currency)
        row.text(interval.confidence.rawValue)
        row.bool(interval.hasBillingTrouble)
        row.int64Array(interval.deciding.sorted)
    }

    private static func write(
        _ run: OwnerRun,
        of subject: Subject,
        into row: inout RowBuffer
    ) {
        row.int32(subject.appID)
        row.text(subject.stream)
        row.instant(run.from)
        row.end(run.until)
        row.uuid(run.owner.bits)
        row.int64(run.position)
        row.bool(run.isLinked)
    }
}

extension RowBuffer {
    /// Adds an instant or null.
    mutating func instant(_ value: Timestamp?) { instant(milliseconds: value?.milliseconds) }

    /// Adds an exclusive end, infinity where there is none.
    mutating func end(_ value: Timestamp?) {
        if let value { instant(milliseconds: value.milliseconds) } else { infinity() }
    }

    /// Adds an identifier's text or null.
    mutating func text(_ value: AppleID?) {
        guard let value else { return null() }
        if let number = value.number { text(decimal: number) } else { text(value.description) }
    }

    /// Adds a symbol's text or null.
    mutating func text(_ value: Symbol?) { text(value?.text) }
}
