/// All that the events of one subscription say: what happened, what will, and what was odd.
public struct History: Hashable, Sendable {
    /// Half-open intervals without gaps from the first purchase on; the last is open-ended.
    ///
    /// Empty where the stream holds no auto-renewable subscription (a consumable, a test).
    public var timeline: ArraySlice<Interval> = []
    /// The steps of the state machine, in the order of the facts.
    public var transitions: ArraySlice<Transition> = []
    /// The steps that the table of expected transitions does not have, and other oddities.
    public var anomalies: [Anomaly] = []
    /// Who owned the subscription when, in order; empty for an unattributed one.
    public var ownership: [OwnershipInterval] = []
    /// The charges that failed, in the order of the periods that they were to renew.
    public var failures: [BillingFailure] = []
    /// The purchases and renewals that have dates, in order of their start, as last signed.
    public var charges: ArraySlice<Charge> = []
    /// The refunds that Apple undid, in the order in which it did.
    public var reversals: [RefundReversal] = []
    /// The refunds of seats, in the order of their signatures.
    public var seatRefunds: [SeatRefund] = []
    /// The customers' wishes to have a charge paid back, in the order in which Apple told of them.
    public var refundCases: [RefundCase] = []
    /// The requests to extend and the extensions that nobody here asked for, in order.
    public var extensions: [ExtensionRecord] = []
    /// The transaction whose period began last, as last signed.
    public var latestTransaction: TransactionFact? {
        get { hasLatestTransaction ? storedLatestTransaction : nil }
        set {
            hasLatestTransaction = newValue != nil
            storedLatestTransaction = newValue ?? .none
        }
    }
    /// The renewal info as last signed.
    public var latestRenewal: RenewalFact? {
        get { hasLatestRenewal ? storedLatestRenewal : nil }
        set {
            hasLatestRenewal = newValue != nil
            storedLatestRenewal = newValue ?? .none
        }
    }
    // Stored beside a flag, not as optionals: a wide optional is copied three times to be set.
    private var hasLatestTransaction = false
    private var hasLatestRenewal = false
    private var storedLatestTransaction = TransactionFact.none
    private var storedLatestRenewal = RenewalFact.none
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

    /// Takes over what an event has of the latest transaction; nil for none.
    mutating func setLatestTransaction(_ events: Events, _ place: Int?) {
        guard let place else {
            if hasLatestTransaction { latestTransaction = nil }
            return
        }
        hasLatestTransaction = true
        storedLatestTransaction = events[place].fact.storedTransaction
    }

    /// Takes over what an event has of the latest renewal info; nil for none.
    mutating func setLatestRenewal(_ events: Events, _ place: Int?) {
        guard let place else {
            if hasLatestRenewal { latestRenewal = nil }
            return
        }
        hasLatestRenewal = true
        storedLatestRenewal = events[place].fact.storedRenewal
    }

    /// Empties it and keeps its memory, but for what every fold sets: the latest transaction and
    /// renewal info.
    mutating func reset() {
        // Slices of what the fold keeps: it uses the memory again once they are let go of.
        timeline = []
        transitions = []
        anomalies.reset()
        ownership.reset()
        failures.reset()
        charges = []
        reversals.reset()
        seatRefunds.reset()
        refundCases.reset()
        extensions.reset()
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
