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
/// new `purchaseDate`; a refunded upgrade gives the time back to the old one unless Apple itself
/// says `isUpgraded`; where two others overlap, the earlier covers to its end.
struct Coverage {
    private(set) var segments: [Segment] = []
    private var breaks: [Timestamp] = []
    private var running: [Int] = []

    /// Computes the segments, in order and without overlap; `periods` is in order of start.
    mutating func compute(_ periods: [Period]) {
        segments.removeAll(keepingCapacity: true)
        var isDisjoint = true
        var reach = Timestamp.earliest
        for period in periods {
            if period.start < reach { isDisjoint = false }
            reach = max(reach, period.end)
        }
        if isDisjoint {
            for place in periods.indices {
                append(from: periods[place].start, to: ownEnd(periods[place]), place)
            }
        } else {
            sweep(periods)
        }
    }

    /// The end of the time that a period covers as far as it alone says.
    private func ownEnd(_ period: Period) -> Timestamp {
        var end = period.end
        if let revocation = period.revocation { end = min(end, revocation) }
        // Upgraded to a transaction that we were never told of.
        if period.isUpgraded, let upgradedAt = period.upgradedAt {
            end = min(end, max(period.start, upgradedAt))
        }
        return end
    }

    private mutating func sweep(_ periods: [Period]) {
        let ends = effectiveEnds(periods)
        breaks.removeAll(keepingCapacity: true)
        for place in periods.indices where ends[place] > periods[place].start {
            breaks.append(periods[place].start)
            breaks.append(ends[place])
        }
        breaks.sort()
        running.removeAll(keepingCapacity: true)
        var next = 0
        for place in breaks.indices.dropLast() where breaks[place] < breaks[place + 1] {
            let (from, to) = (breaks[place], breaks[place + 1])
            while next < periods.count, periods[next].start <= from {
                if ends[next] > periods[next].start { running.append(next) }
                next += 1
            }
            running.removeAll { ends[$0] <= from }
            let winner = running.first { candidate in
                // A revoked purchase that still ran then had taken the time over.
                !running.contains {
                    Self.supersedes(periods[$0], periods[candidate])
                        && periods[$0].revocation != nil
                }
            }
            if let winner { append(from: from, to: to, winner) }
        }
    }

    /// The ends of all periods, superseded ones cut where the newer purchase began.
    private func effectiveEnds(_ periods: [Period]) -> [Timestamp] {
        periods.indices.map { place in
            let period = periods[place]
            var end = period.end
            if let revocation = period.revocation { end = min(end, revocation) }
            var later = place + 1
            var isSuperseded = false
            while later < periods.count, periods[later].start < period.end {
                let other = periods[later]
                if Self.supersedes(other, period),
                    other.revocation == nil || period.isUpgraded
                {
                    isSuperseded = true
                    end = min(end, other.start)
                    break
                }
                later += 1
            }
            if !isSuperseded, period.isUpgraded, let upgradedAt = period.upgradedAt {
                end = min(end, max(period.start, upgradedAt))
            }
            return max(end, period.start)
        }
    }

    /// Whether `new` took the place of `old`: a purchase, not of seats, made within its period.
    ///
    /// Payloads before 2023 carry no `transactionReason`; there another product tells.
    private static func supersedes(_ new: Period, _ old: Period) -> Bool {
        guard new.start > old.start, new.start < old.end, !new.isAdditional else { return false }
        guard let reason = new.reason else { return new.productID != old.productID }
        return reason == .purchase
    }

    private mutating func append(from: Timestamp, to: Timestamp, _ period: Int) {
        guard from < to else { return }
        if let last = segments.last, last.period == period, last.to == from {
            segments[segments.count - 1].to = to
        } else {
            segments.append(Segment(from: from, to: to, period: period))
        }
    }
}
