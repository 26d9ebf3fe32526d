import Ledger

/// What was charged and paid back, and which periods were paid, apart from any state.
struct MoneyMoments {
    private let history: History
    private let rules: AppRules
    private(set) var moments: [Moment] = []

    /// The most periods after the first that a cohort follows: ten years of weeks.
    private static let ordinalMax: Int32 = 520

    init(_ history: History, _ rules: AppRules) {
        self.history = history
        self.rules = rules
    }

    /// Makes the moments of purchases of the subscriber's own; a trial is no charge.
    mutating func build() {
        var run: Int?
        for charge in history.charges where Self.counts(charge) {
            refund(charge)
            if let open = run, moments[open].holding == holding(charge),
                moments[open].isExtended == charge.isExtended
            {
                moments[open].chargedAt?.append(charge.from)
                moments[open].relatedAt = charge.from
                moments[open].positions.append(charge.position)
                continue
            }
            var moment = Moment(.charge, at: charge.from, positions: [charge.position])
            moment.holding = holding(charge)
            moment.amount = charge.price.flatMap {
                Self.amount($0, quantity: Int64(charge.quantity))
            }
            moment.chargedAt = [charge.from]
            moment.relatedAt = charge.from
            moment.isExtended = charge.isExtended
            run = moments.count
            moments.append(moment)
        }
        reverse()
        refundSeats()
        cohort()
    }

    private static func counts(_ charge: Charge) -> Bool {
        charge.ownership == .purchased && charge.offer != .trial
    }

    private func holding(_ charge: Charge) -> Holding {
        Holding(
            productID: charge.productID,
            plan: rules.plan(of: charge),
            currency: charge.currency,
            storefront: charge.storefront,
            offer: charge.offer,
            price: charge.price,
            quantity: Int64(charge.quantity),
            monthly: 0
        )
    }

    // MARK: - Refunds

    private mutating func refund(_ charge: Charge) {
        guard charge.isRefunded, let at = charge.revokedAt else { return }
        add(
            .refund,
            of: charge,
            at: at,
            revokedAt: at,
            charge.revocationType,
            charge.revocationPercentage,
            charge.position
        )
    }

    private mutating func reverse() {
        for reversal in history.reversals {
            guard let charge = charge(reversal.transactionID) else { continue }
            add(
                .refund,
                of: charge,
                at: reversal.revokedAt,
                revokedAt: reversal.revokedAt,
                reversal.revocationType,
                reversal.revocationPercentage,
                reversal.refundPosition
            )
            add(
                .refundReversed,
                of: charge,
                at: reversal.reversedAt,
                revokedAt: reversal.revokedAt,
                reversal.revocationType,
                reversal.revocationPercentage,
                reversal.position
            )
        }
    }

    private mutating func refundSeats() {
        for (place, refund) in history.seatRefunds.enumerated() {
            guard let charge = charge(refund.transactionID) else { continue }
            let before = history.seatRefunds[..<place].last {
                $0.transactionID == refund.transactionID
            }
            // What is told of seats once the whole was paid back is part of that.
            if charge.isRefunded, let at = charge.revokedAt, refund.at >= at { continue }
            let seats = Int64(refund.seats) - Int64(before?.seats ?? 0)
            guard seats != 0 else { continue }
            // Fewer than before: some of it was undone.
            let kind: Moment.Kind = seats > 0 ? .refund : .refundReversed
            var moment = Moment(kind, at: refund.at, positions: [refund.position])
            moment.cause = "seats"
            moment.holding = holding(charge)
            moment.holding?.quantity = abs(seats)
            moment.amount = charge.price.flatMap { Self.amount($0, quantity: abs(seats)) }
            moment.relatedAt = charge.from
            moments.append(moment)
        }
    }

    private func charge(_ id: AppleID) -> Charge? {
        history.charges.first { $0.transactionID == id && Self.counts($0) }
    }

