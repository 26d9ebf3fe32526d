/// Makes the timeline: cover, the gaps between, split wherever something shown changes.
struct TimelineBuilder {
    let rules: AppRules
    /// The only policy; nil where there are several, or one that counts from some instant on.
    private let policy: AccessPolicy?
    private var coverage = Coverage()
    private var pieces: [Piece] = []
    /// Where the renewal infos of the present period begin; they only move forward.
    private var renewalCursor = 0
    private var successors = Successors()

    init(rules: AppRules) {
        self.rules = rules
        policy = rules.policies.count == 1 ? rules.policies[0] : nil
    }

    /// Adds the timeline of the registers, which are finished; nothing where no period is known.
    mutating func append(
        to intervals: inout [Interval],
        _ registers: borrowing Registers,
        _ events: borrowing [Event]
    ) {
        guard !registers.periods.isEmpty else { return }
        coverage.compute(registers.periods)
        renewalCursor = 0
        successors = Successors()
        let count = coverage.segments.count
        var cursor = registers.periods[0].start
        var latest = 0
        for place in 0..<count {
            let (from, to) = (coverage.segments[place].from, coverage.segments[place].to)
            if from > cursor {
                let gap = gap(from: cursor, until: from, after: place - 1, &latest, registers)
                append(gap, to: &intervals, registers, events)
            }
            appendCover(place, to: &intervals, registers, events)
            cursor = to
        }
        let gap = gap(from: cursor, until: nil, after: count - 1, &latest, registers)
        append(gap, to: &intervals, registers, events)
    }

    // MARK: Cover

    private mutating func appendCover(
        _ place: Int,
        to intervals: inout [Interval],
        _ registers: borrowing Registers,
        _ events: borrowing [Event]
    ) {
        let segment = coverage.segments[place]
        let number = segment.period
        moveRenewalCursor(to: registers.periods[number].firstSigned, registers)

        var base = Interval(from: segment.from, until: segment.to, state: .active)
        fill(&base, registers, events, number)
        base.entitledApple = true
        base.entitled = true
        base.deciding.transaction = registers.periods[number].position

        var stretch = Stretch(period: number, cut: nil)
        if registers.hasFailures {
            let next = successors.next(after: place, coverage.segments)
            stretch.trouble = trouble(
                number,
                until: segment.to,
                nextSigned: next.map { registers.periods[$0].firstSigned },
                registers
            )
            if let trouble = stretch.trouble {
                stretch.bounds = [trouble.lowerBound, trouble.upperBound]
            }
        }
        if registers.provisionalPeriod == number, let end = registers.periods[number].expiresDate {
            stretch.signedEnd = end
            stretch.bounds.append(end)
        }
        split(base, stretch, to: &intervals, registers, events)
    }

    /// Moves on to the first renewal info signed since an instant, or back, should it lie there.
    private mutating func moveRenewalCursor(
        to instant: Timestamp,
        _ registers: borrowing Registers
    ) {
        let count = registers.renewals.count
        while renewalCursor < count, registers.renewals[renewalCursor].at < instant {
            renewalCursor += 1
        }
        while renewalCursor > 0, registers.renewals[renewalCursor - 1].at >= instant {
            renewalCursor -= 1
        }
    }

    /// The part of a covered stretch in which a failed charge is already known.
    private func trouble(
        _ number: Int,
        until end: Timestamp,
        nextSigned: Timestamp?,
        _ registers: borrowing Registers
    ) -> Range<Timestamp>? {
        let (since, start) = (
            registers.periods[number].firstSigned, registers.periods[number].start
        )
        let cut = min(end, nextSigned ?? end)
        var from: Timestamp?
        for place in registers.markers.range(since: since, before: cut) {
            if case .failed = registers.markers[place].kind {
                from = registers.markers[place].at
                break
            }
        }
        for place in registers.renewals.range(since: since, before: cut)
        where registers.renewals[place].isInBillingRetryPeriod {
            from = min(from ?? .latest, registers.renewals[place].at)
            break
        }
        guard let from, max(from, start) < cut else { return nil }
        return max(from, start)..<cut
    }

    // MARK: Gaps

    private mutating func gap(
        from: Timestamp,
        until: Timestamp?,
        after place: Int,
        _ latest: inout Int,
        _ registers: borrowing Registers
    ) -> Gap {
        while latest + 1 < registers.periods.count, registers.periods[latest + 1].start <= from {
            latest += 1
        }
        let number = purchase(of: latest, registers)
        return Gap(
            registers,
            from: from,
            until: until,
            last: place >= 0 ? coverage.segments[place].period : number,
            latest: number,
            next: until == nil ? nil : successors.next(after: place, coverage.segments),
            revokedAt: revocation(of: number, registers)
        )
    }

