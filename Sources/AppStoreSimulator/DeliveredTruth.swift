// What follows from the notices that were delivered: DESIGN section 5 and lifecycle.md 3.2,
// evaluated instant by instant. It is slow and plain on purpose and shares nothing with the
// product's fold, so that comparing the two proves something.
//
// Where the documents leave something open, this is how they are read here:
//
//  1. One notification is one piece of news, dated by its envelope's `signedDate`. Its transaction
//     and renewal info belong to it, although their inner dates lie some milliseconds earlier: the
//     renewal info that comes with the next transaction is never "signed before" that transaction.
//  2. The renewal info, status and markers of a gap are the newest ones among the news before the
//     first news of the next transaction. Transactions are always taken as last signed.
//     Where the report of the next transaction was lost, that of any later one ends them too: what
//     was signed after it tells of a later end.
//  3. A revocation works from its `revocationDate` on; before it the transaction covers as if
//     nothing had happened. After a reversal it never happened.
//  4. A superseded transaction covers up to the `purchaseDate` of the one that superseded it. If
//     that one is revoked, the old one counts again from the `revocationDate` on; nothing else
//     gives the time back, not even that the new one was upgraded in turn. `isUpgraded` without a
//     known successor ends the cover when Apple first signed it; what follows is judged by its own
//     `expiresDate`, as where rule 2 knows no live transaction.
//  5. "Last period" is the one with the latest `purchaseDate` that has begun.
//  6. "Newest renewal transaction", against which markers are compared, is that last period,
//     whatever its `transactionReason`, dated by the first news of it. A marker counts unless it
//     is older: the news that first tells of a period may itself be the marker.
//  7. `failed` works backwards to the end of the period: the gap is grace or retry from E on, also
//     where the failure was announced hours after E.
//  8. `graceEnded` and `expired` close grace and retry from their own `signedDate` on, not
//     backwards; so the history keeps the days in grace and retry. Where no failure is known,
//     `expired` works from E on.
//  9. The grace date is taken from the newest renewal info that has one and is not older than the
//     failure; where none has, it is estimated where the failure announced grace and a grace length
//     is configured; where none is, it lasted until `graceEnded` says that it was over, at most 28
//     days (Q1); else there is none (billing retry).
//     The configured length is another for weekly plans; a plan's length, where nobody told us,
//     is the nearest to the first period of its product before any extension that was neither an
//     offer's nor of added seats nor a month of a commitment: a recovery in grace makes a period shorter than its plan.
// 10. `skew` and `tolerance` are 0. Leeway 2 h and retry 60 d after E; for periods of at most 24 h
//     both are 10 min.
// 11. Rule 7's cause is `voluntary` where the renewal info in force at E says auto-renew off, and
//     `billing_retry` where a failure is known, `presumed` otherwise. Apple's `status` is never used.
// 12. Where live transactions overlap, the one with the earliest `purchaseDate` covers.
// 13. A failure whose notification was lost shows in renewal info that says
//     `isInBillingRetryPeriod`: it works like `failed`, with grace where a grace date still lay
//     ahead when it was signed. Later renewal info with an `expirationIntent` and without the
//     flag closes it from its own `signedDate` on.
// 14. A purchase with `additionalTransactionReason` adds seats to the period in which it was made.
//     It supersedes nothing and is no "last period" of its own, unless no other transaction of that
//     period is known. "Last period's x is revoked" means: each of its transactions is, the seats
//     that were added included, from the latest `revocationDate` on.
// 15. A transaction with a commitment is a month of it: its `expiresDate` is the end of that month,
//     a failure leads to no grace whatever renewal info says, and Apple retries for 90 days. Only
//     `autoRenewStatus` tells whether the next charge will be tried (rule 6), not the intent for
//     the end of the commitment.
// 16. What the Server API answered is news like a notification, without type and so no marker, dated
//     by its own `signedDate`.
// 17. What has no transaction and no renewal info of the chain's subscription is no news of it:
//     one-time purchases, mass extensions, external tokens, consent, seat claims, tests.
// 18. A failure of which no news came in time is known from what ended it: `graceEnded` says that
//     there was grace until then, `expired` with the subtype BILLING_RETRY and a recovery that comes
//     while Apple may still retry say that there was retry. It works from E on, as in 7.
// 19. A renewal that was charged before its time is superseded by a purchase of another product that
//     was made after that charge and before the renewal begins, though it lies not within it.
// 20. Types, subtypes, ownerships and statuses that are not known change nothing; their transaction
//     and renewal info count as everyone's do. Ownership changes nothing either.

/// Evaluates what a set of delivered notices says about a subscription.
public struct DeliveredTruth: Sendable {
    private let news: [Notice]
    private let periods: [Period]
    private let configuredGraceDays: Int?
    /// The longest grace that Apple offers.
    private static let graceMax: Int64 = 28 * 86_400_000

