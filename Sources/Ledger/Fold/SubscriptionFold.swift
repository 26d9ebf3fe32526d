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
        var sorted = events
        sorted.sortIfNeeded(EventOrder.precedes)
        registers.reset()
        var history = History()
        var machine = StateMachine()
        var owners = OwnershipBuilder()
        for place in sorted.indices {
            let event = sorted[place]
            history.knownToPosition = max(history.knownToPosition, event.position)
            if place > 0, sorted[place - 1].fact == event.fact { continue }
            let signedAt = event.fact.signedAt ?? event.fact.factAt
            history.lastSignedAt = max(history.lastSignedAt ?? signedAt, signedAt)
            note(event, registers.apply(event), in: &history)
            note(event, owners.apply(event) ? .ownerConflict : nil, in: &history)
            note(event, machine.apply(event) ? .unexpectedTransition : nil, in: &history)
            note(event, oddity(in: event.fact), in: &history)
        }
        registers.finish()
        history.transitions = machine.transitions
        history.timeline = builder.timeline(of: registers)
        history.ownership = owners.intervals()
        history.latestTransaction = registers.periods.last?.fact
        history.latestRenewal =
            registers.renewals.reduce(nil as RenewalRecord?) { best, record in
                best.map { record.wins(over: $0) ? record : $0 } ?? record
            }?.fact
        history.latestStatus = registers.statuses.last?.status
        if let product = history.latestTransaction?.productID, !rules.products.isEmpty,
            rules.products[product] == nil, let last = registers.periods.last
        {
            history.anomalies.append(Anomaly(kind: .unknownProduct, position: last.position))
        }
        return history
    }

    private func note(_ event: Event, _ kind: Anomaly.Kind?, in history: inout History) {
        guard let kind else { return }
        history.anomalies.append(Anomaly(kind: kind, position: event.position))
    }

    /// What is odd about a fact on its own.
    private func oddity(in fact: Fact) -> Anomaly.Kind? {
        if fact.notificationType == .didFailToRenew, fact.subtype == .gracePeriod,
            fact.renewal?.gracePeriodExpiresDate == nil
        {
            return .missingGraceDate
        }
        if fact.notificationType == .expired, let intent = fact.renewal?.expirationIntent,
            ExpirationCause(subtype: fact.subtype) != ExpirationCause(intent: intent)
        {
            return .causeDisagrees
        }
        return fact.hasUnknownValue ? .unknownValue : nil
    }
}

extension Fact {
    /// Whether one of Apple's open vocabularies holds a value that this program does not know.
    var hasUnknownValue: Bool {
        if notificationType?.unknownText != nil || subtype?.unknownText != nil { return true }
        if let status, !(1...5).contains(status) { return true }
        guard let transaction else { return false }
        if let offer = transaction.offerType, !(1...4).contains(offer) { return true }
        return transaction.ownership?.unknownText != nil || transaction.reason?.unknownText != nil
            || transaction.revocationType?.unknownText != nil
            || transaction.offerDiscountType?.unknownText != nil
            || transaction.productType?.unknownText != nil
    }
}
