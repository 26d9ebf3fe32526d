/// The expected steps of the state machine, one line for each.
///
/// `docs/state-machine.md` draws it; a test keeps the two equal, and another finds for each line
/// facts that take it.
enum TransitionTable {
    /// A step that is no surprise.
    struct Line: Hashable {
        /// The state before, nil where nothing was known.
        var from: StateKind?
        /// What moved it.
        var trigger: Trigger
        /// The state after.
        var to: StateKind

        /// Makes a line.
        init(_ from: StateKind?, _ trigger: Trigger, _ to: StateKind) {
            self.from = from
            self.trigger = trigger
            self.to = to
        }
    }

    /// The lines, in order of the state before, the trigger and the state after.
    static let lines: [Line] = {
        var lines: [Line] = []
        for from in [nil] + StateKind.allCases.map(Optional.some) {
            for trigger in Trigger.allCases {
                for to in StateKind.allCases where targets(from, trigger).contains(to) {
                    lines.append(Line(from, trigger, to))
                }
            }
        }
        return lines
    }()

    /// Whether the table has the step.
    static func allows(from: StateKind?, _ trigger: Trigger, to: StateKind) -> Bool {
        masks[Int(trigger.rawValue)] & bit(from, to) != 0
    }

    /// Where a trigger may lead from a state.
    private static func targets(_ from: StateKind?, _ trigger: Trigger) -> [StateKind] {
        switch from {
        case nil: first(trigger)
        case .active: fromActive(trigger)
        case .gracePeriod: fromGrace(trigger)
        case .billingRetry: fromRetry(trigger)
        case .expired: fromExpired(trigger)
        case .revoked: fromRevoked(trigger)
        }
    }

    /// The log may begin in the midst of a life, so a first fact may show any state that it can
    /// tell of.
    private static func first(_ trigger: Trigger) -> [StateKind] {
        switch trigger {
        case .subscribed, .renewed, .recovered, .planChanged, .extended: [.active]
        case .failedWithGrace: [.gracePeriod]
        case .failed, .graceEnded: [.billingRetry]
        case .expired: [.expired]
        case .refunded, .revoked: [.revoked]
        case .intentChanged, .seatsRefunded, .refundReversed, .other:
            [.active, .gracePeriod, .billingRetry, .expired]
        case .observed: StateKind.allCases
        }
    }

    private static func fromActive(_ trigger: Trigger) -> [StateKind] {
        switch trigger {
        case .failedWithGrace: [.gracePeriod]
        case .failed: [.billingRetry]
        case .expired: [.expired]
        case .refunded, .revoked: [.revoked]
        // A reading of Apple's state tells what notifications that never came would have.
        case .observed: [.gracePeriod, .billingRetry, .expired, .revoked]
        default: []
        }
    }

    private static func fromGrace(_ trigger: Trigger) -> [StateKind] {
        switch trigger {
        case .failed, .graceEnded: [.billingRetry]
        default: fromTrouble(trigger)
        }
    }

    private static func fromRetry(_ trigger: Trigger) -> [StateKind] {
        switch trigger {
        // A customer whose charge fails may buy anew instead.
        case .subscribed: [.active]
        case .observed: fromTrouble(trigger).filter { $0 != .billingRetry }
        default: fromTrouble(trigger)
        }
    }

    /// What grace and billing retry have in common.
    private static func fromTrouble(_ trigger: Trigger) -> [StateKind] {
        switch trigger {
        // A failure may be announced before the period ends: then the charge may succeed as if
        // nothing had been, and the period may be extended.
        case .renewed, .recovered, .planChanged, .intentChanged, .extended: [.active]
        case .expired: [.expired]
        case .refunded, .revoked: [.revoked]
        case .observed: [.active, .billingRetry, .revoked]
        default: []
        }
    }

    private static func fromExpired(_ trigger: Trigger) -> [StateKind] {
        switch trigger {
        // The sandbox renews after the end; before 2024 `OFFER_REDEEMED` brought customers back.
        case .subscribed, .renewed, .recovered, .intentChanged: [.active]
        case .refunded, .revoked: [.revoked]
        case .observed: [.active, .revoked]
        // An expired subscription cannot be extended: Apple refuses it.
        default: []
        }
    }

    private static func fromRevoked(_ trigger: Trigger) -> [StateKind] {
        switch trigger {
        // A refund does not end auto-renewal, so the next charge may succeed, or fail and recover.
        case .subscribed, .renewed, .recovered, .planChanged: [.active]
        // As if it had never been: whatever holds without the refund.
        case .refundReversed, .observed: [.active, .gracePeriod, .billingRetry, .expired]
        default: []
        }
    }

    /// For each trigger the lines as bits; a step is looked up in every fold.
    private static let masks: [UInt32] = {
        var masks = [UInt32](repeating: 0, count: Trigger.allCases.count)
        for line in lines { masks[Int(line.trigger.rawValue)] |= bit(line.from, line.to) }
        return masks
    }()

    private static func bit(_ from: StateKind?, _ to: StateKind) -> UInt32 {
        let row = from.map { UInt32($0.rawValue) + 1 } ?? 0
        return 1 << (row * UInt32(StateKind.allCases.count) + UInt32(to.rawValue))
    }
}

/// What can move a subscription from one state to another.
enum Trigger: UInt8, Hashable, CaseIterable {
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

    /// What an event counts as.
    @inline(__always) init(_ kind: EventKind, _ type: NotificationType?, _ subtype: Subtype?) {
        guard let type else {
            self = kind == .notification ? .other : .observed
            return
        }
        self.init(type, subtype)
    }

    /// What a notification counts as.
    init(_ type: NotificationType, _ subtype: Subtype?) {
        switch type {
        case .subscribed: self = .subscribed
        case .didRenew: self = subtype == .billingRecovery ? .recovered : .renewed
        case .didChangeRenewalPref, .offerRedeemed:
            self = subtype == .upgrade ? .planChanged : .intentChanged
        case .didChangeRenewalStatus, .priceIncrease: self = .intentChanged
        case .didFailToRenew: self = subtype == .gracePeriod ? .failedWithGrace : .failed
        case .gracePeriodExpired: self = .graceEnded
        case .expired: self = .expired
        case .refund: self = subtype == .seats ? .seatsRefunded : .refunded
        case .refundReversed: self = .refundReversed
        case .revoke: self = .revoked
        case .renewalExtended: self = .extended
        default: self = .other
        }
    }
}

/// A state without its cause.
enum StateKind: UInt8, Hashable, CaseIterable {
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
