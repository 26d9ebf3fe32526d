/// A life that follows another one: what its leader's subscription does is announced to it too,
/// under a chain of its own.
struct Follower {
    /// So long after a renewal its period runs for certain, also where it was charged early.
    static let settled = 26 * Span.hour

    /// The life; nil where the leader's never runs long enough.
    private(set) var life: Life?

    private let kind: Household.Kind
    private let leader: Life
    private let number: Int
    private let until: Int64
    private var random: SeededRandom
    private var chain: Chain
    private var notices: [Notice] = []
    private var events: [LifeEvent] = []
    private var clock: Int64 = 0
    /// When the leader's markers were signed, and when the follower's.
    private var signed: [Int64: Int64] = [:]

    init(
        of leader: Life,
        kind: Household.Kind,
        number: Int,
        until: Int64,
        random: SeededRandom
    ) {
        self.leader = leader
        self.kind = kind
        self.number = number
        self.until = until
        self.random = random
        chain = leader.chain
        chain.originalTransactionID = LifeWriter.transactionID(number, 0)
        switch kind {
        case .migration: chain.previousOriginalTransactionID = leader.chain.originalTransactionID
        default:
            chain.ownership = kind == .family ? "FAMILY_SHARED" : "ASSIGNED"
            // Neither kind can be given a token.
            chain.appAccountToken = nil
            chain.appTransactionID = String(704_000_000_000_000_000 + number)
        }
        live()
    }

    private mutating func live() {
        guard let (joined, first) = join() else { return }
        let steady = leader.steadyRenewals.filter { $0 > joined }
        var left: Int64?
        if kind != .migration, !steady.isEmpty, random.chance(0.3) {
            left = (random.pick(steady) + Self.settled) / 1000 * 1000
        }
        chain.originalPurchaseDate = first.transaction?.purchaseDate ?? joined
        announceJoining(first, at: joined)
        for notice in leader.notices where notice.signedDate > joined {
            if let left, notice.signedDate > left { break }
            follow(notice)
            if kind == .migration, notice.type == "DID_RENEW", steady.contains(notice.signedDate),
                random.chance(0.4)
            {
                changeItem(at: notice.signedDate + Self.settled)
            }
        }
        if let left { announceLeaving(at: left) }
        guard !notices.isEmpty else { return }
        life = Life(
            chain: chain,
            notices: notices,
            intervals: intervals(from: chain.originalPurchaseDate, joined: joined, left: left),
            events: events
        )
    }

    /// When it begins, and with which state of the leader's subscription.
    private mutating func join() -> (Int64, Notice)? {
        if kind == .migration {
            guard let instant = leader.migration, let first = lastNotice(before: instant) else {
                return nil
            }
            return instant < until ? (instant, first) : nil
        }
        let steady = leader.steadyRenewals
        if !steady.isEmpty, random.chance(0.4) {
            let instant = random.pick(steady) + Self.settled
            guard let first = lastNotice(before: instant) else { return nil }
            return instant < until ? (instant, first) : nil
        }
        guard let first = leader.notices.first else { return nil }
        // The first grant takes up to an hour.
        return (first.signedDate, first)
    }

    private func lastNotice(before instant: Int64) -> Notice? {
        leader.notices.last { notice in
            notice.signedDate < instant && notice.type == "DID_RENEW"
        }
    }

    private mutating func announceJoining(_ first: Notice, at instant: Int64) {
        var notice = first
        notice.status = 1
        if kind == .migration {
            // Apple's pages have both spellings.
            notice.type = random.chance(0.7) ? "MIGRATION" : "MIGRATE"
            notice.subtype = nil
            events.append(.migrated)
        } else {
            notice.type = "SUBSCRIBED"
            notice.subtype = "INITIAL_BUY"
            events.append(kind == .family ? .familyGranted : .seatAssigned)
        }
        send(notice, at: instant + random.between(2 * Span.second, Span.hour))
    }

    private mutating func announceLeaving(at instant: Int64) {
        guard instant < until, var notice = notices.last(where: { $0.type == "DID_RENEW" }) else {
            return
        }
        notice.type = "REVOKE"
        notice.subtype = nil
        notice.status = 5
        notice.transaction?.revocation = NoticeTransaction.Revocation(
            date: instant,
            type: revocationType,
            percentage: nil
        )
        send(notice, at: instant + random.between(2, 60) * Span.second)
        events.append(kind == .family ? .familyRevoked : .seatRevoked)
    }

