/// A half-open stretch of time `[from, until)` in one state.
public struct TruthInterval: Hashable, Sendable {
    /// The first instant, ms since 1970.
    public var from: Int64
    /// The first instant after it; nil where it never ends.
    public var until: Int64?
    /// The state and why.
    public var condition: TruthCondition
    /// The product of the covering or else the last transaction.
    public var productID: String

    /// Makes an interval.
    public init(from: Int64, until: Int64?, condition: TruthCondition, productID: String) {
        self.from = from
        self.until = until
        self.condition = condition
        self.productID = productID
    }
}

/// A state of a subscription with its cause.
public struct TruthCondition: Hashable, Sendable {
    /// The state's word in read models.
    public var state: State
    /// Why, for `expired` and `revoked`.
    public var cause: String?

    /// The states, by the word that read models use.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// A paid or free period covers the instant.
        case active
        /// The period is over, auto-renew is on and no news has come.
        case renewalPending = "renewal_pending"
        /// The charge failed and grace runs.
        case gracePeriod = "grace_period"
        /// The charge failed and Apple retries without grace.
        case billingRetry = "billing_retry"
        /// It is over.
        case expired
        /// Apple took it back.
        case revoked
    }

    /// Makes a condition.
    public init(state: State, cause: String? = nil) {
        self.state = state
        self.cause = cause
    }

    /// Whether Apple's line grants access.
    public var isEntitledByApple: Bool { state == .active || state == .gracePeriod }

    static let active = TruthCondition(state: .active)
    static let renewalPending = TruthCondition(state: .renewalPending)
    static let gracePeriod = TruthCondition(state: .gracePeriod)
    static let billingRetry = TruthCondition(state: .billingRetry)
    static func expired(_ cause: String) -> TruthCondition {
        TruthCondition(state: .expired, cause: cause)
    }
    static func revoked(_ revocation: NoticeTransaction.Revocation) -> TruthCondition {
        let cause =
            switch revocation.type {
            case "REFUND_PRORATED": "refund_prorated"
            case "FAMILY_REVOKE": "family_revoke"
            case "ASSIGNMENT_REVOKE": "assignment_revoke"
            default: "refund"
            }
        return TruthCondition(state: .revoked, cause: cause)
    }
}

extension TruthInterval {
    /// Joins neighbours that say the same.
    static func joined(_ intervals: [TruthInterval]) -> [TruthInterval] {
        var out: [TruthInterval] = []
        for interval in intervals where interval.until.map({ interval.from < $0 }) ?? true {
            if let last = out.last, last.until == interval.from,
                last.condition == interval.condition, last.productID == interval.productID
            {
                out[out.count - 1].until = interval.until
            } else {
                out.append(interval)
            }
        }
        return out
    }

    /// The interval as truth files have it.
    var wireValue: WireValue {
        [
            "from": .integer(from),
            "until": until.map { .integer($0) } ?? .null,
            "state": .string(condition.state.rawValue),
            "cause": condition.cause.map { .string($0) } ?? .null,
            "productId": .string(productID),
            "entitledApple": .bool(condition.isEntitledByApple),
        ]
    }
}
