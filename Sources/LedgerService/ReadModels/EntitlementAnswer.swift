public import EventLog
public import Ledger
internal import Postgres

/// What the read model says of one subscription in one stretch of time.
public struct EntitlementAnswer: Hashable, Sendable {
    /// Apple's id of the subscription.
    public var originalTransactionID: String
    /// The app and the environment.
    public var app: AppKey
    /// The app's number in the log.
    public var appID: Int32
    /// The product of the covering, or else the last, transaction.
    public var productID: String?
    /// The state's word.
    public var state: String
    /// Why it expired or was revoked.
    public var cause: String?
    /// Whether our access policy grants access.
    public var entitled: Bool
    /// Whether Apple's line does.
    public var entitledApple: Bool
    /// The stretch in which nothing changes; `validUntil` is when the answer may change next.
    public var validFrom: Timestamp
    /// Nil where it never changes.
    public var validUntil: Timestamp?
    /// The first instant of the contiguous run of the state.
    public var stateFrom: Timestamp
    /// The first instant after that run; nil where it never ends.
    public var stateUntil: Timestamp?
    /// The end of Apple's contiguous access; nil without access and where it never ends.
    public var accessUntilApple: Timestamp?
    /// The end of the contiguous access; nil without access and where it never ends.
    public var accessUntil: Timestamp?
    /// The end of the paid period.
    public var expiresDate: Timestamp?
    /// The end of the grace period, announced or estimated.
    public var gracePeriodExpiresDate: Timestamp?
    /// How sure the state is.
    public var confidence: String
    /// Whether the next charge will be attempted.
    public var renewalIntent: String
    /// The product of the next period where it is another one.
    public var pendingProductID: String?
    /// Whether a price increase waits for the customer.
    public var priceConsent: String
    /// Whether a failed charge was announced while the period runs.
    public var hasBillingTrouble: Bool
    /// What kind of period it is.
    public var offer: String
    /// How the customer came to it.
    public var ownership: String
    /// The subscription group.
    public var subscriptionGroupID: String?
    /// The product's rank in its group, 1 the highest.
    public var level: Int32?
    /// The owner in this stretch.
    public var appAccountToken: UniqueID?
    /// One customer's copy of the app.
    public var appTransactionID: String?
    /// The covering, or else the last, transaction.
    public var transactionID: String?
    /// The version of the access policy that decided.
    public var policyVersion: Int32
    /// The highest position among the subscription's events.
    public var knownToPosition: Int64
    /// The positions of the deciding events.
    public var positions: [Int64]
    /// How it belongs to the owner who was asked about: `own`, `alias`, `family`, `assigned` or
    /// `customer`; nil where nobody was.
    public var via: String?
    /// Whether it is the one that counts for that owner and the group.
    public var counts: Bool?
}

extension EntitlementAnswer {
    /// The columns in the order in which `init` reads them.
    static let columns = """
        original_transaction_id, bundle_id, environment, app_id, product_id, state, cause,
        entitled, entitled_apple, valid_from, valid_until, state_from, state_until,
        access_until_apple, access_until, expires_date, grace_period_expires_date, confidence,
        renewal_intent, pending_product_id, price_consent, has_billing_trouble, offer, ownership,
        subscription_group_identifier, level, app_account_token, app_transaction_id,
        transaction_id, policy_version, known_to_position, positions
        """

