import Ledger
import Testing

@testable import Projections

/// Faults that reading the rules anew has found, as the right values (lifecycle 8.2, 4.4).
@Suite struct ChurnSettledTests {
    private func sum(_ life: ChurnLife, _ kind: Moment.Kind) -> Int64 {
        life.moments.filter { $0.kind == kind }.compactMap(\.amount).reduce(0, +)
    }

    private static func seats(
        _ revoked: Int32?,
        _ change: (inout TransactionFact) -> Void = { _ in }
    )
        -> TransactionFact
    {
        ChurnLife.period(1, 0, 30) {
            $0.quantity = 5
            $0.revokedSeatQuantity = revoked
            change(&$0)
        }
    }

    private static func company() -> ChurnLife {
        var life = ChurnLife()
        life.notify(.subscribed, .initialBuy, 0, seats(nil), ChurnLife.renewal())
        return life
    }

    @Test func noMoreIsPaidBackThanWasCharged() {
        var life = Self.company()
        life.notify(.refund, .seats, 2, Self.seats(1))
        life.notify(.refund, nil, 20, Self.seats(1) { $0.revocationDate = ChurnLife.day(20) })
        #expect(sum(life, .refund) == 5 * 9990)
        // Undone, the whole of it but the seat.
        life.notify(.refundReversed, nil, 25, Self.seats(1))
        #expect(sum(life, .refund) == 5 * 9990)
        #expect(sum(life, .refundReversed) == 4 * 9990)
    }

    /// The number of refunded seats may come with the refund of the whole.
    @Test(arguments: [Int32(1), 5])
    func seatsThatAreToldOfWithTheWholeAreNotPaidBackOnceMore(_ seats: Int32) {
        var life = Self.company()
        life.notify(.refund, nil, 20, Self.seats(seats) { $0.revocationDate = ChurnLife.day(19) })
        #expect(sum(life, .refund) == 5 * 9990)
    }

    @Test(arguments: [Int32(2), nil])
    func aRefundOfSeatsThatIsUndoneIsBooked(_ left: Int32?) {
        var life = Self.company()
        life.notify(.refund, .seats, 2, Self.seats(3))
        life.notify(.refundReversed, nil, 5, Self.seats(left))
        let back = Int64(3 - (left ?? 0))
        #expect(sum(life, .refund) == 3 * 9990)
        #expect(sum(life, .refundReversed) == back * 9990)
        let held = life.moments.filter { $0.at <= ChurnLife.day(5) }.reduce(0) {
            $0 + $1.monthlyDelta
        }
        #expect(held == (2 + back) * 9990)
        #expect(life.moments.first { $0.kind == .cohort }?.paidAmounts == [(2 + back) * 9990])
    }

    @Test func aPartThatWasPaidBackStaysAPartWhereItIsUndone() {
        var life = ChurnLife()
        life.subscribe()
        let part = ChurnLife.period(1, 0, 30) {
            $0.revocationDate = ChurnLife.day(10)
            $0.revocationType = .refundProrated
            $0.revocationPercentage = 31_000
        }
        life.notify(.refund, nil, 10, part)
        life.notify(.refundReversed, nil, 12, ChurnLife.period(1, 0, 30))
        let money = life.moments.filter { $0.kind == .refund || $0.kind == .refundReversed }
        #expect(money.map(\.cause) == ["prorated", "prorated"])
        #expect(money.map(\.amount) == [3097, 3097])
    }

    /// A month of a commitment says nothing of how long the same product is, paid at once.
    @Test func aYearPaidAtOnceAfterACommitmentIsWorthATwelfth() {
        var life = ChurnLife()
        life.rules.products = [:]
        let month = ChurnLife.period(1, 0, 30, product: "any") {
            $0.billingPlanType = .monthly
            $0.commitmentExpiresDate = ChurnLife.day(365)
        }
        life.notify(.subscribed, .initialBuy, 0, month, ChurnLife.renewal())
        let year = ChurnLife.period(2, 30, 395, product: "any", price: 99_990)
        life.notify(.didRenew, nil, 30, year, ChurnLife.renewal())
        let changed = life.moments.first { $0.kind == .priceChanged }
        #expect(changed?.holding?.monthly == 8333)
    }

    @Test func aCohortHoldsOneCurrencyAlone() {
        var life = ChurnLife()
        life.subscribe()
        let euros = ChurnLife.period(2, 30, 60) {
            $0.currency = "EUR"
            $0.price = 8990
        }
        life.notify(.didRenew, nil, 30, euros, ChurnLife.renewal())
        let cohort = life.moments.first { $0.kind == .cohort }
        #expect(cohort?.paidOrdinals == [0, 1])
        #expect(cohort?.paidAmounts == [9990, 0])
    }

