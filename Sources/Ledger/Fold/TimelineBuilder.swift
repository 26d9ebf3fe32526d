/// Makes the timeline: cover, the gaps between, split wherever something shown changes.
struct TimelineBuilder {
    let rules: AppRules
    private var coverage = Coverage()

    init(rules: AppRules) { self.rules = rules }

    /// The timeline of the registers, which are finished; empty where no period is known.
    mutating func timeline(of registers: Registers) -> [Interval] {
        let periods = registers.periods
        guard let first = periods.first else { return [] }
        coverage.compute(periods)
        var intervals: [Interval] = []
        intervals.reserveCapacity(coverage.segments.count + 4)
        var cursor = first.start
        var latest = 0
        for place in coverage.segments.indices {
            let segment = coverage.segments[place]
            if segment.from > cursor {
                appendGap(
                    from: cursor,
                    until: segment.from,
                    after: place - 1,
                    latest: &latest,
                    registers,
                    &intervals
                )
            }
            appendCover(place, registers, &intervals)
            cursor = segment.to
        }
        appendGap(
            from: cursor,
            until: nil,
            after: coverage.segments.count - 1,
            latest: &latest,
            registers,
            &intervals
        )
        return intervals
    }

    private func appendCover(
        _ place: Int,
        _ registers: Registers,
        _ intervals: inout [Interval]
    ) {
        let segment = coverage.segments[place]
        let period = registers.periods[segment.period]
        var piece = Piece(from: segment.from, until: segment.to, state: .active)
        piece.deciding.transaction = period.position
        let next =
            place + 1 < coverage.segments.count
            ? registers.periods[coverage.segments[place + 1].period] : nil
        let trouble = trouble(of: period, until: segment.to, next: next, registers)
        var signedEnd: Timestamp?
        if period.provisionalEnd != nil, let end = period.expiresDate { signedEnd = end }
        split(
            piece,
            period,
            cut: nil,
            registers,
            extra: [trouble?.lowerBound, trouble?.upperBound, signedEnd]
        ) {
            interval in
            interval.entitledApple = true
            interval.entitled = true
            if let trouble { interval.hasBillingTrouble = trouble.contains(interval.from) }
            if let signedEnd, interval.from >= signedEnd {
                interval.confidence = .provisional
                interval.deciding.marker = period.provisionalPosition
            }
        } into: {
            intervals.appendMerging($0)
        }
    }

    /// The part of a covered stretch in which a failed charge is already known.
    private func trouble(
        of period: Period,
        until end: Timestamp,
        next: Period?,
        _ registers: Registers
    ) -> Range<Timestamp>? {
        let cut = min(end, next?.firstSigned ?? end)
        var from: Timestamp?
        for place in registers.markers.range(since: period.firstSigned, before: cut) {
            if case .failed = registers.markers[place].kind {
                from = from ?? registers.markers[place].at
            }
        }
        for place in registers.renewals.range(since: period.firstSigned, before: cut)
        where registers.renewals[place].isInBillingRetryPeriod {
            from = min(from ?? .latest, registers.renewals[place].at)
        }
        guard let from, max(from, period.start) < cut else { return nil }
        return max(from, period.start)..<cut
    }

    private func appendGap(
        from: Timestamp,
        until: Timestamp?,
        after place: Int,
        latest: inout Int,
        _ registers: Registers,
        _ intervals: inout [Interval]
    ) {
        let periods = registers.periods
        while latest + 1 < periods.count, periods[latest + 1].start <= from { latest += 1 }
        let last = place >= 0 ? coverage.segments[place].period : latest
        let next =
            until == nil ? nil : registers.periods[coverage.segments[place + 1].period]
        let gap = Gap(
            registers: registers,
            rules: rules,
            from: from,
            until: until,
            last: periods[last],
            latest: periods[latest],
            revokedAt: revocation(of: latest, in: periods),
            next: next
        )
        for piece in gap.pieces() {
            let period = piece.state.isRevoked ? periods[latest] : periods[last]
            let bounds = accessBounds(piece, period, gapEnd: gap.end)
            split(piece, period, cut: next?.firstSigned, registers, extra: bounds) { interval in
                decideAccess(&interval, piece, period, gapEnd: gap.end)
            } into: {
                intervals.appendMerging($0)
            }
        }
    }

    /// When the period that began last was taken back; with seats, when the last of its
    /// transactions was.
    private func revocation(of place: Int, in periods: [Period]) -> Timestamp? {
        let period = periods[place]
        guard let revoked = period.revocation else { return nil }
        guard period.isAdditional else { return revoked }
        var latest = revoked
        for other in periods where other.isAdditional && other.end == period.end {
            guard let revoked = other.revocation else { return nil }
            latest = max(latest, revoked)
        }
        return latest
    }

    /// Splits a piece where renewal info, policy or the caller's own instants say so.
    private func split(
        _ piece: Piece,
        _ period: Period,
        cut: Timestamp?,
        _ registers: Registers,
        extra: [Timestamp?],
        decide: (inout Interval) -> Void,
        into append: (Interval) -> Void
    ) {
        var cuts: [Timestamp] = []
        func add(_ instant: Timestamp) {
            if instant > piece.from, piece.until.map({ instant < $0 }) ?? true {
                cuts.append(instant)
            }
        }
        for case let instant? in extra { add(instant) }
        for policy in rules.policies { add(policy.effectiveFrom) }
        let before = Self.earlier(cut, piece.until)
        let range = registers.renewals.range(since: period.firstSigned, before: before)
        for place in range { add(registers.renewals[place].at) }
        cuts.sort()

        var current: RenewalRecord?
        var next = range.lowerBound
        var from = piece.from
        // What the first event of the period told counts from the period's start on.
        var known = max(from, period.firstAt)
        for place in 0...cuts.count {
            let until = place < cuts.count ? cuts[place] : piece.until
            if let until, until <= from { continue }
            while next < range.upperBound, registers.renewals[next].at <= known {
                let record = registers.renewals[next]
                if current.map({ record.wins(over: $0) }) ?? true { current = record }
                next += 1
            }
            var interval = Interval(from: from, until: until, state: piece.state)
            fill(&interval, piece, period, current)
            decide(&interval)
            append(interval)
            guard let until else { break }
            from = until
            known = max(from, period.firstAt)
        }
    }

    private func fill(
        _ interval: inout Interval,
        _ piece: Piece,
        _ period: Period,
        _ renewal: RenewalRecord?
    ) {
        interval.confidence = piece.confidence
        interval.gracePeriodExpiresDate = piece.graceEnd
        interval.deciding = piece.deciding
        interval.policyVersion = rules.policy(at: interval.from).version
        interval.productID = period.productID
        interval.transactionID = period.transactionID
        interval.expiresDate = period.end
        interval.offer = period.offer
        interval.ownership = period.ownership ?? .purchased
        interval.price = period.price
        interval.currency = period.currency
        guard let renewal else { return }
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
        if !interval.state.isOver, let pending = renewal.autoRenewProductID,
            pending != period.productID
        {
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
    mutating func appendMerging(_ interval: Interval) {
        guard let last, last.until == interval.from else {
            append(interval)
            return
        }
        var same = interval
        same.from = last.from
        same.until = last.until
        same.deciding = last.deciding
        if same == last {
            self[count - 1].until = interval.until
        } else {
            append(interval)
        }
    }
}
