/// All that the events of one subscription say: what happened, what will, and what was odd.
public struct History: Hashable, Sendable {
    /// Half-open intervals without gaps from the first purchase on; the last is open-ended.
    ///
    /// Empty where the stream holds no auto-renewable subscription (a consumable, a test).
    public var timeline: [Interval] = []
    /// The steps of the state machine, in the order of the facts.
    public var transitions: [Transition] = []
    /// The steps that the table of expected transitions does not have, and other oddities.
    public var anomalies: [Anomaly] = []
    /// Who owned the subscription when, in order; empty for an unattributed one.
    public var ownership: [OwnershipInterval] = []
    /// The charges that failed, in the order of the periods that they were to renew.
    public var failures: [BillingFailure] = []
    /// The purchases and renewals that have dates, in order of their start, as last signed.
    public var charges: [Charge] = []
    /// The refunds that Apple undid, in the order in which it did.
    public var reversals: [RefundReversal] = []
    /// The refunds of seats, in the order of their signatures.
    public var seatRefunds: [SeatRefund] = []
    /// The requests to extend and the extensions that nobody here asked for, in order.
    public var extensions: [ExtensionRecord] = []
    /// The transaction whose period began last, as last signed.
    public var latestTransaction: TransactionFact?
    /// The renewal info as last signed.
    public var latestRenewal: RenewalFact?
    /// Apple's status as last told.
    public var latestStatus: Int32?
    /// When Apple signed the newest of the facts.
    public var lastSignedAt: Timestamp?
    /// The highest position among the events.
    public var knownToPosition: Int64 = 0

    /// Makes the history of no events.
    public init() {}

    /// The subscription that a migration made this one of; a later charge need not repeat it.
    public var previousOriginalTransactionID: AppleID? {
        latestTransaction?.previousOriginalTransactionID
            ?? charges.lazy.compactMap(\.previousOriginalTransactionID).first
    }

    /// Makes it the history of no events again and keeps its memory.
    mutating func reset() {
        timeline.reset()
        transitions.reset()
        anomalies.reset()
        ownership.reset()
        failures.reset()
        charges.reset()
        reversals.reset()
        seatRefunds.reset()
        extensions.reset()
        latestTransaction = nil
        latestRenewal = nil
        latestStatus = nil
        lastSignedAt = nil
        knownToPosition = 0
    }
}

extension Array {
    /// Empties it and keeps its memory, at no cost where it is empty.
    mutating func reset() {
        if !isEmpty { removeAll(keepingCapacity: true) }
    }
}

/// A half-open stretch of time `[from, until)` in which nothing changes.
public struct Interval: Hashable, Sendable {
    /// The first instant.
    public var from: Timestamp
    /// The first instant after it; nil where it never ends.
    @Packed public var until: Timestamp?
    /// The state of the subscription.
    public var state: SubscriptionState
    /// Whether Apple's line grants access: active and grace period.
    public var entitledApple: Bool
    /// Whether our access policy grants access.
    public var entitled: Bool
    /// The version of the access policy that decided `entitled`.
    public var policyVersion: Int32
    /// Which product it is about: that of the covering or else the last transaction.
    @Packed public var productID: Symbol?
    /// The covering or else the last transaction.
    @Packed public var transactionID: AppleID?
    /// The end of its paid period.
    @Packed public var expiresDate: Timestamp?
    /// The end of the grace period, where one was announced or estimated.
    @Packed public var gracePeriodExpiresDate: Timestamp?
    /// What kind of period it is.
    public var offer: OfferPhase
    /// Whether the next charge will be attempted.
    public var renewalIntent: RenewalIntent
    /// Whether another commitment follows this one; unknown for any other plan.
    ///
    /// The charges of a commitment go on after the customer cancelled, and only this tells.
    public var commitmentIntent = RenewalIntent.unknown
    /// The product of the next period where it is another one.
    @Packed public var pendingProductID: Symbol?
    /// Whether a price increase waits for the customer.
    public var priceConsent: PriceConsent
    /// How the customer came to it.
    public var ownership: Ownership
    /// What the covering transaction cost, milliunits of `currency`.
    public var price: Int64?
    /// ISO 4217.
    @Packed public var currency: Symbol?
    /// How sure the state is.
    public var confidence: Confidence
    /// Whether a failed charge was announced while the paid period still runs.
    public var hasBillingTrouble: Bool
    /// The positions of the events that decided it.
    public var deciding: DecidingPositions

