/// One purchase or renewal of a subscription, as last signed: what was charged for which time.
///
/// It holds no reference, so the fold makes them at the cost of a copy.
public struct Charge: Hashable, Sendable {
    /// Apple's number of the charge.
    public var transactionID: AppleID
    /// The event that holds the version that counts.
    public var position: Int64
    /// What was bought.
    @Packed public var productID: Symbol?
    /// The start of the period.
    public var from: Timestamp
    /// The end of the period as it counts, extensions included; never before the start.
    public var until: Timestamp
    /// The length of the period before any extension.
    public var length: Milliseconds
    /// The length, before any extension, of the subscription's first period of this product that is
    /// no offer's, no added seat's and no payment of a commitment; its own length where there is none.
    ///
    /// A period that began late, by recovery in grace or by a seat added, is shorter than its plan.
    public var planLength: Milliseconds
    /// Whether an extension moved the end.
    public var isExtended: Bool
    /// What kind of period it is.
    public var offer: OfferPhase
    /// Whether Apple calls it a purchase or a renewal; payloads before 2023 do not say.
    public var reason: TransactionReason?
    /// How the customer came to it.
    public var ownership: Ownership
    /// What one of it costs, milliunits of `currency`; for seats the average.
    public var price: Int64?
    /// ISO 4217.
    @Packed public var currency: Symbol?
    /// ISO 3166-1 alpha-3.
    @Packed public var storefront: Symbol?
    /// How many were bought; seats for a multiseat purchase.
    public var quantity: Int32
    /// What one of the next charge costs, as signed together with this one, where that is for the
    /// same product in the same currency.
    public var renewalPrice: Int64?
    /// The subscription that a migration made this one of.
    @Packed public var previousOriginalTransactionID: AppleID?
    /// Whether one of several charges of one period (seats).
    public var isAdditional: Bool
    /// Whether a payment of a 12-month commitment.
    public var isCommitment: Bool
    /// Whether Apple says that an upgrade superseded it.
    public var isUpgraded: Bool
    /// When it was taken back, not before it began.
    @Packed public var revokedAt: Timestamp?
    /// How it was taken back.
    public var revocationType: RevocationType?
    /// How much of it was paid back, milliunits of a percent; nil says nothing.
    public var revocationPercentage: Int32?
    /// Whether a notification reported that it was refunded.
    public var isRefundReported: Bool
    /// When the subscription itself was first bought.
    @Packed public var originalPurchaseDate: Timestamp?

    /// Whether it was paid back, in whole or in part.
    ///
    /// An upgrade is no refund, whatever date Apple puts on the old transaction, unless Apple also
    /// reported one; nor is access that a family member or the holder of a seat lost.
    public var isRefunded: Bool {
        revokedAt != nil && (!isUpgraded || isRefundReported)
            && revocationType != .familyRevoke && revocationType != .assignmentRevoke
    }

    /// A charge of nothing, to be read into.
    static var sample: Charge {
        Charge(
            transactionID: AppleID(0),
            position: 0,
            from: .earliest,
            until: .earliest,
            length: Milliseconds(rawValue: 0),
            planLength: Milliseconds(rawValue: 0),
            isExtended: false,
            offer: .standard,
            reason: nil,
            ownership: .purchased,
            price: nil,
            quantity: 1,
            renewalPrice: nil,
            isAdditional: false,
            isCommitment: false,
            isUpgraded: false,
            revocationType: nil,
            revocationPercentage: nil,
            isRefundReported: false
        )
    }

