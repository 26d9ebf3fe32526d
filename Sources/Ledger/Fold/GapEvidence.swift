/// What was signed about the end of one period, before the next one.
struct GapEvidence {
    /// The renewal info that counts, by its place in the registers; nil where none was signed
    /// since the period began.
    private(set) var renewal: Int?
    /// Whether Apple signed it.
    private var isRenewalSigned = true
    /// Its `expirationIntent`.
    private(set) var intent: Int32?
    /// Its `autoRenewStatus`.
    private(set) var autoRenewStatus: Int32?
    /// The `autoRenewStatus` in force when the period ended.
    private var autoRenewStatusAtEnd: Int32?
    /// The newest announcement of a failed charge.
    private(set) var failure: Failure?
    /// The newest announcement with grace.
    private(set) var graceFailure: Failure?
    /// The newest `EXPIRED`.
    private(set) var expired: Marker?
    /// When a failure that no notification told of was over.
    private var impliedEnd: Timestamp?
    /// When Apple announced that grace is over.
    private var graceOver: Timestamp?
    /// Whether the last that was told of a failure is that Apple goes on trying.
    private(set) var isRetrying = false
    /// Apple's last status; nil where renewal info was signed, which says more.
    private var status: StatusRecord?
    private let since: Timestamp
    private let cut: Timestamp?

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

    init(
        _ gap: Gap,
        _ registers: borrowing Registers,
        _ events: Events,
        _ rules: FoldRules
    ) {
        since = registers.periods[gap.last].firstSigned
        cut = gap.cut
        let told = registers.renewals.range(since: since, before: cut)
        let newest = registers.newestRenewal(of: told, events)
        var toldAtEnd = told.upperBound
        while toldAtEnd > told.lowerBound, registers.renewals[toldAtEnd - 1].at >= gap.end {
            toldAtEnd -= 1
        }
        let atEnd = registers.newestRenewal(of: told.lowerBound..<toldAtEnd, events)
        if newest >= 0 {
            renewal = newest
            isRenewalSigned = registers.renewals[newest].provenance == .jws
            let place = registers.renewals[newest].place
            intent = events[place].fact.storedRenewal.expirationIntent
            autoRenewStatus = events[place].fact.storedRenewal.autoRenewStatus
        }
        if atEnd >= 0 {
            let place = registers.renewals[atEnd].place
            autoRenewStatusAtEnd = events[place].fact.storedRenewal.autoRenewStatus
        }
        if newest < 0 { takeStatus(registers) }
        if !registers.markers.isEmpty { takeMarkers(registers, of: gap) }
        let recoveredBy = gap.next.map { registers.periods[$0].recoveredBy } ?? 0
        if failure == nil, recoveredBy != 0 || registers.hasTrouble(since: since, before: cut) {
            impliedFailure(registers, gap, events)
            endedFailure(registers, gap, recoveredBy, rules)
            impliedEnd(registers)
        }
        if let failure { isRetrying = !isOver(failure, registers) }
    }

    /// Finds the last status, which says something only where no renewal info does.
    private mutating func takeStatus(_ registers: borrowing Registers) {
        // A number that this program does not know neither fills a hole nor opens one.
        for place in registers.statuses.range(since: since, before: cut).reversed()
        where registers.statuses[place].isKnown {
            status = registers.statuses[place]
            break
        }
    }

    private mutating func takeMarkers(_ registers: borrowing Registers, of gap: Gap) {
        for place in registers.markers.range(since: since, before: cut)
        where counts(place, registers, gap) {
            switch registers.markers[place].kind {
            case .failed(let grace):
                failure = Failure(
                    at: registers.markers[place].at,
                    position: registers.markers[place].position,
                    isImplied: false
                )
                if grace { graceFailure = failure }
            case .graceEnded: graceOver = registers.markers[place].at
            case .expired: expired = registers.markers[place]
            }
        }
    }

    /// Whether a marker is about this period: one that was signed in the same millisecond as the
    /// period, but about another, is older news.
    private func counts(_ place: Int, _ registers: borrowing Registers, _ gap: Gap) -> Bool {
        registers.markers[place].at != since
            || registers.markers[place].transactionID == registers.periods[gap.last].transactionID
    }