    /// A transaction as last signed.
    private struct Period {
        var productID: String
        var start: Int64
        var end: Int64
        var signedDate: Int64
        var revocation: NoticeTransaction.Revocation?
        var isPurchase: Bool
        var isAddition: Bool
        var isCommitment: Bool
        var isOffer: Bool
        /// Its end before any extension, as far as we were told of that.
        var firstEnd: Int64
        /// The length of its product's plan.
        var plan: Int64 = 0
        /// The index of the first news of it.
        var firstNews: Int
        /// When Apple first signed it.
        var firstSigned: Int64
        /// Whether it was reported as the recovery of a failed charge.
        var isRecovery = false
        /// When Apple first said that it was upgraded.
        var upgradedSignedAt: Int64?

        init(
            _ transaction: NoticeTransaction,
            firstNews: Int,
            firstSigned: Int64,
            firstEnd: Int64,
            upgradedSignedAt: Int64?
        ) {
            productID = transaction.productID
            start = transaction.purchaseDate
            end = transaction.expiresDate
            signedDate = transaction.signedDate
            revocation = transaction.revocation
            isPurchase = transaction.reason == .purchase
            isAddition = transaction.seats?.additionalReason != nil
            isCommitment = transaction.commitment != nil
            isOffer = transaction.offer != nil
            self.firstEnd = firstEnd
            self.firstNews = firstNews
            self.firstSigned = firstSigned
            self.upgradedSignedAt = upgradedSignedAt
        }

        var isShort: Bool { firstEnd - start <= 86_400_000 }
        var leeway: Int64 { isShort ? 600_000 : 7_200_000 }
        var retryMax: Int64 { isShort ? 600_000 : (isCommitment ? 90 : 60) * 86_400_000 }
        /// Whether a week is nearer than a month, 30.4375 days.
        var isWeekly: Bool { 2 * plan < 7 * 86_400_000 + 2_629_800_000 }

        func isRevoked(at t: Int64) -> Bool { revocation.map { $0.date <= t } ?? false }

        /// Whether a transaction adds seats to it.
        func includes(_ part: Period) -> Bool {
            part.isAddition && !isAddition && start <= part.start && part.start < end
        }
    }

    /// Takes the delivered notices in any order, with any repeats.
    public init(_ notices: [Notice], configuredGraceDays: Int? = nil) {
        var seen: Set<String> = []
        news = notices.filter { $0.isOfSubscription && seen.insert($0.uuid).inserted }
            .sorted { ($0.signedDate, $0.uuid) < ($1.signedDate, $1.uuid) }
        var periods: [String: Period] = [:]
        for (index, notice) in news.enumerated() {
            guard let transaction = notice.transaction else { continue }
            let known = periods[transaction.transactionID]
            let upgradedAt =
                known?.upgradedSignedAt ?? (transaction.isUpgraded ? transaction.signedDate : nil)
            var period = Period(
                transaction,
                firstNews: known?.firstNews ?? index,
                firstSigned: min(known?.firstSigned ?? .max, transaction.signedDate),
                firstEnd: known?.firstEnd ?? transaction.expiresDate,
                upgradedSignedAt: upgradedAt
            )
            let isRecovery =
                known?.isRecovery == true
                || (notice.type == "DID_RENEW" && notice.subtype == "BILLING_RECOVERY")
            if let known, known.signedDate > transaction.signedDate {
                period = known
                period.firstSigned = min(period.firstSigned, transaction.signedDate)
                period.upgradedSignedAt = upgradedAt
            }
            period.isRecovery = isRecovery
            periods[transaction.transactionID] = period
        }
        var sorted = periods.values.sorted {
            ($0.start, $0.end, $0.firstNews) < ($1.start, $1.end, $1.firstNews)
        }
        for place in sorted.indices {
            let first = sorted.first {
                $0.productID == sorted[place].productID && !$0.isAddition && !$0.isOffer
                    && !$0.isCommitment
            }
            let model = first ?? sorted[place]
            sorted[place].plan = model.firstEnd - model.start
        }
        self.periods = sorted
        self.configuredGraceDays = configuredGraceDays
    }

    /// The timeline, from the first purchase on, without gaps.
    public func intervals() -> [TruthInterval] {
        let instants = turningPoints()
        var out: [TruthInterval] = []
        for (index, from) in instants.enumerated() {
            guard let (condition, productID) = condition(at: from) else { continue }
            let until = index + 1 < instants.count ? instants[index + 1] : nil
            out.append(
                TruthInterval(
                    from: from,
                    until: until,
                    condition: condition,
                    productID: productID
                )
            )
        }
        return TruthInterval.joined(out)
    }

