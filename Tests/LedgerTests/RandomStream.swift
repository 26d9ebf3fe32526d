internal import Ledger

/// The events of one subscription and the rules to fold them by, drawn from a seed.
///
/// Not a life that Apple would write: everything that a register may meet is thrown together, so
/// that each rule meets each other one. Equal content has an equal digest, as in the log.
struct RandomStream {
    var events: [Event] = []
    var rules = AppRules(environment: .production)

    /// Draws the stream of a seed.
    init(seed: UInt64, events count: ClosedRange<Int> = 1...16) {
        var source = Source(seed: seed)
        rules = source.rules()
        for position in 1...source.number(in: count) {
            events.append(Event(position: Int64(position), fact: source.fact()))
        }
        source.random.shuffle(&events)
        // Positions follow arrival, and arrival is no order.
        for place in events.indices { events[place].position = Int64(place + 1) }
    }

    /// A stream of given events.
    init(events: [Event], rules: AppRules) {
        self.events = events
        self.rules = rules
    }

    /// The history that a fold gives which has folded nothing before.
    var history: History {
        var fold = SubscriptionFold(rules: rules)
        return fold.history(of: events)
    }

    /// Adds a fact behind all others.
    mutating func add(_ fact: Fact) {
        let newest = events.map(\.position).max() ?? 0
        events.append(Event(position: newest + 1, fact: fact))
    }

    /// The stream with one more fact.
    func adding(_ fact: Fact) -> RandomStream {
        var stream = self
        stream.add(fact)
        return stream
    }

    /// The latest instant at which anything was signed.
    var lastSigned: Timestamp {
        let facts = events.map(\.fact)
        let signed =
            facts.map(\.factAt) + facts.compactMap(\.signedAt)
            + facts.compactMap(\.transaction?.signedDate)
            + facts.compactMap(\.renewal?.signedDate)
        return signed.max() ?? .earliest
    }
}

extension SeededGenerator {
    /// A number below `bound`, at the cost of one multiplication.
    mutating func below(_ bound: Int) -> Int {
        Int(next().multipliedFullWidth(by: UInt64(bound)).high)
    }

    mutating func isOne(in odds: Int) -> Bool { below(odds) == 0 }

    mutating func shuffle<Element>(_ elements: inout [Element]) {
        guard elements.count > 1 else { return }
        for place in (1..<elements.count).reversed() {
            elements.swapAt(place, below(place + 1))
        }
    }
}

/// Draws one fact after another.
private struct Source {
    var random: SeededGenerator
    private var versions: [TransactionFact] = []
    private var infos: [RenewalFact] = []

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    private static let t0 = 1_760_000_000_000
    private static let day = 86_400_000
    private static let products: [Symbol] = ["gold.month", "silver.month", "gold.year"]
    private static let types: [(NotificationType, Subtype?)] = [
        (.subscribed, .initialBuy), (.subscribed, .resubscribe), (.didRenew, nil),
        (.didRenew, .billingRecovery), (.didFailToRenew, nil), (.didFailToRenew, .gracePeriod),
        (.gracePeriodExpired, nil), (.expired, .billingRetry), (.expired, .voluntary),
        (.expired, .priceIncrease), (.expired, .productNotForSale), (.expired, nil),
        (.refund, nil), (.refund, .seats), (.refundReversed, nil), (.refundDeclined, nil),
        (.revoke, nil), (.didChangeRenewalPref, .upgrade), (.didChangeRenewalPref, .downgrade),
        (.didChangeRenewalPref, nil), (.didChangeRenewalStatus, .autoRenewDisabled),
        (.didChangeRenewalStatus, .autoRenewEnabled), (.offerRedeemed, .upgrade),
        (.offerRedeemed, nil), (.priceIncrease, .pending), (.priceIncrease, .accepted),
        (.renewalExtended, nil), (.renewalExtension, .summary), (.consumptionRequest, nil),
        (.unclaimSeats, nil), (.migration, nil), (.rescindConsent, nil), (.test, nil),
        (.unknown("SHINY_NEW_TYPE"), nil), (.didRenew, .unknown("SHINY_NEW_SUBTYPE")),
    ]
    private static let kinds: [(EventKind, Provenance)] = [
        (.transaction, .jws), (.subscriptionStatus, .jws), (.subscriptionStatus, .tls),
        (.renewalInfo, .jws), (.receipt, .receipt), (.appTransaction, .jws),
        (.apiResponse, .tls), (.unknown("shiny_new_kind"), .jws),
    ]

