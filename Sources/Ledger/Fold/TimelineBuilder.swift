/// Makes the timeline: cover, the gaps between, split wherever something shown changes.
struct TimelineBuilder {
    let rules: AppRules
    private var coverage = Coverage()
    /// Where the renewal infos of the present period begin; they only move forward.
    private var renewalCursor = 0

    init(rules: AppRules) { self.rules = rules }

    /// The timeline of the registers, which are finished; empty where no period is known.
    mutating func timeline(of registers: borrowing Registers) -> [Interval] {
        guard !registers.periods.isEmpty else { return [] }
        coverage.compute(registers.periods)
        renewalCursor = 0
        let count = coverage.segments.count
        var intervals: [Interval] = []
        intervals.reserveCapacity(count * 2 + 3)
        var cursor = registers.periods[0].start
        var latest = 0
        for place in 0..<count {
            let (from, to) = (coverage.segments[place].from, coverage.segments[place].to)
            if from > cursor {
                appendGap(
                    from: cursor,
                    until: from,
                    after: place - 1,
                    &latest,
                    registers,
                    &intervals
                )
            }
            appendCover(place, registers, &intervals)
            cursor = to
        }
        appendGap(from: cursor, until: nil, after: count - 1, &latest, registers, &intervals)
        return intervals
    }

    // MARK: Cover

