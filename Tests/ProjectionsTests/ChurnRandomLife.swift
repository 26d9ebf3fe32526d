import Ledger

/// Random lives: mostly such as Apple writes them, with everything that may go wrong in between.
struct ChurnRandomLife {
    private var random: ChurnNumbers
    private var life = ChurnLife()
    private var id: UInt64
    private var clock: Double
    private var product: Symbol = "gold.month"
    private var currency: Symbol = "USD"
    private var ownership = Ownership.purchased
    /// Whether nothing gets lost, nothing is paid back and nothing is free.
    private let isCalm: Bool
    /// When the periods began.
    private var starts: [Double] = []

    private static let products: [Symbol] = [
        "gold.month", "silver.month", "gold.year", "gold.week",
    ]
    private static let currencies: [Symbol] = ["USD", "EUR", "JPY"]

    /// The life of that seed, begun up to two and a half years before 2026.
    static func life(seed: UInt64) -> ChurnLife {
        var teller = ChurnRandomLife(seed: seed)
        teller.tell()
        return teller.life
    }

    /// A life without loss of news, refunds, seats and free months, once as one subscription and
    /// once as several that migrations made of each other.
    static func migrated(seed: UInt64) -> (whole: ChurnLife, parts: [ChurnLife]) {
        var teller = ChurnRandomLife(seed: seed, isCalm: true)
        teller.ownership = .purchased
        teller.tell()
        var cuts: [Double] = []
        for start in teller.starts.dropFirst() where teller.roll(4) { cuts.append(start) }
        return (teller.life, teller.life.cut(at: cuts))
    }

    private init(seed: UInt64, isCalm: Bool = false) {
        self.isCalm = isCalm
        random = ChurnNumbers(seed: seed)
        id = seed * 1000
        clock = Double.random(in: -900 ... -200, using: &random)
        life.rules.gracePeriodDays = Bool.random(using: &random) ? 16 : nil
        product = Self.products.randomElement(using: &random) ?? product
        currency = Self.currencies.randomElement(using: &random) ?? currency
        if roll(20) { ownership = .familyShared }
    }

    /// One in so many.
    private mutating func roll(_ sides: Int) -> Bool {
        Int.random(in: 0..<sides, using: &random) == 0
    }

    private var length: Double {
        switch product {
        case "gold.year": 365
        case "gold.week": 7
        default: 30
        }
    }

    private mutating func period(_ reason: TransactionReason) -> TransactionFact {
        id += 1
        starts.append(clock)
        let price = Int64.random(in: 1...40, using: &random) * 250
        let isOffer = roll(8)
        let isUnpriced = roll(30) && !isCalm
        let (currency, ownership) = (currency, ownership)
        return ChurnLife.period(
            id,
            clock,
            clock + length,
            product: product,
            reason: reason,
            price: isUnpriced ? nil : roll(2) ? 9990 : price
        ) {
            $0.currency = currency
            $0.ownership = ownership
            if isOffer { $0.offerType = 2 }
        }
    }

    private mutating func tell() {
        if roll(3) {
            id += 1
            var trial = ChurnLife.trial(id, clock, clock + 7)
            trial.ownership = ownership
            trial.currency = currency
            trial.productID = product
            life.notify(.subscribed, .initialBuy, clock, trial, ChurnLife.renewal())
            clock += 7
            if roll(3) {
                cancel(trial)
            } else if roll(4) {
                fail(trial)
            } else {
                let first = period(.renewal)
                life.notify(.didRenew, nil, clock, first, ChurnLife.renewal())
                go(on: first)
            }
        } else {
            let first = period(.purchase)
            life.notify(.subscribed, .initialBuy, clock, first, ChurnLife.renewal())
            go(on: first)
        }
    }

    private mutating func go(on first: TransactionFact) {
        var current = first
        for _ in 0..<Int.random(in: 1...25, using: &random) {
            guard let next = step(current) else { return }
            current = next
        }
    }

    /// What happens within a period and at its end; nil ends the story.
    private mutating func step(_ current: TransactionFact) -> TransactionFact? {
        let begin = clock
        if roll(12), !isCalm {
            refund(current, begin + Double.random(in: 0..<length, using: &random))
        }
        if roll(25), !isCalm { addSeats(current) }
        if roll(15) {
            // An upgrade, or a cross-grade of equal length, at once.
            clock = begin + Double.random(in: 0.1..<(length * 0.9), using: &random)
            product = Self.products.randomElement(using: &random) ?? product
            let next = period(.purchase)
            life.notify(.didChangeRenewalPref, .upgrade, clock, next, ChurnLife.renewal())
            return next
        }
        clock = begin + length
        switch Int.random(in: 0..<20, using: &random) {
        case 0, 1: return cancel(current)
        case 2: return fail(current)
        case 3 where !isCalm:
            // News gets lost, and the renewal after it comes.
            clock += roll(2) ? 0.02 : length
        case 4: product = Self.products.randomElement(using: &random) ?? product
        case 5: currency = Self.currencies.randomElement(using: &random) ?? currency
        case 6: return nil
        case 7 where !isCalm: return freeMonth()
        case 8: return raisePrice(current)
        case 9 where roll(4): return end(current, .productNotForSale, 4)
        case 10 where roll(4): return end(current, nil, 5)
        default: break
        }
        let next = period(.renewal)
        life.notify(.didRenew, nil, clock, next, ChurnLife.renewal())
        return next
    }