    private var revocationType: String { kind == .family ? "FAMILY_REVOKE" : "ASSIGNMENT_REVOKE" }

    /// The follower's own notification of what happened to the leader's subscription.
    private mutating func follow(_ original: Notice) {
        guard original.form == .data, original.isOfSubscription,
            let transaction = original.transaction,
            transaction.purchaseDate >= chain.originalPurchaseDate,
            transaction.seats?.additionalReason == nil
        else { return }
        var notice = original
        if kind != .migration {
            let isForPayer = [
                "CONSUMPTION_REQUEST", "REFUND_DECLINED", "RENEWAL_EXTENSION",
            ]
            let isAboutSeats = ["SEATS", "INCREASE_QUANTITY", "DECREASE_QUANTITY"]
            guard !isForPayer.contains(notice.type), !isAboutSeats.contains(notice.subtype ?? "")
            else { return }
            if notice.type == "REFUND" { notice.type = "REVOKE" }
        }
        send(notice, at: original.signedDate + random.between(100, 20_000), for: original)
    }

    private mutating func changeItem(at wanted: Int64) {
        guard var notice = notices.last, notice.transaction != nil else { return }
        notice.type = random.chance(0.5) ? "METADATA_UPDATE" : "PRICE_CHANGE"
        notice.subtype = nil
        notice.status = 1
        send(notice, at: wanted)
        events.append(.itemChanged)
    }

    /// Signs what a notice says anew, as the follower's.
    private mutating func send(_ notice: Notice, at wanted: Int64, for original: Notice? = nil) {
        let instant = max(wanted, clock + 1500)
        guard instant < until else { return }
        clock = instant
        if let original { signed[original.signedDate] = instant }
        var own = notice
        own.uuid = LifeWriter.uuid(&random)
        own.signedDate = instant
        if var transaction = notice.transaction {
            adopt(&transaction)
            transaction.signedDate = instant - random.between(10, 60)
            own.transaction = transaction
        }
        if var renewal = notice.renewal {
            adopt(&renewal)
            renewal.signedDate = instant - random.between(20, 90)
            own.renewal = renewal
        }
        notices.append(own)
    }

    private func adopt(_ transaction: inout NoticeTransaction) {
        if let index = LifeWriter.index(ofTransaction: transaction.transactionID, leader.chain) {
            transaction.transactionID = LifeWriter.transactionID(number, index)
            transaction.webOrderLineItemID = LifeWriter.lineItemID(number, index)
        }
        switch kind {
        case .migration:
            transaction.advancedCommerce = NoticeItem(
                sku: "sku." + transaction.productID,
                displayName: "The plan, as an item",
                price: transaction.price ?? 0
            )
        default:
            transaction.price = nil
            transaction.appAccountToken = nil
            transaction.quantity = 1
            transaction.seats = nil
            if transaction.revocation != nil {
                transaction.revocation?.type = revocationType
                transaction.revocation?.percentage = nil
            }
        }
    }

    private func adopt(_ renewal: inout NoticeRenewal) {
        guard kind != .migration else { return }
        renewal.appAccountToken = nil
        renewal.quantity = nil
        renewal.winBackOffers = nil
    }

    /// The leader's story, as far as it is the follower's.
    private func intervals(from start: Int64, joined: Int64, left: Int64?) -> [TruthInterval] {
        var story = Story()
        if let first = notices.first?.transaction {
            story.paint(from: start, .active, first.productID)
        }
        for interval in leader.intervals {
            if let until = interval.until, until <= joined { continue }
            var condition = interval.condition
            if condition.state == .revoked, kind != .migration {
                condition.cause = kind == .family ? "family_revoke" : "assignment_revoke"
            }
            let from = interval.from <= joined ? start : signed[interval.from] ?? interval.from
            story.paint(from: from, condition, interval.productID)
        }
        if let left, left < until, let last = notices.last, last.type == "REVOKE",
            let revocation = last.transaction?.revocation, revocation.date == left
        {
            story.paint(from: left, .revoked(revocation), last.transaction?.productID ?? "")
        }
        return story.intervals
    }
}
