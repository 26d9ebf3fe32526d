/// Makes the timeline: cover, the gaps between, split wherever something shown changes.
struct TimelineBuilder: ~Copyable {
    /// The timeline.
    var intervals = Slots(like: Interval(from: .earliest, until: nil, state: .active))
    private var coverage = Coverage()
    private var pieces = Pool<Piece>()
    /// Where the renewal infos of the present period begin; they only move forward.
    var renewalCursor = 0
    private var successors = Successors()

    /// Makes the timeline of the registers, which are finished; none where no period is known.
    mutating func build(
        _ registers: borrowing Registers,
        _ events: Events,
        _ rules: FoldRules
    ) {
        intervals.reset()
        guard !registers.periods.isEmpty else { return }
        renewalCursor = 0
        if registers.isPlain {
            buildPlain(registers, events, rules)
            return
        }
        coverage.compute(registers.periods)
        successors.reset()
        let count = coverage.segments.count
        var cursor = registers.periods[0].start
        var latest = 0
        for place in 0..<count {
            let (from, to) = (coverage.segments[place].from, coverage.segments[place].to)
            if from > cursor {
                let gap = gap(from: cursor, until: from, after: place - 1, &latest, registers)
                append(gap, registers, events, rules)
            }
            appendCover(place, registers, events, rules)
            cursor = to
        }
        let gap = gap(from: cursor, until: nil, after: count - 1, &latest, registers)
        append(gap, registers, events, rules)
    }

    /// The same for a plain stream, where each period covers its own time and is the last before
    /// the gap behind it.
    private mutating func buildPlain(
        _ registers: borrowing Registers,
        _ events: Events,
        _ rules: FoldRules
    ) {
        let count = registers.periods.count
        for number in 0..<count {
            let end = registers.periods[number].end
            moveRenewalCursor(to: registers.periods[number].firstSigned, registers)
            let stretch = Self.cover(
                number,
                from: registers.periods[number].start,
                until: end,
                registers
            )
            split(stretch, registers, events, rules)
            let next = number + 1 < count ? number + 1 : nil
            if let next, registers.periods[next].start == end { continue }
            let gap = Gap(
                registers,
                from: end,
                until: next.map { registers.periods[$0].start },
                last: number,
                latest: number,
                next: next,
                cut: next.map { registers.periods[$0].firstSigned },
                revokedAt: nil
            )
            append(gap, registers, events, rules)
        }
    }

    // MARK: Cover

    private mutating func appendCover(
        _ place: Int,
        _ registers: borrowing Registers,
        _ events: Events,
        _ rules: FoldRules
    ) {
        let segment = coverage.segments[place]
        let number = segment.period
        moveRenewalCursor(to: registers.periods[number].firstSigned, registers)
        let stretch = Self.cover(number, from: segment.from, until: segment.to, registers)
        var divisions: Divisions?
        if registers.hasTrouble(since: registers.periods[number].firstSigned, before: segment.to) {
            let next = successors.next(after: place, coverage.segments)
            let trouble = trouble(
                number,
                until: segment.to,
                nextSigned: next.map { registers.periods[$0].firstSigned },
                registers
            )
            if let trouble {
                divisions = Divisions(troubleUntil: trouble.1)
                divisions?.troubleFrom = trouble.0
            }
        }
        if registers.provisionalPeriod == number {
            divisions = divisions ?? Divisions()
            divisions?.signedEnd = registers.periods[number].expiresDate
        }
        if let divisions {
            split(stretch, by: divisions, registers, events, rules)
        } else {
            split(stretch, registers, events, rules)
        }
    }

    /// A stretch that a period covers.
    @inline(__always) private static func cover(
        _ number: Int,
        from: Timestamp,
        until: Timestamp,
        _ registers: borrowing Registers
    ) -> Stretch {
        var stretch = Stretch(
            period: number,
            from: from,
            until: until,
            state: .active,
            confidence: registers.periods[number].isSigned ? .confirmed : .provisional,
            isEntitled: true,
            isEntitledByApple: true
        )
        stretch.deciding.transaction = registers.periods[number].position
        return stretch
    }

    /// Moves on to the first renewal info signed since an instant, or back, should it lie there.
    @inline(__always) private mutating func moveRenewalCursor(
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
    ) -> (Timestamp, Timestamp)? {
        let (since, start) = (
            registers.periods[number].firstSigned, registers.periods[number].start
        )
        let cut = min(end, nextSigned ?? end)
        guard registers.hasTrouble(since: since, before: cut) else { return nil }
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
        return (max(from, start), cut)
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
        let next = until == nil ? nil : successors.next(after: place, coverage.segments)
        return Gap(
            registers,
            from: from,
            until: until,
            last: place >= 0 ? coverage.segments[place].period : number,
            latest: number,
            next: next,
            cut: next.map { successors.firstSigned(from: $0, registers.periods) },
            revokedAt: revocation(of: number, registers)
        )
    }

    private mutating func append(
        _ gap: Gap,
        _ registers: borrowing Registers,
        _ events: Events,
        _ rules: FoldRules
    ) {
        pieces.reset()
        gap.append(to: &pieces, registers, events, rules)
        for place in pieces.indices {
            let state = pieces[place].state
            let number = state.isRevoked ? gap.latest : gap.last
            moveRenewalCursor(to: registers.periods[number].firstSigned, registers)
            var stretch = Stretch(
                period: number,
                from: pieces[place].from,
                until: pieces[place].until ?? Stretch.never,
                state: state,
                confidence: pieces[place].confidence == .confirmed
                    && !registers.periods[number].isSigned
                    ? .provisional : pieces[place].confidence,
                isEntitled: state == .renewalPending,
                isEntitledByApple: state == .gracePeriod
            )
            stretch.cut = gap.cut
            stretch.graceEnd = pieces[place].graceEnd
            stretch.deciding = pieces[place].deciding
            switch state {
            case .active, .expired, .renewalPending:
                split(stretch, registers, events, rules)
            case .gracePeriod, .billingRetry, .revoked:
                let access = AccessDecision(
                    state: state,
                    isEstimated: pieces[place].confidence == .estimated,
                    hadGrace: pieces[place].hadGrace,
                    end: gap.end,
                    paidUntil: registers.periods[number].end,
                    grace: state == .billingRetry
                        ? configuredGrace(number, registers, events, rules.rules) : nil
                )
                if rules.isSingle, let isEntitled = access.isEntitledThroughout(rules.first) {
                    stretch.isEntitled = isEntitled
                    split(stretch, registers, events, rules)
                } else {
                    split(stretch, by: Divisions(access: access), registers, events, rules)
                }
            }
        }
    }

    private func configuredGrace(
        _ number: Int,
        _ registers: borrowing Registers,
        _ events: Events,
        _ rules: AppRules
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
}
