/// What the Server API answered: the content without its `signedDate`.
enum Answer: Hashable {
    case transaction(NoticeTransaction)
    case renewal(NoticeRenewal)
}

extension LifeWriter {
    private enum RareEvent: CaseIterable {
        case status
        case history
        case token
        case massFailure
        case massSummary
        case oneTimeCharge
        case externalToken
        case rescindConsent
        case test
        case unknownType
        case unknownSubtype
        case unknownStatus
        case consumptionRequests
        case offerDowngrade
    }

    /// Something that few customers or apps ever meet; no state changes.
    mutating func rareEvent(at instant: Int64) {
        switch random.pick(RareEvent.allCases) {
        case .status: askStatus(at: instant)
        case .history: askHistory(at: instant)
        case .token: replaceToken(at: instant)
        case .massFailure:
            announce("RENEWAL_EXTENSION", "FAILURE", at: instant, status: 1)
            count(.massExtensionFailed)
        case .massSummary: sumUpExtension(at: instant)
        case .oneTimeCharge: buyOnce(at: instant)
        case .externalToken: createExternalToken(at: instant)
        case .rescindConsent:
            send("RESCIND_CONSENT", form: .appData, at: instant)
            count(.consentRescinded)
        case .test:
            send("TEST", form: .data, at: instant)
            count(.tested)
        case .unknownType:
            announce("LOYALTY_CREDIT", random.chance(0.5) ? "EARNED" : nil, at: instant, status: 1)
            count(.unknownType)
        case .unknownSubtype:
            announce("DID_CHANGE_RENEWAL_PREF", "SIDEGRADE", at: instant, status: 1)
            count(.unknownSubtype)
        case .unknownStatus:
            announce("METADATA_UPDATE", at: instant, status: 9)
            count(.unknownStatus)
        case .consumptionRequests: askForRefund(at: instant)
        case .offerDowngrade: offerDowngrade(at: instant)
        }
    }

    // MARK: - Read from the Server API

    /// Get All Subscription Statuses: the newest transaction and the renewal info.
    mutating func askStatus(at instant: Int64) {
        answer(periods[running].transaction, at: instant)
        answer(renewal, at: instant)
        count(.statusRead)
    }

    /// Get Transaction History: transactions only.
    private mutating func askHistory(at instant: Int64) {
        for index in periods.indices.suffix(4) {
            if periods[index].isSuperseded {
                periods[index].transaction.isUpgraded = true
                periods[index].isReadAgain = true
            }
            answer(periods[index].transaction, at: instant)
        }
        count(.historyRead)
    }

    /// One signed transaction of an answer; what it says was never answered before, since Apple
    /// would sign it again but a ledger keeps it once.
    mutating func answer(_ transaction: NoticeTransaction, at wanted: Int64) {
        var signed = transaction
        signed.signedDate = 0
        guard answers.insert(.transaction(signed)).inserted, let instant = advance(to: wanted)
        else { return }
        signed.signedDate = instant
        append(Notice(uuid: Self.uuid(&random), type: "", signedDate: instant, transaction: signed))
    }

    private mutating func answer(_ renewal: NoticeRenewal, at wanted: Int64) {
        var signed = renewal
        signed.signedDate = 0
        guard answers.insert(.renewal(signed)).inserted, let instant = advance(to: wanted)
        else { return }
        signed.signedDate = instant
        append(Notice(uuid: Self.uuid(&random), type: "", signedDate: instant, renewal: signed))
    }

    private mutating func append(_ notice: Notice) {
        var notice = notice
        notice.form = .answer
        notices.append(notice)
    }

    /// Sends a notification that is about no purchase.
    mutating func send(
        _ type: String,
        _ subtype: String? = nil,
        form: NoticeForm,
        at wanted: Int64
    ) {
        guard let instant = advance(to: wanted) else { return }
        var notice = Notice(
            uuid: Self.uuid(&random),
            type: type,
            subtype: subtype,
            signedDate: instant
        )
        notice.form = form
        notices.append(notice)
    }

    // MARK: - After a change of plan

    /// What may follow when a period took the place of another: only a new reading of the old
    /// transaction shows `isUpgraded`.
    mutating func afterUpgrade(of old: Int) {
        guard !isOver else { return }
        if rare(0.2) {
            periods[old].transaction.isUpgraded = true
            answer(
                periods[old].transaction,
                at: clock + random.between(Span.minute, 8 * Span.hour)
            )
            periods[old].isReadAgain = true
            count(.upgradeReadAgain)
        } else if !periods[old].isTrial, rare(0.05) {
            let date = (clock + random.between(Span.hour, 8 * Span.hour)) / 1000 * 1000
            periods[old].transaction.revocation = NoticeTransaction.Revocation(date: date)
            announce("REFUND", at: date + 5 * Span.second, status: 1, about: old)
            count(.refundedUpgraded)
        }
    }

    /// A change that takes effect at once although nothing says so but the new transaction.
    mutating func crossgrade() -> Bool {
        let target = random.pick(Catalogue.downgrades(from: product))
        let signed = max(instant(42, 80), clock + 10 * Span.second)
        let start = (signed - 3 * Span.second) / 1000 * 1000
        guard start > current.purchaseDate, start < current.expiresDate else { return renew() }
        let old = running
        periods[old].isSuperseded = true
        open(target, from: start, to: target.length.end(from: start), reason: .purchase)
        periods[running].isUpgrade = true
        announce("DID_CHANGE_RENEWAL_PREF", at: signed, status: 1)
        count(.crossgradedUnannounced)
        paintPeriod(from: start)
        afterUpgrade(of: old)
        return true
    }

