/// One subscription in the fake App Store: the rest of its script, and what has come to pass.
struct Subscriber: Sendable {
    /// Which life it is.
    let number: Int
    /// What stays the same.
    let chain: Chain
    /// The script, as far as it has not been changed from outside.
    private(set) var notices: [Notice]
    /// The timeline of the script.
    private(set) var intervals: [TruthInterval]
    /// The first notice that has not come to pass.
    private(set) var next = 0
    /// What follows from those that have.
    private var announced = Standing()
    /// Whose subscription gives access to this family member or holder of a seat.
    let payer: Int?

    init(_ life: Life, number: Int, chain: Chain, payer: Int?) {
        self.number = number
        self.chain = chain
        self.payer = payer
        var life = life
        life.move(to: chain.environment)
        notices = life.notices
        intervals = life.intervals
    }

    /// When the next notice is due.
    var nextDate: Int64? { next < notices.count ? notices[next].signedDate : nil }

    /// Lets the next notice come to pass.
    mutating func step() -> Notice {
        let notice = notices[next]
        next += 1
        announced.take(notice)
        return notice
    }

    /// A transaction and when it was changed last.
    struct Known: Sendable {
        var transaction: NoticeTransaction
        var modified: Int64
    }

    /// What Apple knows now.
    struct Standing: Sendable {
        /// Every transaction, in the order of their beginnings.
        var transactions: [Known] = []
        /// The place of the newest period.
        var running: Int?
        var renewal: NoticeRenewal?
        /// Apple's status, 1…5; 0 before the first purchase.
        var status = 0

        var current: NoticeTransaction? { running.map { transactions[$0].transaction } }

        /// Seats that were added to the newest period and are still there.
        var additions: [NoticeTransaction] {
            guard let current else { return [] }
            return transactions.map(\.transaction).filter {
                $0.seats?.additionalReason != nil && $0.revocation == nil
                    && $0.expiresDate == current.expiresDate
            }
        }

        func transaction(_ id: String) -> NoticeTransaction? {
            transactions.first { $0.transaction.transactionID == id }?.transaction
        }
    }

    /// What Apple knows at an instant up to which the life has been stepped.
    func standing(at now: Int64) -> Standing {
        var standing = announced
        guard standing.status != 0, let state = interval(at: now)?.condition.state else {
            return standing
        }
        // What time alone changes is announced late or never.
        switch state {
        case .expired: if standing.status != 5 { standing.status = 2 }
        case .revoked: standing.status = 5
        case .billingRetry: if standing.status == 4 { standing.status = 3 }
        case .active, .gracePeriod, .renewalPending: break
        }
        return standing
    }

    /// The scripted state at an instant.
    func interval(at instant: Int64) -> TruthInterval? {
        intervals.last { $0.from <= instant }
    }

    // MARK: - Changes from outside

    /// Inserts time behind the running period: it ends later, and all that is to come is later.
    ///
    /// - Parameters:
    ///   - length: how much, in milliseconds.
    ///   - now: the instant at which the period is extended.
    ///   - uuid: Apple's `notificationUUID` of the news.
    /// - Returns: the period as it is now; nil where there is none.
    mutating func extend(by length: Int64, at now: Int64, uuid: String) -> NoticeTransaction? {
        let standing = standing(at: now)
        guard var period = standing.current, var renewal = standing.renewal else { return nil }
        let shift = Shift(
            length: length,
            now: now,
            known: Set(standing.transactions.map(\.transaction.transactionID)),
            extended: Set(([period] + standing.additions).map(\.transactionID))
        )
        for index in notices.indices[next...] { shift.apply(to: &notices[index]) }
        // Where a period was charged early, the one before it still ends when it did.
        let fixed = max(now, period.purchaseDate)
        for index in intervals.indices {
            if intervals[index].from > fixed { intervals[index].from += length }
            if let until = intervals[index].until, until > fixed {
                intervals[index].until = until + length
            }
        }
        period.expiresDate += length
        period.commitment?.expires += length
        period.signedDate = now
        shift.apply(to: &renewal)
        renewal.signedDate = now
        extendAdditions(standing, by: length, at: now, uuid: uuid)
        insert(
            Notice(
                uuid: uuid,
                type: "RENEWAL_EXTENDED",
                signedDate: now,
                status: standing.status,
                transaction: period,
                renewal: renewal
            )
        )
        return period
    }

    /// Seats that were added to the period end with it; only whoever asks reads so.
    private mutating func extendAdditions(
        _ standing: Standing,
        by length: Int64,
        at now: Int64,
        uuid: String
    ) {
        for var addition in standing.additions {
            addition.expiresDate += length
            addition.signedDate = now
            var notice = Notice(uuid: uuid, type: "", signedDate: now, transaction: addition)
            notice.form = .answer
            insert(notice)
        }
    }

    /// Announces something that changes nothing.
    mutating func announce(_ type: String, _ subtype: String?, at now: Int64, uuid: String) {
        let standing = standing(at: now)
        var transaction = standing.current
        transaction?.signedDate = now
        var renewal = standing.renewal
        renewal?.signedDate = now
        insert(
            Notice(
                uuid: uuid,
                type: type,
                subtype: subtype,
                signedDate: now,
                status: standing.status,
                transaction: transaction,
                renewal: renewal
            )
        )
    }