    /// Reads the period at a place, whose dates are there.
    @inline(__always) mutating func read(
        _ registers: borrowing Registers,
        _ number: Int,
        planLength: Milliseconds,
        _ events: Events
    ) {
        self.planLength = planLength
        let place = registers.periods[number].place
        transactionID = registers.periods[number].transactionID
        position = registers.periods[number].position
        productID = registers.periods[number].productID
        from = registers.periods[number].start
        until = registers.periods[number].end
        length = registers.periods[number].length
        let firstEnd = registers.periods[number].firstEnd ?? registers.periods[number].end
        isExtended = firstEnd < registers.periods[number].end
        offer = registers.periods[number].offer
        reason = registers.periods[number].reason
        ownership = events[place].fact.storedTransaction.ownership ?? .purchased
        price = events[place].fact.storedTransaction.price
        currency = events[place].fact.storedTransaction.currency
        storefront = events[place].fact.storedTransaction.storefront
        quantity = events[place].fact.storedTransaction.quantity ?? 1
        renewalPrice = Self.renewalPrice(place, events)
        previousOriginalTransactionID =
            events[place].fact.storedTransaction.previousOriginalTransactionID
        isAdditional = registers.periods[number].isAdditional
        isCommitment = registers.periods[number].isCommitment
        isUpgraded = registers.periods[number].isUpgraded
        revokedAt = registers.periods[number].revocation
        revocationType = events[place].fact.storedTransaction.revocationType
        revocationPercentage = events[place].fact.storedTransaction.revocationPercentage
        isRefundReported = registers.periods[number].isRefundReported
        originalPurchaseDate = events[place].fact.storedTransaction.originalPurchaseDate
    }

    @inline(__always) private static func renewalPrice(_ place: Int, _ events: Events) -> Int64? {
        guard let price = events[place].fact.storedRenewal.renewalPrice else { return nil }
        let currency = events[place].fact.storedRenewal.currency
        let product = events[place].fact.storedRenewal.autoRenewProductID
        guard currency == nil || currency == events[place].fact.storedTransaction.currency,
            product == nil || product == events[place].fact.storedTransaction.productID
        else { return nil }
        return price
    }
}

/// A refund that Apple undid: a version of a transaction without the revocation of an older one.
public struct RefundReversal: Hashable, Sendable {
    /// The charge.
    public var transactionID: AppleID
    /// When the refund took effect.
    public var revokedAt: Timestamp
    /// How it had been taken back.
    public var revocationType: RevocationType?
    /// How much had been paid back, milliunits of a percent; nil says nothing.
    public var revocationPercentage: Int32?
    /// When Apple signed that it is undone.
    public var reversedAt: Timestamp
    /// The event that held the refund.
    public var refundPosition: Int64
    /// The event that undid it.
    public var position: Int64
}

/// A refund of seats: the charge stays, some of its seats are gone.
public struct SeatRefund: Hashable, Sendable {
    /// The charge.
    public var transactionID: AppleID
    /// When Apple first signed that number; the payload has no date of its own.
    public var at: Timestamp
    /// How many seats of the charge are refunded by then, in all.
    public var seats: Int32
    /// The event that says so.
    public var position: Int64
}

extension AppRules {
    /// The plan of a charge, from which its monthly value is computed.
    ///
    /// A commitment is paid by the month. A paid offer may be charged for another length than the
    /// product's (three months at once), so its own length counts. Everything else is the product's
    /// configured length, or the nearest to its first period before any extension.
    public func plan(of charge: Charge) -> PlanPeriod {
        if charge.isCommitment { return .oneMonth }
        guard charge.offer == .standard else {
            return Clock.plan(product: nil, period: charge.length, rules: self)
        }
        return standardPlan(of: charge)
    }

    /// The plan that a charge's offer leads to: the product's, or else that of the charge.
    public func standardPlan(of charge: Charge) -> PlanPeriod {
        if charge.isCommitment { return .oneMonth }
        return Clock.plan(product: charge.productID, period: charge.planLength, rules: self)
    }

    /// How long Apple retries a failed charge after a period; also the longest gap after which a
    /// subscriber counts as returning.
    public func billingRetryLimit(after charge: Charge) -> Milliseconds {
        let profile = Clock.profile(period: charge.length, rules: self)
        return Clock.billingRetry(profile, isCommitment: charge.isCommitment)
    }
}