    @Test func aChargeCountsInThePeriodInWhichItWasMade() {
        // An extension by half a month moves all that follows.
        var extended = ChurnLife()
        extended.notify(
            .subscribed,
            .initialBuy,
            0,
            ChurnLife.period(1, 0, 30),
            ChurnLife.renewal()
        )
        extended.notify(.renewalExtended, nil, 10, ChurnLife.period(1, 0, 45), ChurnLife.renewal())
        for number in 0..<3 {
            let start = 45 + Double(number) * 30
            let period = ChurnLife.period(UInt64(number + 2), start, start + 30)
            extended.notify(.didRenew, nil, start, period, ChurnLife.renewal())
        }
        let cohort = extended.moments.first { $0.kind == .cohort }
        #expect(cohort?.paidOrdinals == [0, 1, 2, 3])
        #expect(cohort?.paidAmounts == [9990, 9990, 9990, 9990])
        // An upgrade in the midst of the first month is charged in it.
        var upgraded = ChurnLife()
        upgraded.subscribe()
        for number in 0..<3 {
            let start = 16 + Double(number) * 30
            let period = ChurnLife.period(
                UInt64(number + 2),
                start,
                start + 30,
                product: "gold.year",
                reason: number == 0 ? .purchase : .renewal
            )
            upgraded.notify(
                number == 0 ? .didChangeRenewalPref : .didRenew,
                number == 0 ? .upgrade : nil,
                start,
                period,
                ChurnLife.renewal()
            )
        }
        let moved = upgraded.moments.first { $0.kind == .cohort }
        #expect(moved?.paidAmounts == [2 * 9990, 9990, 9990])
    }

    @Test func aRefundOfWhatWasUpgradedIsARefund() {
        var life = ChurnLife()
        life.subscribe()
        life.notify(
            .didChangeRenewalPref,
            .upgrade,
            10,
            ChurnLife.period(2, 10, 40, product: "silver.month", reason: .purchase),
            ChurnLife.renewal()
        )
        let refunded = ChurnLife.period(1, 0, 30) {
            $0.revocationDate = ChurnLife.day(12)
            $0.isUpgraded = true
        }
        var stamped = life
        stamped.notify(.didChangeRenewalStatus, nil, 12, refunded)
        #expect(sum(stamped, .refund) == 0, "a date alone is the upgrade's")
        life.notify(.refund, nil, 12, refunded)
        #expect(sum(life, .refund) == 9990)
    }

    @Test func whoPaidBeforeAndComesBackByATrialIsNoNewBusiness() {
        var life = ChurnLife()
        life.subscribe()
        life.notify(
            .expired,
            .voluntary,
            30,
            nil,
            ChurnLife.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
            }
        )
        let free = ChurnLife.period(2, 100, 130, reason: .purchase, price: 0) {
            $0.offerType = 4
            $0.offerDiscountType = .freeTrial
        }
        life.notify(.subscribed, .resubscribe, 100, free, ChurnLife.renewal())
        life.notify(.didRenew, nil, 130, ChurnLife.period(3, 130, 160), ChurnLife.renewal())
        let converted = life.moments.first { $0.kind == .trialConverted }
        #expect(converted?.movement == .reactivation)
    }

    /// Until the retry time is over a payment may still make it a conversion.
    @Test func whatATrialComesToIsOpenForAsLongAsItCanBePaid() {
        var life = ChurnLife()
        life.notify(.subscribed, .initialBuy, 0, ChurnLife.trial(1, 0, 7), ChurnLife.renewal())
        life.notify(
            .expired,
            .voluntary,
            7,
            nil,
            ChurnLife.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
            }
        )
        let trial = life.moments.first { $0.kind == .trialStarted }
        #expect(trial?.cause == "voluntary")
        #expect(trial?.relatedAt == ChurnLife.day(67))
    }

    @Test func aLogThatBeginsInTheMidstOfALifeSaysSo() {
        var life = ChurnLife()
        life.notify(.didRenew, nil, 30, ChurnLife.period(2, 30, 60), ChurnLife.renewal())
        let first = life.moments.first { $0.kind == .newPaid }
        #expect(first?.cause == "history_missing")
        #expect(!life.moments.contains { $0.kind == .cohort }, "nobody knows which")
        var whole = ChurnLife()
        whole.subscribe(renewals: 1)
        #expect(whole.moments.first { $0.kind == .newPaid }?.cause == nil)
        #expect(whole.moments.contains { $0.kind == .cohort })
    }

    @Test func theEndOfARetryWithoutNewsIsTheClocks() {
        var life = ChurnLife()
        life.subscribe()
        let failing = ChurnLife.renewal {
            $0.isInBillingRetryPeriod = true
            $0.expirationIntent = 2
        }
        life.notify(.didFailToRenew, nil, 30, ChurnLife.period(1, 0, 30), failing)
        let final = life.moments.first { $0.kind == .finalChurn }
        #expect(final?.at == ChurnLife.day(90))
        #expect(final?.confidence == .clock)
    }
}
