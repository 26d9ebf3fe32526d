extension LifeWriter {
    private enum SideEvent {
        case reenable
        case downgrade
        case price
        case refundPast
        case refundDeclined
        case extend
        case offer
    }

    /// Something that does not end the period.
    mutating func sideEvent(at instant: Int64) {
        let choices: [(weight: Double, choice: SideEvent)] = [
            (28, .reenable), (26, .downgrade), (8, .price), (22, .refundPast),
            (6, .refundDeclined), (5, .extend), (5, .offer),
        ]
        switch random.weighted(choices) {
        case .reenable: reenable(at: instant)
        case .downgrade: scheduleDowngrade(at: instant)
        case .price: acceptPrice(at: instant)
        case .refundPast: refundPast(at: instant)
        case .refundDeclined:
            announce(
                "CONSUMPTION_REQUEST",
                at: instant,
                status: 1,
                reason: "UNSATISFIED_WITH_PURCHASE"
            )
            announce("REFUND_DECLINED", at: clock + random.between(3, 40) * Span.hour, status: 1)
            count(.refundDeclined)
        case .extend: extend(at: instant)
        case .offer where rare(0.1):
            offerDowngrade(at: instant)
        case .offer:
            renewal.offer = NoticeOffer(
                type: 2,
                discountType: "PAY_AS_YOU_GO",
                period: "P1M",
                identifier: "stay"
            )
            announce("OFFER_REDEEMED", at: instant, status: 1)
            count(.offerRedeemed)
        }
    }

    private mutating func reenable(at instant: Int64) {
        renewal.autoRenewStatus = 0
        announce("DID_CHANGE_RENEWAL_STATUS", "AUTO_RENEW_DISABLED", at: instant, status: 1)
        paintTail()
        renewal.autoRenewStatus = 1
        announce(
            "DID_CHANGE_RENEWAL_STATUS",
            "AUTO_RENEW_ENABLED",
            at: clock + random.between(10 * Span.second, 40 * Span.hour),
            status: 1
        )
        paintTail()
        count(.reenabled)
    }

    private mutating func scheduleDowngrade(at instant: Int64) {
        let targets = Catalogue.downgrades(from: product)
        guard !targets.isEmpty else { return }
        pending = random.pick(targets)
        renewal.autoRenewProductID = pending.id
        renewal.renewalPrice = pending.price(in: chain.storefront)
        announce("DID_CHANGE_RENEWAL_PREF", "DOWNGRADE", at: instant, status: 1)
        count(.downgradeScheduled)
        guard random.chance(0.25) else { return }
        pending = product
        renewal.autoRenewProductID = product.id
        renewal.renewalPrice = product.price(in: chain.storefront)
        announce(
            "DID_CHANGE_RENEWAL_PREF",
            at: clock + random.between(Span.minute, 30 * Span.hour),
            status: 1
        )
        count(.downgradeReverted)
    }

    private mutating func acceptPrice(at instant: Int64) {
        renewal.renewalPrice = renewal.renewalPrice * 6 / 5
        // Where no consent is needed, the first news is that the customer was informed.
        if random.chance(0.7) {
            renewal.priceIncreaseStatus = 0
            announce("PRICE_INCREASE", "PENDING", at: instant, status: 1)
        } else {
            clock = max(clock, instant)
        }
        renewal.priceIncreaseStatus = 1
        announce(
            "PRICE_INCREASE",
            "ACCEPTED",
            at: clock + random.between(Span.minute, 30 * Span.hour),
            status: 1
        )
        count(.priceAccepted)
    }

    private mutating func extend(at instant: Int64) {
        // Seats that were added would have to be extended with it.
        guard !periods[running...].contains(where: \.isAddition) else { return }
        let oldEnd = current.expiresDate
        current.expiresDate += random.between(3, 30) * Span.day
        renewal.renewalDate = current.expiresDate
        announce("RENEWAL_EXTENDED", at: instant, status: 1)
        count(.extended)
        paintPeriod(from: oldEnd)
    }

    /// Refunds a period that is over, which changes no state; sometimes undone.
    private mutating func refundPast(at instant: Int64) {
        let candidates = periods[..<running].indices.filter { index in
            let period = periods[index]
            return period.transaction.revocation == nil && !period.isUpgrade
                && !period.isSuperseded && !period.isTrial && !period.isAddition
                && period.transaction.expiresDate < instant
        }
        guard !candidates.isEmpty else { return }
        let index = random.pick(candidates)
        let date = (instant - 5 * Span.second) / 1000 * 1000
        periods[index].transaction.revocation = NoticeTransaction.Revocation(
            date: date,
            reason: random.below(2)
        )
        announce("REFUND", at: instant, status: 1, about: index)
        count(.refundedPast)
        guard random.chance(0.25) else { return }
        periods[index].transaction.revocation = nil
        announce(
            "REFUND_REVERSED",
            at: clock + random.between(Span.hour, 40 * Span.hour),
            status: 1,
            about: index
        )
        count(.refundReversed)
    }
}
