/// Compares Apple's status with what the timeline says at the instant at which it was signed.
///
/// Source: the lifecycle reference, 1.2: status is a cross-check and overrides nothing; it fills
/// holes, and where it disagrees there is something to ask Apple for. It is as of its own instant,
/// so one that comes late is compared with the past that it is about; and where news signed later
/// changed that past (a recovery within grace, a refund undone), it was right when it was signed.
struct StatusCheck {
    /// How many elements were looked at beyond the statuses and the timeline.
    private(set) var looks = 0
    /// Made for the first status that seems to disagree: most streams have none.
    private var past: SignedPast?

    /// Notes each status that the timeline contradicts; the registers are finished.
    mutating func note(_ registers: borrowing Registers, in history: inout History) {
        // The last interval never ends.
        let last = history.timeline.count - 1
        guard last >= 0 else { return }
        var place = 0
        for number in registers.statuses.indices where registers.statuses[number].isKnown {
            let (status, at) = (
                registers.statuses[number].status, registers.statuses[number].at
            )
            while place < last, history.timeline[place + 1].from <= at { place += 1 }
            // Nearly always the period is active, and Apple says so.
            if status == 1, case .active = history.timeline[place].state { continue }
            // Before the first period the timeline says nothing.
            guard history.timeline[place].from <= at,
                !Self.agrees(status, at, history.timeline[place])
            else { continue }
            var past = self.past ?? SignedPast(registers)
            let disagrees =
                past.wasSo(history.timeline[place], at, registers)
                && (status != 1 || !past.liesAhead(at))
            looks = past.looks
            self.past = past
            guard disagrees else { continue }
            history.anomalies.append(
                Anomaly(
                    kind: .statusDisagrees,
                    position: registers.statuses[number].position
                )
            )
        }
    }

    /// Whether a status and an interval can both be right.
    private static func agrees(_ status: Int32, _ at: Timestamp, _ interval: Interval) -> Bool {
        switch interval.state {
        // A failed charge may be announced while the paid period still runs.
        case .active:
            return status == 1 || interval.hasBillingTrouble && (status == 3 || status == 4)
        // No news has come; that Apple still calls it active is none.
        case .renewalPending: return status == 1
        case .gracePeriod: return status == 4
        case .billingRetry: return status == 3
        case .expired: return status == 2
        // What was refunded expires as well when its period is over.
        case .revoked:
            return status == 5 || status == 2 && interval.expiresDate.map { $0 <= at } ?? true
        }
    }
}

/// What was signed when, so that each question about it takes a look or two.
///
/// A stream may have any number of statuses that disagree, and of everything else.
private struct SignedPast {
    private var periods: [AppleID: Int] = [:]
    private var markers: [Int64: Timestamp] = [:]
    private var renewals: [Int64: Timestamp] = [:]
    /// When refunds stood that were undone later.
    private var refunds: OpenSpans
    /// When periods were known that were yet to begin.
    private var ahead: OpenSpans
    private var own = 0

    var looks: Int { own + refunds.looks + ahead.looks }

    init(_ registers: borrowing Registers) {
        periods.reserveCapacity(registers.periods.count)
        var spans: [OpenSpans.Span] = []
        // From the last to the first, so that of several the first is found.
        for number in registers.periods.indices.reversed() {
            periods[registers.periods[number].transactionID] = number
            // One that is taken back before it begins is so from its start on.
            spans.append(
                OpenSpans.Span(
                    from: registers.periods[number].firstAt,
                    until: registers.periods[number].start
                )
            )
        }
        ahead = OpenSpans(spans)
        for number in registers.markers.indices.reversed() {
            markers[registers.markers[number].position] = registers.markers[number].at
        }
        for number in registers.renewals.indices.reversed() {
            renewals[registers.renewals[number].position] = registers.renewals[number].at
        }
        refunds = OpenSpans(
            registers.reversals.map { OpenSpans.Span(from: $0.revokedAt, until: $0.reversedAt) }
        )
        own = periods.count + markers.count + renewals.count
    }

    /// Whether the interval is so by what was signed by then, as far as can be told.
    ///
    /// The instants of the questions never fall.
    mutating func wasSo(
        _ interval: Interval,
        _ at: Timestamp,
        _ registers: borrowing Registers
    ) -> Bool {
        own += 1
        let decider = interval.deciding.marker
        switch interval.state {
        case .renewalPending: return true
        case .active, .revoked:
            guard let id = interval.transactionID, let number = periods[id] else { return false }
            let isExtended = registers.periods[number].firstEnd.map { $0 <= at } ?? false
            if interval.state.isRevoked || isExtended {
                return registers.periods[number].signedDate <= at
            }
            return registers.periods[number].firstAt <= at && !refunds.contain(at)
        case .gracePeriod, .billingRetry, .expired:
            if let announced = markers[decider] { return announced <= at }
            // Only renewal info says so, or nobody but the clock.
            if decider == 0, interval.confidence == .clock { return true }
            let position = decider == 0 ? interval.deciding.renewal : decider
            return renewals[position].map { $0 <= at } ?? true
        }
    }

    /// Whether a period that was told of by then is yet to begin.
    mutating func liesAhead(_ at: Timestamp) -> Bool { ahead.contain(at) }
}

/// Stretches of time, asked at instants that never fall whether one of them holds the instant.
private struct OpenSpans {
    struct Span {
        var from: Timestamp
        var until: Timestamp
    }

    private let spans: [Span]
    private var next = 0
    /// The latest end of those that have begun.
    private var until = Timestamp(milliseconds: .min)
    private(set) var looks = 0

    init(_ spans: [Span]) { self.spans = spans.sorted { $0.from < $1.from } }

    mutating func contain(_ at: Timestamp) -> Bool {
        looks += 1
        while next < spans.count, spans[next].from <= at {
            until = max(until, spans[next].until)
            next += 1
            looks += 1
        }
        return at < until
    }
}
