// Splits a stretch of time with one state into intervals in which nothing changes.

extension TimelineBuilder {
    /// A stretch of time with one state, and what it is split by beside renewal infos and policies.
    struct Stretch {
        /// The end of what never ends.
        static var never: Timestamp { Timestamp(milliseconds: .max) }

        /// The period that it is about, whose renewal infos count.
        let period: Int
        let from: Timestamp
        let until: Timestamp
        let state: SubscriptionState
        let confidence: Confidence
        /// Whether our policy grants access, where there is nothing to decide.
        let isEntitled: Bool
        let isEntitledByApple: Bool
        /// Whether nothing but renewal infos splits it.
        var isPlain = true
        /// From when on no renewal info counts.
        @Packed var cut: Timestamp?
        @Packed var graceEnd: Timestamp?
        var deciding = DecidingPositions()
        /// Where a failed charge is already known.
        @Packed var troubleFrom: Timestamp?
        var troubleUntil = Timestamp.latest
        /// The end that Apple signed, where an unsigned answer promised a later one.
        @Packed var signedEnd: Timestamp?
        /// What grants access where no transaction does.
        var access: AccessDecision?
    }

    /// What may change within a stretch.
    private struct Shown {
        var intent = RenewalIntent.unknown
        var commitmentIntent = RenewalIntent.unknown
        var consent = PriceConsent.none
        var confidence: Confidence
        var hasBillingTrouble = false
        var entitled: Bool
        var policyVersion: Int32
        @Packed var pendingProductID: Symbol?
        var renewal: Int64
        var marker: Int64

        /// Whether an interval looks the same, whatever decided it.
        @inline(__always) func looks(like other: Shown) -> Bool {
            intent == other.intent && commitmentIntent == other.commitmentIntent
                && consent == other.consent && confidence == other.confidence
                && hasBillingTrouble == other.hasBillingTrouble && entitled == other.entitled
                && policyVersion == other.policyVersion
                && pendingProductID == other.pendingProductID
        }
    }

    /// Splits a stretch where renewal info, policy or the stretch's own bounds say so.
    @inline(__always) mutating func split(
        _ stretch: Stretch,
        _ registers: borrowing Registers,
        _ events: Events,
        _ rules: FoldRules
    ) {
        let count = registers.renewals.count
        let until = stretch.until
        let end = until == Stretch.never ? .latest : until
        let stop = min(end, stretch.cut ?? end)
        let knownFromStart = registers.periods[stretch.period].knownFromStart
        let isPlain = stretch.isPlain && rules.isSingle
        var shown = Shown(
            confidence: stretch.confidence,
            entitled: stretch.isEntitled,
            policyVersion: rules.firstVersion,
            renewal: stretch.deciding.renewal,
            marker: stretch.deciding.marker
        )
        var last = shown
        var next = renewalCursor
        var winner = -1
        var from = stretch.from
        while true {
            // What the report of the purchase told counts from the period's start on.
            let known = max(from, knownFromStart)
            var to = until
            let before = winner
            while next < count {
                let at = registers.renewals[next].at
                guard at < stop else { break }
                guard at <= known else {
                    to = min(to, at)
                    break
                }
                if winner < 0 || registers.renewalsRise
                    || registers.renewals[next].wins(over: registers.renewals[winner])
                {
                    winner = next
                }
                next += 1
            }
            if winner != before {
                if stretch.deciding.renewal == 0 {
                    shown.renewal = registers.renewals[winner].position
                }
                shown.intent = registers.renewals[winner].intent
                if registers.periods[stretch.period].isCommitment {
                    shown.commitmentIntent = registers.renewals[winner].commitmentIntent
                }
                shown.consent = registers.renewals[winner].consent
                let pending = registers.renewals[winner].productID
                let isShown =
                    pending != registers.periods[stretch.period].productID && !stretch.state.isOver
                shown.pendingProductID = isShown ? pending : nil
            }
            if !isPlain {
                to = Self.end(of: stretch, after: from, before: to, rules)
                Self.decide(&shown, stretch, from, registers, rules)
            }
            if from == stretch.from {
                append(stretch, until: to, shown, registers, events)
                last = shown
            } else if shown.looks(like: last) {
                let place = intervals.count - 1
                intervals[place].until = to == Stretch.never ? nil : to
            } else {
                let place = intervals.count
                intervals.append(copyOf: place - 1)
                intervals.update(place) { interval in
                    interval.from = from
                    interval.until = to == Stretch.never ? nil : to
                    interval.renewalIntent = shown.intent
                    interval.commitmentIntent = shown.commitmentIntent
                    interval.priceConsent = shown.consent
                    interval.pendingProductID = shown.pendingProductID
                    interval.confidence = shown.confidence
                    interval.hasBillingTrouble = shown.hasBillingTrouble
                    interval.entitled = shown.entitled
                    interval.policyVersion = shown.policyVersion
                    interval.deciding.renewal = shown.renewal
                    interval.deciding.marker = shown.marker
                }
                last = shown
            }
            if to == until { return }
            from = to
        }
    }