    private mutating func add(
        _ kind: Moment.Kind,
        of charge: Charge,
        at instant: Timestamp,
        revokedAt: Timestamp,
        _ type: RevocationType?,
        _ percentage: Int32?,
        _ position: Int64
    ) {
        let cause = type == .refundProrated ? "prorated" : "full"
        var moment = Moment(kind, at: instant, cause: cause, positions: [position])
        moment.holding = holding(charge)
        // Seats that were paid back before are not paid back once more.
        let quantity = seats(of: charge, at: revokedAt)
        moment.amount = charge.price.flatMap {
            Self.amount($0, quantity: quantity, percentage: percentage ?? 100_000)
        }
        // Facts from before December 2025 do not say how much was paid back.
        moment.confidence = percentage == nil ? .estimated : .confirmed
        moment.relatedAt = charge.from
        moments.append(moment)
    }

    /// How many seats of a charge were not paid back by then.
    private func seats(of charge: Charge, at instant: Timestamp) -> Int64 {
        let refunded = history.seatRefunds.last {
            $0.transactionID == charge.transactionID && $0.at < instant
        }
        return max(0, Int64(charge.quantity) - Int64(refunded?.seats ?? 0))
    }

    /// Price × quantity × percentage, rounded once, half away from 0; nil where it does not fit.
    static func amount(
        _ price: Int64,
        quantity: Int64,
        percentage: Int32 = 100_000
    ) -> Int64? {
        let product = Int128(price) * Int128(quantity) * Int128(percentage)
        let half: Int128 = product < 0 ? -50_000 : 50_000
        return Int64(exactly: (product + half) / 100_000)
    }

    // MARK: - Cohorts

    /// The first charge, and in which of its periods a charge that was not refunded fell.
    ///
    /// Periods are counted from the first charge by the nominal length of its plan; a charge may come
    /// some days before the nominal beginning, since months are not all as long and renewals are
    /// charged up to a day early. A charge covers as many as its time
    /// does: a year that follows months counts for twelve, an extension for what it added. Whoever
    /// paid before the first charge that is known belongs to a cohort that nobody knows.
    private mutating func cohort() {
        guard
            let first = history.charges.first(where: { Self.counts($0) && !$0.isAdditional }),
            !history.isContinuation(first)
        else { return }
        let length = rules.plan(of: first).nominal.rawValue
        var ordinals: [Int32: Int64] = [:]
        for charge in history.charges
        where Self.counts(charge)
            && (charge.revokedAt == nil || charge.isUpgraded && !charge.isRefunded)
        {
            let start = Self.ordinal(charge.from, since: first.from, length)
            let end = Self.ordinal(charge.until, since: first.from, length) - 1
            guard start >= 0, start <= Self.ordinalMax else { continue }
            for ordinal in start...max(start, min(end, Self.ordinalMax)) {
                ordinals[ordinal, default: 0] += 0
            }
            // Amounts of two currencies are never added.
            guard charge.currency == first.currency else { continue }
            let (sum, overflow) = (ordinals[start] ?? 0).addingReportingOverflow(kept(charge))
            ordinals[start] = overflow ? .max : sum
        }
        var moment = Moment(.cohort, at: first.from, positions: [first.position])
        moment.holding = holding(first)
        moment.paidOrdinals = ordinals.keys.sorted()
        moment.paidAmounts = moment.paidOrdinals?.map { ordinals[$0] ?? 0 }
        moments.append(moment)
    }

    /// What a charge brought, without the seats that were paid back; 0 where no price is known.
    private func kept(_ charge: Charge) -> Int64 {
        let refund = history.seatRefunds.last { $0.transactionID == charge.transactionID }
        let seats = max(0, Int64(charge.quantity) - Int64(refund?.seats ?? 0))
        return charge.price.flatMap { Self.amount($0, quantity: seats) } ?? 0
    }

    /// Which period from the first on, with some days' grace.
    private static func ordinal(
        _ instant: Timestamp,
        since first: Timestamp,
        _ length: Int64
    ) -> Int32 {
        let distance = instant.milliseconds - first.milliseconds
        // The day before, and as much as a month may be shorter than the mean.
        let early = length < 10 * 86_400_000 ? 86_400_000 : 4 * 86_400_000
        let ordinal = distance + Int64(early)
        return Int32(clamping: ordinal < 0 ? -1 : ordinal / length)
    }
}