    /// Gives the running period, all later ones and the renewal info another account token.
    mutating func setAccountToken(_ token: String, at now: Int64, uuid: String) {
        let standing = standing(at: now)
        guard var period = standing.current else { return }
        var past = Set(standing.transactions.map(\.transaction.transactionID))
        past.remove(period.transactionID)
        for index in notices.indices[next...] where notices[index].isOfSubscription {
            notices[index].renewal?.appAccountToken = token
            guard let id = notices[index].transaction?.transactionID, !past.contains(id) else {
                continue
            }
            notices[index].transaction?.appAccountToken = token
        }
        period.appAccountToken = token
        period.signedDate = now
        var renewal = standing.renewal
        renewal?.appAccountToken = token
        renewal?.signedDate = now
        var notice = Notice(
            uuid: uuid,
            type: "",
            signedDate: now,
            transaction: period,
            renewal: renewal
        )
        // Nothing is announced: whoever asks reads it.
        notice.form = .answer
        insert(notice)
    }

    /// Gives what was bought once another account token.
    mutating func setAccountToken(
        _ token: String,
        ofPurchase purchase: NoticeTransaction,
        at now: Int64,
        uuid: String
    ) {
        var purchase = purchase
        purchase.appAccountToken = token
        purchase.signedDate = now
        for index in notices.indices[next...]
        where notices[index].transaction?.transactionID == purchase.transactionID {
            notices[index].transaction?.appAccountToken = token
        }
        var notice = Notice(uuid: uuid, type: "", signedDate: now, transaction: purchase)
        notice.form = .answer
        insert(notice)
    }

    /// Takes the running period back at once; the rest of the script is void.
    ///
    /// - Returns: false where there is nothing to take back, or the newest period has not begun.
    mutating func revoke(
        _ type: String,
        _ revocation: NoticeTransaction.Revocation,
        uuid: String
    ) -> Bool {
        let now = revocation.date
        let standing = standing(at: now)
        guard var period = standing.current, period.revocation == nil, period.purchaseDate < now,
            interval(at: now)?.condition.state != .revoked
        else { return false }
        period.revocation = revocation
        period.signedDate = now
        var renewal = standing.renewal
        renewal?.autoRenewStatus = 0
        renewal?.signedDate = now
        notices.removeSubrange(next...)
        insert(
            Notice(
                uuid: uuid,
                type: type,
                signedDate: now,
                status: 5,
                transaction: period,
                renewal: renewal
            )
        )
        intervals.removeAll { $0.from >= now }
        if !intervals.isEmpty { intervals[intervals.count - 1].until = now }
        intervals.append(
            TruthInterval(
                from: now,
                until: nil,
                condition: .revoked(revocation),
                productID: period.productID
            )
        )
        return true
    }

    /// Puts news before all that is still to come.
    private mutating func insert(_ notice: Notice) { notices.insert(notice, at: next) }
}

extension Subscriber.Standing {
    /// Takes over what a notice says.
    fileprivate mutating func take(_ notice: Notice) {
        if let transaction = notice.transaction { take(transaction, at: notice.signedDate) }
        guard notice.isOfSubscription else { return }
        if let renewal = notice.renewal { self.renewal = renewal }
        // Apple may add values some day; those of scripts are made up.
        if let status = notice.status, 1...5 ~= status { self.status = status }
    }

    private mutating func take(_ said: NoticeTransaction, at instant: Int64) {
        let place = transactions.firstIndex { $0.transaction.transactionID == said.transactionID }
        guard let place else {
            let isPeriod = said.oneTime == nil && said.seats?.additionalReason == nil
            // Whoever buys within a period changes the plan.
            if isPeriod, said.reason == .purchase, let running,
                transactions[running].transaction.expiresDate > said.purchaseDate
            {
                transactions[running].transaction.isUpgraded = true
                transactions[running].modified = instant
            }
            transactions.append(Subscriber.Known(transaction: said, modified: instant))
            if isPeriod { running = transactions.count - 1 }
            return
        }
        var said = said
        said.isUpgraded = said.isUpgraded || transactions[place].transaction.isUpgraded
        var content = said
        content.signedDate = transactions[place].transaction.signedDate
        if content != transactions[place].transaction { transactions[place].modified = instant }
        transactions[place].transaction = said
    }
}

/// Time that is inserted into what is to come.
private struct Shift {
    let length: Int64
    let now: Int64
    /// The transactions that were there before; their dates stay.
    let known: Set<String>
    /// Those of them that end later.
    let extended: Set<String>

    func apply(to notice: inout Notice) {
        notice.signedDate += length
        if var transaction = notice.transaction {
            apply(to: &transaction)
            notice.transaction = transaction
        }
        if var renewal = notice.renewal {
            apply(to: &renewal)
            renewal.signedDate += length
            notice.renewal = renewal
        }
    }

    private func apply(to transaction: inout NoticeTransaction) {
        transaction.signedDate += length
        if let date = transaction.revocation?.date, date > now {
            transaction.revocation?.date = date + length
        }
        let id = transaction.transactionID
        let isExtended = extended.contains(id)
        guard !known.contains(id) || isExtended else { return }
        transaction.expiresDate += length
        transaction.commitment?.expires += length
        if !isExtended { transaction.purchaseDate += length }
    }

    func apply(to renewal: inout NoticeRenewal) {
        move(&renewal.renewalDate)
        move(&renewal.recentSubscriptionStartDate)
        renewal.gracePeriodExpiresDate = renewal.gracePeriodExpiresDate.map(moved)
        if let date = renewal.commitment?.renewalDate {
            renewal.commitment?.renewalDate = moved(date)
        }
    }

    private func move(_ date: inout Int64) { date = moved(date) }
    private func moved(_ date: Int64) -> Int64 { date > now ? date + length : date }
}