    /// Every instant at which an answer of `condition(at:)` can change.
    private func turningPoints() -> [Int64] {
        var instants: Set<Int64> = []
        for period in periods {
            instants.insert(period.start)
            instants.insert(period.end)
            instants.insert(period.end + period.leeway)
            instants.insert(period.end + period.retryMax)
            if let date = period.revocation?.date { instants.insert(date) }
            if let date = upgradeDate(of: period) { instants.insert(date) }
            if let date = estimatedGraceEnd(after: period) { instants.insert(date) }
            instants.insert(period.end + Self.graceMax)
        }
        for notice in news {
            // What closes something; no other signed date is a turning point.
            if notice.type.contains("EXPIRED") || notice.renewal?.expirationIntent != nil {
                instants.insert(notice.signedDate)
            }
            if let date = notice.renewal?.gracePeriodExpiresDate { instants.insert(date) }
        }
        return instants.sorted()
    }

    /// The state and product at an instant; nil before the first purchase.
    public func condition(at t: Int64) -> (condition: TruthCondition, productID: String)? {
        let begun = periods.filter { $0.start <= t && !isSupersededEarly($0) }
        guard let newest = begun.last else { return nil }

        // Rule 1.
        if let cover = begun.first(where: { t < $0.end && isLive($0, at: t) }) {
            return (.active, cover.productID)
        }
        // Rule 2.
        let last = begun.last { part in !periods.contains { $0.includes(part) } } ?? newest
        if let revocation = last.revocation, last.isRevoked(at: t),
            begun.allSatisfy({ !last.includes($0) || $0.isRevoked(at: t) })
        {
            return (.revoked(revocation), last.productID)
        }
        let live = begun.filter { isLive($0, at: t) }
        var ended = live.max { $0.end < $1.end } ?? last
        if let date = upgradeDate(of: last), date <= t { ended = last }
        return (conditionInGap(at: t, after: ended, last: last), ended.productID)
    }

    /// Rules 3 to 7, for an instant that no transaction covers.
    private func conditionInGap(at t: Int64, after ended: Period, last: Period) -> TruthCondition {
        let end = ended.end
        let next = periods.first {
            $0.start > t && !isSupersededEarly($0) && isLive($0, at: $0.start)
        }
        let told = next.flatMap { next in
            periods.filter { $0.start >= next.start }.map(\.firstNews).min()
        }
        let known = news[..<(told ?? news.count)]
        // Renewal info from before the period tells of an earlier end.
        let since = known.indices.filter { $0 >= last.firstNews && news[$0].renewal != nil }
        let renewal = since.last.flatMap { news[$0].renewal }

        /// The newest marker of a type that is not older than the last period.
        func marker(_ type: String, signedBy limit: Int64 = .max) -> Int? {
            known.lastIndex {
                $0.type == type && $0.signedDate <= limit
            }.flatMap { $0 >= last.firstNews ? $0 : nil }
        }
        let failed = marker("DID_FAIL_TO_RENEW")
        let graceEnded = marker("GRACE_PERIOD_EXPIRED", signedBy: t)
        let expiredByNow = marker("EXPIRED", signedBy: t)

        let lostFailure =
            lostFailure(known, since: last.firstNews, after: ended)
            ?? endedFailure(known, since: last.firstNews, after: ended, next: next)
        if failed == nil, let lost = lostFailure {
            // The end of grace is no end of the failure, whatever comes with it.
            let graceOver = marker("GRACE_PERIOD_EXPIRED")
            let isClosed = since.last.map { newest in
                renewal?.isInBillingRetryPeriod != true && renewal?.expirationIntent != nil
                    && news[newest].signedDate <= t && newest != graceOver
                    && news[newest].signedDate > lost.at
            }
            if isClosed != true, expiredByNow.map({ $0 < lost.news }) ?? true {
                let isGraceOver = graceEnded.map { $0 >= lost.news } ?? false
                if let graceEnd = lost.graceEnd, t < graceEnd, !isGraceOver, !ended.isCommitment {
                    return .gracePeriod
                }
                if t < end + ended.retryMax { return .billingRetry }
            }
        }
        // Rule 3.
        if let failed, failed > graceEnded ?? -1, failed > expiredByNow ?? -1 {
            var graceEnd: Int64?
            graceEnd =
                since.filter { $0 >= failed }
                .compactMap { news[$0].renewal?.gracePeriodExpiresDate }.last
            if graceEnd == nil, news[failed].subtype == "GRACE_PERIOD" {
                graceEnd = estimatedGraceEnd(after: ended)
                if configuredGraceDays == nil,
                    let over = known.first(where: {
                        $0.type == "GRACE_PERIOD_EXPIRED"
                            && $0.signedDate > news[failed].signedDate
                    })
                {
                    graceEnd = min(over.signedDate, end + Self.graceMax)
                }
            }
            if let graceEnd, t < graceEnd, !ended.isCommitment { return .gracePeriod }
        }
        // Rule 4.
        let isFailing = failed.map { $0 > expiredByNow ?? -1 } ?? false
        if isFailing, t < end + ended.retryMax {
            return .billingRetry
        }
        // Rule 5.
        if let expired = marker("EXPIRED"), let subtype = news[expired].subtype {
            return .expired(subtype.lowercased())
        }
        if let intent = renewal?.expirationIntent {
            let causes = [
                1: "voluntary", 2: "billing_retry", 3: "price_increase", 4: "product_not_for_sale",
            ]
            return .expired(causes[intent] ?? "other")
        }
        if marker("EXPIRED") != nil { return .expired("other") }
        // Rule 6.
        if renewal?.autoRenewStatus != 0, t < end + ended.leeway { return .renewalPending }
        // Rule 7.
        let atEnd = since.last { news[$0].signedDate < end }.flatMap { news[$0].renewal }
        if failed != nil || lostFailure != nil { return .expired("billing_retry") }
        return .expired(atEnd?.autoRenewStatus == 0 ? "voluntary" : "presumed")
    }