    /// Makes an interval.
    public init(
        from: Timestamp,
        until: Timestamp?,
        state: SubscriptionState,
        entitledApple: Bool = false,
        entitled: Bool = false,
        policyVersion: Int32 = 1,
        productID: Symbol? = nil,
        transactionID: AppleID? = nil,
        expiresDate: Timestamp? = nil,
        gracePeriodExpiresDate: Timestamp? = nil,
        offer: OfferPhase = .standard,
        renewalIntent: RenewalIntent = .unknown,
        pendingProductID: Symbol? = nil,
        priceConsent: PriceConsent = .none,
        ownership: Ownership = .purchased,
        price: Int64? = nil,
        currency: Symbol? = nil,
        confidence: Confidence = .confirmed,
        hasBillingTrouble: Bool = false,
        deciding: DecidingPositions = DecidingPositions()
    ) {
        self.from = from
        self.until = until
        self.state = state
        self.entitledApple = entitledApple
        self.entitled = entitled
        self.policyVersion = policyVersion
        self.productID = productID
        self.transactionID = transactionID
        self.expiresDate = expiresDate
        self.gracePeriodExpiresDate = gracePeriodExpiresDate
        self.offer = offer
        self.renewalIntent = renewalIntent
        self.pendingProductID = pendingProductID
        self.priceConsent = priceConsent
        self.ownership = ownership
        self.price = price
        self.currency = currency
        self.confidence = confidence
        self.hasBillingTrouble = hasBillingTrouble
        self.deciding = deciding
    }

    /// Whether the instant lies within the interval.
    public func contains(_ instant: Timestamp) -> Bool {
        from <= instant && until.map { instant < $0 } ?? true
    }
}

/// The state of a subscription.
public enum SubscriptionState: Hashable, Sendable {
    /// A paid or free period covers the instant.
    case active
    /// The period is over, auto-renew is on and no news has come yet.
    case renewalPending
    /// The charge failed and Apple's grace period runs.
    case gracePeriod
    /// The charge failed and Apple retries without grace.
    case billingRetry
    /// It is over.
    case expired(ExpirationCause)
    /// Apple took it back.
    case revoked(RevocationCause)

    /// The word used in read models and answers.
    public var name: String {
        switch self {
        case .active: "active"
        case .renewalPending: "renewal_pending"
        case .gracePeriod: "grace_period"
        case .billingRetry: "billing_retry"
        case .expired: "expired"
        case .revoked: "revoked"
        }
    }

    /// The cause's word for `expired` and `revoked`.
    public var cause: String? {
        switch self {
        case .expired(let cause): cause.rawValue
        case .revoked(let cause): cause.rawValue
        default: nil
        }
    }
}

/// Why a subscription expired: Apple's words, and our `presumed`.
public enum ExpirationCause: String, Hashable, Sendable, CaseIterable {
    /// The customer turned auto-renew off.
    case voluntary
    /// The charge failed to the end.
    case billingRetry = "billing_retry"
    /// No consent to a higher price.
    case priceIncrease = "price_increase"
    /// The product was taken off sale.
    case productNotForSale = "product_not_for_sale"
    /// Apple names no cause.
    case other
    /// No news came; only the clock says so.
    case presumed
}

/// Why a subscription was revoked.
public enum RevocationCause: String, Hashable, Sendable, CaseIterable {
    /// The period was refunded.
    case refund
    /// The rest of the period was refunded.
    case refundProrated = "refund_prorated"
    /// Family sharing ended.
    case familyRevoke = "family_revoke"
    /// An assigned seat was taken back.
    case assignmentRevoke = "assignment_revoke"
}

/// What kind of period it is.
public enum OfferPhase: String, Hashable, Sendable, CaseIterable {
    /// No offer.
    case standard
    /// A free trial.
    case trial
    /// A paid introductory offer.
    case intro
    /// A promotional offer.
    case promotional
    /// An offer code.
    case offerCode = "offer_code"
    /// A win-back offer.
    case winBack = "win_back"
    /// An offer of a type that this program does not know.
    case unknown
}