    mutating func number(in range: ClosedRange<Int>) -> Int {
        range.lowerBound + random.below(range.count)
    }

    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[random.below(elements.count)]
    }

    /// An instant: mostly of a few, so that many coincide, and now and then an absurd one.
    private mutating func instant() -> Timestamp {
        switch random.below(60) {
        case 0: Timestamp(milliseconds: -62_135_596_800_000)  // year 1
        case 1: .latest
        case 2: .earliest
        case 3..<30: Timestamp(milliseconds: Int64(Self.t0 + random.below(30) * 7 * Self.day))
        default: Timestamp(milliseconds: Int64(Self.t0 + random.below(210 * Self.day)))
        }
    }

    // MARK: Rules

    mutating func rules() -> AppRules {
        var rules = AppRules(environment: random.isOne(in: 4) ? .sandbox : .production)
        if random.isOne(in: 2) { rules.gracePeriodDays = pick([3, 16, 28]) }
        if random.isOne(in: 4) {
            rules.products["gold.month"] = ProductRules(
                groupID: "group",
                level: 1,
                period: .oneMonth
            )
        }
        if random.isOne(in: 4) { rules.graceScope = .existingPaidRenewals }
        if random.isOne(in: 5) { rules.clockProfile = pick([.production, .sandbox]) }
        if random.isOne(in: 3) { rules.policies = policies() }
        return rules
    }

    private mutating func policies() -> [AccessPolicy] {
        let retry: [BillingRetryAccess] = [.deny, .untilGraceEnds, .days(20), .days(90), .allow]
        return (1...number(in: 1...3)).map { version in
            AccessPolicy(
                version: Int32(version),
                effectiveFrom: version == 1
                    ? .earliest
                    : Timestamp(milliseconds: Int64(Self.t0 + version * 40 * Self.day)),
                billingRetryAccess: pick(retry),
                missingGraceDate: random.isOne(in: 2) ? .estimate : .deny,
                lapseLeeway: random.isOne(in: 2) ? .hours(5) : nil,
                refundEndsAccess: random.isOne(in: 2)
            )
        }
    }

    // MARK: Facts

    mutating func fact() -> Fact {
        switch random.below(24) {
        case 0: return operatorFact()
        case 1...5: return snapshot()
        default: return notification()
        }
    }

    private mutating func notification() -> Fact {
        let at = instant()
        var fact = Fact(kind: .notification, provenance: .jws, factAt: at)
        (fact.notificationType, fact.subtype) = pick(Self.types)
        fact.signedAt = random.isOne(in: 8) ? instant() : at
        if random.isOne(in: 20) { fact.signedAt = nil }
        if random.isOne(in: 2) { fact.status = Int32(number(in: 1...5)) }
        if random.isOne(in: 40) { fact.status = 9 }
        if fact.notificationType == .consumptionRequest {
            // By the status, so that requests of one instant differ.
            let reasons: [ConsumptionRequestReason?] = [nil, .legal, .other, .unknown("SHINY")]
            fact.consumptionRequestReason = reasons[Int(fact.status ?? 0) % 4]
        }
        if !random.isOne(in: 3) { fact.transaction = transaction(at) }
        if random.isOne(in: 2) { fact.renewal = renewal(at) }
        return fact
    }

    /// What the Server API answers: a transaction, renewal info or a status.
    private mutating func snapshot() -> Fact {
        let at = instant()
        let (kind, provenance) = pick(Self.kinds)
        var fact = Fact(kind: kind, provenance: provenance, factAt: at)
        fact.signedAt = provenance == .jws ? at : nil
        if kind == .subscriptionStatus { fact.status = Int32(number(in: 1...5)) }
        if kind == .subscriptionStatus || kind == .renewalInfo { fact.renewal = renewal(at) }
        if kind != .renewalInfo, !random.isOne(in: 6) { fact.transaction = transaction(at) }
        return fact
    }

    private mutating func operatorFact() -> Fact {
        let at = instant()
        if random.isOne(in: 2) {
            var fact = Fact(kind: .ownerLinked, provenance: .operator, factAt: at)
            fact.linkedOwner = UniqueID(bits: UInt128(number(in: 1...3)))
            return fact
        }
        var fact = Fact(kind: .extensionAnswered, provenance: .tls, factAt: at)
        fact.extensionAnswer = ExtensionAnswer(
            success: !random.isOne(in: 4),
            effectiveDate: random.isOne(in: 6) ? nil : instant()
        )
        return fact
    }

    // MARK: Contents

    private mutating func transaction(_ at: Timestamp) -> TransactionFact {
        // Signed anew: equal content, another date.
        if !versions.isEmpty, random.isOne(in: 4) {
            var again = pick(versions)
            again.signedDate = at
            return again
        }
        let id = number(in: 1...5)
        let from = Timestamp(
            milliseconds: Int64(Self.t0 + id * 28 * Self.day + random.below(3) * Self.day)
        )
        var fact = TransactionFact(
            transactionID: AppleID(UInt64(id)),
            signedDate: random.isOne(in: 10) ? instant() : at,
            digest: random.next()
        )
        fact.productType = random.isOne(in: 25) ? pick([.consumable, nil]) : .autoRenewable
        fact.productID = pick(Self.products)
        fact.purchaseDate = random.isOne(in: 30) ? nil : from
        fact.expiresDate = random.isOne(in: 30) ? nil : from.adding(.days(pick([30, 30, 30, 7])))
        if random.isOne(in: 25) { fact.expiresDate = instant() }
        if random.isOne(in: 40) { fact.purchaseDate = instant() }
        fact.reason = pick([.purchase, .renewal, .renewal, nil])
        if !random.isOne(in: 8) {
            fact.ownership = pick([.purchased, .purchased, .familyShared, .assigned])
        }
        fact.price = pick([9_990, 4_990, 0, nil])
        fact.currency = pick(["EUR", "USD"])
        fill(&fact)
        versions.append(fact)
        return fact
    }

    private mutating func fill(_ fact: inout TransactionFact) {
        if random.isOne(in: 6) {
            fact.revocationDate = instant()
            fact.revocationType = pick([
                nil, .refundFull, .refundProrated, .familyRevoke, .assignmentRevoke,
                .unknown("SHINY_REVOCATION"),
            ])
            fact.revocationPercentage = pick([nil, 100_000, 40_000])
        }
        fact.isUpgraded = random.isOne(in: 12)
        if random.isOne(in: 10) {
            fact.additionalReason = "SEAT_ADDITION"
            fact.quantity = Int32(number(in: 1...9))
        }
        if random.isOne(in: 10) { fact.revokedSeatQuantity = Int32(number(in: 1...3)) }
        if random.isOne(in: 8) {
            fact.offerType = Int32(number(in: 1...5))
            fact.offerDiscountType = pick([.freeTrial, .payAsYouGo, .unknown("SHINY_OFFER")])
        }
        if random.isOne(in: 10) {
            fact.billingPlanType = .monthly
            fact.commitmentExpiresDate = instant()
        }
        if random.isOne(in: 2) {
            fact.appAccountToken = UniqueID(bits: UInt128(number(in: 1...3)))
        }
        if random.isOne(in: 30) { fact.ownership = .unknown("SHINY_OWNERSHIP") }
        // One purchase under two numbers.
        if random.isOne(in: 12) {
            fact.webOrderLineItemID = AppleID(UInt64(number(in: 1...2)))
            fact.purchaseDate = Timestamp(milliseconds: Int64(Self.t0 + 28 * Self.day))
        }
    }

    private mutating func renewal(_ at: Timestamp) -> RenewalFact {
        if !infos.isEmpty, random.isOne(in: 4) {
            var again = pick(infos)
            again.signedDate = at
            return again
        }
        var fact = RenewalFact(
            signedDate: random.isOne(in: 10) ? instant() : at,
            digest: random.next()
        )
        fact.autoRenewStatus = pick([0, 1, 1, nil])
        fact.autoRenewProductID = pick(Self.products + [nil])
        fact.isInBillingRetryPeriod = pick([true, false, nil])
        if random.isOne(in: 3) { fact.gracePeriodExpiresDate = instant() }
        if random.isOne(in: 3) { fact.expirationIntent = Int32(number(in: 1...6)) }
        fact.priceIncreaseStatus = pick([nil, nil, 0, 1])
        if random.isOne(in: 2) { fact.renewalDate = instant() }
        if random.isOne(in: 3) {
            fact.renewalPrice = 9_990
            fact.renewalQuantity = pick([nil, 1, 3])
            fact.currency = pick([nil, "EUR"])
        }
        infos.append(fact)
        return fact
    }
}