    /// A failure whose notification was lost shows in renewal info, or, without any, in status.
    private mutating func impliedFailure(
        _ registers: borrowing Registers,
        _ gap: Gap,
        _ events: Events
    ) {
        for place in registers.renewals.range(since: since, before: cut)
        where registers.renewals[place].isInBillingRetryPeriod {
            let at = registers.renewals[place].at
            let position = registers.renewals[place].position
            let implied = Failure(at: at, position: position, isImplied: true)
            failure = failure ?? implied
            // A date that was past when it was signed only persisted.
            let source = registers.renewals[place].place
            if let date = events[source].fact.storedRenewal.gracePeriodExpiresDate,
                date > gap.end, date > at
            {
                graceFailure = graceFailure ?? implied
            }
        }
        guard let status, status.status == 3 || status.status == 4 else { return }
        failure = Failure(at: status.at, position: status.position, isImplied: true)
        if status.status == 4 { graceFailure = failure }
    }

    /// A failure of which nothing was known until it was over: the end of grace, the end of billing
    /// retry and a recovery each say that there was one.
    ///
    /// When it was announced nobody knows; it counts from the end of the period on, as all do. An
    /// empty period grants nothing, so nothing after it either.
    private mutating func endedFailure(
        _ registers: borrowing Registers,
        _ gap: Gap,
        _ recoveredBy: Int64,
        _ rules: FoldRules
    ) {
        guard registers.periods[gap.last].end > registers.periods[gap.last].start else { return }
        for place in registers.markers.range(since: since, before: cut)
        where counts(place, registers, gap) {
            // What is said of another period tells nothing of this one.
            if let id = registers.markers[place].transactionID,
                id != registers.periods[gap.last].transactionID
            {
                continue
            }
            let (at, position) = (registers.markers[place].at, registers.markers[place].position)
            let ended = Failure(at: min(gap.end, at), position: position, isImplied: true)
            switch registers.markers[place].kind {
            case .failed: break
            case .graceEnded:
                failure = failure ?? ended
                graceFailure = graceFailure ?? ended
            case .expired(.billingRetry): failure = failure ?? ended
            case .expired: break
            }
        }
        // Apple retries so long and no longer: what was recovered later had failed later.
        guard failure == nil, recoveredBy != 0, let next = gap.next,
            registers.periods[next].start <= gap.retryLimit(registers, rules)
        else { return }
        failure = Failure(at: gap.end, position: recoveredBy, isImplied: true)
    }

    /// No notification told of the failure; where renewal info tells of its end, that is it.
    private mutating func impliedEnd(_ registers: borrowing Registers) {
        guard let failure, let renewal, isOver(failure, registers), intent != nil else { return }
        impliedEnd = registers.renewals[renewal].at
    }

    /// Whether renewal info that was signed after a failure says that nothing is tried any more.
    ///
    /// What comes with the news of a failure, or of the end of its grace, need not say that it is
    /// still tried: it was seen not to.
    private func isOver(_ failure: Failure, _ registers: borrowing Registers) -> Bool {
        guard let renewal else { return false }
        return registers.renewals[renewal].at > failure.at
            && registers.renewals[renewal].at != graceOver
            && !registers.renewals[renewal].isInBillingRetryPeriod
    }

    /// Whether Apple said that the subscription is over.
    var isOver: Bool {
        expired != nil || intent != nil || status?.status == 2
    }

    /// Whether a renewal may still come.
    var mayRenew: Bool { autoRenewStatus != 0 }

