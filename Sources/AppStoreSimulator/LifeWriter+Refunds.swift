extension LifeWriter {
    /// Refunds the running period; what follows depends on auto-renew and on a reversal.
    mutating func refundCurrent() -> Bool {
        let end = current.expiresDate
        let asked = instant(50, 75)
        if random.chance(0.5) {
            announce(
                "CONSUMPTION_REQUEST",
                at: asked - random.between(Span.hour, 12 * Span.hour),
                status: 1,
                reason: random.pick(["UNINTENDED_PURCHASE", "FULFILLMENT_ISSUE", "OTHER"])
            )
        }
        // A refund of the running payment ends a commitment.
        let turnsOff = random.chance(0.65) || commitment != nil
        if turnsOff {
            renewal.autoRenewStatus = 0
            announce(
                "DID_CHANGE_RENEWAL_STATUS",
                "AUTO_RENEW_DISABLED",
                at: asked - Span.minute,
                status: 1
            )
            paintTail()
        }
        let date = max(current.purchaseDate + Span.second, asked / 1000 * 1000)
        let revocation = refund(on: date)
        current.revocation = revocation
        announce("REFUND", at: date + random.between(2, 90) * Span.second, status: 5)
        refundAdditions(revocation)
        guard !isOver else { return false }
        story.paint(from: date, .revoked(revocation), product.id)
        count(.refundedCurrent)

        if random.chance(0.25), end - clock > 3 * Span.day {
            reverseRefund(
                of: date,
                at: random.between(clock + Span.hour, end - 2 * Span.day),
                status: 1
            )
            paintTail()
            guard turnsOff else { return renew(startsAtEnd: true) }
            expire("VOLUNTARY", intent: 1, at: end + random.between(5_000, 7_000_000))
            return false
        }
        guard turnsOff else { return renew(startsAtEnd: true) }
        if random.chance(0.5) {
            expire("VOLUNTARY", intent: 1, at: end + random.between(5_000, 7_000_000))
        }
        if random.chance(0.25) {
            let after = max(clock, end) + random.between(Span.day, 20 * Span.day)
            reverseRefund(of: date, at: after, status: 2)
            guard !isOver else { return false }
            story.paint(from: end, .expired("voluntary"), product.id)
        }
        return false
    }

    private mutating func refund(on date: Int64) -> NoticeTransaction.Revocation {
        guard random.chance(0.2) else {
            return NoticeTransaction.Revocation(date: date, reason: random.below(2))
        }
        return NoticeTransaction.Revocation(
            date: date,
            reason: random.below(2),
            type: "REFUND_PRORATED",
            percentage: Int(random.between(10, 90)) * 1000
        )
    }

    /// Takes the revocation off the running period: as if it had never been.
    private mutating func reverseRefund(of date: Int64, at instant: Int64, status: Int) {
        current.revocation = nil
        announce("REFUND_REVERSED", at: instant, status: status)
        reverseAdditions(of: date, status)
        guard !isOver else { return }
        story.paint(from: date, .active, product.id)
        count(.refundReversed)
    }
}