    init(_ rows: Rows, _ row: Int, ofOwner: Bool = false) {
        originalTransactionID = rows.text(row, 0) ?? ""
        app = AppKey(
            bundleID: rows.text(row, 1) ?? "",
            environment: Environment(rows.text(row, 2) ?? "")
        )
        appID = Int32(rows.int(row, 3) ?? 0)
        productID = rows.text(row, 4)
        state = rows.text(row, 5) ?? ""
        cause = rows.text(row, 6)
        entitled = rows.bool(row, 7) ?? false
        entitledApple = rows.bool(row, 8) ?? false
        validFrom = rows.timestamp(row, 9) ?? .earliest
        validUntil = rows.timestamp(row, 10)
        stateFrom = rows.timestamp(row, 11) ?? .earliest
        stateUntil = rows.timestamp(row, 12)
        accessUntilApple = rows.timestamp(row, 13)
        accessUntil = rows.timestamp(row, 14)
        expiresDate = rows.timestamp(row, 15)
        gracePeriodExpiresDate = rows.timestamp(row, 16)
        confidence = rows.text(row, 17) ?? ""
        renewalIntent = rows.text(row, 18) ?? ""
        pendingProductID = rows.text(row, 19)
        priceConsent = rows.text(row, 20) ?? ""
        hasBillingTrouble = rows.bool(row, 21) ?? false
        offer = rows.text(row, 22) ?? ""
        ownership = rows.text(row, 23) ?? ""
        subscriptionGroupID = rows.text(row, 24)
        level = rows.int(row, 25).map { Int32($0) }
        appAccountToken = rows.uuid(row, 26).map { UniqueID(bits: $0) }
        appTransactionID = rows.text(row, 27)
        transactionID = rows.text(row, 28)
        policyVersion = Int32(rows.int(row, 29) ?? 0)
        knownToPosition = rows.int(row, 30) ?? 0
        positions = rows.intArray(row, 31) ?? []
        guard ofOwner else { return }
        via = rows.text(row, 32)
        counts = rows.bool(row, 33)
    }

    /// Writes the answer as `subledger entitlements --json` shows it: `from` and `until` bound the
    /// state, `access_until*` end the contiguous access, `recheck_at` is when the answer may
    /// change next.
    public func write(to json: inout JSONWriter) {
        json.beginObject()
        json.member("original_transaction_id", originalTransactionID)
        json.member("environment", app.environment.description)
        json.member("bundle_id", app.bundleID)
        writeState(to: &json, from: stateFrom, until: stateUntil)
        json.member("subscription_group_identifier", subscriptionGroupID)
        json.member("app_account_token", appAccountToken?.description)
        json.member("app_transaction_id", appTransactionID)
        json.member("policy_version", policyVersion)
        json.member("known_to_position", knownToPosition)
        json.member("positions", positions)
        if let via, let counts {
            json.member("via", via)
            json.member("counts", counts)
        }
        json.endObject()
    }

    /// Writes the members that both an answer and a stretch of a timeline have.
    func writeState(to json: inout JSONWriter, from: Timestamp, until: Timestamp?) {
        json.member("product_id", productID)
        json.member("state", state)
        json.member("cause", cause)
        json.member("entitled", entitled)
        json.member("entitled_apple", entitledApple)
        json.member("from", from)
        json.member("until", until)
        json.member("access_until_apple", accessUntilApple)
        json.member("access_until", accessUntil)
        json.member("recheck_at", validUntil)
        json.member("expires_date", expiresDate)
        json.member("grace_period_expires_date", gracePeriodExpiresDate)
        json.member("confidence", confidence)
        json.member("renewal_intent", renewalIntent)
        json.member("pending_product_id", pendingProductID)
        json.member("offer", offer)
        json.member("ownership", ownership)
    }
}

extension JSONWriter {
    /// Writes a member with an instant, RFC 3339 in UTC with milliseconds, or null.
    public mutating func member(_ name: String, _ value: Timestamp?) {
        member(name, value?.description)
    }

    /// Writes a member with an array of integers.
    public mutating func member(_ name: String, _ values: [Int64]) {
        key(name)
        beginArray()
        for value in values { int(value) }
        endArray()
    }
}

extension Rows {
    /// The field, a `timestamptz`; nil for null and for infinity.
    func timestamp(_ row: Int, _ column: Int) -> Timestamp? {
        guard let value = instant(row, column), value != .max, value != .min else { return nil }
        return Timestamp(milliseconds: value)
    }
}
