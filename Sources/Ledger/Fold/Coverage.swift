/// A stretch of time that one transaction covers.
struct Segment {
    var from: Timestamp
    var to: Timestamp
    /// The covering transaction's place in `Registers.periods`.
    var period: Int
}

/// Which transaction covers which time.
///
/// Rules: a refund ends its transaction at `revocationDate`; an upgrade ends the old one at the
/// new `purchaseDate`; a refunded upgrade gives the time from its `revocationDate` on back to the
/// old one unless Apple itself says `isUpgraded`; where two others overlap, the earlier covers to
/// its end.
struct Coverage: ~Copyable {
    private(set) var segments = Pool<Segment>()
    /// How many periods were looked at where they overlap; tests count them.
    private(set) var looks = 0
    private var breaks = Pool<Timestamp>()
    private var ends = Pool<Timestamp>()
    private var running = RunningPeriods()

    /// Computes the segments, in order and without overlap; `periods` is in order of start.
    mutating func compute(_ periods: borrowing Pool<Period>) {
        segments.reset()
        looks = 0
        // Periods that overlap lie in groups, mostly of two; between groups nothing is decided.
        var first = 0
        while first < periods.count {
            var reach = periods[first].end
            var end = first + 1
            while end < periods.count, periods[end].start < reach {
                reach = max(reach, periods[end].end)
                end += 1
            }
            if end == first + 1 {
                append(from: periods[first].start, to: ownEnd(periods[first]), first)
            } else {
                sweep(periods, first..<end)
            }
            first = end
        }
    }

    /// The end of the time that a period covers as far as it alone says.
    @inline(__always) private func ownEnd(_ period: Period) -> Timestamp {
        var end = period.end
        if period.isSupersededEarly { return period.start }
        if let revocation = period.revocation { end = min(end, revocation) }
        // Upgraded to a transaction that we were never told of.
        if period.isUpgraded, let upgradedAt = period.upgradedAt {
            end = min(end, max(period.start, upgradedAt))
        }
        return end
    }

    /// Adds the segments of periods that overlap.
    private mutating func sweep(_ periods: borrowing Pool<Period>, _ group: Range<Int>) {
        setEffectiveEnds(periods, group)
        breaks.reset()
        for place in group where ends[place - group.lowerBound] > periods[place].start {
            breaks.append(periods[place].start)
            breaks.append(ends[place - group.lowerBound])
        }
        // An upgrade that is over before it is taken back holds the old one's time until then.
        for place in group where !periods[place].isAdditional {
            if let date = periods[place].revocation, date > ends[place - group.lowerBound] {
                breaks.append(periods[place].start)
                breaks.append(date)
            }
        }
        breaks.sortIfNeeded { $0 < $1 }
        running.reset(group)
        for place in 0..<max(0, breaks.count - 1) where breaks[place] < breaks[place + 1] {
            running.advance(to: breaks[place], periods)
            if let winner = running.winner(at: breaks[place], periods, ends) {
                append(from: breaks[place], to: breaks[place + 1], winner)
            }
        }
        looks += running.looks
    }

    /// The ends of a group's periods, superseded ones cut where the newer purchase began.
    private mutating func setEffectiveEnds(
        _ periods: borrowing Pool<Period>,
        _ group: Range<Int>
    ) {
        ends.reset()
        for place in group { ends.append(ownEnd(periods[place])) }
        let lower = group.lowerBound
        // From the last to the first, so that the next purchase after each is known.
        var (standing, any) = (NextPurchase(), NextPurchase())
        var place = group.upperBound - 1
        while place >= lower {
            var first = place
            while first > lower, periods[first - 1].start == periods[place].start { first -= 1 }
            for number in first...place {
                // A purchase that was itself taken back gives the time back, unless Apple says so.
                let next = periods[number].isUpgraded ? any : standing
                if let start = next.start(for: periods[number]), start < periods[number].end {
                    let own = periods[number].revocation ?? periods[number].end
                    ends[number - lower] = min(periods[number].end, own, start)
                }
                ends[number - lower] = max(ends[number - lower], periods[number].start)
            }
            for number in (first...place).reversed() where !periods[number].isAdditional {
                any.note(periods[number])
                if periods[number].revocation == nil { standing.note(periods[number]) }
            }
            place = first - 1
        }
    }

    private mutating func append(from: Timestamp, to: Timestamp, _ period: Int) {
        guard from < to else { return }
        let last = segments.count - 1
        if last >= 0, segments[last].period == period, segments[last].to == from {
            segments[last].to = to
        } else {
            segments.append(Segment(from: from, to: to, period: period))
        }
    }
}

/// Finds the next transaction after a stretch of cover.
///
/// One that counts again, since what took its place was refunded, is not the next.
struct Successors {
    private var newest = -1
    private var seen = 0
    private var following = 0
    /// For each period the earliest signature of it and of all later ones; made when needed.
    private var earliest: [Timestamp] = []

    mutating func reset() {
        (newest, seen, following) = (-1, 0, 0)
        if !earliest.isEmpty { earliest.removeAll(keepingCapacity: true) }
    }

    /// Up to when news may tell of the time before a period: until that period, or a later one
    /// whose own report was not lost, was first told of.
    mutating func firstSigned(
        from number: Int,
        _ periods: borrowing Pool<Period>
    ) -> Timestamp {
        if earliest.isEmpty {
            for place in periods.indices.reversed() {
                earliest.append(min(periods[place].firstSigned, earliest.last ?? .latest))
            }
        }
        var first = number
        while first > 0, periods[first - 1].start == periods[number].start { first -= 1 }
        return earliest[periods.count - 1 - first]
    }

