extension LifeWriter {
    private enum Ending {
        case renew
        case fail
        case cancel
        case upgrade
        case crossgrade
        case refund
        case other
    }

    /// Lives one period to its end; true if another one follows at once.
    mutating func livePeriod() -> Bool {
        let isTrial = periods[running].isTrial
        if !isTrial, random.chance(0.2) { sideEvent(at: instant(5, 30)) }
        if !isTrial, !isOver, seats != nil { changeSeats(at: instant(30, 36)) }
        if !isTrial, !isOver, rare(0.05) { rareEvent(at: instant(31, 38)) }
        guard !isOver else { return false }
        let churn = product.length == .year ? 25.0 : 8
        let endings: [(weight: Double, choice: Ending)] = [
            (isTrial ? 55 : 76, .renew),
            (isTrial ? 12 : 7, .fail),
            (isTrial ? 30 : churn, .cancel),
            (Catalogue.upgrades(from: product).isEmpty ? 0 : 4, .upgrade),
            (Catalogue.downgrades(from: product).isEmpty ? 0 : 0.4 * rareFactor, .crossgrade),
            (isTrial ? 0 : 3, .refund),
            (isTrial ? 0 : 1, .other),
        ]
        switch random.weighted(endings) {
        case .renew: return renew()
        case .fail: return failToRenew()
        case .cancel: return cancel()
        case .upgrade: return upgrade()
        case .crossgrade: return crossgrade()
        // An upgrade's refund would let the old plan count again, while Apple refunds both; only
        // where Apple said `isUpgraded` does it not.
        case .refund:
            let isSafe = !periods[running].isUpgrade || periods[running - 1].isReadAgain
            return isSafe ? refundCurrent() : renew()
        case .other: return endOtherwise()
        }
    }

    // MARK: - Renewing

    /// Renews, mostly hours before the end; always true.
    mutating func renew(startsAtEnd: Bool = false) -> Bool {
        let end = current.expiresDate
        // Seen in production: another plan without any notification before.
        if pending == product, seats == nil, commitment == nil, rare(0.004) {
            let targets = Catalogue.downgrades(from: product)
            if !targets.isEmpty {
                pending = random.pick(targets)
                count(.changedUnannounced)
            }
        }
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
        open(pending, from: start, to: self.end(of: pending, from: start), reason: .renewal)
        count(style)
        if isDowngrade { count(.downgradeApplied) }
        announce("DID_RENEW", at: signed, status: 1)
        // The old period runs to its end, also where the new one starts before it.
        paintPeriod(from: max(start, end))
        return true
    }

    mutating func upgrade() -> Bool {
        let target = random.pick(Catalogue.upgrades(from: product))
        let signed = max(instant(30, 80), clock + 10 * Span.second)
        let start = (signed - 3 * Span.second) / 1000 * 1000
        guard start > current.purchaseDate, start < current.expiresDate else { return renew() }
        let old = running
        periods[old].isSuperseded = true
        commitment = nil
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
        periods[running].isUpgrade = true
        announce(
            isOffer ? "OFFER_REDEEMED" : "DID_CHANGE_RENEWAL_PREF",
            "UPGRADE",
            at: signed,
            status: 1
        )
        count(.upgraded)
        paintPeriod(from: start)
        afterUpgrade(of: old)
        return true
    }

    mutating func resubscribe() {
        let gone = max(clock, current.expiresDate)
        let signed = gone + random.between(Span.day, 150 * Span.day)
        let start = (signed - 2 * Span.second) / 1000 * 1000
        let isWinBack = random.chance(0.15)
        let isCode = !isWinBack && rare(0.03)
        let offer = NoticeOffer(
            type: isCode ? 3 : 4,
            discountType: "PAY_AS_YOU_GO",
            period: "P1M",
            identifier: isCode ? "autumn.code" : "come.back"
        )
        commitment = nil
        if start - current.expiresDate > 60 * Span.day {
            renewal.recentSubscriptionStartDate = start
        }
        // Many come back to what they had.
        let any = Catalogue.anyProduct(&random)
        let choice = seats != nil || random.chance(0.4) ? product : any
        count(choice == product ? .resubscribedSame : .resubscribedOther)
        if isWinBack { count(.wonBack) }
        open(
            choice,
            from: start,
            to: choice.length.end(from: start),
            reason: .purchase,
            offer: isWinBack || isCode ? offer : nil
        )
        announce("SUBSCRIBED", "RESUBSCRIBE", at: signed, status: 1)
        count(.resubscribed)
        paintPeriod(from: start)
    }

    // MARK: - Ending without a failed charge

    private mutating func cancel() -> Bool {
        // After a price increase was announced, the notification has no subtype.
        let isForPrice = rare(0.03)
        if isForPrice {
            renewal.priceIncreaseStatus = 0
            renewal.renewalPrice = renewal.renewalPrice * 8 / 5
            announce("PRICE_INCREASE", "PENDING", at: instant(39, 40), status: 1)
        }
        renewal.autoRenewStatus = 0
        announce(
            "DID_CHANGE_RENEWAL_STATUS",
            isForPrice ? nil : "AUTO_RENEW_DISABLED",
            at: instant(isForPrice ? 55 : 40, 95),
            status: 1
        )
        paintTail()
        count(isForPrice ? .cancelledForPrice : .cancelled)
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
        if seats == nil { renewal.winBackOffers = ["come.back"] }
        commitment?.renews = false
        announceCommitment()
        announce("EXPIRED", subtype, at: instant, status: 2)
    }
}
