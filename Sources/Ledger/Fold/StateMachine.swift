/// The state machine: applies facts one by one in the total order and records each step.
///
/// It tells the story (who caused which step when); the timeline tells the truth about each
/// instant. A step that the table of expected ones lacks is an anomaly, never an error.
struct StateMachine {
    private(set) var transitions: [Transition] = []
    private(set) var state: SubscriptionState?
    private var latestStart: Timestamp?

    /// Applies a fact; true where its step is not in the table.
    ///
    /// `period` is the event's transaction, nil where it carries none of a subscription.
    mutating func apply(_ head: EventHead, _ period: Period?) -> Bool {
        var isLatest = false
        if let period {
            isLatest = latestStart.map { period.start >= $0 } ?? true
            if isLatest { latestStart = period.start }
        }
        let trigger = Trigger(head)
        guard let target = target(of: head, period, trigger, isLatest: isLatest), target != state
        else { return false }
        transitions.append(
            Transition(
                from: state,
                to: target,
                effectiveAt: effectiveAt(head, period, target),
                position: head.position
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
    private func target(
        of head: EventHead,
        _ period: Period?,
        _ trigger: Trigger,
        isLatest: Bool
    ) -> SubscriptionState? {
        switch trigger {
        case .failedWithGrace: return .gracePeriod
        case .failed, .graceEnded: return .billingRetry
        case .expired: return .expired(ExpirationCause(subtype: head.subtype))
        default: break
        }
        guard let period, isLatest else { return state ?? observed(head, period) }
        if period.revocationDate != nil, trigger != .seatsRefunded {
            return .revoked(RevocationCause(period))
        }
        switch trigger {
        case .subscribed, .renewed, .recovered, .planChanged: return .active
        default: break
        }
        if head.signedAt < period.end { return .active }
        // A paid period is over, and the fact says nothing of why: the state stays.
        return state?.isRevoked == true ? .expired(.other) : state ?? observed(head, period)
    }

    /// The state that a first fact shows.
    private func observed(_ head: EventHead, _ period: Period?) -> SubscriptionState? {
        guard let period else { return nil }
        switch head.status {
        case 1: return .active
        case 2: return .expired(.other)
        case 3: return .billingRetry
        case 4: return .gracePeriod
        default: return head.signedAt < period.end ? .active : .expired(.other)
        }
    }

    /// When a step took effect: a period's start, its end, the revocation, else the signature.
    private func effectiveAt(
        _ head: EventHead,
        _ period: Period?,
        _ target: SubscriptionState
    ) -> Timestamp {
        guard let period else { return head.signedAt }
        switch target {
        case .active: return period.purchaseDate ?? head.signedAt
        case .expired: return period.expiresDate ?? head.signedAt
        case .revoked: return period.revocationDate ?? head.signedAt
        default: return head.signedAt
        }
    }
}

/// What can move a subscription from one state to another.
enum Trigger: String, Hashable, CaseIterable {
    case subscribed, renewed, recovered, planChanged, intentChanged, failed, failedWithGrace
    case graceEnded, expired, refunded, seatsRefunded, refundReversed, revoked, extended
    case observed, other

    init(_ head: EventHead) {
        guard let type = head.notificationType else {
            self = head.kind == .notification ? .other : .observed
            return
        }
        switch type {
        case .subscribed: self = .subscribed
        case .didRenew: self = head.subtype == .billingRecovery ? .recovered : .renewed
        case .didChangeRenewalPref, .offerRedeemed:
            self = head.subtype == .upgrade ? .planChanged : .intentChanged
        case .didChangeRenewalStatus, .priceIncrease: self = .intentChanged
        case .didFailToRenew: self = head.subtype == .gracePeriod ? .failedWithGrace : .failed
        case .gracePeriodExpired: self = .graceEnded
        case .expired: self = .expired
        case .refund: self = head.subtype == .seats ? .seatsRefunded : .refunded
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
