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
        if marker == 0, status == 0, consent == 0, renewal > 0 {
            // Mostly so; the general way would make two more arrays for each interval.
            if transaction == renewal || transaction <= 0 { return [renewal] }
            return [min(transaction, renewal), max(transaction, renewal)]
        }
        var result: [Int64] = []
        for position in [transaction, renewal, marker, status, consent].sorted()
        where position > 0 {
            if result.last != position { result.append(position) }
        }
        return result
    }
}
