import Ledger

@testable import Projections

/// Tells the life of one subscription and what the read model "churn" makes of it.
struct ChurnLife {
    /// 2026-01-01T00:00:00Z.
    static let t0 = Timestamp(milliseconds: 1_767_225_600_000)

    private(set) var events: [Event] = []
    var rules = AppRules(
        environment: .production,
        gracePeriodDays: 16,
        products: [
            "gold.month": ProductRules(groupID: "g", level: 1, period: .oneMonth),
            "silver.month": ProductRules(groupID: "g", level: 2, period: .oneMonth),
            "gold.year": ProductRules(groupID: "g", level: 1, period: .oneYear),
            "gold.week": ProductRules(groupID: "g", level: 1, period: .oneWeek),
        ]
    )

    /// 2026-01-01 plus so many days.
    static func day(_ days: Double) -> Timestamp {
        Timestamp(milliseconds: t0.milliseconds + Int64(days * 86_400_000))
    }

    /// A period of 9.99 USD for 30 days, unless said otherwise.
    static func period(
        _ id: UInt64,
        _ from: Double,
        _ until: Double,
        product: Symbol = "gold.month",
        reason: TransactionReason? = nil,
        price: Int64? = 9990,
        change: (inout TransactionFact) -> Void = { _ in }
    ) -> TransactionFact {
        var fact = TransactionFact(transactionID: AppleID(id), signedDate: day(from), digest: id)
        fact.productType = .autoRenewable
        fact.purchaseDate = day(from)
        fact.originalPurchaseDate = id == 1 ? day(from) : t0
        fact.expiresDate = day(until)
        fact.productID = product
        fact.reason = reason ?? (id == 1 ? .purchase : .renewal)
        fact.ownership = .purchased
        fact.price = price
        fact.currency = "USD"
        fact.storefront = "USA"
        change(&fact)
        return fact
    }

    /// A free trial.
    static func trial(_ id: UInt64, _ from: Double, _ until: Double) -> TransactionFact {
        period(id, from, until, reason: .purchase, price: 0) {
            $0.offerType = 1
            $0.offerDiscountType = .freeTrial
        }
    }

    /// Renewal info with auto-renew on, unless said otherwise.
    static func renewal(change: (inout RenewalFact) -> Void = { _ in }) -> RenewalFact {
        var fact = RenewalFact(signedDate: t0, digest: 0)
        fact.autoRenewStatus = 1
        change(&fact)
        fact.digest = UInt64(bitPattern: Int64(fact.hashValue))
        return fact
    }

    /// A notification on a day with what it carries.
    mutating func notify(
        _ type: NotificationType,
        _ subtype: Subtype? = nil,
        _ day: Double,
        _ transaction: TransactionFact? = nil,
        _ renewal: RenewalFact? = nil
    ) {
        let at = Self.day(day)
        var fact = Fact(kind: .notification, provenance: .jws, factAt: at)
        fact.notificationType = type
        fact.subtype = subtype
        fact.signedAt = at
        fact.transaction = transaction
        fact.transaction?.signedDate = at
        fact.renewal = renewal
        fact.renewal?.signedDate = at
        events.append(Event(position: Int64(events.count + 1), fact: fact))
    }

    /// The purchase on day 0 and the renewals that follow, each of 30 days.
    mutating func subscribe(renewals: Int = 0) {
        notify(
            .subscribed,
            .initialBuy,
            0,
            Self.period(1, 0, 30, reason: .purchase),
            Self.renewal()
        )
        for number in 0..<renewals {
            let start = Double(30 * (number + 1))
            let period = Self.period(UInt64(number + 2), start, start + 30)
            notify(.didRenew, nil, start, period, Self.renewal())
        }
    }

    /// The facts of several subscriptions that migrations on those days made of each other.
    func cut(at days: [Double]) -> [ChurnLife] {
        var parts: [ChurnLife] = []
        for number in 0...days.count {
            var part = ChurnLife()
            part.rules = rules
            let from = number == 0 ? Timestamp.earliest : Self.day(days[number - 1])
            let until = number == days.count ? nil : Self.day(days[number])
            for event in events where event.fact.factAt >= from {
                if let until, event.fact.factAt >= until { continue }
                var fact = event.fact
                if number > 0 {
                    fact.transaction?.previousOriginalTransactionID = AppleID(UInt64(number - 1))
                }
                part.events.append(Event(position: event.position, fact: fact))
            }
            parts.append(part)
        }
        return parts
    }

    /// Names the subscription before the migration by another id.
    mutating func renumber(_ id: (UInt64) -> AppleID) {
        for place in events.indices {
            guard
                let old = events[place].fact.transaction?.previousOriginalTransactionID,
                let number = UInt64(old.description)
            else { continue }
            events[place].fact.transaction?.previousOriginalTransactionID = id(number)
        }
    }

    /// The history of the facts told so far.
    var history: History {
        var fold = SubscriptionFold(rules: rules)
        return fold.history(of: events)
    }

    /// All moments.
    var moments: [Moment] { MomentBuilder.moments(of: history, rules) }

    /// The moments about staying and leaving up to a day, as "day kind cause".
    func told(upTo day: Double = 10_000) -> [String] {
        moments.filter { $0.at <= Self.day(day) }.compactMap { moment in
            switch moment.kind {
            case .charge, .cohort, .refund, .refundReversed, .atRisk, .riskOver: return nil
            default: break
            }
            let days = Double(moment.at.milliseconds - Self.t0.milliseconds) / 86_400_000
            let rounded = days == days.rounded() ? "\(Int(days))" : "\(days)"
            let outcome = moment.kind == .trialStarted ? nil : moment.cause
            return ([rounded, moment.kind.rawValue] + [outcome].compactMap { $0 })
                .joined(separator: " ")
        }
    }

    /// The moments about money, as "day kind cause amount".
    var money: [String] {
        moments.compactMap { moment in
            switch moment.kind {
            case .charge, .refund, .refundReversed: break
            default: return nil
            }
            let days = (moment.at.milliseconds - Self.t0.milliseconds) / 86_400_000
            let words = ["\(days)", moment.kind.rawValue, moment.cause ?? ""]
            return (words + [moment.amount.map { "\($0)" } ?? "?"])
                .filter { !$0.isEmpty }
                .joined(separator: " ")
        }
    }

    /// How many subscribers the moments up to an instant leave, by product and currency.
    static func balance(_ moments: [Moment], at instant: Timestamp) -> [Key: Int] {
        var balance: [Key: Int] = [:]
        for moment in moments where moment.at <= instant && moment.delta != 0 {
            let key = Key(product: moment.holding?.productID, currency: moment.holding?.currency)
            balance[key, default: 0] += Int(moment.delta)
            if balance[key] == 0 { balance[key] = nil }
        }
        return balance
    }

    /// A product in a currency.
    struct Key: Hashable {
        var product: Symbol?
        var currency: Symbol?
    }
}

/// A source of numbers that gives the same ones for the same seed (SplitMix64).
struct ChurnNumbers: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
