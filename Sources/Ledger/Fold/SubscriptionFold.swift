/// The one fold: the events of one subscription, in any order, become its history.
///
/// It is pure: no clock, no input or output. Equal sets of facts give equal histories, whatever
/// their order and however often each occurs. The value keeps its buffers, so one fold serves
/// many subscriptions in turn.
///
/// Specification: section 5 of the design and section 3 of the lifecycle reference.
public struct SubscriptionFold {
    private let rules: FoldRules
    private let memory = FoldMemory()

    /// Makes a fold for the subscriptions of one app.
    public init(rules: AppRules) {
        self.rules = FoldRules(rules)
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
        guard !events.isEmpty else {
            history = History()
            return
        }
        history.reset()
        memory.withWorkspace { workspace in
            Events.lend(events) { fold($0, withdrawals, into: &history, &workspace) }
        }
    }

    private func fold(
        _ events: Events,
        _ withdrawals: [ConsentWithdrawal],
        into history: inout History,
        _ workspace: inout Workspace
    ) {
        workspace.registers.reset()
        workspace.owners.reset()
        workspace.transitions.reset()
        workspace.hasExtensions = false
        workspace.hasRefundCases = false
        var machine = StateMachine()
        let isSorted = sort(events, &workspace.order)
        var previous = -1
        // What every event may move stays in registers.
        var newest: (position: Int64, signed: Timestamp) = (0, Timestamp(milliseconds: .min))
        for step in 0..<events.count {
            let place = isSorted ? step : workspace.order[step]
            newest.position = max(newest.position, events[place].position)
            newest.signed = max(
                newest.signed,
                events[place].fact.signedAt ?? events[place].fact.factAt
            )
            if previous < 0 || !Self.isRepeated(events, previous, place) {
                apply(events, place, &machine, &workspace, &history)
            }
            previous = place
        }
        history.knownToPosition = newest.position
        history.lastSignedAt = newest.signed
        workspace.registers.finish(events)
        workspace.owners.append(to: &history.ownership)
        history.transitions = workspace.transitions.elements
        conclude(
            workspace.registers,
            events,
            withdrawals,
            &workspace.timeline,
            &workspace.charges,
            &history
        )
        if workspace.hasExtensions { ExtensionRecords.append(to: &history, events) }
        if workspace.hasRefundCases { RefundCases.append(to: &history.refundCases, events) }
    }

    /// Makes everything else of the registers, which are finished.
    ///
    /// A function of its own, since to lend the registers costs a copy of all they hold.
    @inline(never) private func conclude(
        _ registers: borrowing Registers,
        _ events: Events,
        _ withdrawals: [ConsentWithdrawal],
        _ timeline: inout TimelineBuilder,
        _ charges: inout Slots<Charge>,
        _ history: inout History
    ) {
        timeline.build(registers, events, rules)
        history.timeline = timeline.intervals.elements
        var check = StatusCheck()
        check.note(registers, in: &history)
        if !withdrawals.isEmpty, !history.timeline.isEmpty {
            history.timeline.suspend(withdrawals, rules.rules)
            for withdrawal in withdrawals {
                history.knownToPosition = max(history.knownToPosition, withdrawal.position)
            }
        }
        history.latestStatus = registers.statuses.last?.status
        FailureFinder(rules: rules).append(to: &history.failures, registers, events)
        summarise(events, registers, &charges, &history)
    }

    /// Puts the places of the events in the total order; true where they stand in it already.
    private func sort(_ events: Events, _ order: inout Pool<Int>) -> Bool {
        var sorted = 1
        while sorted < events.count, !EventOrder.precedes(events, sorted, sorted - 1) {
            sorted += 1
        }
        if sorted >= events.count { return true }
        order.reset()
        for place in 0..<events.count { order.append(place) }
        order.sort(from: sorted) { EventOrder.precedes(events, $0, $1) }
        return false
    }

    /// Whether two neighbours in the order tell exactly the same.
    private static func isRepeated(_ events: Events, _ left: Int, _ right: Int) -> Bool {
        events[left].fact.factAt == events[right].fact.factAt
            && events[left].fact.signedAt == events[right].fact.signedAt
            // What nearly always differs comes first, since to compare all of them copies both.
            && events[left].fact.trigger == events[right].fact.trigger
            && events[left].fact.storedTransaction.digest
                == events[right].fact.storedTransaction.digest
            && events[left].fact.storedRenewal.digest == events[right].fact.storedRenewal.digest
            && events[left].fact == events[right].fact
    }

