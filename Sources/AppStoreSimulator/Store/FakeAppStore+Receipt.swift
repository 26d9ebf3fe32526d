internal import Crypto

// The deprecated verifyReceipt: no token, a shared secret in the body, and nothing signed.

extension FakeAppStore {
    /// The path that it answers.
    public static let receiptPath = ["verifyReceipt"]

    /// The `originalTransactionId` of each subscription that has begun.
    public var subscriptionIDs: [String] {
        subscribers.filter { $0.next > 0 }.map(\.chain.originalTransactionID)
    }

    /// The app receipt of a customer, as an app would send it: base64.
    ///
    /// Apple's is a signed container; this one names whose it is, which is all that is asked of it.
    ///
    /// - Parameters:
    ///   - id: any id of the customer's.
    ///   - environment: where it was made.
    /// - Returns: the text of `receipt-data`.
    public static func receipt(of id: String, in environment: StoreEnvironment) -> String {
        let content: WireValue = [
            "environment": .string(environment.rawValue), "id": .string(id),
        ]
        return Base64.encode(content.bytes)
    }

    private static func content(ofReceipt text: String) -> WireValue? {
        Base64.decode(text).flatMap { WireValue(reading: $0) }
    }

    /// Answers as verifyReceipt does: HTTP 200 always, and what is wrong in `status`.
    func verifyReceipt(_ request: StoreRequest) -> StoreResponse {
        func refusal(_ status: Int64) -> StoreResponse {
            StoreResponse(body: ["status": .integer(status)])
        }
        guard let body = WireValue(reading: request.body),
            let text = body["receipt-data"]?.text, let content = Self.content(ofReceipt: text),
            let id = content["id"]?.text, let place = content["environment"]?.text
        else { return refusal(21_002) }
        guard body["password"]?.text == options.sharedSecret else { return refusal(21_004) }
        guard place == options.environment.rawValue else {
            return refusal(options.environment == .production ? 21_007 : 21_008)
        }
        guard let places = try? customer(id) else { return refusal(21_010) }
        let newestOnly = body["exclude-old-transactions"]?.flag ?? false
        var transactions: [WireValue] = []
        var renewals: [WireValue] = []
        for place in places {
            let standing = subscribers[place].standing(at: now)
            let chain = subscribers[place].chain
            // The newest stands first or last, whichever way the wind blows.
            for known in standing.transactions.reversed()
            where !newestOnly || known.transaction == standing.current {
                transactions.append(Self.receiptItem(known.transaction, chain))
            }
            if let renewal = standing.renewal, let current = standing.current {
                renewals.append(Self.receiptItem(renewal, current, chain))
            }
        }
        var receipt = Self.instants("receipt_creation_date", now)
        receipt.insert(WireMember("bundle_id", .string(options.bundleID)), at: 0)
        let type = options.environment == .production ? "Production" : "ProductionSandbox"
        receipt.insert(WireMember("receipt_type", .string(type)), at: 0)
        receipt += Self.instants("request_date", now)
        receipt.append(WireMember("in_app", .array([])))
        return StoreResponse(
            body: [
                "status": 0, "environment": .string(options.environment.rawValue),
                "receipt": .object(receipt), "latest_receipt_info": .array(transactions),
                "latest_receipt": .string(text), "pending_renewal_info": .array(renewals),
            ]
        )
    }

    private static func receiptItem(
        _ transaction: NoticeTransaction,
        _ chain: Chain
    ) -> WireValue {
        let oneTime = transaction.oneTime
        var members = [
            WireMember("quantity", .string("\(transaction.quantity)")),
            WireMember("product_id", .string(transaction.productID)),
            WireMember("transaction_id", .string(transaction.transactionID)),
            WireMember(
                "original_transaction_id",
                .string(oneTime?.originalTransactionID ?? chain.originalTransactionID)
            ),
        ]
        members += instants("purchase_date", transaction.purchaseDate)
        members += instants(
            "original_purchase_date",
            oneTime == nil ? chain.originalPurchaseDate : transaction.purchaseDate
        )
        if oneTime == nil {
            members += instants("expires_date", transaction.expiresDate)
            members.append(
                WireMember("web_order_line_item_id", .string(transaction.webOrderLineItemID))
            )
            members.append(WireMember("subscription_group_identifier", .string(chain.groupID)))
        }
        let isTrial = transaction.offer?.discountType == "FREE_TRIAL"
        members.append(WireMember("is_trial_period", .string("\(isTrial)")))
        let isIntroductory = transaction.offer?.type == 1 && !isTrial
        members.append(WireMember("is_in_intro_offer_period", .string("\(isIntroductory)")))
        members.append(WireMember("in_app_ownership_type", .string(chain.ownership)))
        if let token = transaction.appAccountToken ?? chain.appAccountToken {
            members.append(WireMember("app_account_token", .string(token)))
        }
        if transaction.isUpgraded { members.append(WireMember("is_upgraded", .string("true"))) }
        if let revocation = transaction.revocation {
            members += instants("cancellation_date", revocation.date)
            members.append(WireMember("cancellation_reason", .string("\(revocation.reason)")))
        }
        return .object(members)
    }

    private static func receiptItem(
        _ renewal: NoticeRenewal,
        _ current: NoticeTransaction,
        _ chain: Chain
    ) -> WireValue {
        var members = [
            WireMember("auto_renew_product_id", .string(renewal.autoRenewProductID)),
            WireMember("product_id", .string(current.productID)),
            WireMember("original_transaction_id", .string(chain.originalTransactionID)),
            WireMember("auto_renew_status", .string("\(renewal.autoRenewStatus)")),
        ]
        if let intent = renewal.expirationIntent {
            members.append(WireMember("expiration_intent", .string("\(intent)")))
        }
        if let isRetrying = renewal.isInBillingRetryPeriod {
            members.append(
                WireMember("is_in_billing_retry_period", .string(isRetrying ? "1" : "0"))
            )
        }
        if let grace = renewal.gracePeriodExpiresDate {
            members += instants("grace_period_expires_date", grace)
        }
        return .object(members)
    }

    /// An instant in two of the forms of receipts; the third is a local time that nobody should use.
    private static func instants(_ name: String, _ instant: Int64) -> [WireMember] {
        [
            WireMember(name, .string(text(of: instant))),
            WireMember("\(name)_ms", .string("\(instant)")),
        ]
    }

    /// `2025-10-09 08:53:20 Etc/GMT`.
    static func text(of instant: Int64) -> String {
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        var days = instant / Span.day
        let seconds = instant % Span.day / 1000
        var year: Int64 = 1970
        func isLeap(_ year: Int64) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }
        while days >= (isLeap(year) ? 366 : 365) {
            days -= isLeap(year) ? 366 : 365
            year += 1
        }
        var month: Int64 = 1
        for length: Int64 in [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
            guard days >= length else { break }
            days -= length
            month += 1
        }
        return "\(year)-\(two(month))-\(two(days + 1)) \(two(seconds / 3600)):"
            + "\(two(seconds / 60 % 60)):\(two(seconds % 60)) Etc/GMT"
    }
}