    /// A failure that only renewal info told of: the first news of it, and the end of grace.
    private func lostFailure(
        _ known: ArraySlice<Notice>,
        since first: Int,
        after ended: Period
    ) -> (news: Int, at: Int64, graceEnd: Int64?)? {
        let failing = known.indices.filter {
            $0 >= first && known[$0].renewal?.isInBillingRetryPeriod == true
        }
        guard let news = failing.first else { return nil }
        let dates = failing.compactMap { index in
            known[index].renewal?.gracePeriodExpiresDate.flatMap { date in
                date > ended.end && date > known[index].signedDate ? date : nil
            }
        }
        let over = graceEnd(known, since: first, after: ended)
        return (over == nil ? news : first, known[news].signedDate, dates.last ?? over)
    }

    /// A failure that only its end told of, known from the period's end on.
    private func endedFailure(
        _ known: ArraySlice<Notice>,
        since first: Int,
        after ended: Period,
        next: Period?
    ) -> (news: Int, at: Int64, graceEnd: Int64?)? {
        if let over = graceEnd(known, since: first, after: ended) {
            return (first, ended.end, over)
        }
        let isRetryOver = known.indices.contains {
            $0 >= first && known[$0].type == "EXPIRED" && known[$0].subtype == "BILLING_RETRY"
        }
        let isRecovered = next.map {
            $0.isRecovery && $0.start <= ended.end + ended.retryMax
        }
        return isRetryOver || isRecovered == true ? (first, ended.end, nil) : nil
    }

    /// Where grace ended of which only `graceEnded` told.
    private func graceEnd(
        _ known: ArraySlice<Notice>,
        since first: Int,
        after ended: Period
    ) -> Int64? {
        let over = known.indices.first {
            $0 >= first && known[$0].type == "GRACE_PERIOD_EXPIRED"
        }
        guard let over else { return nil }
        let announced =
            known.indices.filter { $0 >= first }
            .compactMap { known[$0].renewal?.gracePeriodExpiresDate }.last
            ?? estimatedGraceEnd(after: ended) ?? ended.end + Self.graceMax
        return min(known[over].signedDate, announced)
    }

    private func isLive(_ period: Period, at t: Int64) -> Bool {
        if period.isRevoked(at: t) { return false }
        if let date = upgradeDate(of: period), date <= t { return false }
        return !periods.contains { other in
            supersedes(other, period) && other.start <= t && !other.isRevoked(at: t)
        }
    }

    /// Whether `other` is a purchase within the period; renewals and more seats never supersede.
    private func supersedes(_ other: Period, _ period: Period) -> Bool {
        other.isPurchase && !other.isAddition
            && other.start > period.start && other.start < period.end
    }

    /// Whether its plan was changed after it was charged and before it began.
    private func isSupersededEarly(_ period: Period) -> Bool {
        !period.isPurchase && !period.isAddition
            && period.start - period.firstSigned < 86_400_000
            && periods.contains { other in
                other.isPurchase && !other.isAddition && other.revocation == nil
                    && other.productID != period.productID
                    && other.start > period.firstSigned && other.start < period.start
            }
    }

    /// When an upgrade that Apple itself names ended the period.
    private func upgradeDate(of period: Period) -> Int64? {
        guard let signedAt = period.upgradedSignedAt else { return nil }
        return periods.first { supersedes($0, period) }?.start ?? signedAt
    }

    private func estimatedGraceEnd(after period: Period) -> Int64? {
        guard let configuredGraceDays else { return nil }
        let days = period.isWeekly ? min(configuredGraceDays, 6) : configuredGraceDays
        return period.end + Int64(days) * 86_400_000
    }
}
