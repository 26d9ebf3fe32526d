import Ledger

/// What a subscriber pays for at an instant, and what that is worth a month.
struct Holding: Hashable {
    var productID: Symbol?
    var plan: PlanPeriod
    var currency: Symbol?
    var storefront: Symbol?
    var offer: OfferPhase
    /// The price of one, milliunits.
    var price: Int64?
    /// Seats and all charges of the period taken together.
    var quantity: Int64
    /// Milliunits a month; 0 where the price is not known.
    var monthly: Int64
    /// The same once an offer is over, by the price of the next charge; without one the same.
    var standardMonthly: Int64 = 0

    /// Whether a change from one to the other is a switch: another product or another currency.
    func isSwitch(to other: Holding) -> Bool {
        productID != other.productID || currency != other.currency
    }

    /// The monthly value of a price, exact but for one rounding to a milliunit, half away from 0.
    ///
    /// A month is a twelfth of 365.25 days, 30.4375 days. So a plan of n months is worth price / n,
    /// and a week price × 30.4375 / 7 = price × 487 / 112. The plan's nominal length counts, never
    /// the real one: an extension changes no value.
    static func monthly(price: Int64, quantity: Int64, plan: PlanPeriod) -> Int64 {
        let (numerator, denominator): (Int128, Int128) =
            switch plan {
            case .oneWeek: (487, 112)
            case .oneMonth: (1, 1)
            case .twoMonths: (1, 2)
            case .threeMonths: (1, 3)
            case .sixMonths: (1, 6)
            case .oneYear: (1, 12)
            }
        // 64 bits of price, 32 of quantity and 10 of plan: it always fits.
        let doubled = 2 * Int128(price) * Int128(quantity) * numerator
        let half = doubled < 0 ? -denominator : denominator
        return Int64(clamping: (doubled + half) / (2 * denominator))
    }
}

/// Looks up what is held, by charge and instant.
struct HoldingIndex {
    private let charges: ArraySlice<Charge>
    private let seatRefunds: [SeatRefund]
    private let rules: AppRules
    /// The charges that add seats to a period that another one covers.
    private let additional: [Int]
    private var cursor = 0

    init(_ history: History, _ rules: AppRules) {
        charges = history.charges
        seatRefunds = history.seatRefunds
        self.rules = rules
        additional = history.charges.indices.filter { history.charges[$0].isAdditional }
    }

    /// Whether what is held may change within a period.
    var hasSeats: Bool { !additional.isEmpty || !seatRefunds.isEmpty }

    /// The charge of a transaction; intervals name them mostly in order.
    mutating func place(of id: AppleID?) -> Int? {
        guard let id else { return nil }
        for step in 0..<charges.count {
            let place = (cursor + step) % charges.count
            guard charges[place].transactionID == id else { continue }
            cursor = place
            return place
        }
        return nil
    }

    /// The instants at which seats come or go.
    var seatChanges: [Timestamp] {
        var instants = seatRefunds.map(\.at)
        for place in additional {
            instants.append(charges[place].from)
            instants.append(charges[place].until)
            if let revokedAt = charges[place].revokedAt { instants.append(revokedAt) }
        }
        return instants.sorted()
    }

    /// What is held at an instant that the interval's transaction covers.
    func holding(_ interval: Interval, _ place: Int?, at instant: Timestamp) -> Holding {
        guard let place else {
            let product = interval.productID.flatMap { rules.products[$0] }
            let plan = product?.period ?? .oneMonth
            let monthly = interval.price.map {
                Holding.monthly(price: $0, quantity: 1, plan: plan)
            }
            return Holding(
                productID: interval.productID,
                plan: plan,
                currency: interval.currency,
                storefront: nil,
                offer: interval.offer,
                price: interval.price,
                quantity: 1,
                monthly: monthly ?? 0,
                standardMonthly: monthly ?? 0
            )
        }
        let plan = rules.plan(of: charges[place])
        var holding = Holding(
            productID: interval.productID,
            plan: plan,
            currency: interval.currency,
            storefront: charges[place].storefront,
            offer: interval.offer,
            price: interval.price,
            quantity: 0,
            monthly: 0
        )
        add(place, at: instant, to: &holding)
        for other in additional where other != place && covers(other, beside: place, instant) {
            guard charges[other].currency == holding.currency else { continue }
            add(other, at: instant, to: &holding)
        }
        return holding
    }

    /// Whether added seats are held at an instant that the charge of a period stands for.
    ///
    /// They are of that period, so they stay while it stands for more than it paid for: in grace,
    /// and while a renewal may still be under way.
    private func covers(_ other: Int, beside place: Int, _ instant: Timestamp) -> Bool {
        let seats = charges[other]
        let period = charges[place]
        guard seats.from <= instant, seats.ownership == .purchased,
            seats.revokedAt.map({ instant < $0 }) ?? true
        else { return false }
        return instant < seats.until
            || (instant >= period.until && seats.until >= period.until
                && seats.from >= period.from && seats.from < period.until)
    }

    private func add(_ place: Int, at instant: Timestamp, to holding: inout Holding) {
        let id = charges[place].transactionID
        let refunded = seatRefunds.last { $0.transactionID == id && $0.at <= instant }?.seats ?? 0
        let quantity = max(0, Int64(charges[place].quantity) - Int64(refunded))
        holding.quantity += quantity
        let value = charges[place].price.map {
            Holding.monthly(price: $0, quantity: quantity, plan: rules.plan(of: charges[place]))
        }
        let isOffer = charges[place].offer != .standard
        let standard = charges[place].renewalPrice.flatMap {
            isOffer
                ? Holding.monthly(
                    price: $0,
                    quantity: quantity,
                    plan: rules.standardPlan(of: charges[place])
                ) : nil
        }
        Self.add(value ?? 0, to: &holding.monthly)
        Self.add(standard ?? value ?? 0, to: &holding.standardMonthly)
    }

    private static func add(_ value: Int64, to sum: inout Int64) {
        let (result, overflow) = sum.addingReportingOverflow(value)
        sum = overflow ? .max : result
    }
}
