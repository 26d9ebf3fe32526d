import Ledger
import Testing

@testable import Projections

/// Refunds, values and seats.
@Suite struct ChurnMoneyTests {
    private static func refunded(_ period: TransactionFact, at day: Double) -> TransactionFact {
        var refunded = period
        refunded.revocationDate = ChurnLife.day(day)
        refunded.revocationReason = 1
        refunded.revocationType = .refundFull
        refunded.revocationPercentage = 100_000
        refunded.digest += 1000
        return refunded
    }

    // MARK: - Refunds

    @Test func aRefundOfAnOldPeriodIsMoneyAndNoChurn() {
        var life = ChurnLife()
        life.subscribe(renewals: 3)
        let old = Self.refunded(ChurnLife.period(2, 30, 60), at: 100)
        life.notify(.refund, nil, 100, old, ChurnLife.renewal())
        #expect(life.told(upTo: 119) == ["0 new_paid"])
        #expect(life.money == ["0 charge 9990", "100 refund full 9990"])
        #expect(life.moments.first { $0.kind == .charge }?.chargedAt?.count == 4)
    }

    @Test func aRefundOfTheCurrentPeriodIsChurnAndALaterRenewalAReturn() {
        var life = ChurnLife()
        life.subscribe()
        let current = Self.refunded(ChurnLife.period(1, 0, 30, reason: .purchase), at: 10)
        life.notify(.refund, nil, 10, current, ChurnLife.renewal())
        #expect(
            life.told(upTo: 29) == [
                "0 new_paid", "10 access_churn refund", "10 final_churn refund",
            ]
        )
        life.notify(.didRenew, nil, 30, ChurnLife.period(2, 30, 60), ChurnLife.renewal())
        #expect(life.told(upTo: 59).last == "30 reactivated returning")
    }

    @Test func aRefundThatARenewalFollowsWithinAWeekIsNoChurn() {
        var life = ChurnLife()
        life.subscribe()
        let current = Self.refunded(ChurnLife.period(1, 0, 30, reason: .purchase), at: 25)
        life.notify(.refund, nil, 25, current, ChurnLife.renewal())
        life.notify(.didRenew, nil, 30, ChurnLife.period(2, 30, 60), ChurnLife.renewal())
        #expect(life.told(upTo: 59) == ["0 new_paid"])
        #expect(life.money.contains("25 refund full 9990"))
    }

    @Test func aRefundUndoneInTimeIsCorrected() {
        var life = ChurnLife()
        life.subscribe()
        let period = ChurnLife.period(1, 0, 30, reason: .purchase)
        life.notify(.refund, nil, 10, Self.refunded(period, at: 10), ChurnLife.renewal())
        life.notify(.refundReversed, nil, 20, period, ChurnLife.renewal())
        #expect(
            life.told(upTo: 29) == [
                "0 new_paid", "10 access_churn refund", "10 final_churn refund",
                "20 churn_corrected refund_reversed",
            ]
        )
        #expect(
            life.money == [
                "0 charge 9990", "10 refund full 9990", "20 refund_reversed full 9990",
            ]
        )
        // The run goes on where it was.
        let corrected = life.moments.first { $0.kind == .churnCorrected }
        #expect(corrected?.spell == 1)
        #expect(corrected?.tenureDays == 20)
    }

    @Test func aRefundUndoneTooLateIsMoneyOnly() {
        var life = ChurnLife()
        life.subscribe()
        let period = ChurnLife.period(1, 0, 30, reason: .purchase)
        life.notify(.refund, nil, 10, Self.refunded(period, at: 10), ChurnLife.renewal())
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
        life.notify(.refundReversed, nil, 50, period)
        #expect(
            life.told() == ["0 new_paid", "10 access_churn refund", "10 final_churn refund"]
        )
        #expect(life.money.last == "50 refund_reversed full 9990")
    }

    @Test func aProratedRefundPaysBackItsShareRoundedOnce() {
        var life = ChurnLife()
        life.subscribe()
        var part = Self.refunded(ChurnLife.period(1, 0, 30, reason: .purchase), at: 10)
        part.revocationType = .refundProrated
        part.revocationPercentage = 33_333
        life.notify(.refund, nil, 10, part, ChurnLife.renewal())
        // 9990 × 0.33333 = 3329.9667.
        #expect(life.money == ["0 charge 9990", "10 refund prorated 3330"])
        #expect(life.told().contains("10 access_churn refund"))
    }

    @Test func aRefundThatDoesNotSayHowMuchIsWholeAndEstimated() {
        var life = ChurnLife()
        life.subscribe()
        var old = Self.refunded(ChurnLife.period(1, 0, 30, reason: .purchase), at: 10)
        old.revocationType = nil
        old.revocationPercentage = nil
        life.notify(.refund, nil, 10, old, ChurnLife.renewal())
        let refund = life.moments.first { $0.kind == .refund }
        #expect(refund?.amount == 9990)
        #expect(refund?.confidence == .estimated)
    }

    // MARK: - Switches and values

    @Test(arguments: [true, false]) func anUpgradeIsASwitchAndNeverARefund(isToldUpgraded: Bool) {
        var life = ChurnLife()
        life.subscribe()
        let year = ChurnLife.period(
            2,
            10,
            375,
            product: "gold.year",
            reason: .purchase,
            price: 99_990
        )
        life.notify(.didChangeRenewalPref, .upgrade, 10, year, ChurnLife.renewal())
        if isToldUpgraded {
            var old = Self.refunded(ChurnLife.period(1, 0, 30, reason: .purchase), at: 10)
            old.isUpgraded = true
            life.notify(.didRenew, nil, 11, old)
        }
        #expect(life.told(upTo: 300) == ["0 new_paid", "10 switched_out", "10 switched_in"])
        let movements = life.moments.filter { $0.movement != nil }
        #expect(movements.map(\.monthlyDelta).prefix(3) == [9990, -9990, 8333])
        #expect(movements.map(\.movement).prefix(3) == [.new, .contraction, .contraction])
        #expect(life.money == ["0 charge 9990", "10 charge 99990"])
    }

    @Test func anotherCurrencyIsASwitchOfItsOwnKind() {
        var life = ChurnLife()
        life.subscribe()
        let euro = ChurnLife.period(2, 30, 60, price: 8990) { $0.currency = "EUR" }
        life.notify(.didRenew, nil, 30, euro, ChurnLife.renewal())
        let switches = life.moments.filter { $0.kind == .switchedIn || $0.kind == .switchedOut }
        #expect(switches.map(\.movement) == [.currency, .currency])
        #expect(switches.map { $0.holding?.currency } == ["USD", "EUR"])
    }

    @Test func anOverlappingPurchaseOfTheSameProductIsNotCountedTwice() {
        var life = ChurnLife()
        life.subscribe()
        life.notify(
            .didChangeRenewalPref,
            nil,
            20,
            ChurnLife.period(2, 20, 50, reason: .purchase),
            ChurnLife.renewal()
        )
        #expect(life.told(upTo: 49) == ["0 new_paid"])
    }

    @Test(arguments: [
        (PlanPeriod.oneWeek, 1, 1_990, 8_653), (.oneMonth, 1, 9_990, 9_990),
        (.twoMonths, 1, 9_991, 4_996), (.threeMonths, 3, 10_000, 10_000),
        (.sixMonths, 1, 100, 17), (.oneYear, 1, 99_990, 8_333), (.oneYear, 1, 6, 1),
        (.oneYear, 1, -6, -1), (.oneYear, 1, 5, 0),
    ])
    func aMonthlyValueIsExactButForOneRounding(
        _ plan: PlanPeriod,
        quantity: Int64,
        price: Int64,
        expected: Int64
    ) {
        #expect(Holding.monthly(price: price, quantity: quantity, plan: plan) == expected)
    }

    @Test func aPriceBeyondEveryBoundIsClampedAndNeverTraps() {
        let most = Int64(Int32.max)
        #expect(Holding.monthly(price: .max, quantity: most, plan: .oneWeek) == .max)
        #expect(Holding.monthly(price: .min, quantity: most, plan: .oneWeek) == .min)
        #expect(MoneyMoments.amount(.max, quantity: most, percentage: .max) == nil)
    }

    @Test func anExtensionIsNeitherRenewalNorValue() {
        var life = ChurnLife()
        life.subscribe()
        life.notify(
            .renewalExtended,
            nil,
            20,
            ChurnLife.period(1, 0, 60, reason: .purchase) { $0.digest += 1 },
            ChurnLife.renewal()
        )
        #expect(life.told(upTo: 59) == ["0 new_paid"])
        life.notify(
            .expired,
            .voluntary,
            60,
            nil,
            ChurnLife.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
            }
        )
        let churn = life.moments.first { $0.kind == .accessChurn }
        #expect(churn?.isExtended == true)
        #expect(churn?.monthlyDelta == -9990)
        #expect(churn?.paidPeriods == 1)
    }

    @Test func aCommitmentIsWorthItsMonthlyChargeAndFailsWithoutGrace() {
        var life = ChurnLife()
        let committed = { (fact: inout TransactionFact) in
            fact.billingPlanType = .monthly
            fact.commitmentExpiresDate = ChurnLife.day(365)
            fact.totalBillingPeriods = 12
        }
        life.notify(
            .subscribed,
            .initialBuy,
            0,
            ChurnLife.period(1, 0, 30, product: "gold.year", reason: .purchase, change: committed),
            ChurnLife.renewal()
        )
        for number in 1...3 {
            let start = Double(30 * number)
            let month = ChurnLife.period(
                UInt64(number + 1),
                start,
                start + 30,
                product: "gold.year",
                change: committed
            )
            // From month 3 on the customer has cancelled the commitment; it renews all the same.
            life.notify(
                .didRenew,
                nil,
                start,
                month,
                ChurnLife.renewal { $0.commitmentAutoRenewStatus = number < 3 ? 1 : 0 }
            )
        }
        #expect(life.told(upTo: 119) == ["0 new_paid"])
        #expect(life.moments.first?.holding?.monthly == 9990)
        life.notify(
            .didFailToRenew,
            nil,
            120,
            nil,
            ChurnLife.renewal { $0.isInBillingRetryPeriod = true }
        )
        #expect(life.told(upTo: 200) == ["0 new_paid", "120 access_churn involuntary"])
        #expect(life.told().last == "210 final_churn involuntary")
    }

    @Test func seatsAddToTheValueAndTheirRefundTakesThemAway() {
        var life = ChurnLife()
        life.notify(
            .subscribed,
            .initialBuy,
            0,
            ChurnLife.period(1, 0, 30, reason: .purchase) { $0.quantity = 5 },
            ChurnLife.renewal()
        )
        let seats = ChurnLife.period(2, 10, 30, reason: .purchase) {
            $0.quantity = 2
            $0.additionalReason = "SEAT_ADDITION"
        }
        life.notify(.didChangeRenewalPref, nil, 10, seats, ChurnLife.renewal())
        var fewer = seats
        fewer.revokedSeatQuantity = 1
        fewer.digest += 1
        life.notify(.refund, nil, 20, fewer)
        let values = life.moments.filter { $0.at < ChurnLife.day(30) && $0.monthlyDelta != 0 }
        #expect(values.map(\.kind) == [.newPaid, .priceChanged, .priceChanged])
        #expect(values.map { $0.holding?.quantity } == [5, 7, 6])
        #expect(values.map(\.monthlyDelta) == [49_950, 19_980, -9_990])
        #expect(life.money.contains("20 refund seats 9990"))
    }

    /// They are of the period, whatever stands for it: no seat is given up because a charge fails.
    @Test(arguments: [true, false])
    func addedSeatsAreHeldInGraceAndLostWithTheRest(hasGrace: Bool) {
        var life = ChurnLife()
        let period = ChurnLife.period(1, 0, 30, reason: .purchase) { $0.quantity = 2 }
        life.notify(.subscribed, .initialBuy, 0, period, ChurnLife.renewal())
        let seats = ChurnLife.period(2, 10, 30, reason: .purchase) {
            $0.quantity = 3
            $0.additionalReason = "SEAT_ADDITION"
        }
        life.notify(.didChangeRenewalPref, nil, 10, seats, ChurnLife.renewal())
        if hasGrace {
            let grace = ChurnLife.renewal {
                $0.isInBillingRetryPeriod = true
                $0.gracePeriodExpiresDate = ChurnLife.day(46)
            }
            life.notify(.didFailToRenew, .gracePeriod, 30, period, grace)
            life.notify(.gracePeriodExpired, nil, 46, period, grace)
        }
        // Without any news a renewal may be under way for some hours, and then it has lapsed.
        let values = life.moments.filter { $0.at < ChurnLife.day(47) && $0.monthlyDelta != 0 }
        #expect(
            values.map(\.kind) == [
                .newPaid, .priceChanged, hasGrace ? .accessChurn : .lapsedUnconfirmed,
            ]
        )
        #expect(values.map(\.monthlyDelta) == [19_980, 29_970, -49_950])
        #expect(values.last.map { $0.at >= ChurnLife.day(30) } == true)
    }

    /// Seats that were added to the period before are none of the present one's.
    @Test func addedSeatsEndWithTheirPeriodWhereItIsRenewedWithoutThem() {
        var life = ChurnLife()
        let period = ChurnLife.period(1, 0, 30, reason: .purchase) { $0.quantity = 2 }
        life.notify(.subscribed, .initialBuy, 0, period, ChurnLife.renewal())
        let seats = ChurnLife.period(2, 10, 30, reason: .purchase) {
            $0.quantity = 3
            $0.additionalReason = "SEAT_ADDITION"
        }
        life.notify(.didChangeRenewalPref, nil, 10, seats, ChurnLife.renewal())
        let next = ChurnLife.period(3, 30, 60) { $0.quantity = 2 }
        life.notify(.didRenew, nil, 30, next, ChurnLife.renewal())
        let values = life.moments.filter { $0.at < ChurnLife.day(59) && $0.monthlyDelta != 0 }
        #expect(values.map(\.monthlyDelta) == [19_980, 29_970, -29_970])
        #expect(values.last?.at == ChurnLife.day(30))
    }

    /// A period that ends when it begins, or before, is nobody's subscription.
    @Test(arguments: [0.0, -5.0])
    func anEmptyPeriodMakesNoSubscriberAndNoValue(length: Double) {
        var life = ChurnLife()
        let period = ChurnLife.period(1, 0, length, reason: .purchase)
        life.notify(.subscribed, .initialBuy, 0, period, ChurnLife.renewal())
        #expect(life.moments.allSatisfy { $0.kind != .newPaid && $0.monthlyDelta == 0 })
    }

    // MARK: - Whose

    @Test func aFamilyMemberIsNobodysRevenue() {
        var life = ChurnLife()
        life.notify(
            .subscribed,
            .initialBuy,
            0,
            ChurnLife.period(1, 0, 30, reason: .purchase) { $0.ownership = .familyShared },
            ChurnLife.renewal()
        )
        #expect(life.moments.isEmpty)
    }

    // MARK: - Cohorts

    @Test func aCohortHasThePeriodsThatWerePaidAndNotRefunded() {
        var life = ChurnLife()
        life.subscribe(renewals: 2)
        // A failed charge, made good on day 130: period 3 was never paid.
        life.notify(.didRenew, .billingRecovery, 130, ChurnLife.period(8, 130, 160))
        life.notify(.didRenew, nil, 160, ChurnLife.period(9, 160, 190))
        let old = Self.refunded(ChurnLife.period(2, 30, 60), at: 40)
        life.notify(.refund, nil, 40, old)
        let cohort = life.moments.first { $0.kind == .cohort }
        #expect(cohort?.at == ChurnLife.day(0))
        #expect(cohort?.paidOrdinals == [0, 2, 4, 5])
    }
}
