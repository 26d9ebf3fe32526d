/// A 12-month commitment as it stands.
struct Commitment {
    static let payments = 12

    /// The payment of the running period, from 1.
    var number = 0
    /// Whether another commitment follows.
    var renews = true

    var isLast: Bool { number == Self.payments }
}

extension LifeWriter {
    private enum PaymentEnding {
        case renew
        case fail
        case upgrade
        case refund
    }

    /// Makes the period that was just opened the next payment of the commitment.
    mutating func openPayment() {
        guard var state = commitment else { return }
        state.number = state.number % Commitment.payments + 1
        commitment = state
        let yearly = product.price(in: chain.storefront)
        var expires = current.expiresDate
        for _ in state.number..<Commitment.payments {
            expires = PlanLength.month.end(from: expires)
        }
        current.price = yearly / 12
        current.commitment = NoticeCommitment(
            number: state.number,
            total: Commitment.payments,
            expires: expires,
            price: yearly / 12 * 12
        )
        renewal.renewalPrice = yearly / 12
        // Whether auto-renew is off in the last month already is not documented: both are played.
        if state.isLast, !state.renews, random.chance(0.5) { renewal.autoRenewStatus = 0 }
        announceCommitment()
    }

    /// Writes what becomes of the commitment into the renewal info.
    mutating func announceCommitment() {
        guard let commitment, let payment = current.commitment else { return }
        renewal.commitment = NoticeCommitmentRenewal(
            autoRenewStatus: commitment.renews ? 1 : 0,
            autoRenewProductID: product.id,
            renewalDate: payment.expires,
            renewalPrice: payment.price
        )
    }

    /// Lives one payment of a commitment to its end; true if another period follows at once.
    mutating func livePayment() -> Bool {
        guard let before = commitment else { return false }
        if random.chance(before.renews ? 0.12 : 0.1) { turn(renews: !before.renews) }
        if !isOver, rare(0.03) { rareEvent(at: instant(62, 65)) }
        guard !isOver, let state = commitment else { return false }
        if state.isLast, !state.renews { return endCommitment() }
        let endings: [(weight: Double, choice: PaymentEnding)] = [
            (86, .renew), (9, .fail), (2, .upgrade), (3, .refund),
        ]
        switch random.weighted(endings) {
        case .fail: return failToRenew()
        case .upgrade where !Catalogue.upgrades(from: product).isEmpty: return upgrade()
        case .refund: return refundCurrent()
        default:
            count(
                state.renews
                    ? state.isLast ? .commitmentRenewed : .paid : .paidAfterCancelling
            )
            return renew()
        }
    }

    /// Cancels the commitment's renewal, or takes that back; payments go on either way.
    private mutating func turn(renews: Bool) {
        commitment?.renews = renews
        if renews { renewal.autoRenewStatus = 1 }
        announceCommitment()
        announce(
            "DID_CHANGE_RENEWAL_STATUS",
            renews ? "AUTO_RENEW_ENABLED" : "AUTO_RENEW_DISABLED",
            at: instant(20, 60),
            status: 1
        )
        paintTail()
        if !renews { count(.commitmentCancelled) }
    }

    private mutating func endCommitment() -> Bool {
        let end = current.expiresDate
        expire("VOLUNTARY", intent: 1, at: end + random.between(5_000, 7_000_000))
        guard !isOver else { return false }
        story.paint(from: end, .expired("voluntary"), product.id)
        count(.commitmentEnded)
        return false
    }
}