    /// The grace period of the gap, nil where there was none.
    func grace(
        of gap: Gap,
        _ registers: borrowing Registers,
        _ events: Events,
        _ rules: FoldRules
    ) -> Grace? {
        guard let graceFailure, !registers.periods[gap.last].isCommitment else { return nil }
        let closed = closed(after: graceFailure.at, registers, gap)
        let announced: Timestamp
        var confidence = Confidence.confirmed
        var position: Int64 = 0
        if let dated = dated(after: graceFailure.at, registers, events),
            let date = events[registers.renewals[dated].place].fact.storedRenewal
                .gracePeriodExpiresDate
        {
            announced = date
            position = registers.renewals[dated].position
        } else {
            confidence = .estimated
            let plan = Clock.plan(
                product: registers.periods[gap.last].productID,
                period: registers.planLength(gap.last, events),
                rules: rules.rules
            )
            let offer = registers.offer(gap.last, events)
            if let length = Clock.configuredGrace(plan: plan, offer: offer, rules: rules.rules) {
                announced = gap.end.adding(length)
            } else if let over = graceEnding(after: graceFailure.at, registers, gap) {
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

    /// The first instant at or after an announcement of grace at which something closed it.
    private func closed(
        after instant: Timestamp,
        _ registers: borrowing Registers,
        _ gap: Gap
    ) -> Timestamp? {
        let first = impliedEnd.flatMap { $0 >= instant ? $0 : nil }
        for place in registers.markers.range(since: instant, before: cut)
        where counts(place, registers, gap) {
            if case .failed(grace: true) = registers.markers[place].kind { continue }
            let at = registers.markers[place].at
            return first.map { min($0, at) } ?? at
        }
        return first
    }

    /// The first instant at or after an announcement of grace at which Apple said that it is over.
    private func graceEnding(
        after instant: Timestamp,
        _ registers: borrowing Registers,
        _ gap: Gap
    ) -> Timestamp? {
        for place in registers.markers.range(since: instant, before: cut)
        where counts(place, registers, gap) {
            if case .graceEnded = registers.markers[place].kind {
                return registers.markers[place].at
            }
        }
        return nil
    }

    /// The renewal info that gives the date of a grace period.
    private func dated(
        after instant: Timestamp,
        _ registers: borrowing Registers,
        _ events: Events
    ) -> Int? {
        var best: Int?
        for place in registers.renewals.range(since: instant, before: cut) {
            let source = registers.renewals[place].place
            guard events[source].fact.storedRenewal.gracePeriodExpiresDate != nil else { continue }
            if let best, !registers.renewals[place].wins(over: registers.renewals[best], events) {
                continue
            }
            best = place
        }
        return best
    }

    /// Where billing retry ends: `EXPIRED`, or the longest time that Apple retries.
    func retryEnd(
        of gap: Gap,
        _ registers: borrowing Registers,
        _ rules: FoldRules
    ) -> Timestamp {
        var end = gap.retryLimit(registers, rules)
        guard let failure else { return end }
        if let expired, expired.at >= failure.at { end = min(end, expired.at) }
        if let impliedEnd { end = min(end, impliedEnd) }
        return end
    }

    /// What holds when nothing else does any more.
    func conclude(_ piece: inout Piece) {
        piece.confidence = .confirmed
        if let expired, case .expired(let cause) = expired.kind {
            piece.deciding.marker = expired.position
            piece.state = .expired(cause)
        } else if let intent {
            piece.state = .expired(ExpirationCause(intent: intent))
            if !isRenewalSigned { piece.confidence = .provisional }
            if isRetrying, let failure {
                // The intent is there from the first failure on: that nothing is tried any more is
                // only a matter of time.
                piece.deciding.marker = failure.position
                piece.confidence = .clock
            }
        } else if let status, status.status == 2 {
            piece.deciding.status = status.position
            piece.state = .expired(.other)
            if !status.isSigned { piece.confidence = .clock }
        } else {
            piece.confidence = .clock
            if let failure {
                piece.deciding.marker = failure.position
                piece.state = .expired(.billingRetry)
            } else {
                piece.state = .expired(autoRenewStatusAtEnd == 0 ? .voluntary : .presumed)
            }
        }
    }
}

/// A record that was signed at an instant; arrays of them are sorted by it.
protocol SignedRecord {
    var at: Timestamp { get }
}

extension RenewalRecord: SignedRecord {}
extension StatusRecord: SignedRecord {}
extension Marker: SignedRecord {}
extension Trouble: SignedRecord {}

extension Pool where Element: SignedRecord {
    /// The places of the records signed at or after `since` and before `cut`.
    @inline(__always) func range(since: Timestamp, before cut: Timestamp?) -> Range<Int> {
        guard count > 0 else { return 0..<0 }
        guard let cut else {
            // Asked for the open end only, about which few are.
            var lower = count
            while lower > 0, self[lower - 1].at >= since { lower -= 1 }
            return lower..<count
        }
        let lower = firstPlace(since: since)
        return lower..<Swift.max(lower, firstPlace(since: cut))
    }

    /// The first record signed at or after an instant, by halving what is left without a branch.
    private func firstPlace(since instant: Timestamp) -> Int {
        var (low, rest) = (0, count)
        while rest > 0 {
            let half = (rest + 1) / 2
            low = self[low + half - 1].at < instant ? low + half : low
            rest -= half
        }
        return low
    }
}