    @inline(__always) private func apply(
        _ events: Events,
        _ place: Int,
        _ machine: inout StateMachine,
        _ workspace: inout Workspace,
        _ history: inout History
    ) {
        let head = EventHead(events, place)
        let position = head.position
        let hasPeriod = Period.exists(in: events, place)
        if hasPeriod {
            history.note(workspace.registers.applyTransaction(events, place, head), position)
            history.note(
                workspace.owners.apply(events, place, head) ? .ownerConflict : nil,
                position
            )
        }
        if events[place].fact.hasRenewal {
            history.note(workspace.registers.applyRenewal(events, place, head), position)
        }
        // What is about a consumable sets no marker and no status.
        if hasPeriod || !events[place].fact.hasTransaction {
            if let status = head.status {
                workspace.registers.applyStatus(
                    StatusRecord(
                        status: status,
                        at: head.at,
                        isSigned: head.provenance == .jws,
                        position: position
                    )
                )
            }
            if let kind = Marker.Kind(events, place, head) {
                let id = hasPeriod ? events[place].fact.storedTransaction.transactionID : nil
                workspace.registers.apply(
                    Marker(kind: kind, at: head.at, transactionID: id, position: position)
                )
            }
            let isOdd = machine.apply(
                events,
                place,
                head,
                hasPeriod: hasPeriod,
                to: &workspace.transitions
            )
            history.note(isOdd ? .unexpectedTransition : nil, position)
        }
        if events[place].fact.hasOwnWord {
            if events[place].fact.extensionStep != nil { workspace.hasExtensions = true }
            if let answer = events[place].fact.extensionAnswer, answer.success,
                let date = answer.effectiveDate
            {
                workspace.registers.answers.append(
                    AnswerRecord(effectiveDate: date, at: head.factAt, position: position)
                )
            }
            if let owner = events[place].fact.linkedOwner { workspace.owners.link(owner, head) }
        }
        switch head.trigger {
        case .extended, .other: noteRare(events, place, &workspace)
        case .failedWithGrace, .expired: history.note(oddity(events, place, head), position)
        default: break
        }
        if events[place].fact.hasUnknownValue { history.note(.unknownValue, position) }
    }

    /// Remembers that there is a notice of an extension, or of one that could not be, or a request
    /// about a refund.
    private func noteRare(_ events: Events, _ place: Int, _ workspace: inout Workspace) {
        switch events[place].fact.notificationType {
        case .renewalExtended, .renewalExtension: workspace.hasExtensions = true
        case .consumptionRequest: workspace.hasRefundCases = true
        default: break
        }
    }

    /// What the registers say at the end of all facts.
    private func summarise(
        _ events: Events,
        _ registers: borrowing Registers,
        _ charges: inout Slots<Charge>,
        _ history: inout History
    ) {
        let last = registers.periods.count - 1
        guard last >= 0 else {
            history.setLatestTransaction(events, nil)
            history.setLatestRenewal(events, nil)
            return
        }
        Self.read(&charges, registers, events)
        history.charges = charges.elements
        if !registers.reversals.isEmpty { history.reversals = registers.reversals }
        if !registers.seatRefunds.isEmpty { history.seatRefunds = registers.seatRefunds }
        let latest = registers.periods.indices.last {
            !registers.periods[$0].isSupersededEarly
        }
        history.setLatestTransaction(events, registers.periods[latest ?? last].place)
        let newest = registers.newestRenewal(of: registers.renewals.indices, events)
        history.setLatestRenewal(events, newest < 0 ? nil : registers.renewals[newest].place)
        guard !rules.rules.products.isEmpty, let product = registers.periods[last].productID,
            rules.rules.products[product] == nil
        else { return }
        history.note(.unknownProduct, registers.periods[last].position)
    }

    /// Reads the charges of all periods that have dates.
    private static func read(
        _ charges: inout Slots<Charge>,
        _ registers: borrowing Registers,
        _ events: Events
    ) {
        charges.reset()
        var plans = PlanLengths()
        for number in registers.periods.indices where registers.periods[number].hasDates {
            let plan = plans.length(of: number, registers, events)
            charges.add { $0.read(registers, number, planLength: plan, events) }
        }
    }

    /// What is odd about a notification on its own.
    private func oddity(
        _ events: Events,
        _ place: Int,
        _ head: EventHead
    ) -> Anomaly.Kind? {
        switch head.trigger {
        case .failedWithGrace:
            events[place].fact.storedRenewal.gracePeriodExpiresDate == nil
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
