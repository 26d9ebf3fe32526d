public import Ledger
public import Postgres

/// The question "whose payment has failed and is not recovered yet".
public struct BillingRecoveryQuery: Hashable, Sendable {
    /// The instant that is asked about.
    public var at: Timestamp
    /// The environment; the two are never mixed.
    public var environment: Environment
    /// Only subscriptions that this account token owned at that instant.
    public var owner: UniqueID?

    /// How many answers are read at a time.
    static let pageSize = 5000

    /// Asks about every subscription of an environment.
    public init(at: Timestamp, environment: Environment = .production, owner: UniqueID? = nil) {
        self.at = at
        self.environment = environment
        self.owner = owner
    }

    /// Hands over each answer, by subscription.
    ///
    /// - Parameters:
    ///   - connection: a session of the reader's role.
    ///   - body: what to do with each answer.
    /// - Throws: `ReadModelError`, and what `body` throws.
    public func forEach(
        _ connection: Connection,
        _ body: (BillingTrouble) throws -> Void
    ) throws {
        try connection.transaction("begin isolation level repeatable read read only") {
            connection in
            var last: SubscriptionKey?
            while true {
                let page = try answers(after: last, limit: Self.pageSize, connection)
                for trouble in page { try body(trouble) }
                guard page.count == Self.pageSize, let end = page.last else { break }
                last = end.key
            }
        }
    }

    /// The answers that follow a subscription, by subscription and app.
    ///
    /// - Parameters:
    ///   - last: the subscription after which to begin; nil begins with the first.
    ///   - limit: how many answers there may be.
    ///   - connection: a session of the reader's role.
    /// - Returns: the answers, so many at most.
    /// - Throws: `ReadModelError`.
    public func answers(
        after last: SubscriptionKey?,
        limit: Int,
        _ connection: Connection
    ) throws(ReadModelError) -> [BillingTrouble] {
        let start = last ?? SubscriptionKey(appID: .min, stream: "")
        return try readModels("look failed payments up") {
            var binds: [Bind] = [
                .text(environment.description), .instant(milliseconds: at.milliseconds),
                .text(start.stream), .int(Int64(start.appID)),
            ]
            var condition = ""
            if let owner {
                binds.append(.uuid(owner.bits))
                condition = " and app_account_token = $5"
            }
            let rows = try connection.query(
                """
                select \(BillingTrouble.columns)
                from read_model.billing_recovery_in($1, $2)
                where (original_transaction_id, app_id) > ($3, $4::integer)\(condition)
                order by original_transaction_id, app_id
                limit \(limit)
                """,
                binds
            )
            return (0..<rows.count).map { BillingTrouble(rows, $0) }
        }
    }
}

/// A payment that has failed and may still be recovered.
public struct BillingTrouble: Hashable, Sendable {
    /// Apple's id of the subscription.
    public var originalTransactionID: String
    /// The environment.
    public var environment: String
    /// The app.
    public var bundleID: String
    /// The product of the period that failed to renew.
    public var productID: String?
    /// The owner.
    public var appAccountToken: UniqueID?
    /// The state's word.
    public var state: String?
    /// Whether our access policy grants access.
    public var entitled: Bool
    /// Whether Apple's line does.
    public var entitledApple: Bool
    /// The end of the contiguous access; nil without access.
    public var accessUntil: Timestamp?
    /// Why it fails, by Apple's `expirationIntent`.
    public var cause: String
    /// Whether the next charge will be attempted.
    public var renewalIntent: String
    /// When Apple first signed that the charge failed.
    public var openedAt: Timestamp
    /// The end of the period that failed to renew.
    public var expiresDate: Timestamp
    /// The end of grace, announced or estimated.
    public var graceUntil: Timestamp?
    /// `apple` or `estimated`.
    public var graceSource: String?
    /// When grace ended; nil while it runs.
    public var graceExhaustedAt: Timestamp?
    /// Until when Apple retries at the longest.
    public var retryDeadline: Timestamp
    /// Days of access since `expiresDate` that nobody paid for, with two decimals.
    public var daysUnpaidAccess: String
    /// What the charge would bring, milliunits of `currency`.
    public var amountAtRisk: Int64?
    /// ISO 4217.
    public var currency: String?
    /// Whether it is the first charge after a free trial.
    public var wasTrialConversion: Bool
    /// The positions of the deciding events.
    public var positions: [Int64]
    /// The highest position among the subscription's events.
    public var knownToPosition: Int64
    /// The app's number in the log.
    public var appID: Int32

