/// Finds the charges that failed.
///
/// Each announcement belongs to one period: that which was signed last of all when it came, so a
/// period's announcements are those signed from its own first signature until that of any later
/// period. Three readings of ours: a paid period that follows an open failure recovers it, whatever
/// its notification was called; a period that was taken back ends its failure as if cancelled;
/// and an `EXPIRED` older than the newest announcement ends nothing.
struct FailureFinder {
    let rules: FoldRules

    /// Adds the failures in order of the periods; the registers are finished.
    func append(
        to failures: inout [BillingFailure],
        _ registers: borrowing Registers,
        _ events: Events
    ) {
        guard registers.hasFailures, !registers.periods.isEmpty else { return }
        var next: Int?
        var cut: Timestamp?
        // From the last to the first, so that the earliest signature of all later ones is known.
        for number in registers.periods.indices.reversed()
        where !registers.periods[number].isAdditional
            && !registers.periods[number].isSupersededEarly
        {
            let signed = registers.periods[number].firstSigned
            let isRecovered = next.map { registers.periods[$0].recoveredBy != 0 } ?? false
            if isRecovered || registers.hasTrouble(since: signed, before: cut),
                let failure = failure(of: number, next: next, before: cut, registers, events)
            {
                failures.append(failure)
            }
            cut = cut.map { min($0, signed) } ?? signed
            next = number
        }
        failures.reverse()
    }

    private func failure(
        of number: Int,
        next: Int?,
        before cut: Timestamp?,
        _ registers: borrowing Registers,
        _ events: Events
    ) -> BillingFailure? {
        let gap = Gap(failureOf: number, next: next, before: cut, registers)
        let evidence = GapEvidence(gap, registers, events, rules)
        guard let newest = evidence.failure else { return nil }
        let opening = opening(gap, newest, evidence.graceFailure, registers)
        let place = registers.periods[number].place
        let plan = registers.periods[number].length
        let retry = Clock.billingRetry(
            rules.profile(period: plan),
            isCommitment: registers.periods[number].isCommitment
        )
        let grace = evidence.grace(of: gap, registers, events, rules).map {
            BillingFailure.Grace(
                until: $0.announcedEnd,
                endedAt: $0.end,
                isEstimated: $0.confidence == .estimated,
                position: $0.position
            )
        }
        let ownership = events[place].fact.storedTransaction.ownership ?? .purchased
        var failure = BillingFailure(
            openedAt: opening.at,
            openedBy: opening.position,
            repeatedBy: newest.position,
            transactionID: registers.periods[number].transactionID,
            productID: registers.periods[number].productID,
            ownership: ownership,
            isTrialConversion: OfferPhase(events, place) == .trial,
            expiresDate: registers.periods[number].end,
            grace: grace,
            retryDeadline: registers.periods[number].end.adding(retry),
            expirationIntent: evidence.intent,
            renewalPosition: evidence.renewal.map { registers.renewals[$0].position } ?? 0
        )
        if ownership == .purchased {
            (failure.amount, failure.currency) = amount(number, evidence, registers, events)
        }
        failure.ending = ending(of: failure, number, next: next, evidence, registers)
        return failure
    }

    /// The first announcement, be it a notification's or renewal info's.
    private func opening(
        _ gap: Gap,
        _ newest: GapEvidence.Failure,
        _ grace: GapEvidence.Failure?,
        _ registers: borrowing Registers
    ) -> GapEvidence.Failure {
        let since = registers.periods[gap.last].firstSigned
        let id = registers.periods[gap.last].transactionID
        var first = newest
        if let grace, grace.at < first.at { first = grace }
        for place in registers.markers.range(since: since, before: gap.cut) {
            let marker = registers.markers[place]
            guard case .failed = marker.kind, marker.at > since || marker.transactionID == id
            else { continue }
            if marker.at < first.at {
                first.at = marker.at
                first.position = marker.position
            }
            break
        }
        for place in registers.renewals.range(since: since, before: gap.cut)
        where registers.renewals[place].isInBillingRetryPeriod {
            if registers.renewals[place].at < first.at {
                first.at = registers.renewals[place].at
                first.position = registers.renewals[place].position
            }
            break
        }
        return first
    }

