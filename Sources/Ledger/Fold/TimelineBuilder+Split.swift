// Splits a stretch of time with one state into intervals in which nothing changes.

extension TimelineBuilder {
    /// A stretch of time with one state.
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
        var isEntitled: Bool
        let isEntitledByApple: Bool
        /// From when on no renewal info counts.
        @Packed var cut: Timestamp?
        @Packed var graceEnd: Timestamp?
        var deciding = DecidingPositions()

        /// Where it ends; nil where it never does.
        var end: Timestamp? { until == Self.never ? nil : until }

        /// From when on no renewal info counts, at the latest where the stretch ends.
        var stop: Timestamp {
            let end = until == Self.never ? .latest : until
            return min(end, cut ?? end)
        }
    }

    /// What splits a stretch beside renewal infos and policies.
    struct Divisions {
        /// Where a failed charge is already known.
        @Packed var troubleFrom: Timestamp?
        var troubleUntil = Timestamp.latest
        /// The end that Apple signed, where an unsigned answer promised a later one.
        @Packed var signedEnd: Timestamp?
        /// What grants access where no transaction does.
        var access: AccessDecision?
    }

    /// What an interval shows of the renewal info that counts in it.
    private struct ShownRenewal {
        var intent = RenewalIntent.unknown
        var commitmentIntent = RenewalIntent.unknown
        var consent = PriceConsent.none
        @Packed var pendingProductID: Symbol?
        /// The event that holds it; 0 where there is none.
        var position: Int64 = 0

        /// Nothing.
        init() {}

        /// Reads what a renewal info tells of a stretch.
        @inline(__always) init(
            _ number: Int,
            of stretch: Stretch,
            _ registers: borrowing Registers,
            _ events: Events
        ) {
            let place = registers.renewals[number].place
            position = registers.renewals[number].position
            intent = RenewalIntent(status: events[place].fact.storedRenewal.autoRenewStatus)
            if registers.periods[stretch.period].isCommitment {
                commitmentIntent = RenewalIntent(
                    status: events[place].fact.storedRenewal.commitmentAutoRenewStatus
                )
            }
            consent = PriceConsent(status: events[place].fact.storedRenewal.priceIncreaseStatus)
            let pending = events[place].fact.storedRenewal.autoRenewProductID
            let isShown =
                pending != registers.periods[stretch.period].productID && !stretch.state.isOver
            pendingProductID = isShown ? pending : nil
        }

        /// Whether an interval looks the same.
        @inline(__always) func looks(like other: ShownRenewal) -> Bool {
            intent == other.intent && commitmentIntent == other.commitmentIntent
                && consent == other.consent && pendingProductID == other.pendingProductID
        }

        /// Fills it in; what decided the stretch stays where that was a renewal info too.
        @inline(__always) func fill(_ interval: inout Interval, of stretch: Stretch) {
            interval.renewalIntent = intent
            interval.commitmentIntent = commitmentIntent
            interval.priceConsent = consent
            interval.pendingProductID = pendingProductID
            interval.deciding.renewal =
                stretch.deciding.renewal == 0 ? position : stretch.deciding.renewal
        }
    }

    // MARK: By renewal infos alone

    /// Splits a stretch that nothing else splits, where renewal infos are in order, as nearly
    /// always.
    @inline(__always) mutating func split(
        _ stretch: Stretch,
        _ registers: borrowing Registers,
        _ events: Events,
        _ rules: FoldRules
    ) {
        guard rules.isSingle, registers.renewalsRise else {
            return split(stretch, by: Divisions(), registers, events, rules)
        }
        let count = registers.renewals.count
        let stop = stretch.stop
        // What the report of the purchase told counts from the period's start on.
        let known = max(stretch.from, registers.periods[stretch.period].knownFromStart)
        var next = renewalCursor
        while next < count, registers.renewals[next].at <= known,
            registers.renewals[next].at < stop
        {
            next += 1
        }
        var shown = ShownRenewal()
        if next > renewalCursor { shown = ShownRenewal(next - 1, of: stretch, registers, events) }
        intervals.add {
            Self.fill(&$0, stretch, registers, events)
            shown.fill(&$0, of: stretch)
            $0.policyVersion = rules.firstVersion
        }
        while next < count {
            let at = registers.renewals[next].at
            guard at < stop else { break }
            // Of several signed at one instant the last counts.
            next += 1
            while next < count, registers.renewals[next].at == at { next += 1 }
            let new = ShownRenewal(next - 1, of: stretch, registers, events)
            if new.looks(like: shown) { continue }
            intervals[intervals.count - 1].until = at
            intervals.addCopyOfLast {
                $0.from = at
                $0.until = stretch.end
                new.fill(&$0, of: stretch)
            }
            shown = new
        }
    }

    /// Fills an interval in with what is the same throughout a stretch.
    @inline(__always) private static func fill(
        _ interval: inout Interval,
        _ stretch: Stretch,
        _ registers: borrowing Registers,
        _ events: Events
    ) {
        let source = registers.periods[stretch.period].place
        interval.from = stretch.from
        interval.until = stretch.end
        interval.state = stretch.state
        interval.entitledApple = stretch.isEntitledByApple
        interval.entitled = stretch.isEntitled
        interval.productID = registers.periods[stretch.period].productID
        interval.transactionID = registers.periods[stretch.period].transactionID
        interval.expiresDate = registers.periods[stretch.period].end
        interval.gracePeriodExpiresDate = stretch.graceEnd
        interval.offer = registers.periods[stretch.period].offer
        interval.ownership = events[source].fact.storedTransaction.ownership ?? .purchased
        interval.price = events[source].fact.storedTransaction.price
        interval.currency = events[source].fact.storedTransaction.currency
        interval.confidence = stretch.confidence
        interval.hasBillingTrouble = false
        interval.deciding = stretch.deciding
    }

    // MARK: By all else

    /// What an interval shows that hangs on the instant at which it begins.
    private struct Shown {
        var confidence: Confidence
        var hasBillingTrouble = false
        var entitled: Bool
        var policyVersion: Int32
        var marker: Int64

        init(_ stretch: Stretch, _ rules: FoldRules) {
            confidence = stretch.confidence
            entitled = stretch.isEntitled
            policyVersion = rules.firstVersion
            marker = stretch.deciding.marker
        }

        /// Whether an interval looks the same, whatever decided it.
        func looks(like other: Shown) -> Bool {
            confidence == other.confidence && hasBillingTrouble == other.hasBillingTrouble
                && entitled == other.entitled && policyVersion == other.policyVersion
        }

        func fill(_ interval: inout Interval) {
            interval.confidence = confidence
            interval.hasBillingTrouble = hasBillingTrouble
            interval.entitled = entitled
            interval.policyVersion = policyVersion
            interval.deciding.marker = marker
        }
    }

    /// Splits a stretch where renewal info, policy or the divisions say so.
    @inline(never) mutating func split(
        _ stretch: Stretch,
        by divisions: Divisions,
        _ registers: borrowing Registers,
        _ events: Events,
        _ rules: FoldRules
    ) {
        let count = registers.renewals.count
        let stop = stretch.stop
        let knownFromStart = registers.periods[stretch.period].knownFromStart
        var shown = (renewal: ShownRenewal(), rest: Shown(stretch, rules))
        var last = shown
        var next = renewalCursor
        var winner = -1
        var from = stretch.from
        while true {
            // What the report of the purchase told counts from the period's start on.
            let known = max(from, knownFromStart)
            var to = stretch.until
            let before = winner
            while next < count {
                let at = registers.renewals[next].at
                guard at < stop else { break }
                guard at <= known else {
                    to = min(to, at)
                    break
                }
                if winner < 0 || registers.renewalsRise
                    || registers.renewals[next].wins(over: registers.renewals[winner], events)
                {
                    winner = next
                }
                next += 1
            }
            if winner != before {
                shown.renewal = ShownRenewal(winner, of: stretch, registers, events)
            }
            to = Self.end(of: divisions, after: from, before: to, rules)
            Self.decide(&shown.rest, stretch, divisions, from, registers, rules)
            if from == stretch.from || !shown.renewal.looks(like: last.renewal)
                || !shown.rest.looks(like: last.rest)
            {
                if from == stretch.from {
                    intervals.add { Self.fill(&$0, stretch, registers, events) }
                } else {
                    intervals.addCopyOfLast { $0.from = from }
                }
                shown.renewal.fill(&intervals[intervals.count - 1], of: stretch)
                shown.rest.fill(&intervals[intervals.count - 1])
                last = shown
            }
            intervals[intervals.count - 1].until = to == Stretch.never ? nil : to
            if to == stretch.until { return }
            from = to
        }
    }

    /// Where the part ends that begins at an instant, as far as renewal info does not end it.
    private static func end(
        of divisions: Divisions,
        after from: Timestamp,
        before until: Timestamp,
        _ rules: FoldRules
    ) -> Timestamp {
        var end = until
        if let troubleFrom = divisions.troubleFrom {
            if troubleFrom > from { end = min(end, troubleFrom) }
            if divisions.troubleUntil > from { end = min(end, divisions.troubleUntil) }
        }
        if let signedEnd = divisions.signedEnd, signedEnd > from { end = min(end, signedEnd) }
        if let access = divisions.access {
            end = access.end(after: from, before: end, rules.rules)
        }
        if !rules.isSingle {
            for policy in rules.rules.policies where policy.effectiveFrom > from {
                end = min(end, policy.effectiveFrom)
            }
        }
        return end
    }

    /// Fills in what hangs on the instant.
    private static func decide(
        _ shown: inout Shown,
        _ stretch: Stretch,
        _ divisions: Divisions,
        _ from: Timestamp,
        _ registers: borrowing Registers,
        _ rules: FoldRules
    ) {
        if let troubleFrom = divisions.troubleFrom {
            shown.hasBillingTrouble = troubleFrom <= from && from < divisions.troubleUntil
        }
        if let signedEnd = divisions.signedEnd {
            let isPromised = from >= signedEnd
            shown.confidence = isPromised ? .provisional : stretch.confidence
            shown.marker =
                isPromised ? registers.provisionalPosition : stretch.deciding.marker
        }
        let policy = rules.policy(at: from)
        shown.policyVersion = policy.version
        if let access = divisions.access { shown.entitled = access.isEntitled(at: from, policy) }
    }
}