    /// Adds the first interval of a stretch.
    @inline(__always) private mutating func append(
        _ stretch: Stretch,
        until: Timestamp,
        _ shown: Shown,
        _ registers: borrowing Registers,
        _ events: Events
    ) {
        let source = registers.periods[stretch.period].place
        intervals.update(intervals.extend()) { interval in
            interval.from = stretch.from
            interval.until = until == Stretch.never ? nil : until
            interval.state = stretch.state
            interval.entitledApple = stretch.isEntitledByApple
            interval.entitled = shown.entitled
            interval.policyVersion = shown.policyVersion
            interval.productID = registers.periods[stretch.period].productID
            interval.transactionID = registers.periods[stretch.period].transactionID
            interval.expiresDate = registers.periods[stretch.period].end
            interval.gracePeriodExpiresDate = stretch.graceEnd
            interval.offer = registers.periods[stretch.period].offer
            interval.renewalIntent = shown.intent
            interval.commitmentIntent = shown.commitmentIntent
            interval.pendingProductID = shown.pendingProductID
            interval.priceConsent = shown.consent
            interval.ownership =
                events[source].fact.storedTransaction.ownership ?? .purchased
            interval.price = events[source].fact.storedTransaction.price
            interval.currency = events[source].fact.storedTransaction.currency
            interval.confidence = shown.confidence
            interval.hasBillingTrouble = shown.hasBillingTrouble
            interval.deciding.transaction = stretch.deciding.transaction
            interval.deciding.renewal = shown.renewal
            interval.deciding.marker = shown.marker
            interval.deciding.status = stretch.deciding.status
        }
    }

    /// Where the part ends that begins at an instant, as far as renewal info does not end it.
    @inline(never) private static func end(
        of stretch: Stretch,
        after from: Timestamp,
        before until: Timestamp,
        _ rules: FoldRules
    ) -> Timestamp {
        var end = until
        if let troubleFrom = stretch.troubleFrom {
            if troubleFrom > from { end = min(end, troubleFrom) }
            if stretch.troubleUntil > from { end = min(end, stretch.troubleUntil) }
        }
        if let signedEnd = stretch.signedEnd, signedEnd > from { end = min(end, signedEnd) }
        if let access = stretch.access { end = access.end(after: from, before: end, rules.rules) }
        if !rules.isSingle {
            for policy in rules.rules.policies where policy.effectiveFrom > from {
                end = min(end, policy.effectiveFrom)
            }
        }
        return end
    }

    /// Fills in what hangs on the instant.
    @inline(never) private static func decide(
        _ shown: inout Shown,
        _ stretch: Stretch,
        _ from: Timestamp,
        _ registers: borrowing Registers,
        _ rules: FoldRules
    ) {
        if let troubleFrom = stretch.troubleFrom {
            shown.hasBillingTrouble = troubleFrom <= from && from < stretch.troubleUntil
        }
        if let signedEnd = stretch.signedEnd {
            let isPromised = from >= signedEnd
            shown.confidence = isPromised ? .provisional : stretch.confidence
            shown.marker =
                isPromised ? registers.provisionalPosition : stretch.deciding.marker
        }
        let policy = rules.policy(at: from)
        shown.policyVersion = policy.version
        if let access = stretch.access { shown.entitled = access.isEntitled(at: from, policy) }
    }
}
