/// What was signed about the end of one period, before the next one.
struct GapEvidence {
    /// The renewal info that counts, nil where none was signed since the period began.
    private(set) var renewal: RenewalRecord?
    /// The renewal info in force when the period ended.
    private var renewalAtEnd: RenewalRecord?
    /// The newest announcement of a failed charge.
    private(set) var failure: Failure?
    /// The newest announcement with grace.
    private(set) var graceFailure: Failure?
    /// The newest `EXPIRED`.
    private(set) var expired: Marker?
    /// When a failure that only renewal info told of was over.
    private var impliedEnd: Timestamp?
    private var status: StatusRecord?
    private var closers: [Timestamp] = []
    /// When Apple said that grace was over.
    private var graceEndings: [Timestamp] = []
    private var graceDates: [RenewalRecord] = []

    /// A failed charge: a notification's marker, or what renewal info or status says instead.
    struct Failure {
        var at: Timestamp
        var position: Int64
        /// Whether no notification announced it.
        var isImplied: Bool
    }

    /// A grace period as far as it is known.
    struct Grace {
        /// Where it ends in fact, closed early or not.
        var end: Timestamp
        /// Where Apple, or configuration, said that it would end.
        var announcedEnd: Timestamp
        var confidence: Confidence
        /// The event that gave the date, 0 for an estimate.
        var position: Int64
    }

    init(_ gap: Gap, _ registers: borrowing Registers) {
        let since = registers.periods[gap.last].firstSigned
        let cut = gap.cut
        for place in registers.renewals.range(since: since, before: cut) {
            let record = registers.renewals[place]
            if renewal.map({ record.wins(over: $0) }) ?? true { renewal = record }
            if record.at < gap.end, renewalAtEnd.map({ record.wins(over: $0) }) ?? true {
                renewalAtEnd = record
            }
            if record.gracePeriodExpiresDate != nil { graceDates.append(record) }
        }
        // A number that this program does not know neither fills a hole nor opens one.
        for place in registers.statuses.range(since: since, before: cut)
        where registers.statuses[place].isKnown {
            status = registers.statuses[place]
        }
        for place in registers.markers.range(since: since, before: cut) {
            let marker = registers.markers[place]
            // Signed in the same millisecond as the period, but about another: older news.
            if marker.at == since, marker.transactionID != registers.periods[gap.last].transactionID
            {
                continue
            }
            switch marker.kind {
            case .failed(let grace):
                let failed = Failure(at: marker.at, position: marker.position, isImplied: false)
                failure = failed
                if grace { graceFailure = failed } else { closers.append(marker.at) }
            case .graceEnded:
                closers.append(marker.at)
                graceEndings.append(marker.at)
            case .expired:
                expired = marker
                closers.append(marker.at)
            }
        }
        if failure == nil { impliedFailure(registers, gap, since: since, before: cut) }
    }

    /// A failure whose notification was lost shows in renewal info, or, without any, in status.
    private mutating func impliedFailure(
        _ registers: Registers,
        _ gap: Gap,
        since: Timestamp,
        before cut: Timestamp?
    ) {
        for place in registers.renewals.range(since: since, before: cut) {
            let record = registers.renewals[place]
            guard record.isInBillingRetryPeriod else { continue }
            let implied = Failure(at: record.at, position: record.position, isImplied: true)
            failure = failure ?? implied
            // A date that was past when it was signed only persisted.
            if let date = record.gracePeriodExpiresDate, date > gap.end, date > record.at {
                graceFailure = graceFailure ?? implied
            }
        }
        // Nothing but renewal info told of the failure, and it tells of the end too.
        if let failure, let renewal, renewal.at > failure.at, !renewal.isInBillingRetryPeriod,
            renewal.expirationIntent != nil
        {
            impliedEnd = renewal.at
            closers.append(renewal.at)
        }
        guard failure == nil, renewal == nil, let status, status.status == 3 || status.status == 4
        else { return }
        failure = Failure(at: status.at, position: status.position, isImplied: true)
        if status.status == 4 { graceFailure = failure }
    }

    /// Whether Apple said that the subscription is over.
    var isOver: Bool {
        expired != nil || renewal?.expirationIntent != nil
            || (renewal == nil && status?.status == 2)
    }

