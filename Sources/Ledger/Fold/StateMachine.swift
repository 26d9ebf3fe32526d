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
    /// `hasPeriod` says whether the event carries a transaction of a subscription.
    mutating func apply(
        _ events: borrowing [Event],
        _ place: Int,
        _ head: EventHead,
        hasPeriod: Bool
    ) -> Bool {
        var isLatest = false
        if hasPeriod {
            let start = events[place].fact.storedTransaction.purchaseDate ?? .earliest
            isLatest = latestStart.map { start >= $0 } ?? true
            if isLatest { latestStart = start }
        }
        let trigger = Trigger(head)
        guard
            let target = target(
                of: events,
                place,
                head,
                trigger,
                hasPeriod: hasPeriod,
                isLatest: isLatest
            ),
            target != state
        else { return false }
        let effective =
            hasPeriod ? effectiveAt(events[place].fact.storedTransaction, target) : nil
        transitions.append(
            Transition(
                from: state,
                to: target,
                effectiveAt: effective ?? head.signedAt,
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
        of events: borrowing [Event],
        _ place: Int,
        _ head: EventHead,
        _ trigger: Trigger,
        hasPeriod: Bool,
        isLatest: Bool
    ) -> SubscriptionState? {
        switch trigger {
        case .failedWithGrace: return .gracePeriod
        case .failed, .graceEnded: return .billingRetry
        case .expired: return .expired(ExpirationCause(subtype: head.subtype))
        default: break
        }
        guard hasPeriod else { return state }
        let covers =
            events[place].fact.storedTransaction.expiresDate.map { head.signedAt < $0 } ?? false
        guard isLatest else { return state ?? observed(head.status, covers: covers) }
        if events[place].fact.storedTransaction.revocationDate != nil, trigger != .seatsRefunded {
            return .revoked(
                RevocationCause(
                    events[place].fact.storedTransaction.revocationType,
                    events[place].fact.storedTransaction.ownership
                )
            )
        }
        switch trigger {
        case .subscribed, .renewed, .recovered, .planChanged: return .active
        default: break
        }
        if covers { return .active }
        // A paid period is over, and the fact says nothing of why: the state stays.
        if state?.isRevoked == true { return .expired(.other) }
        return state ?? observed(head.status, covers: covers)
    }

    /// The state that a first fact shows.
    private func observed(_ status: Int32?, covers: Bool) -> SubscriptionState? {
        switch status {
        case 1: .active
        case 2: .expired(.other)
        case 3: .billingRetry
        case 4: .gracePeriod
        default: covers ? .active : .expired(.other)
        }
    }

    /// When a step took effect: a period's start, its end, the revocation; nil for the signature.
    private func effectiveAt(
        _ transaction: borrowing TransactionFact,
        _ target: SubscriptionState
    ) -> Timestamp? {
        switch target {
        case .active: transaction.purchaseDate
        case .expired: transaction.expiresDate
        case .revoked: transaction.revocationDate
        default: nil
        }
    }
}

/// What can move a subscription from one state to another.
enum Trigger: String, Hashable, CaseIterable {
    case subscribed, renewed, recovered, planChanged, intentChanged, failed, failedWithGrace
    case graceEnded, expired, refunded, seatsRefunded, refundReversed, revoked, extended
    case observed, other

    /// Whether it reports a purchase or renewal as it happens.
    var isReport: Bool {
        switch self {
        case .subscribed, .renewed, .recovered, .planChanged: true
        default: false
        }
    }

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
