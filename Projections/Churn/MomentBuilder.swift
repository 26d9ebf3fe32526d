import Ledger

/// Walks along the stretches of one subscription and notes what changes.
///
/// The number of paying subscribers changes by the moments' `delta` alone, so a balance over any
/// time and any group adds up by construction; that it also equals the states is what tests check.
struct MomentBuilder {
    private let history: History
    private let charges: ArraySlice<Charge>
    private let rules: AppRules
    private(set) var moments: [Moment] = []

    private var held: Holding?
    private var activeSince = Timestamp.earliest
    private var heldSince = Timestamp.earliest
    private var lastCharge: Int?
    private var lastState = SubscriptionState.active
    private var everPaid = false

    private var spell: Int32 = 0
    private var spellStart = Timestamp.earliest
    private var paidPeriods: Int32 = 0
    /// Where the paid cover of the run ended last; grace and retry are a gap already.
    private var coverEnd = Timestamp.earliest
    /// The charge during which a price increase was put to the customer.
    private var askedCharge: Int?

    private var gap: Gap?
    private var trial: Trial?
    private var risk: (reason: Risk, holding: Holding)?
    /// The subscription that this one continues, until that was told.
    private var predecessor: AppleID?

    /// The time since a subscriber was lost.
    private struct Gap {
        var from: Timestamp
        /// The place of the moment of loss.
        var loss: Int
        var state: SubscriptionState
        var lastState: SubscriptionState
        var hadRetry: Bool
        /// Whether the end of it all was told.
        var isFinal: Bool
        var charge: Int?
        var positions: [Int64]
    }

    /// A trial whose outcome is open.
    private struct Trial {
        var from: Timestamp
        /// The place of the moment at which it began.
        var start: Int
        var holding: Holding
        var charge: Int?
        var lastState: SubscriptionState
        /// When it was over and why, where it was not paid for.
        var over: (at: Timestamp, state: SubscriptionState, confidence: Confidence, [Int64])?
    }

    /// The moments of a history, in the order in which they took effect.
    static func moments(of history: History, _ rules: AppRules) -> [Moment] {
        var builder = MomentBuilder(history, rules)
        for stretch in Stretch.stretches(of: history, rules) { builder.apply(stretch) }
        builder.loseTrial()
        var money = MoneyMoments(history, rules)
        money.build()
        return (builder.moments + money.moments).inOrder()
    }

    private init(_ history: History, _ rules: AppRules) {
        self.history = history
        charges = history.charges
        predecessor = history.previousOriginalTransactionID
        self.rules = rules
    }

    // MARK: - Steps

    private mutating func apply(_ stretch: Stretch) {
        if stretch.askedConsent { askedCharge = stretch.charge }
        switch stretch.standing {
        case .paid(let holding): pay(holding, stretch)
        case .trial(let holding):
            // Free months of somebody who pays are no trial: the run goes on, worth nothing.
            if held != nil { pay(holding, stretch) } else { attempt(holding, stretch) }
        case .out:
            if let holding = held {
                lose(holding, stretch)
            } else if gap != nil {
                stayOut(stretch)
            } else {
                leaveTrial(stretch)
            }
        }
        noteRisk(stretch)
    }

    /// Tells when the reason why somebody who pays may leave comes, changes and goes.
    private mutating func noteRisk(_ stretch: Stretch) {
        let reason = held == nil ? nil : stretch.risk
        if let old = risk,
            reason != old.reason || held.map({ $0.isSwitch(to: old.holding) }) ?? true
        {
            noteRisk(.riskOver, old.reason, old.holding, stretch)
            risk = nil
        }
        if let reason, let held, risk == nil {
            noteRisk(.atRisk, reason, held, stretch)
            risk = (reason, held)
        }
    }

