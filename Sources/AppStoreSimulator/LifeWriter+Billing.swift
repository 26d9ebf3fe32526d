extension LifeWriter {
    private enum Outcome {
        case recoverInGrace
        case recoverLater
        case cancel
        case refund
        case never
    }

    /// The charge fails; true if a later attempt succeeds.
    mutating func failToRenew() -> Bool {
        let end = current.expiresDate
        let hasGrace = random.chance(0.6) && !periods[running].isTrial && commitment == nil
        let retryEnd = end + (commitment == nil ? Span.billingRetry : Span.commitmentRetry)
        let graceEnd = end + (product.length == .week ? 6 : 16) * Span.day
        let wanted = random.weighted([
            (weight: 40, choice: end - random.between(Span.hour, 23 * Span.hour)),
            (weight: 45, choice: end + random.between(Span.second, 5 * Span.minute)),
            (weight: 15, choice: end + random.between(5 * Span.minute, 3 * Span.hour)),
        ])
        // Seen in production: grace announced while the retry flag stays false.
        renewal.isInBillingRetryPeriod = !(hasGrace && random.chance(0.05))
        renewal.expirationIntent = 2
        // Also seen in production: grace announced without its end.
        let isDateMissing = hasGrace && rare(0.04)
        renewal.gracePeriodExpiresDate = hasGrace && !isDateMissing ? graceEnd : nil
        let failed = announce(
            "DID_FAIL_TO_RENEW",
            hasGrace ? "GRACE_PERIOD" : nil,
            at: wanted,
            status: hasGrace ? 4 : 3
        )
        guard !isOver else { return false }
        if hasGrace { story.paint(from: end, .gracePeriod, product.id) }
        story.paint(from: hasGrace ? graceEnd : end, .billingRetry, product.id)
        story.paint(from: retryEnd, .expired("billing_retry"), product.id)
        count(hasGrace ? .failedWithGrace : .failedWithoutGrace)
        if failed < end { count(.failedEarly) }
        if isDateMissing { count(.graceDateMissing) }
        if rare(0.04) { askStatus(at: clock + random.between(Span.minute, 40 * Span.minute)) }

        let outcomes: [(weight: Double, choice: Outcome)] = [
            (hasGrace ? 42 : 0, .recoverInGrace), (28, .recoverLater), (10, .cancel),
            (3, .refund), (25, .never),
        ]
        let outcome = random.weighted(outcomes)
        let begin = max(failed, end)
        if outcome == .recoverInGrace {
            let signed = random.between(failed + Span.minute, graceEnd - Span.hour)
            // The cycle stays as it was, unless the next plan is shorter than the grace used up.
            let isOverdue = self.end(of: pending, from: end) < signed + Span.day
            let isSeamless = signed < end || (!isOverdue && random.chance(0.5))
            let start = isSeamless ? end : max(end, (signed - 2 * Span.second) / 1000 * 1000)
            return recover(
                at: signed,
                from: start,
                to: self.end(of: pending, from: isOverdue ? start : end),
                .recoveredInGrace
            )
        }
        if outcome == .cancel { return cancelWhileFailing(begin, hasGrace ? graceEnd : nil) }
        if hasGrace {
            renewal.isInBillingRetryPeriod = true
            let over = random.between(Span.second, 10 * Span.minute)
            announce("GRACE_PERIOD_EXPIRED", at: graceEnd + over, status: 3)
            count(.graceExpired)
        }
        switch outcome {
        case .recoverLater:
            let earliest = max(clock, begin) + Span.hour
            let signed = random.between(earliest, retryEnd - 2 * Span.day)
            let start = (signed - 2 * Span.second) / 1000 * 1000
            return recover(
                at: signed,
                from: start,
                to: self.end(of: pending, from: start),
                .recoveredAfterGrace
            )
        case .refund: refundWhileFailing(after: max(clock, begin))
        default: exhaustRetries(retryEnd)
        }
        return false
    }

    private mutating func recover(
        at signed: Int64,
        from start: Int64,
        to end: Int64,
        _ event: LifeEvent
    ) -> Bool {
        open(pending, from: start, to: end, reason: .renewal)
        announce("DID_RENEW", "BILLING_RECOVERY", at: signed, status: 1)
        count(event)
        paintPeriod(from: start)
        return true
    }

    private mutating func cancelWhileFailing(_ begin: Int64, _ graceEnd: Int64?) -> Bool {
        renewal.autoRenewStatus = 0
        let status = graceEnd == nil ? 3 : 4
        let cancelled = announce(
            "DID_CHANGE_RENEWAL_STATUS",
            "AUTO_RENEW_DISABLED",
            at: begin + random.between(Span.hour, 3 * Span.day),
            status: status
        )
        let waits = graceEnd != nil && random.chance(0.5)
        let soon = cancelled + random.between(Span.minute, Span.day)
        expire("VOLUNTARY", intent: 1, at: waits ? (graceEnd ?? 0) + 10 * Span.second : soon)
        guard !isOver else { return false }
        story.paint(from: clock, .expired("voluntary"), product.id)
        count(.cancelledWhileFailing)
        return false
    }

    private mutating func refundWhileFailing(after begin: Int64) {
        let date = (begin + random.between(Span.hour, 9 * Span.day)) / 1000 * 1000
        let revocation = NoticeTransaction.Revocation(date: date, reason: 1)
        current.revocation = revocation
        announce("REFUND", at: date + 5 * Span.second, status: 5)
        refundAdditions(revocation)
        guard !isOver else { return }
        story.paint(from: date, .revoked(revocation), product.id)
        count(.refundedWhileFailing)
    }

    private mutating func exhaustRetries(_ last: Int64) {
        // Apple's last attempt comes around the sixtieth day, sometimes before.
        let instant =
            random.chance(0.3)
            ? last - random.between(Span.hour, Span.day)
            : last + random.between(Span.minute, 2 * Span.hour)
        expire("BILLING_RETRY", intent: 2, at: instant)
        guard !isOver else { return }
        story.paint(from: min(clock, last), .expired("billing_retry"), product.id)
        count(.retriesExhausted)
        // The date stays in the renewal info for good.
        if renewal.gracePeriodExpiresDate != nil { count(.graceDatePersisted) }
    }
}