/// Whether the next charge will be attempted.
public enum RenewalIntent: String, Hashable, Sendable, CaseIterable {
    /// It will.
    case on
    /// It will not.
    case off
    /// Nothing says so.
    case unknown
}

/// Whether a price increase waits for the customer.
public enum PriceConsent: String, Hashable, Sendable, CaseIterable {
    /// No increase is known.
    case none
    /// Apple waits for consent.
    case pending
    /// The customer consented, or was informed where that is enough.
    case accepted
}

/// How sure a state is.
public enum Confidence: String, Hashable, Sendable, CaseIterable {
    /// Apple's signature says so.
    case confirmed
    /// Only an unsigned word of Apple's says so, its answer to an extension or a receipt, until a
    /// signed one does.
    case provisional
    /// A date was estimated from configuration.
    case estimated
    /// Only the clock says so: no news came.
    case clock
}

/// The positions of the events that decided an interval; 0 where there is none.
public struct DecidingPositions: Hashable, Sendable {
    /// The event that holds the transaction as it counted.
    public var transaction: Int64 = 0
    /// The event that holds the renewal info as it counted.
    public var renewal: Int64 = 0
    /// The event that marked a failure, the end of grace or the expiry.
    public var marker: Int64 = 0
    /// The event that told Apple's status, where it filled a hole.
    public var status: Int64 = 0
    /// The event by which a guardian withdrew consent, where that takes our access away.
    public var consent: Int64 = 0

    /// Makes an empty set.
    public init() {}

    /// The positions in ascending order, each once.
    public var sorted: [Int64] {
        var result: [Int64] = []
        for position in [transaction, renewal, marker, status, consent].sorted()
        where position > 0 {
            if result.last != position { result.append(position) }
        }
        return result
    }
}

/// One step of the state machine.
public struct Transition: Hashable, Sendable {
    /// The state before, nil at the beginning.
    public var from: SubscriptionState?
    /// The state after.
    public var to: SubscriptionState
    /// When it took effect.
    public var effectiveAt: Timestamp
    /// The event that caused it.
    public var position: Int64

    /// Makes a step.
    public init(
        from: SubscriptionState?,
        to: SubscriptionState,
        effectiveAt: Timestamp,
        position: Int64
    ) {
        self.from = from
        self.to = to
        self.effectiveAt = effectiveAt
        self.position = position
    }
}

/// Something odd, kept and shown, never an error.
public struct Anomaly: Hashable, Sendable {
    /// What is odd.
    public var kind: Kind
    /// The event in which it shows.
    public var position: Int64

    /// What can be odd.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// A step that the table of expected transitions does not have.
        case unexpectedTransition = "unexpected_transition"
        /// Two facts of one register, signed in the same millisecond, with different content.
        case orderConflict = "order_conflict"
        /// A notification type, subtype, ownership, offer or status that we do not know.
        case unknownValue = "unknown_value"
        /// Apple's status says another thing than the timeline at the instant at which it was signed.
        case statusDisagrees = "status_disagrees"
        /// Grace was announced without its end.
        case missingGraceDate = "missing_grace_date"
        /// Two account tokens at one time.
        case ownerConflict = "owner_conflict"
        /// A subscription's transaction without the dates that a period needs.
        case missingDates = "missing_dates"
        /// The subtype and `expirationIntent` name different causes.
        case causeDisagrees = "cause_disagrees"
        /// The product is in no configuration; its level counts as the lowest.
        case unknownProduct = "unknown_product"
    }

    /// Makes an anomaly.
    public init(kind: Kind, position: Int64) {
        self.kind = kind
        self.position = position
    }
}

/// Who owned a subscription from when to when.
public struct OwnershipInterval: Hashable, Sendable {
    /// The account token.
    public var owner: UniqueID
    /// The first instant.
    public var from: Timestamp
    /// The first instant after it; nil for the present owner.
    public var until: Timestamp?
    /// The event that says so.
    public var position: Int64
    /// Whether an operator linked it, not Apple's token.
    public var isLinked: Bool

    /// Makes an interval.
    public init(
        owner: UniqueID,
        from: Timestamp,
        until: Timestamp?,
        position: Int64,
        isLinked: Bool
    ) {
        self.owner = owner
        self.from = from
        self.until = until
        self.position = position
        self.isLinked = isLinked
    }
}