    /// Asks for consent to a higher price, which comes or does not.
    private mutating func raisePrice(_ current: TransactionFact) -> TransactionFact? {
        let asked = ChurnLife.renewal { $0.priceIncreaseStatus = 0 }
        life.notify(.priceIncrease, .pending, clock - length / 2, nil, asked)
        if roll(2) { return end(current, .priceIncrease, 3) }
        let agreed = ChurnLife.renewal { $0.priceIncreaseStatus = 1 }
        life.notify(.priceIncrease, .accepted, clock - length / 4, nil, agreed)
        let next = period(.renewal)
        life.notify(.didRenew, nil, clock, next, ChurnLife.renewal())
        return next
    }

    private mutating func end(
        _ current: TransactionFact,
        _ subtype: Subtype?,
        _ intent: Int32
    ) -> TransactionFact? {
        let over = ChurnLife.renewal {
            $0.autoRenewStatus = 0
            $0.expirationIntent = intent
        }
        life.notify(.expired, subtype, clock + 0.01, current, over)
        return nil
    }

    private mutating func freeMonth() -> TransactionFact {
        var free = period(.renewal)
        free.price = 0
        free.offerType = 2
        free.offerDiscountType = .freeTrial
        life.notify(.didRenew, nil, clock, free, ChurnLife.renewal())
        return free
    }

    private mutating func refund(_ transaction: TransactionFact, _ day: Double) {
        var refunded = transaction
        refunded.revocationDate = ChurnLife.day(day)
        refunded.revocationPercentage = roll(2) ? 100_000 : 40_000
        refunded.revocationType = roll(2) ? .refundFull : .refundProrated
        refunded.digest += 500
        life.notify(.refund, nil, day + 0.01, refunded, ChurnLife.renewal())
        guard roll(3) else { return }
        let later = day + Double.random(in: 0.1...40, using: &random)
        life.notify(.refundReversed, nil, later, transaction)
    }

    private mutating func addSeats(_ transaction: TransactionFact) {
        id += 1
        var seats = transaction
        seats.transactionID = AppleID(id)
        seats.purchaseDate = ChurnLife.day(clock + length / 3)
        seats.quantity = Int32.random(in: 1...4, using: &random)
        seats.additionalReason = "SEAT_ADDITION"
        seats.reason = .purchase
        seats.digest = id
        life.notify(.didChangeRenewalPref, nil, clock + length / 3, seats, ChurnLife.renewal())
        guard roll(2) else { return }
        seats.revokedSeatQuantity = 1
        seats.digest += 500
        life.notify(.refund, nil, clock + length / 2, seats)
    }

    @discardableResult
    private mutating func cancel(_ current: TransactionFact) -> TransactionFact? {
        let off = ChurnLife.renewal {
            $0.autoRenewStatus = 0
            $0.expirationIntent = 1
        }
        life.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            clock - 2,
            nil,
            ChurnLife.renewal { $0.autoRenewStatus = 0 }
        )
        if !roll(4) || isCalm { life.notify(.expired, .voluntary, clock + 0.01, current, off) }
        guard roll(2) else { return nil }
        clock += Double.random(in: 1...150, using: &random)
        product = Self.products.randomElement(using: &random) ?? product
        let next = period(.purchase)
        life.notify(.subscribed, .resubscribe, clock, next, ChurnLife.renewal())
        return next
    }

    @discardableResult
    private mutating func fail(_ current: TransactionFact) -> TransactionFact? {
        let hasGrace = roll(2)
        let end = ChurnLife.day(clock + 16)
        let failing = ChurnLife.renewal {
            $0.isInBillingRetryPeriod = true
            $0.expirationIntent = 2
            if hasGrace { $0.gracePeriodExpiresDate = end }
        }
        life.notify(
            .didFailToRenew,
            hasGrace ? .gracePeriod : nil,
            clock - 0.3,
            current,
            failing
        )
        if roll(3) {
            life.notify(
                .expired,
                .billingRetry,
                clock + 60,
                current,
                ChurnLife.renewal { $0.expirationIntent = 2 }
            )
            return nil
        }
        clock += Double.random(in: 0.5...55, using: &random)
        let next = period(.renewal)
        life.notify(.didRenew, .billingRecovery, clock, next, ChurnLife.renewal())
        return next
    }
}
