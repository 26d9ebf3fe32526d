extension LifeWriter {
    private enum Ending {
        case renew
        case fail
        case cancel
        case upgrade
        case refund
        case other
    }

    /// Lives one period to its end; true if another one follows at once.
    mutating func livePeriod() -> Bool {
        let isTrial = periods[periods.count - 1].isTrial
        if !isTrial, random.chance(0.2) { sideEvent(at: instant(5, 30)) }
        guard !isOver else { return false }
        let churn = product.length == .year ? 25.0 : 8
        let endings: [(weight: Double, choice: Ending)] = [
            (isTrial ? 55 : 76, .renew),
            (isTrial ? 12 : 7, .fail),
            (isTrial ? 30 : churn, .cancel),
            (Catalogue.upgrades(from: product).isEmpty ? 0 : 4, .upgrade),
            (isTrial ? 0 : 3, .refund),
            (isTrial ? 0 : 1, .other),
        ]
        switch random.weighted(endings) {
        case .renew: return renew()
        case .fail: return failToRenew()
        case .cancel: return cancel()
        case .upgrade: return upgrade()
        // An upgrade's refund would let the old plan count again, while Apple refunds both.
        case .refund: return periods[periods.count - 1].isUpgrade ? renew() : refundCurrent()
        case .other: return endOtherwise()
        }
    }

    // MARK: - Renewing

    /// Renews, mostly hours before the end; always true.
    mutating func renew(startsAtEnd: Bool = false) -> Bool {
        let end = current.expiresDate
        let isDowngrade = pending != product
        var styles: [(weight: Double, choice: LifeEvent)] = [
            (70, .renewedEarly), (14, .renewedOnTime),
        ]
        if !startsAtEnd { styles += [(9, .renewedOverlapping), (7, .renewedLate)] }
        var style = random.weighted(styles)
        let signed =
            switch style {
            case .renewedEarly, .renewedOverlapping:
                max(end - random.between(Span.hour, 22 * Span.hour), clock + 10 * Span.second)
            case .renewedLate: end + random.between(2 * Span.minute, 110 * Span.minute)
            default: end + random.between(Span.second, 30 * Span.second)
            }
        if style == .renewedOverlapping, signed >= end { style = .renewedOnTime }
        let start =
            switch style {
            case .renewedOverlapping: (signed - 3 * Span.second) / 1000 * 1000
            case .renewedLate: max(end, (signed - 3 * Span.second) / 1000 * 1000)
            default: end
            }
        open(pending, from: start, to: pending.length.end(from: start), reason: .renewal)
        count(style)
        if isDowngrade { count(.downgradeApplied) }
        announce("DID_RENEW", at: signed, status: 1)
        // The old period runs to its end, also where the new one starts before it.
        paintPeriod(from: max(start, end))
        return true
    }

    private mutating func upgrade() -> Bool {
        let target = random.pick(Catalogue.upgrades(from: product))
        let signed = max(instant(30, 80), clock + 10 * Span.second)
        let start = (signed - 3 * Span.second) / 1000 * 1000
        guard start > current.purchaseDate, start < current.expiresDate else { return renew() }
        periods[periods.count - 1].isSuperseded = true
        let isOffer = random.chance(0.1)
        let offer = NoticeOffer(
            type: 2,
            discountType: "PAY_AS_YOU_GO",
            period: "P1M",
            identifier: "spring"
        )
        open(
            target,
            from: start,
            to: target.length.end(from: start),
            reason: .purchase,
            offer: isOffer ? offer : nil
        )
        periods[periods.count - 1].isUpgrade = true
        announce(
            isOffer ? "OFFER_REDEEMED" : "DID_CHANGE_RENEWAL_PREF",
            "UPGRADE",
            at: signed,
            status: 1
        )
        count(.upgraded)
        paintPeriod(from: start)
        return true
    }

    mutating func resubscribe() {
        let gone = max(clock, current.expiresDate)
        let signed = gone + random.between(Span.day, 150 * Span.day)
        let start = (signed - 2 * Span.second) / 1000 * 1000
        let isWinBack = random.chance(0.15)
        let offer = NoticeOffer(
            type: 4,
            discountType: "PAY_AS_YOU_GO",
            period: "P1M",
            identifier: "come.back"
        )
        if start - current.expiresDate > 60 * Span.day {
            renewal.recentSubscriptionStartDate = start
        }
        let choice = Catalogue.anyProduct(&random)
        open(
            choice,
            from: start,
            to: choice.length.end(from: start),
            reason: .purchase,
            offer: isWinBack ? offer : nil
        )
        announce("SUBSCRIBED", "RESUBSCRIBE", at: signed, status: 1)
        count(.resubscribed)
        paintPeriod(from: start)
    }

    // MARK: - Ending without a failed charge

    private mutating func cancel() -> Bool {
        renewal.autoRenewStatus = 0
        announce(
            "DID_CHANGE_RENEWAL_STATUS",
            "AUTO_RENEW_DISABLED",
            at: instant(40, 95),
            status: 1
        )
        paintTail()
        count(.cancelled)
        expire("VOLUNTARY", intent: 1, at: current.expiresDate + random.between(5_000, 7_000_000))
        return false
    }

    private mutating func endOtherwise() -> Bool {
        let (subtype, intent) = random.pick([
            ("PRICE_INCREASE", 3), ("PRICE_INCREASE", 3), ("PRODUCT_NOT_FOR_SALE", 4), ("", 5),
        ])
        if intent == 3 {
            renewal.priceIncreaseStatus = 0
            renewal.renewalPrice = renewal.renewalPrice * 8 / 5
            announce("PRICE_INCREASE", "PENDING", at: instant(40, 60), status: 1)
        }
        let end = current.expiresDate
        expire(
            subtype.isEmpty ? nil : subtype,
            intent: intent,
            at: end + random.between(5_000, 7_000_000)
        )
        guard !isOver else { return false }
        story.paint(
            from: end,
            .expired(subtype.isEmpty ? "other" : subtype.lowercased()),
            product.id
        )
        count(.endedOtherwise)
        return false
    }

    /// Announces the end; the story of it is the caller's.
    mutating func expire(_ subtype: String?, intent: Int, at instant: Int64) {
        renewal.expirationIntent = intent
        renewal.autoRenewStatus = 0
        if renewal.isInBillingRetryPeriod != nil { renewal.isInBillingRetryPeriod = false }
        announce("EXPIRED", subtype, at: instant, status: 2)
    }
}