    /// Its place in the registers; the segments are asked for in order.
    mutating func next(after place: Int, _ segments: borrowing Pool<Segment>) -> Int? {
        while seen <= place {
            newest = max(newest, segments[seen].period)
            seen += 1
        }
        following = max(following, seen)
        while following < segments.count, segments[following].period <= newest {
            following += 1
        }
        return following < segments.count ? segments[following].period : nil
    }
}

/// The first purchase after a period that may supersede it: one within it, not of seats.
///
/// Payloads before 2023 carry no `transactionReason`; there another product tells.
private struct NextPurchase {
    private var purchase: Timestamp?
    /// The first that does not say what it is, and the first such of another product than that.
    private var unsaid: (start: Timestamp, product: Symbol?)?
    private var unsaidOther: Timestamp?

    /// Notes a period that begins before all that were noted.
    mutating func note(_ period: Period) {
        guard let reason = period.reason else {
            if let unsaid, unsaid.product != period.productID { unsaidOther = unsaid.start }
            unsaid = (period.start, period.productID)
            return
        }
        if reason == .purchase { purchase = period.start }
    }

    /// When the first one began that supersedes a period, should it lie within.
    func start(for period: Period) -> Timestamp? {
        guard let unsaid else { return purchase }
        let other = unsaid.product != period.productID ? unsaid.start : unsaidOther
        guard let other, let purchase else { return purchase ?? other }
        return min(purchase, other)
    }
}

/// The periods that run at an instant which only moves forward.
///
/// Each period is looked at a few times in all, so ten thousand at once are no trouble.
struct RunningPeriods: ~Copyable {
    /// For each place the next one that may still run; those behind are over for good.
    private var following = Pool<Int>()
    /// The group's first period, from which places count here, and how many there are.
    private var lower = 0
    private var count = 0
    private var next = 0
    private(set) var looks = 0
    /// The first of those that began together with the newest.
    private var together = 0
    /// Purchases that are revoked later, the one that began last on top, each with the first that
    /// began together with it.
    private var revokedPurchases = Pool<(place: Int, first: Int)>()
    private var revokedUnsaid = Pool<Int>()

    mutating func reset(_ group: Range<Int>) {
        lower = group.lowerBound
        count = group.count
        following.reset()
        for place in 0...count { following.append(place) }
        next = 0
        looks = 0
        together = 0
        revokedPurchases.reset()
        revokedUnsaid.reset()
    }

    /// Takes in what has begun.
    mutating func advance(to instant: Timestamp, _ periods: borrowing Pool<Period>) {
        while next < count, periods[lower + next].start <= instant {
            looks += 1
            if periods[lower + next].start != periods[lower + together].start { together = next }
            if periods[lower + next].revocation != nil, !periods[lower + next].isAdditional {
                if periods[lower + next].reason == nil {
                    revokedUnsaid.append(next)
                } else if periods[lower + next].reason == .purchase {
                    revokedPurchases.append((next, together))
                }
            }
            next += 1
        }
    }

    private func isRevoked(
        _ place: Int,
        at instant: Timestamp,
        _ periods: borrowing Pool<Period>
    ) -> Bool {
        periods[lower + place].revocation.map { $0 <= instant } ?? false
    }

    /// The earliest that runs and whose time no purchase holds that is yet to be revoked.
    ///
    /// Such a purchase holds it until its revocation, also where its own time is over before: who
    /// did not pay for the new plan is not served under the old one.
    mutating func winner(
        at instant: Timestamp,
        _ periods: borrowing Pool<Period>,
        _ ends: borrowing Pool<Timestamp>
    ) -> Int? {
        while let top = revokedPurchases.last, isRevoked(top.place, at: instant, periods) {
            revokedPurchases.removeLast(1)
        }
        while let top = revokedUnsaid.last, isRevoked(top, at: instant, periods) {
            revokedUnsaid.removeLast(1)
        }
        var place = firstRunning(from: revokedPurchases.last?.first ?? 0, at: instant, ends)
        guard let top = revokedUnsaid.last else { return place < next ? lower + place : nil }
        while place < next {
            looks += 1
            // Only those of another product had taken this one's time over.
            let product = periods[lower + place].productID
            var other: Int? = periods[lower + top].productID != product ? top : nil
            if other == nil {
                for candidate in revokedUnsaid.indices.reversed()
                where periods[lower + revokedUnsaid[candidate]].productID != product
                    && !isRevoked(revokedUnsaid[candidate], at: instant, periods)
                {
                    other = revokedUnsaid[candidate]
                    break
                }
            }
            guard let other, periods[lower + other].start > periods[lower + place].start else {
                return lower + place
            }
            place = firstRunning(from: place + 1, at: instant, ends)
        }
        return nil
    }

    /// The first place from one on whose period is not over, whether it has begun or not.
    private mutating func firstRunning(
        from place: Int,
        at instant: Timestamp,
        _ ends: borrowing Pool<Timestamp>
    ) -> Int {
        var end = place
        while end < next, following[end] != end || ends[end] <= instant {
            looks += 1
            if following[end] == end { following[end] = end + 1 }
            end = following[end]
        }
        // Shortens the way for the next look.
        var step = place
        while step < end, step < next {
            let after = following[step]
            following[step] = end
            step = after
        }
        return end
    }
}