    private mutating func noteRisk(
        _ kind: Moment.Kind,
        _ reason: Risk,
        _ holding: Holding,
        _ stretch: Stretch
    ) {
        var moment = moment(kind, holding, at: stretch.from, stretch.deciding.sorted)
        moment.cause = reason.rawValue
        moment.riskDelta = kind == .atRisk ? 1 : -1
        moment.confidence = stretch.confidence
        moments.append(moment)
    }

    private mutating func pay(_ holding: Holding, _ stretch: Stretch) {
        if let held {
            change(from: held, to: holding, stretch)
        } else {
            gain(holding, stretch)
        }
        if stretch.charge != lastCharge || stretch.charge == nil {
            let isAdditional = stretch.charge.map { charges[$0].isAdditional } ?? false
            if !isAdditional || paidPeriods == 0 { paidPeriods += 1 }
        }
        held = holding
        lastCharge = stretch.charge
        lastState = stretch.state
        if stretch.state == .active, let until = stretch.until { coverEnd = until }
    }

    /// From one paid stretch to the next.
    private mutating func change(
        from old: Holding,
        to new: Holding,
        _ stretch: Stretch
    ) {
        let positions = stretch.deciding.sorted
        if lastState == .gracePeriod, stretch.state == .active, stretch.charge != lastCharge {
            var recovery = moment(.recovered, new, at: stretch.from, positions)
            recovery.cause = "in_grace"
            recovery.relatedAt = coverEnd
            moments.append(recovery)
        }
        if old.isSwitch(to: new) {
            let movement: Moment.Movement =
                old.currency != new.currency
                ? .currency : new.monthly >= old.monthly ? .expansion : .contraction
            var out = moment(.switchedOut, old, at: stretch.from, positions)
            out.delta = -1
            out.monthlyDelta = -old.monthly
            out.standardDelta = -old.standardMonthly
            out.movement = movement
            moments.append(out)
            heldSince = stretch.from
            var into = moment(.switchedIn, new, at: stretch.from, positions)
            into.delta = 1
            into.monthlyDelta = new.monthly
            into.standardDelta = new.standardMonthly
            into.movement = movement
            moments.append(into)
        } else if old.monthly != new.monthly || old.standardMonthly != new.standardMonthly {
            var changed = moment(.priceChanged, new, at: stretch.from, positions)
            changed.monthlyDelta = new.monthly - old.monthly
            changed.standardDelta = new.standardMonthly - old.standardMonthly
            if changed.monthlyDelta != 0 {
                changed.movement = changed.monthlyDelta > 0 ? .expansion : .contraction
            }
            moments.append(changed)
        }
    }

    // MARK: - Gains

    private mutating func gain(_ holding: Holding, _ stretch: Stretch) {
        activeSince = stretch.from
        heldSince = stretch.from
        let (kind, cause, relatedAt) = gainKind(stretch)
        if kind != .recovered, kind != .churnCorrected {
            spell += 1
            spellStart = stretch.from
            paidPeriods = 0
        }
        var gained = moment(kind, holding, at: stretch.from, stretch.deciding.sorted)
        gained.cause = cause
        gained.relatedAt = relatedAt
        gained.delta = 1
        gained.monthlyDelta = holding.monthly
        gained.standardDelta = holding.standardMonthly
        gained.succeeds = predecessor
        predecessor = nil
        gained.movement =
            switch kind {
            case .newPaid: .new
            case .trialConverted: everPaid ? .reactivation : .new
            case .churnCorrected: .correction
            default: .reactivation
            }
        moments.append(gained)
        everPaid = true
        gap = nil
    }

    private typealias Gain = (Moment.Kind, cause: String?, relatedAt: Timestamp?)

