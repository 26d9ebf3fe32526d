/// The one fold: the events of one subscription, in any order, become its history.
///
/// It is pure: no clock, no input or output. Equal sets of facts give equal histories, whatever
/// their order and however often each occurs. The value keeps its buffers, so one fold serves
/// many subscriptions in turn.
///
/// Specification: section 5 of the design and section 3 of the lifecycle reference.
public struct SubscriptionFold {
    private let rules: AppRules
    private var registers = Registers()
    private var owners = OwnershipBuilder()
    private var builder: TimelineBuilder
    private var order: [Int] = []

    /// Up to so many events are sorted by insertion, since most stand in order already.
    private static let insertionMax = 64

    /// Makes a fold for the subscriptions of one app.
    public init(rules: AppRules) {
        self.rules = rules
        builder = TimelineBuilder(rules: rules)
    }

    /// Folds all events of one subscription.
    ///
    /// - Parameters:
    ///   - events: The events of one stream, in any order.
    ///   - withdrawals: What guardians withdrew of the customers whom the stream is about.
    /// - Returns: The history; its timeline is empty where the stream holds no auto-renewable
    ///   subscription.
    public mutating func history(
        of events: [Event],
        withdrawals: [ConsentWithdrawal] = []
    ) -> History {
        var history = History()
        fold(events, withdrawals: withdrawals, into: &history)
        return history
    }

    /// Folds all events of one subscription into a history whose memory is used again.
    ///
    /// - Parameters:
    ///   - events: The events of one stream, in any order.
    ///   - withdrawals: What guardians withdrew of the customers whom the stream is about.
    ///   - history: Becomes the history of these events alone, whatever it was before.
    public mutating func fold(
        _ events: [Event],
        withdrawals: [ConsentWithdrawal] = [],
        into history: inout History
    ) {
        history.reset()
        registers.reset()
        owners.reset()
        var machine = StateMachine()
        let isSorted = sort(events)
        var previous = -1
        for step in 0..<events.count {
            let place = isSorted ? step : order[step]
            history.knownToPosition = max(history.knownToPosition, events[place].position)
            if previous < 0 || !isRepeated(events, previous, place) {
                apply(events, place, &machine, &history)
            }
            previous = place
        }
        registers.finish(events)
        history.transitions = machine.transitions
        builder.append(to: &history.timeline, registers, events)
        StatusCheck.note(registers, in: &history)
        if !withdrawals.isEmpty, !history.timeline.isEmpty {
            history.timeline.suspend(withdrawals, rules)
            for withdrawal in withdrawals {
                history.knownToPosition = max(history.knownToPosition, withdrawal.position)
            }
        }
        owners.append(to: &history.ownership)
        history.latestStatus = registers.statuses.last?.status
        FailureFinder(rules: rules).append(to: &history.failures, registers, events)
        summarise(events, &history)
    }

    /// Puts the places of the events in the total order; true where they stand in it already.
    private mutating func sort(_ events: [Event]) -> Bool {
        var sorted = 1
        while sorted < events.count, !EventOrder.precedes(events, sorted, sorted - 1) {
            sorted += 1
        }
        if sorted >= events.count { return true }
        order.reset()
        order.append(contentsOf: events.indices)
        guard events.count <= Self.insertionMax else {
            order.sort { EventOrder.precedes(events, $0, $1) }
            return false
        }
        for step in sorted..<events.count {
            var slot = step
            while slot > 0, EventOrder.precedes(events, step, order[slot - 1]) {
                order[slot] = order[slot - 1]
                slot -= 1
            }
            order[slot] = step
        }
        return false
    }

    /// Whether two neighbours in the order tell exactly the same.
    private func isRepeated(_ events: [Event], _ left: Int, _ right: Int) -> Bool {
        events[left].fact.factAt == events[right].fact.factAt
            && events[left].fact.signedAt == events[right].fact.signedAt
            && events[left].fact == events[right].fact
    }