    /// Whether a renewal may still come.
    var mayRenew: Bool { renewal?.autoRenewStatus != 0 }

    /// The grace period of the gap, nil where there was none.
    func grace(
        of gap: Gap,
        _ registers: borrowing Registers,
        _ rules: AppRules
    ) -> Grace? {
        guard let graceFailure, !registers.periods[gap.last].isCommitment else { return nil }
        let closed = closers.filter { $0 >= graceFailure.at }.min()
        let announced: Timestamp
        var confidence = Confidence.confirmed
        var position: Int64 = 0
        let dated = graceDates.filter {
            $0.at >= graceFailure.at || $0.signedDate >= graceFailure.at
        }
        .reduce(nil as RenewalRecord?) { best, record in
            best.map { record.wins(over: $0) ? record : $0 } ?? record
        }
        if let dated, let date = dated.gracePeriodExpiresDate {
            announced = date
            position = dated.position
        } else {
            confidence = .estimated
            let plan = Clock.plan(
                product: registers.periods[gap.last].productID,
                period: registers.periods[gap.last].length,
                rules: rules
            )
            let offer = registers.periods[gap.last].offer
            if let length = Clock.configuredGrace(plan: plan, offer: offer, rules: rules) {
                announced = gap.end.adding(length)
            } else if let over = graceEndings.filter({ $0 >= graceFailure.at }).min() {
                // No date and no configuration, but the end of it was announced. Any other end of
                // the failure says nothing of how long grace was.
                announced = min(over, gap.end.adding(Clock.graceMax))
            } else {
                return nil
            }
        }
        let end = closed.map { min($0, announced) } ?? announced
        guard end > gap.from else { return nil }
        return Grace(end: end, announcedEnd: announced, confidence: confidence, position: position)
    }

    /// Where billing retry ends: `EXPIRED`, or the longest time that Apple retries.
    func retryEnd(
        of gap: Gap,
        _ registers: borrowing Registers,
        _ profile: ClockProfile
    ) -> Timestamp {
        var end = gap.end.adding(
            Clock.billingRetry(profile, isCommitment: registers.periods[gap.last].isCommitment)
        )
        guard let failure else { return end }
        if let expired, expired.at >= failure.at { end = min(end, expired.at) }
        if let impliedEnd { end = min(end, impliedEnd) }
        return end
    }

    /// What holds when nothing else does any more.
    func conclusion(
        of gap: Gap,
        _ base: DecidingPositions
    ) -> (SubscriptionState, Confidence, DecidingPositions) {
        var deciding = base
        if let expired, case .expired(let cause) = expired.kind {
            deciding.marker = expired.position
            return (.expired(cause), .confirmed, deciding)
        }
        if let intent = renewal?.expirationIntent {
            return (.expired(ExpirationCause(intent: intent)), .confirmed, deciding)
        }
        if renewal == nil, let status, status.status == 2 {
            deciding.status = status.position
            return (.expired(.other), status.isSigned ? .confirmed : .clock, deciding)
        }
        if let failure {
            deciding.marker = failure.position
            return (.expired(.billingRetry), .clock, deciding)
        }
        if renewalAtEnd?.autoRenewStatus == 0 {
            return (.expired(.voluntary), .clock, deciding)
        }
        return (.expired(.presumed), .clock, deciding)
    }
}

/// A record that was signed at an instant; arrays of them are sorted by it.
protocol SignedRecord {
    var at: Timestamp { get }
}

extension RenewalRecord: SignedRecord {}
extension StatusRecord: SignedRecord {}
extension Marker: SignedRecord {}

extension Array where Element: SignedRecord {
    /// The places of the records signed at or after `since` and before `cut`.
    func range(since: Timestamp, before cut: Timestamp?) -> Range<Int> {
        let lower = firstPlace { $0.at >= since }
        let upper = cut.map { cut in firstPlace { $0.at >= cut } } ?? count
        return lower..<Swift.max(lower, upper)
    }

    /// Binary search for the first element that meets a condition that holds from there on.
    private func firstPlace(_ condition: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if condition(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