    private mutating func gainKind(_ stretch: Stretch) -> Gain {
        if let trial {
            let limit = trial.charge.map {
                charges[$0].until.adding(rules.billingRetryLimit(after: charges[$0]))
            }
            if trial.lastState == .billingRetry || limit.map({ stretch.from <= $0 }) ?? true {
                self.trial = nil
                settle(trial, "converted", at: stretch.from, .confirmed)
                return (.trialConverted, nil, trial.from)
            }
            loseTrial()
        }
        guard let gap else {
            if everPaid { return (.reactivated, returnCause(stretch), coverEnd) }
            let isKnown = stretch.charge.map { !history.isContinuation(charges[$0]) } ?? true
            return (.newPaid, isKnown ? nil : "history_missing", nil)
        }
        let reason = stretch.charge.flatMap { charges[$0].reason }
        if gap.state.isRefund, stretch.charge == gap.charge {
            return (.churnCorrected, "refund_reversed", gap.from)
        }
        if gap.lastState == .billingRetry { return (.recovered, "after_grace", gap.from) }
        if gap.hadRetry, reason == .renewal { return (.recovered, "after_expiry", gap.from) }
        if moments[gap.loss].kind == .lapsedUnconfirmed {
            if reason == .renewal { return (.churnCorrected, "late_renewal", gap.from) }
            if reason == .purchase { confirmLapse(gap) }
        }
        return (.reactivated, returnCause(stretch), gap.from)
    }

    private func returnCause(_ stretch: Stretch) -> String {
        if let place = stretch.charge, charges[place].offer == .winBack { return "win_back" }
        let limit = lastCharge.map { rules.billingRetryLimit(after: charges[$0]) } ?? .days(60)
        return stretch.from <= coverEnd.adding(limit) ? "returning" : "new_run"
    }

    /// Somebody who buys again had lapsed indeed.
    private mutating func confirmLapse(_ gap: Gap) {
        let cause = ChurnCause.word(gap.state)
        moments[gap.loss].kind = .accessChurn
        moments[gap.loss].cause = cause
        moments[gap.loss].movement = .churn
        moments.append(final(moments[gap.loss], at: gap.from, cause, .clock, gap.positions))
    }

    // MARK: - Losses

    private mutating func lose(_ holding: Holding, _ stretch: Stretch) {
        let positions = stretch.deciding.sorted
        let cause = ChurnCause.word(stretch.state)
        let isClock =
            stretch.confidence == .clock && stretch.state.isOver && cause != "involuntary"
        var lost = moment(
            isClock ? .lapsedUnconfirmed : .accessChurn,
            holding,
            at: stretch.from,
            positions
        )
        lost.cause = cause
        lost.confidence = stretch.confidence
        lost.delta = -1
        lost.monthlyDelta = -holding.monthly
        lost.standardDelta = -holding.standardMonthly
        lost.movement = isClock ? .lapse : .churn
        lost.relatedAt = spellStart
        lost.isPriceInfluenced =
            cause == "price" || (askedCharge != nil && askedCharge == lastCharge)
        lost.isExtended = lastCharge.map { charges[$0].isExtended } ?? false
        if case .active = lastState { coverEnd = min(coverEnd, stretch.from) }
        gap = Gap(
            from: stretch.from,
            loss: moments.count,
            state: stretch.state,
            lastState: stretch.state,
            hadRetry: stretch.state == .billingRetry,
            isFinal: isClock,
            charge: stretch.charge,
            positions: positions
        )
        moments.append(lost)
        held = nil
        stayOut(stretch)
    }

    private mutating func stayOut(_ stretch: Stretch) {
        guard var gap else { return }
        gap.lastState = stretch.state
        if stretch.state == .billingRetry { gap.hadRetry = true }
        if !gap.isFinal, stretch.state.isOver {
            gap.isFinal = true
            moments.append(
                final(
                    moments[gap.loss],
                    at: stretch.from,
                    ChurnCause.word(stretch.state),
                    stretch.confidence,
                    stretch.deciding.sorted
                )
            )
        }
        self.gap = gap
    }

