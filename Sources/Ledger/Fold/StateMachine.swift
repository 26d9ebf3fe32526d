/// The state machine: applies facts one by one in the total order and records each step.
///
/// It tells the story (who caused which step when); the timeline tells the truth about each
/// instant. A step that the table of expected ones lacks is an anomaly, never an error.
///
/// It looks at the period that began last, and takes every state from what was signed, not from
/// the name of the notification; only an announcement (a failed charge, the end of grace, the
/// expiry) counts by its name, since no field of a payload says the same for certain.
struct StateMachine {
    private(set) var state: SubscriptionState?
    /// The bounds of the period that began last.
    @Packed private var latestStart: Timestamp?
    private var latestEnd = Timestamp.earliest
    /// Whether its own charge was taken back.
    private var isTakenBack = false
    /// The charges for seats in that period that were not taken back, with their starts.
    private var seats: [AppleID: Timestamp] = [:]

    /// What a transaction is to the machine.
    private enum Bearing {
        /// A period that began after all known ones, or the same with a later end.
        case newer
        /// The period that began last, told again.
        case current
        /// An older period, or a charge for seats: it moves nothing by itself.
        case aside
    }

    /// Applies a fact; true where its step is not in the table.
    ///
    /// `hasPeriod` says whether the event carries a transaction of a subscription.
    @inline(__always) mutating func apply(
        _ events: Events,
        _ place: Int,
        _ head: EventHead,
        hasPeriod: Bool,
        to transitions: inout Slots<Transition>
    ) -> Bool {
        let bearing = hasPeriod ? note(events, place) : nil
        guard let target = target(of: events, place, head, bearing), target != state
        else { return false }
        let effective =
            hasPeriod ? effectiveAt(events, place, target) : nil
        transitions.add {
            $0.from = state
            $0.to = target
            $0.effectiveAt = effective ?? head.signedAt
            $0.position = head.position
        }
        let isExpected = TransitionTable.allows(
            from: state.map(StateKind.init),
            head.trigger,
            to: StateKind(target)
        )
        state = target
        return !isExpected
    }

    /// Remembers the period that began last.
    @inline(__always) private mutating func note(_ events: Events, _ place: Int) -> Bearing {
        let start = events[place].fact.storedTransaction.purchaseDate ?? .earliest
        let end = events[place].fact.storedTransaction.expiresDate ?? .earliest
        let isRevoked = events[place].fact.storedTransaction.revocationDate != nil
        if events[place].fact.storedTransaction.additionalReason != nil {
            noteSeats(events, place, start, isRevoked: isRevoked)
            return .aside
        }
        if let latestStart, start < latestStart { return .aside }
        let isNewer = latestStart != start
        // Seats may be told of before the purchase whose period they are bought for.
        if !seats.isEmpty { seats = seats.filter { $0.value >= start } }
        let isLater = isNewer || end > latestEnd
        latestStart = start
        latestEnd = end
        isTakenBack = isRevoked
        return isLater ? .newer : .current
    }

    /// Remembers which seats of that period stand.
    @inline(never) private mutating func noteSeats(
        _ events: Events,
        _ place: Int,
        _ start: Timestamp,
        isRevoked: Bool
    ) {
        let id = events[place].fact.storedTransaction.transactionID
        if !isRevoked, latestStart.map({ start >= $0 }) ?? true {
            seats[id] = start
        } else if !seats.isEmpty {
            seats[id] = nil
        }
    }

    /// The state after the fact, nil where there is none yet.
    @inline(__always) private func target(
        of events: Events,
        _ place: Int,
        _ head: EventHead,
        _ bearing: Bearing?
    ) -> SubscriptionState? {
        if let announced = announced(events, place, head) {
            // What was taken back stays so, whatever its renewal comes to.
            return state?.isRevoked == true && bearing != .newer ? state : announced
        }
        guard let bearing else { return state }
        // Nearly all facts are of a period that is not taken back and begins or runs.
        if bearing != .aside,
            events[place].fact.storedTransaction.revocationDate == nil, head.isReport
        {
            return .active
        }
        return target(of: events, place, head, bearing: bearing)
    }

    /// The same where neither an announcement nor the report of a period decides.
    @inline(never) private func target(
        of events: Events,
        _ place: Int,
        _ head: EventHead,
        bearing: Bearing
    ) -> SubscriptionState? {
        let isRevoked = events[place].fact.storedTransaction.revocationDate != nil
        let covers =
            events[place].fact.storedTransaction.expiresDate.map { head.signedAt < $0 } ?? false
        if bearing == .aside {
            if isRevoked {
                // The last seats of a period whose own charge was taken back before.
                guard isTakenBack, seats.isEmpty else { return state }
                return revoked(events, place)
            }
            return state ?? observed(head.status, covers: covers)
        }
        if isRevoked {
            // The purchaser keeps access while any charge of the period stands.
            return seats.isEmpty ? revoked(events, place) : state
        }
        if covers {
            // The same period told again does not undo what was announced of its end.
            return bearing == .newer || state?.isRevoked ?? true ? .active : state
        }
        return shown(events, place, head)
    }

    /// What a notification announces by its name.
    @inline(__always) private func announced(
        _ events: Events,
        _ place: Int,
        _ head: EventHead
    ) -> SubscriptionState? {
        switch head.trigger {
        case .failedWithGrace: .gracePeriod
        case .failed, .graceEnded: .billingRetry
        case .expired: .expired(ExpirationCause(events, place, head))
        default: nil
        }
    }

    /// The state that the renewal info of a fact shows, once the period is over.
    private func shown(
        _ events: Events,
        _ place: Int,
        _ head: EventHead
    ) -> SubscriptionState? {
        let inRetry = events[place].fact.storedRenewal.isInBillingRetryPeriod == true
        let graceEnd = events[place].fact.storedRenewal.gracePeriodExpiresDate
        switch state {
        case .expired, .billingRetry: return state
        case .gracePeriod:
            // Only a date that is past tells that grace is over; without one it may still run.
            let isPast = graceEnd.map { $0 <= head.signedAt } ?? false
            return inRetry && isPast ? .billingRetry : state
        case .active, .renewalPending, .revoked, nil:
            if inRetry {
                return graceEnd.map { $0 > head.signedAt } ?? false ? .gracePeriod : .billingRetry
            }
            if let intent = events[place].fact.storedRenewal.expirationIntent {
                return .expired(ExpirationCause(intent: intent))
            }
            if state?.isRevoked == true { return .expired(.other) }
            return state ?? observed(head.status, covers: false)
        }
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

    private func revoked(_ events: Events, _ place: Int) -> SubscriptionState {
        .revoked(
            RevocationCause(
                events[place].fact.storedTransaction.revocationType,
                events[place].fact.storedTransaction.ownership
            )
        )
    }

    /// When a step took effect: a period's start, its end, the revocation; nil for the signature.
    @inline(__always) private func effectiveAt(
        _ events: Events,
        _ place: Int,
        _ target: SubscriptionState
    ) -> Timestamp? {
        switch target {
        case .active: events[place].fact.storedTransaction.purchaseDate
        case .expired: events[place].fact.storedTransaction.expiresDate
        case .revoked: events[place].fact.storedTransaction.revocationDate
        default: nil
        }
    }
}