    /// What the charge would have brought: the next price, or else what the period cost, unless
    /// that was free.
    private func amount(
        _ number: Int,
        _ evidence: GapEvidence,
        _ registers: borrowing Registers,
        _ events: Events
    ) -> (Int64?, Symbol?) {
        let place = registers.periods[number].place
        let currency = events[place].fact.storedTransaction.currency
        if let place = evidence.renewal.map({ registers.renewals[$0].place }),
            let price = events[place].fact.storedRenewal.renewalPrice
        {
            return (
                Self.product(price, events[place].fact.storedRenewal.renewalQuantity),
                events[place].fact.storedRenewal.currency ?? currency
            )
        }
        guard let price = events[place].fact.storedTransaction.price, price > 0 else {
            return (nil, currency)
        }
        return (Self.product(price, events[place].fact.storedTransaction.quantity), currency)
    }

    /// The price of so many, nil where there is no such number.
    private static func product(_ price: Int64, _ quantity: Int32?) -> Int64? {
        let (product, overflow) = price.multipliedReportingOverflow(
            by: Int64(max(1, quantity ?? 1))
        )
        return overflow ? nil : product
    }

    // MARK: The end

    private func ending(
        of failure: BillingFailure,
        _ number: Int,
        next: Int?,
        _ evidence: GapEvidence,
        _ registers: borrowing Registers
    ) -> BillingFailure.Ending? {
        let newest = evidence.failure?.at ?? failure.openedAt
        let start = next.map { registers.periods[$0].start } ?? .latest
        let followed = next.map { max(start, registers.periods[$0].firstSigned) } ?? .latest
        if let revoked = registers.periods[number].revocation,
            revoked < min(followed, evidence.expired?.at ?? .latest)
        {
            return BillingFailure.Ending(
                outcome: .cancelled,
                at: max(revoked, failure.openedAt),
                position: registers.periods[number].position
            )
        }
        if let expired = evidence.expired, expired.at >= newest, expired.at <= start,
            case .expired(let cause) = expired.kind
        {
            return BillingFailure.Ending(
                outcome: cause == .voluntary ? .cancelled : .expired,
                at: expired.at,
                position: expired.position
            )
        }
        if let next {
            return succession(failure, next, registers)
        }
        return lastWord(failure, evidence, registers)
    }

    /// What the next period says about the failure before it.
    private func succession(
        _ failure: BillingFailure,
        _ next: Int,
        _ registers: borrowing Registers
    ) -> BillingFailure.Ending {
        let start = registers.periods[next].start
        // A purchase long after is a new beginning; only how the old one ended is not known.
        if start > failure.retryDeadline, registers.periods[next].reason != .renewal {
            return BillingFailure.Ending(outcome: .unknown, at: failure.retryDeadline, position: 0)
        }
        let accessEnd = max(failure.expiresDate, failure.grace?.endedAt ?? .earliest)
        let isInGrace = start <= accessEnd
        // Within grace the new period may begin at the old one's end, before the charge was made.
        // When that was tells its report; what was only read from Apple may have been signed much
        // later.
        let reported = isInGrace ? registers.periods[next].reportedAt : nil
        let charged =
            reported.map { min($0, accessEnd) }
            ?? (start > failure.openedAt
                ? start : min(registers.periods[next].firstSigned, accessEnd))
        return BillingFailure.Ending(
            outcome: isInGrace ? .recoveredInGrace : .recoveredAfterGrace,
            at: max(charged, failure.openedAt),
            position: registers.periods[next].position
        )
    }

    /// What renewal info says of the end where `EXPIRED` never came.
    private func lastWord(
        _ failure: BillingFailure,
        _ evidence: GapEvidence,
        _ registers: borrowing Registers
    ) -> BillingFailure.Ending? {
        guard let newest = evidence.failure, let intent = evidence.intent,
            let renewal = evidence.renewal.map({ registers.renewals[$0] }), !evidence.isRetrying
        else { return nil }
        var at = failure.retryDeadline
        if newest.isImplied {
            at = min(at, renewal.at)
        } else if intent != 1 || evidence.autoRenewStatus != 0, renewal.at < at {
            // The intent is there from the first failure on: before the deadline it ends nothing.
            return nil
        }
        return BillingFailure.Ending(
            outcome: ExpirationCause(intent: intent) == .voluntary ? .cancelled : .expired,
            at: at,
            position: renewal.position
        )
    }
}

extension Gap {
    /// The time after a period, with what was signed about it before `cut`.
    fileprivate init(
        failureOf number: Int,
        next: Int?,
        before cut: Timestamp?,
        _ registers: borrowing Registers
    ) {
        from = registers.periods[number].end
        until = next.map { registers.periods[$0].start }
        last = number
        latest = number
        revokedAt = nil
        end = registers.periods[number].end
        self.next = next
        self.cut = cut
    }
}