    /// The end for good of what was lost before.
    private func final(
        _ loss: Moment,
        at instant: Timestamp,
        _ cause: String,
        _ confidence: Confidence,
        _ positions: [Int64]
    ) -> Moment {
        var final = loss
        final.kind = .finalChurn
        final.at = instant
        final.cause = cause
        final.confidence = confidence
        final.delta = 0
        final.monthlyDelta = 0
        final.standardDelta = 0
        final.movement = nil
        final.relatedAt = loss.at
        final.positions = positions
        return final
    }

    // MARK: - Trials

    private mutating func attempt(_ holding: Holding, _ stretch: Stretch) {
        if let trial, trial.over != nil { loseTrial() }
        if trial == nil {
            var started = Moment(
                .trialStarted,
                at: stretch.from,
                positions: stretch.deciding.sorted
            )
            started.holding = holding
            trial = Trial(
                from: stretch.from,
                start: moments.count,
                holding: holding,
                charge: stretch.charge,
                lastState: stretch.state
            )
            moments.append(started)
        }
        trial?.charge = stretch.charge
        trial?.holding = holding
        trial?.lastState = stretch.state
        gap = nil
    }

    private mutating func leaveTrial(_ stretch: Stretch) {
        guard trial != nil else { return }
        trial?.lastState = stretch.state
        if trial?.over == nil, stretch.state.isOver {
            trial?.over = (
                stretch.from, stretch.state, stretch.confidence, stretch.deciding.sorted
            )
        }
    }

    /// Notes the loss of a trial that is over; one that still runs has no outcome.
    private mutating func loseTrial() {
        defer { trial = nil }
        guard let trial, let over = trial.over else { return }
        let word = ChurnCause.word(over.state)
        let cause = word == "involuntary" ? "billing" : word == "voluntary" ? word : "other"
        var lost = Moment(.trialLost, at: over.at, cause: cause, positions: over.3)
        lost.holding = trial.holding
        lost.confidence = over.confidence
        lost.relatedAt = trial.from
        moments.append(lost)
        // Until Apple would no longer retry, a payment may still make it a conversion.
        let open = trial.charge.map {
            charges[$0].until.adding(rules.billingRetryLimit(after: charges[$0]))
        }
        settle(trial, cause, at: max(over.at, open ?? over.at), over.confidence)
    }

    /// Tells the trial's own moment how it ended and when.
    private mutating func settle(
        _ trial: Trial,
        _ outcome: String,
        at instant: Timestamp,
        _ confidence: Confidence
    ) {
        moments[trial.start].cause = outcome
        moments[trial.start].relatedAt = instant
        moments[trial.start].confidence = confidence
    }

    // MARK: - Making moments

    private func moment(
        _ kind: Moment.Kind,
        _ holding: Holding,
        at instant: Timestamp,
        _ positions: [Int64]
    ) -> Moment {
        var moment = Moment(kind, at: instant, positions: positions)
        moment.holding = holding
        moment.spell = spell
        moment.paidPeriods = paidPeriods
        let tenure = (instant.milliseconds - spellStart.milliseconds) / 86_400_000
        moment.tenureDays = Int32(clamping: max(0, tenure))
        moment.activeSince = activeSince
        moment.heldSince = heldSince
        return moment
    }
}

extension [Moment] {
    /// In the order of their instants; those of one instant as they were noted.
    fileprivate func inOrder() -> [Moment] {
        enumerated()
            .sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }
            .map(\.element)
    }
}

extension History {
    /// Whether the first charge that is known continues a life that began before it.
    ///
    /// A renewal does, and what follows a first purchase that was long before. One that a migration
    /// made begins a stream of its own; what came before it is told by its predecessor.
    func isContinuation(_ first: Charge) -> Bool {
        guard previousOriginalTransactionID == nil,
            first.transactionID == charges.first?.transactionID
        else { return false }
        return first.reason == .renewal
            || first.originalPurchaseDate.map { $0.adding(.days(1)) < first.from } ?? false
    }
}
