/// The state machine: applies facts one by one in the total order and records each step.
///
/// It tells the story (who caused which step when); the timeline tells the truth about each
/// instant. A step that the table of expected ones lacks is an anomaly, never an error.
struct StateMachine {
    private(set) var transitions: [Transition] = []
    private(set) var state: SubscriptionState?
    private var latestStart: Timestamp?

    /// Applies a fact; true where its step is not in the table.
    mutating func apply(_ event: Event) -> Bool {
        let fact = event.fact
        var isLatest = false
        if let transaction = fact.transaction {
            guard transaction.isSubscription else { return false }
            let start = transaction.purchaseDate ?? .earliest
            isLatest = latestStart.map { start >= $0 } ?? true
            if isLatest { latestStart = start }
        }
        let trigger = Trigger(fact)
        guard let target = target(of: fact, trigger, isLatest: isLatest), target != state else {
            return false
        }
        transitions.append(
            Transition(
                from: state,
                to: target,
                effectiveAt: effectiveAt(fact, target),
                position: event.position
            )
        )
        let isExpected = TransitionTable.allows(
            from: state.map(StateKind.init),
            trigger,
            to: StateKind(target)
        )
        state = target
        return !isExpected
    }

    /// The state after the fact, nil where it changes none.
    private func target(of fact: Fact, _ trigger: Trigger, isLatest: Bool) -> SubscriptionState? {
        switch trigger {
        case .failedWithGrace: return .gracePeriod
        case .failed, .graceEnded: return .billingRetry
        case .expired: return .expired(ExpirationCause(subtype: fact.subtype))
        default: break
        }
        guard let transaction = fact.transaction, isLatest else {
            return state ?? observed(fact)
        }
        if transaction.revocationDate != nil, trigger != .seatsRefunded {
            return .revoked(RevocationCause(transaction))
        }
        switch trigger {
        case .subscribed, .renewed, .recovered, .planChanged: return .active
        default: break
        }
        let signed = fact.signedAt ?? fact.factAt
        let covers = transaction.expiresDate.map { signed < $0 } ?? false
        if covers { return .active }
        // A paid period is over, and the fact says nothing of why: the state stays.
        return state?.isRevoked == true ? .expired(.other) : state ?? observed(fact)
    }

    /// The state that a first fact shows.
    private func observed(_ fact: Fact) -> SubscriptionState? {
        switch fact.status {
        case 1: return .active
        case 2: return .expired(.other)
        case 3: return .billingRetry
        case 4: return .gracePeriod
        default: break
        }
        guard let transaction = fact.transaction else { return nil }
        let signed = fact.signedAt ?? fact.factAt
        let covers = transaction.expiresDate.map { signed < $0 } ?? false
        return covers ? .active : .expired(.other)
    }

    /// When a step took effect: a period's start, its end, the revocation, else the signature.
    private func effectiveAt(_ fact: Fact, _ target: SubscriptionState) -> Timestamp {
        let signed = fact.signedAt ?? fact.factAt
        guard let transaction = fact.transaction else { return signed }
        switch target {
        case .active: return transaction.purchaseDate ?? signed
        case .expired: return transaction.expiresDate ?? signed
        case .revoked: return transaction.revocationDate ?? signed
        default: return signed
        }
    }
}

/// What can move a subscription from one state to another.
enum Trigger: String, Hashable, CaseIterable {
    case subscribed, renewed, recovered, planChanged, intentChanged, failed, failedWithGrace
    case graceEnded, expired, refunded, seatsRefunded, refundReversed, revoked, extended
    case observed, other

    init(_ fact: Fact) {
        guard let type = fact.notificationType else {
            self = fact.kind == .notification ? .other : .observed
            return
        }
        switch type {
        case .subscribed: self = .subscribed
        case .didRenew: self = fact.subtype == .billingRecovery ? .recovered : .renewed
        case .didChangeRenewalPref, .offerRedeemed:
            self = fact.subtype == .upgrade ? .planChanged : .intentChanged
        case .didChangeRenewalStatus, .priceIncrease: self = .intentChanged
        case .didFailToRenew: self = fact.subtype == .gracePeriod ? .failedWithGrace : .failed
        case .gracePeriodExpired: self = .graceEnded
        case .expired: self = .expired
        case .refund: self = fact.subtype == .seats ? .seatsRefunded : .refunded
        case .refundReversed: self = .refundReversed
        case .revoke: self = .revoked
        case .renewalExtended: self = .extended
        default: self = .other
        }
    }
}

/// A state without its cause.
enum StateKind: String, Hashable, CaseIterable {
    case active, gracePeriod, billingRetry, expired, revoked

    init(_ state: SubscriptionState) {
        switch state {
        case .active, .renewalPending: self = .active
        case .gracePeriod: self = .gracePeriod
        case .billingRetry: self = .billingRetry
        case .expired: self = .expired
        case .revoked: self = .revoked
        }
    }
}

/// The expected steps.
enum TransitionTable {
    /// Whether the table has the step; the first fact may show any state.
    static func allows(from: StateKind?, _ trigger: Trigger, to: StateKind) -> Bool {
        guard let from else { return true }
        return expected[trigger]?.contains { $0.from.contains(from) && $0.to == to } ?? false
    }

    /// For each trigger the states it may start from and where it leads.
    static let expected: [Trigger: [(from: Set<StateKind>, to: StateKind)]] = [
        .subscribed: [([.expired, .revoked, .billingRetry], .active)],
        .renewed: [([.expired, .revoked, .billingRetry, .gracePeriod], .active)],
        .recovered: [([.billingRetry, .gracePeriod, .expired], .active)],
        .planChanged: [([.billingRetry, .gracePeriod], .active)],
        .failedWithGrace: [([.active], .gracePeriod)],
        .failed: [([.active, .gracePeriod], .billingRetry)],
        .graceEnded: [([.gracePeriod], .billingRetry)],
        .expired: [([.active, .gracePeriod, .billingRetry], .expired)],
        .refunded: [
            ([.active, .gracePeriod, .billingRetry, .expired], .revoked)
        ],
        .refundReversed: [([.revoked], .active), ([.revoked], .expired)],
        .revoked: [([.active, .gracePeriod, .billingRetry, .expired], .revoked)],
        .extended: [([.billingRetry, .gracePeriod], .active)],
        .observed: [
            ([.expired, .billingRetry, .gracePeriod, .revoked], .active),
            ([.active, .gracePeriod, .billingRetry, .expired], .revoked),
            ([.revoked], .expired),
        ],
        .intentChanged: [([.expired, .billingRetry, .gracePeriod], .active)],
    ]
}