    /// The columns in the order in which `init` reads them.
    static let columns = """
        original_transaction_id, environment, bundle_id, product_id, app_account_token, state,
        entitled, entitled_apple, access_until, cause, renewal_intent, opened_at, expires_date,
        grace_until, grace_source, grace_exhausted_at, retry_deadline, days_unpaid_access::text,
        amount_at_risk, currency, was_trial_conversion, positions, known_to_position, app_id
        """

    init(_ rows: Rows, _ row: Int) {
        originalTransactionID = rows.text(row, 0) ?? ""
        environment = rows.text(row, 1) ?? ""
        bundleID = rows.text(row, 2) ?? ""
        productID = rows.text(row, 3)
        appAccountToken = rows.uuid(row, 4).map { UniqueID(bits: $0) }
        state = rows.text(row, 5)
        entitled = rows.bool(row, 6) ?? false
        entitledApple = rows.bool(row, 7) ?? false
        accessUntil = rows.timestamp(row, 8)
        cause = rows.text(row, 9) ?? ""
        renewalIntent = rows.text(row, 10) ?? ""
        openedAt = rows.timestamp(row, 11) ?? .earliest
        expiresDate = rows.timestamp(row, 12) ?? .earliest
        graceUntil = rows.timestamp(row, 13)
        graceSource = rows.text(row, 14)
        graceExhaustedAt = rows.timestamp(row, 15)
        retryDeadline = rows.timestamp(row, 16) ?? .latest
        daysUnpaidAccess = rows.text(row, 17) ?? "0"
        amountAtRisk = rows.int(row, 18)
        currency = rows.text(row, 19)
        wasTrialConversion = rows.bool(row, 20) ?? false
        positions = rows.intArray(row, 21) ?? []
        knownToPosition = rows.int(row, 22) ?? 0
        appID = Int32(rows.int(row, 23) ?? 0)
    }

    /// Writes it as `subledger billing-recovery --json` shows it.
    public func write(to json: inout JSONWriter) {
        json.beginObject()
        json.member("original_transaction_id", originalTransactionID)
        json.member("environment", environment)
        json.member("bundle_id", bundleID)
        json.member("product_id", productID)
        json.member("app_account_token", appAccountToken?.description)
        json.member("state", state)
        json.member("entitled", entitled)
        json.member("entitled_apple", entitledApple)
        json.member("access_until", accessUntil)
        json.member("cause", cause)
        json.member("renewal_intent", renewalIntent)
        json.member("opened_at", openedAt)
        json.member("expires_date", expiresDate)
        json.member("grace_until", graceUntil)
        json.member("grace_source", graceSource)
        json.member("grace_exhausted_at", graceExhaustedAt)
        json.member("retry_deadline", retryDeadline)
        json.key("days_unpaid_access")
        json.raw(daysUnpaidAccess.utf8)
        json.member("amount_at_risk", milliunits: amountAtRisk, currency)
        json.member("was_trial_conversion", wasTrialConversion)
        json.member("positions", positions)
        json.member("known_to_position", knownToPosition)
        json.endObject()
    }
}

extension BillingTrouble {
    /// The subscription whose payment failed.
    var key: SubscriptionKey { SubscriptionKey(appID: appID, stream: originalTransactionID) }
}

extension JSONWriter {
    /// Writes a member with an amount as `{milliunits, currency}`, or null.
    public mutating func member(_ name: String, milliunits: Int64?, _ currency: String?) {
        key(name)
        guard let milliunits else { return null() }
        beginObject()
        member("milliunits", milliunits)
        member("currency", currency)
        endObject()
    }
}