    private mutating func apply(
        _ events: [Event],
        _ place: Int,
        _ machine: inout StateMachine,
        _ history: inout History
    ) {
        let head = EventHead(events, place)
        history.lastSignedAt = max(history.lastSignedAt ?? head.signedAt, head.signedAt)
        let position = head.position
        let hasPeriod = Period.exists(in: events, place)
        if hasPeriod {
            history.note(registers.applyTransaction(events, place, head), position)
            history.note(owners.apply(events, place, head) ? .ownerConflict : nil, position)
        }
        if events[place].fact.hasRenewal {
            history.note(registers.applyRenewal(events, place, head), position)
        }
        // What is about a consumable sets no marker and no status.
        if hasPeriod || !events[place].fact.hasTransaction {
            if let status = head.status {
                registers.applyStatus(
                    StatusRecord(
                        status: status,
                        at: head.at,
                        isSigned: head.provenance == .jws,
                        position: position
                    )
                )
            }
            if let kind = Marker.Kind(head) {
                let id = hasPeriod ? events[place].fact.storedTransaction.transactionID : nil
                registers.apply(
                    Marker(kind: kind, at: head.at, transactionID: id, position: position)
                )
            }
            let isOdd = machine.apply(events, place, head, hasPeriod: hasPeriod)
            history.note(isOdd ? .unexpectedTransition : nil, position)
        }
        if let answer = events[place].fact.extensionAnswer, answer.success,
            let date = answer.effectiveDate
        {
            registers.answers.append(
                AnswerRecord(effectiveDate: date, at: head.factAt, position: position)
            )
        }
        if let owner = events[place].fact.linkedOwner { owners.link(owner, head) }
        history.note(oddity(events, place, head), position)
        history.note(Fact.hasUnknownValue(events, place, head) ? .unknownValue : nil, position)
    }

    /// What the registers say at the end of all facts.
    private func summarise(_ events: [Event], _ history: inout History) {
        let last = registers.periods.count - 1
        guard last >= 0 else { return }
        var plans = PlanLengths()
        for place in registers.periods.indices where registers.periods[place].hasDates {
            let plan = plans.length(of: place, registers, events)
            history.charges.append(Charge(registers.periods[place], planLength: plan, events))
        }
        if !registers.reversals.isEmpty { history.reversals = registers.reversals }
        if !registers.seatRefunds.isEmpty { history.seatRefunds = registers.seatRefunds }
        history.latestTransaction =
            events[registers.periods[last].place].fact.storedTransaction
        var newest = -1
        for place in registers.renewals.indices
        where newest < 0 || registers.renewals[place].wins(over: registers.renewals[newest]) {
            newest = place
        }
        if newest >= 0 {
            history.latestRenewal = events[registers.renewals[newest].place].fact.storedRenewal
        }
        guard !rules.products.isEmpty, let product = registers.periods[last].productID,
            rules.products[product] == nil
        else { return }
        history.note(.unknownProduct, registers.periods[last].position)
    }

    /// What is odd about a notification on its own.
    private func oddity(
        _ events: borrowing [Event],
        _ place: Int,
        _ head: EventHead
    ) -> Anomaly.Kind? {
        switch head.notificationType {
        case .didFailToRenew:
            head.subtype == .gracePeriod
                && events[place].fact.storedRenewal.gracePeriodExpiresDate == nil
                ? .missingGraceDate : nil
        case .expired:
            events[place].fact.storedRenewal.expirationIntent.map {
                ExpirationCause(subtype: head.subtype) != ExpirationCause(intent: $0)
            } ?? false ? .causeDisagrees : nil
        default: nil
        }
    }
}

extension History {
    /// Notes an oddity, if there is one.
    fileprivate mutating func note(_ kind: Anomaly.Kind?, _ position: Int64) {
        guard let kind else { return }
        anomalies.append(Anomaly(kind: kind, position: position))
    }
}

extension Fact {
    /// Whether one of Apple's open vocabularies holds a value that this program does not know.
    static func hasUnknownValue(
        _ events: borrowing [Event],
        _ place: Int,
        _ head: EventHead
    ) -> Bool {
        if head.notificationType?.unknownText != nil || head.subtype?.unknownText != nil {
            return true
        }
        if let status = head.status, !(1...5).contains(status) { return true }
        if let offer = events[place].fact.storedTransaction.offerType, !(1...4).contains(offer) {
            return true
        }
        return events[place].fact.storedTransaction.ownership?.unknownText != nil
            || events[place].fact.storedTransaction.reason?.unknownText != nil
            || events[place].fact.storedTransaction.revocationType?.unknownText != nil
            || events[place].fact.storedTransaction.offerDiscountType?.unknownText != nil
            || events[place].fact.storedTransaction.productType?.unknownText != nil
    }
}
