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

    /// Makes a fold for the subscriptions of one app.
    public init(rules: AppRules) {
        self.rules = rules
        builder = TimelineBuilder(rules: rules)
    }

    /// Folds all events of one subscription.
    ///
    /// - Parameter events: The events of one stream, in any order.
    /// - Returns: The history; its timeline is empty where the stream holds no auto-renewable
    ///   subscription.
    public mutating func history(of events: [Event]) -> History {
        var history = History()
        registers.reset()
        owners.reset()
        var machine = StateMachine()
        let order = order(of: events)
        for step in 0..<events.count {
            let place = order.isEmpty ? step : order[step]
            history.knownToPosition = max(history.knownToPosition, events[place].position)
            if step > 0, isRepeated(events, order.isEmpty ? step - 1 : order[step - 1], place) {
                continue
            }
            apply(events, place, &machine, &history)
        }
        registers.finish(events)
        history.transitions = machine.transitions
        history.timeline = builder.timeline(of: registers)
        history.ownership = owners.intervals()
        history.latestStatus = registers.statuses.last?.status
        history.failures = FailureFinder(rules: rules).failures(registers, events)
        summarise(events, &history)
        return history
    }

    /// The places of the events in the total order; empty where they stand in it already.
    private func order(of events: [Event]) -> [Int] {
        var isSorted = true
        for place in events.indices.dropFirst()
        where EventOrder.precedes(events, place, place - 1) {
            isSorted = false
            break
        }
        if isSorted { return [] }
        return events.indices.sorted { EventOrder.precedes(events, $0, $1) }
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
        guard let last = registers.periods.last else { return }
        history.charges.reserveCapacity(registers.periods.count)
        for place in registers.periods.indices where registers.periods[place].hasDates {
            history.charges.append(Charge(registers.periods[place], events))
        }
        history.reversals = registers.reversals
        history.seatRefunds = registers.seatRefunds
        history.latestTransaction = events[last.place].fact.transaction
        var renewal: RenewalRecord?
        for record in registers.renewals where renewal.map({ record.wins(over: $0) }) ?? true {
            renewal = record
        }
        if let renewal { history.latestRenewal = events[renewal.place].fact.renewal }
        if let product = last.productID, !rules.products.isEmpty, rules.products[product] == nil {
            history.anomalies.append(Anomaly(kind: .unknownProduct, position: last.position))
        }
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