    private mutating func append(
        _ gap: Gap,
        to intervals: inout [Interval],
        _ registers: borrowing Registers,
        _ events: borrowing [Event]
    ) {
        pieces.reset()
        gap.append(to: &pieces, registers, events, rules)
        for place in pieces.indices {
            let state = pieces[place].state
            let number = state.isRevoked ? gap.latest : gap.last
            moveRenewalCursor(to: registers.periods[number].firstSigned, registers)
            var base = Interval(from: pieces[place].from, until: pieces[place].until, state: state)
            fill(&base, registers, events, number)
            base.confidence = pieces[place].confidence
            base.gracePeriodExpiresDate = pieces[place].graceEnd
            base.deciding = pieces[place].deciding
            var stretch = Stretch(period: number, cut: gap.cut)
            switch state {
            case .active, .expired: break
            case .renewalPending: base.entitled = true
            case .gracePeriod, .billingRetry, .revoked:
                let access = AccessDecision(
                    piece: pieces[place],
                    end: gap.end,
                    paidUntil: registers.periods[number].end,
                    grace: state == .billingRetry ? configuredGrace(number, registers, events) : nil
                )
                stretch.bounds = access.bounds(rules)
                stretch.access = access
            }
            split(base, stretch, to: &intervals, registers, events)
        }
    }

    private func configuredGrace(
        _ number: Int,
        _ registers: borrowing Registers,
        _ events: borrowing [Event]
    ) -> Milliseconds? {
        guard rules.gracePeriodDays != nil else { return nil }
        let plan = Clock.plan(
            product: registers.periods[number].productID,
            period: registers.planLength(number, events),
            rules: rules
        )
        let offer = registers.offer(number, events)
        return Clock.configuredGrace(plan: plan, offer: offer, rules: rules)
    }

    /// The purchase that more seats were added to; itself for any other, and where it is not known.
    private func purchase(of number: Int, _ registers: borrowing Registers) -> Int {
        guard registers.periods[number].isAdditional else { return number }
        let start = registers.periods[number].start
        for place in (0..<number).reversed()
        where !registers.periods[place].isAdditional && start < registers.periods[place].end {
            return place
        }
        return number
    }

    /// When the period that began last was taken back; with seats, when the last of its
    /// transactions was.
    private func revocation(of number: Int, _ registers: borrowing Registers) -> Timestamp? {
        guard var latest = registers.periods[number].revocation else { return nil }
        let isAdditional = registers.periods[number].isAdditional
        let end = registers.periods[number].end
        // Where every transaction of a period says that it has company, the end tells.
        for place in (isAdditional ? 0 : number + 1)..<registers.periods.count {
            if !isAdditional, registers.periods[place].start >= end { break }
            guard registers.periods[place].isAdditional,
                !isAdditional || registers.periods[place].end == end
            else { continue }
            guard let revoked = registers.periods[place].revocation else { return nil }
            latest = max(latest, revoked)
        }
        return latest
    }

    // MARK: Splitting

    /// What a stretch of time is split by, beside renewal infos and policies.
    private struct Stretch {
        /// The period whose renewal infos count.
        var period: Int
        /// From when on none of them counts.
        var cut: Timestamp?
        /// Other instants at which something may change.
        var bounds: [Timestamp] = []
        /// Where a failed charge is already known.
        var trouble: Range<Timestamp>?
        /// The end that Apple signed, where an unsigned answer promised a later one.
        var signedEnd: Timestamp?
        /// What grants access where no transaction does.
        var access: AccessDecision?
    }

    /// Splits a stretch where renewal info, policy or the stretch's own bounds say so.
    private func split(
        _ base: Interval,
        _ stretch: Stretch,
        to intervals: inout [Interval],
        _ registers: borrowing Registers,
        _ events: borrowing [Event]
    ) {
        let count = registers.renewals.count
        let end = base.until ?? .latest
        let stop = stretch.cut.map { min($0, end) } ?? end
        let knownFromStart = registers.periods[stretch.period].knownFromStart
        var next = renewalCursor
        var winner = -1
        var from = base.from
        let begin = intervals.count
        while true {
            // What the report of the purchase told counts from the period's start on.
            let known = max(from, knownFromStart)
            while next < count, registers.renewals[next].at <= known,
                registers.renewals[next].at < stop
            {
                if winner < 0 || registers.renewals[next].wins(over: registers.renewals[winner]) {
                    winner = next
                }
                next += 1
            }
            var until = base.until
            if next < count, registers.renewals[next].at < stop {
                until = Self.earlier(until, registers.renewals[next].at)
            }
            for instant in stretch.bounds where instant > from {
                until = Self.earlier(until, instant)
            }
            if policy == nil {
                for policy in rules.policies where policy.effectiveFrom > from {
                    until = Self.earlier(until, policy.effectiveFrom)
                }
            }
            var interval = base
            interval.from = from
            interval.until = until
            if winner >= 0 {
                show(registers.renewals[winner], in: &interval, events, registers, stretch.period)
            }
            decide(&interval, stretch, registers)
            intervals.appendMerging(interval, notBefore: begin)
            guard let until, until != base.until else { return }
            from = until
        }
    }