    // MARK: - Offers and money

    /// The offer of a first period that is no free trial.
    mutating func firstOffer() -> NoticeOffer {
        if random.chance(0.5) {
            count(.offerCode)
            return NoticeOffer(
                type: 3,
                discountType: random.pick(["PAY_UP_FRONT", "PAY_AS_YOU_GO"]),
                period: "P1M",
                identifier: "spring.code"
            )
        }
        return NoticeOffer(
            type: 1,
            discountType: random.pick(["PAY_UP_FRONT", "PAY_AS_YOU_GO"]),
            period: "P1M"
        )
    }

    /// A promotional offer for a lower plan, from the next period on.
    mutating func offerDowngrade(at instant: Int64) {
        let targets = Catalogue.downgrades(from: product)
        guard !targets.isEmpty, commitment == nil else { return }
        pending = random.pick(targets)
        renewal.autoRenewProductID = pending.id
        renewal.renewalPrice = pending.price(in: chain.storefront) / 2
        renewal.offer = NoticeOffer(
            type: 2,
            discountType: "PAY_AS_YOU_GO",
            period: "P1M",
            identifier: "smaller"
        )
        announce("OFFER_REDEEMED", "DOWNGRADE", at: instant, status: 1)
        count(.offerDowngraded)
    }

    /// One request, announced three times under three UUIDs, as was seen in production; every other
    /// customer gives a reason in the end that Apple had no word for before.
    private mutating func askForRefund(at instant: Int64) {
        let isUnknown = number.isMultiple(of: 2)
        for repetition in 0..<3 {
            announce(
                "CONSUMPTION_REQUEST",
                at: instant + Int64(repetition) * 8 * Span.hour,
                status: 1,
                reason: isUnknown && repetition == 2 ? "GIFT_NOT_WANTED" : "LEGAL"
            )
        }
        count(.consumptionRepeated)
        if isUnknown { count(.unknownReason) }
    }

    /// Something bought once: a stream of its own, without renewal info and status.
    private mutating func buyOnce(at instant: Int64) {
        let place = 900 + notices.count % 90
        let id = Self.transactionID(number, place)
        var transaction = NoticeTransaction(
            transactionID: id,
            productID: "com.example.subledger.coins",
            purchaseDate: (instant - 2 * Span.second) / 1000 * 1000,
            expiresDate: 0,
            reason: .purchase,
            price: 1_990,
            signedDate: 0
        )
        transaction.oneTime = OneTimePurchase(
            originalTransactionID: id,
            type: random.pick(["Consumable", "Non-Consumable", "Non-Renewing Subscription"])
        )
        transaction.quantity = transaction.oneTime?.type == "Consumable" ? 3 : 1
        sendOneTime("ONE_TIME_CHARGE", transaction, at: instant)
        count(.boughtOnce)
        guard random.chance(0.4) else { return }
        sendOneTime("CONSUMPTION_REQUEST", transaction, at: clock + Span.hour)
        transaction.revocation = NoticeTransaction.Revocation(
            date: (clock + 3 * Span.hour) / 1000 * 1000
        )
        sendOneTime("REFUND", transaction, at: clock + 4 * Span.hour)
    }

    private mutating func sendOneTime(
        _ type: String,
        _ transaction: NoticeTransaction,
        at wanted: Int64
    ) {
        guard let instant = advance(to: wanted) else { return }
        var transaction = transaction
        transaction.signedDate = instant - random.between(10, 60)
        var notice = Notice(
            uuid: Self.uuid(&random),
            type: type,
            signedDate: instant,
            transaction: transaction
        )
        if type == "CONSUMPTION_REQUEST" { notice.consumptionRequestReason = "OTHER" }
        notices.append(notice)
    }

    // MARK: - About the customer or the app

    /// Set App Account Token: the running transaction and later ones carry the new one.
    private mutating func replaceToken(at instant: Int64) {
        guard chain.ownership == "PURCHASED" else { return }
        token = Self.uuid(&random)
        current.appAccountToken = token
        renewal.appAccountToken = token
        count(.tokenReplaced)
        if random.chance(0.5) { askStatus(at: instant) }
    }

    private mutating func sumUpExtension(at instant: Int64) {
        let mass = NoticeForm.MassExtension(
            requestIdentifier: Self.uuid(&random),
            productID: product.id,
            succeeded: random.below(5_000),
            failed: random.below(20)
        )
        // Apple's pages name both subtypes.
        send(
            "RENEWAL_EXTENSION",
            random.chance(0.6) ? "SUMMARY" : "SUCCESS",
            form: .summary(mass),
            at: instant
        )
        count(.massExtensionSummed)
    }

    private mutating func createExternalToken(at instant: Int64) {
        var token = NoticeForm.ExternalToken(id: "SANDBOX_" + Self.uuid(&random), created: instant)
        if random.chance(0.6) {
            token.expires = instant + 60 * Span.day
            token.type = random.pick(["SERVICES", "ACQUISITION"])
            send(
                "EXTERNAL_PURCHASE_TOKEN",
                "CREATED",
                form: .externalPurchaseToken(token),
                at: instant
            )
            send(
                "EXTERNAL_PURCHASE_TOKEN",
                "ACTIVE_TOKEN_REMINDER",
                form: .externalPurchaseToken(token),
                at: clock + random.between(Span.hour, 30 * Span.hour)
            )
        } else {
            send(
                "EXTERNAL_PURCHASE_TOKEN",
                "UNREPORTED",
                form: .externalPurchaseToken(token),
                at: instant
            )
        }
        count(.externalToken)
    }
}