    private mutating func appendCover(
        _ place: Int,
        _ registers: borrowing Registers,
        _ intervals: inout [Interval]
    ) {
        let segment = coverage.segments[place]
        let number = segment.period
        let firstSigned = registers.periods[number].firstSigned
        let nextSigned =
            place + 1 < coverage.segments.count
            ? registers.periods[coverage.segments[place + 1].period].firstSigned : nil
        moveRenewalCursor(to: firstSigned, registers)

        var base = Interval(from: segment.from, until: segment.to, state: .active)
        fill(&base, registers, number)
        base.entitledApple = true
        base.entitled = true
        base.deciding.transaction = registers.periods[number].position

        let trouble =
            registers.hasFailures
            ? trouble(number, until: segment.to, nextSigned: nextSigned, registers) : nil
        var extra: [Timestamp] = []
        var signedEnd: Timestamp?
        if let trouble { extra = [trouble.lowerBound, trouble.upperBound] }
        if registers.periods[number].provisionalEnd != nil,
            let end = registers.periods[number].expiresDate
        {
            signedEnd = end
            extra.append(end)
        }
        let provisionalPosition = registers.periods[number].provisionalPosition
        split(base, number, from: renewalCursor, cut: nil, registers, extra, &intervals) {
            interval in
            if let trouble { interval.hasBillingTrouble = trouble.contains(interval.from) }
            if let signedEnd, interval.from >= signedEnd {
                interval.confidence = .provisional
                interval.deciding.marker = provisionalPosition
            }
        }
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
                from = from ?? registers.markers[place].at
            }
        }
        for place in registers.renewals.range(since: since, before: cut)
        where registers.renewals[place].isInBillingRetryPeriod {
            from = min(from ?? .latest, registers.renewals[place].at)
        }
        guard let from, max(from, start) < cut else { return nil }
        return max(from, start)..<cut
    }

    // MARK: Gaps

    private mutating func appendGap(
        from: Timestamp,
        until: Timestamp?,
        after place: Int,
        _ latest: inout Int,
        _ registers: borrowing Registers,
        _ intervals: inout [Interval]
    ) {
        while latest + 1 < registers.periods.count, registers.periods[latest + 1].start <= from {
            latest += 1
        }
        let number = purchase(of: latest, registers)
        let last = place >= 0 ? coverage.segments[place].period : number
        let next = until == nil ? nil : coverage.segments[place + 1].period
        let gap = Gap(
            registers,
            from: from,
            until: until,
            last: last,
            latest: number,
            next: next,
            revokedAt: revocation(of: number, registers)
        )
        for piece in gap.pieces(registers, rules) {
            let number = piece.state.isRevoked ? number : last
            moveRenewalCursor(to: registers.periods[number].firstSigned, registers)
            var base = Interval(from: piece.from, until: piece.until, state: piece.state)
            fill(&base, registers, number)
            base.confidence = piece.confidence
            base.gracePeriodExpiresDate = piece.graceEnd
            base.deciding = piece.deciding
            let access = AccessDecision(
                piece: piece,
                end: gap.end,
                paidUntil: registers.periods[number].end,
                grace: configuredGrace(number, registers)
            )
            split(
                base,
                number,
                from: renewalCursor,
                cut: gap.cut,
                registers,
                access.bounds(rules),
                &intervals
            ) { interval in
                access.decide(&interval, rules.policy(at: interval.from))
            }
        }
    }

    private func configuredGrace(
        _ number: Int,
        _ registers: borrowing Registers
    ) -> Milliseconds? {
        guard rules.gracePeriodDays != nil else { return nil }
        let plan = Clock.plan(
            product: registers.periods[number].productID,
            period: registers.periods[number].length,
            rules: rules
        )
        let offer = registers.periods[number].offer
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
        let period = registers.periods[number]
        // Where every transaction of a period says that it has company, the end tells.
        var place = period.isAdditional ? 0 : number + 1
        while place < registers.periods.count,
            period.isAdditional || registers.periods[place].start < period.end
        {
            let other = registers.periods[place]
            place += 1
            guard other.isAdditional, !period.isAdditional || other.end == period.end else {
                continue
            }
            guard let revoked = other.revocation else { return nil }
            latest = max(latest, revoked)
        }
        return latest
    }

    // MARK: Splitting

    /// Splits a stretch where renewal info, policy or the caller's own instants say so.
    private func split(
        _ base: Interval,
        _ number: Int,
        from first: Int,
        cut: Timestamp?,
        _ registers: borrowing Registers,
        _ extra: [Timestamp],
        _ intervals: inout [Interval],
        decide: (inout Interval) -> Void
    ) {
        let count = registers.renewals.count
        let stop = Self.earlier(cut, base.until) ?? .latest
        let knownFromStart = registers.periods[number].knownFromStart
        let product = registers.periods[number].productID
        var next = first
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
            for instant in extra where instant > from { until = Self.earlier(until, instant) }
            if rules.policies.count > 1 {
                for policy in rules.policies where policy.effectiveFrom > from {
                    until = Self.earlier(until, policy.effectiveFrom)
                }
            }
            var interval = base
            interval.from = from
            interval.until = until
            if rules.policies.count > 1 { interval.policyVersion = rules.policy(at: from).version }
            if winner >= 0 { show(registers.renewals[winner], in: &interval, product) }
            decide(&interval)
            intervals.appendMerging(interval, notBefore: begin)
            guard let until, until != base.until else { return }
            from = until
        }
    }

    /// Fills in what the transaction tells.
    private func fill(_ interval: inout Interval, _ registers: borrowing Registers, _ number: Int) {
        interval.policyVersion = rules.policies[0].version
        interval.productID = registers.periods[number].productID
        interval.transactionID = registers.periods[number].transactionID
        interval.expiresDate = registers.periods[number].end
        interval.offer = registers.periods[number].offer
        interval.ownership = registers.periods[number].ownership ?? .purchased
        interval.price = registers.periods[number].price
        interval.currency = registers.periods[number].currency
    }

    /// Fills in what the renewal info tells.
    private func show(
        _ renewal: borrowing RenewalRecord,
        in interval: inout Interval,
        _ product: Symbol?
    ) {
        if interval.deciding.renewal == 0 { interval.deciding.renewal = renewal.position }
        switch renewal.autoRenewStatus {
        case 0: interval.renewalIntent = .off
        case 1: interval.renewalIntent = .on
        default: interval.renewalIntent = .unknown
        }
        switch renewal.priceIncreaseStatus {
        case 0: interval.priceConsent = .pending
        case 1: interval.priceConsent = .accepted
        default: interval.priceConsent = .none
        }
        if let pending = renewal.autoRenewProductID, pending != product, !interval.state.isOver {
            interval.pendingProductID = pending
        }
    }

    private static func earlier(_ left: Timestamp?, _ right: Timestamp?) -> Timestamp? {
        guard let left, let right else { return left ?? right }
        return min(left, right)
    }
}

extension SubscriptionState {
    var isRevoked: Bool {
        if case .revoked = self { true } else { false }
    }

    /// Whether nothing of it is left: expired or revoked.
    var isOver: Bool {
        switch self {
        case .expired, .revoked: true
        default: false
        }
    }
}

extension [Interval] {
    /// Adds an interval, or lengthens the last one where nothing that is shown differs.
    ///
    /// - Parameters:
    ///   - interval: The interval that follows.
    ///   - first: Where the stretch begins whose parts may be one.
    fileprivate mutating func appendMerging(_ interval: Interval, notBefore first: Int) {
        guard count > first, self[count - 1].until == interval.from else {
            append(interval)
            return
        }
        var same = interval
        same.from = self[count - 1].from
        same.until = self[count - 1].until
        same.deciding = self[count - 1].deciding
        if same == self[count - 1] {
            self[count - 1].until = interval.until
        } else {
            append(interval)
        }
    }
}