    /// Fills in what hangs on the instant.
    private func decide(
        _ interval: inout Interval,
        _ stretch: Stretch,
        _ registers: borrowing Registers
    ) {
        if let trouble = stretch.trouble {
            interval.hasBillingTrouble = trouble.contains(interval.from)
        }
        if let signedEnd = stretch.signedEnd, interval.from >= signedEnd {
            interval.confidence = .provisional
            interval.deciding.marker = registers.provisionalPosition
        }
        if let policy {
            if let access = stretch.access { access.decide(&interval, policy) }
            return
        }
        let policy = rules.policy(at: interval.from)
        interval.policyVersion = policy.version
        if let access = stretch.access { access.decide(&interval, policy) }
    }

    /// Fills in what the transaction tells.
    private func fill(
        _ interval: inout Interval,
        _ registers: borrowing Registers,
        _ events: borrowing [Event],
        _ number: Int
    ) {
        let place = registers.periods[number].place
        interval.policyVersion = policy?.version ?? rules.policies[0].version
        interval.productID = registers.periods[number].productID
        interval.transactionID = registers.periods[number].transactionID
        interval.expiresDate = registers.periods[number].end
        interval.offer = registers.offer(number, events)
        interval.ownership = events[place].fact.storedTransaction.ownership ?? .purchased
        interval.price = events[place].fact.storedTransaction.price
        interval.currency = events[place].fact.storedTransaction.currency
    }

    /// Fills in what the renewal info tells.
    private func show(
        _ renewal: RenewalRecord,
        in interval: inout Interval,
        _ events: borrowing [Event],
        _ registers: borrowing Registers,
        _ number: Int
    ) {
        let place = renewal.place
        if interval.deciding.renewal == 0 { interval.deciding.renewal = renewal.position }
        interval.renewalIntent = RenewalIntent(
            status: events[place].fact.storedRenewal.autoRenewStatus
        )
        if registers.periods[number].isCommitment {
            interval.commitmentIntent = RenewalIntent(
                status: events[place].fact.storedRenewal.commitmentAutoRenewStatus
            )
        }
        switch events[place].fact.storedRenewal.priceIncreaseStatus {
        case 0: interval.priceConsent = .pending
        case 1: interval.priceConsent = .accepted
        default: interval.priceConsent = .none
        }
        if let pending = events[place].fact.storedRenewal.autoRenewProductID,
            pending != registers.periods[number].productID, !interval.state.isOver
        {
            interval.pendingProductID = pending
        }
    }

    private static func earlier(_ left: Timestamp?, _ right: Timestamp?) -> Timestamp? {
        guard let left, let right else { return left ?? right }
        return min(left, right)
    }
}

extension [Interval] {
    /// Adds an interval, or lengthens the last one where nothing that is shown differs.
    ///
    /// - Parameters:
    ///   - interval: The interval that follows.
    ///   - first: Where the stretch begins whose parts may be one.
    fileprivate mutating func appendMerging(_ interval: Interval, notBefore first: Int) {
        let last = count - 1
        guard count > first, self[last].until == interval.from, shows(interval, at: last) else {
            append(interval)
            return
        }
        self[last].until = interval.until
    }

    /// Whether an interval of the same stretch shows what the one at a place does: the rest of it
    /// is the same throughout a stretch.
    private func shows(_ interval: Interval, at place: Int) -> Bool {
        self[place].renewalIntent == interval.renewalIntent
            && self[place].commitmentIntent == interval.commitmentIntent
            && self[place].priceConsent == interval.priceConsent
            && self[place].pendingProductID == interval.pendingProductID
            && self[place].confidence == interval.confidence
            && self[place].hasBillingTrouble == interval.hasBillingTrouble
            && self[place].entitled == interval.entitled
            && self[place].entitledApple == interval.entitledApple
            && self[place].policyVersion == interval.policyVersion
    }
}
