import Ledger
import Testing

@testable import Projections

/// Who pays and may leave, values without offers, and what cohorts brought.
@Suite struct ChurnRiskTests {
    /// The moments about risk as "day kind reason product".
    private static func risks(_ life: ChurnLife) -> [String] {
        life.moments.filter { $0.riskDelta != 0 }.map { moment in
            let day = (moment.at.milliseconds - ChurnLife.t0.milliseconds) / 86_400_000
            let product = moment.holding?.productID.map { "\($0)" } ?? "?"
            return "\(day) \(moment.kind.rawValue) \(moment.cause ?? "?") \(product)"
        }
    }

    private static let off = ChurnLife.renewal { $0.autoRenewStatus = 0 }

    @Test func whoeverSwitchesAutoRenewOffIsAtRiskUntilTheyLeaveOrStay() {
        var life = ChurnLife()
        life.subscribe()
        life.notify(.didChangeRenewalStatus, .autoRenewDisabled, 10, nil, Self.off)
        life.notify(.didChangeRenewalStatus, .autoRenewEnabled, 12, nil, ChurnLife.renewal())
        life.notify(.didChangeRenewalStatus, .autoRenewDisabled, 20, nil, Self.off)
        life.notify(
            .expired,
            .voluntary,
            30.01,
            ChurnLife.period(1, 0, 30, reason: .purchase),
            ChurnLife.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
            }
        )
        #expect(
            Self.risks(life) == [
                "10 at_risk intent gold.month", "12 risk_over intent gold.month",
                "20 at_risk intent gold.month", "30 risk_over intent gold.month",
            ]
        )
    }

    /// `autoRenewStatus` stays on, since the next charge will be made; only the commitment's own
    /// status tells that the customer will leave at its end.
    @Test func whoeverCancelsACommitmentIsAtRiskThoughItsChargesGoOn() {
        var life = ChurnLife()
        func month(_ id: UInt64, _ from: Double) -> TransactionFact {
            ChurnLife.period(id, from, from + 30, reason: id == 1 ? .purchase : .renewal) {
                $0.billingPlanType = .monthly
                $0.commitmentExpiresDate = ChurnLife.day(360)
            }
        }
        let on = ChurnLife.renewal { $0.commitmentAutoRenewStatus = 1 }
        let off = ChurnLife.renewal { $0.commitmentAutoRenewStatus = 0 }
        life.notify(.subscribed, .initialBuy, 0, month(1, 0), on)
        life.notify(.didChangeRenewalStatus, .autoRenewDisabled, 10, month(1, 0), off)
        life.notify(.didRenew, nil, 30, month(2, 30), off)
        life.notify(.didChangeRenewalStatus, .autoRenewEnabled, 40, month(2, 30), on)
        #expect(
            Self.risks(life) == [
                "10 at_risk intent gold.month", "40 risk_over intent gold.month",
            ]
        )
    }

    @Test func aFailedChargeIsTroubleFirstAndThenGrace() {
        var life = ChurnLife()
        life.subscribe()
        let failing = ChurnLife.renewal {
            $0.isInBillingRetryPeriod = true
            $0.gracePeriodExpiresDate = ChurnLife.day(46)
        }
        life.notify(.didFailToRenew, .gracePeriod, 29, nil, failing)
        life.notify(.didRenew, .billingRecovery, 40, ChurnLife.period(2, 30, 60))
        let told = Self.risks(life).filter { !$0.hasPrefix("60") }
        #expect(
            told == [
                "29 at_risk billing gold.month", "30 risk_over billing gold.month",
                "30 at_risk grace gold.month", "40 risk_over grace gold.month",
            ]
                || told == [
                    "29 at_risk billing gold.month", "30 risk_over billing gold.month",
                ]
        )
    }

    @Test func consentThatIsDueIsARiskOfItsOwn() {
        var life = ChurnLife()
        life.subscribe()
        life.notify(
            .priceIncrease,
            .pending,
            10,
            nil,
            ChurnLife.renewal { $0.priceIncreaseStatus = 0 }
        )
        life.notify(
            .priceIncrease,
            .accepted,
            15,
            nil,
            ChurnLife.renewal { $0.priceIncreaseStatus = 1 }
        )
        #expect(
            Self.risks(life) == ["10 at_risk price gold.month", "15 risk_over price gold.month"]
        )
    }

    @Test func aRiskGoesOverToTheProductThatIsHeld() {
        var life = ChurnLife()
        life.subscribe()
        life.notify(.didChangeRenewalStatus, .autoRenewDisabled, 10, nil, Self.off)
        let year = ChurnLife.period(2, 15, 380, product: "gold.year", reason: .purchase)
        life.notify(.didChangeRenewalPref, .upgrade, 15, year, Self.off)
        #expect(
            Self.risks(life).prefix(3) == [
                "10 at_risk intent gold.month", "15 risk_over intent gold.month",
                "15 at_risk intent gold.year",
            ]
        )
    }

    @Test func atEveryInstantNobodyIsAtRiskTwiceOrWithoutPaying() {
        var seen: [String: Int] = [:]
        for seed in UInt64(3000)..<3600 {
            var (risk, active): (Int32, Int32) = (0, 0)
            for moment in ChurnRandomLife.life(seed: seed).moments {
                risk += moment.riskDelta
                active += moment.delta
                if moment.kind == .atRisk {
                    seen[moment.cause ?? "", default: 0] += 1
                    #expect(active == 1, "seed \(seed)")
                }
                #expect(risk == 0 || risk == 1, "seed \(seed)")
            }
            #expect(active == 1 || risk == 0, "seed \(seed)")
        }
        for reason in ["intent", "billing", "grace", "price"] {
            #expect(seen[reason, default: 0] > 10, "\(reason)")
        }
    }

    // MARK: - Values without offers

    @Test func anOfferIsWorthItsPriceAndTheNextChargeBesides() {
        var life = ChurnLife()
        let next = ChurnLife.renewal {
            $0.renewalPrice = 12_990
            $0.autoRenewProductID = "gold.month"
        }
        let intro = ChurnLife.period(1, 0, 30, reason: .purchase, price: 1990) {
            $0.offerType = 1
            $0.offerDiscountType = .payAsYouGo
        }
        life.notify(.subscribed, .initialBuy, 0, intro, next)
        life.notify(.didRenew, nil, 30, ChurnLife.period(2, 30, 60, price: 12_990), next)
        let moments = life.moments.filter { $0.at < ChurnLife.day(60) && $0.movement != nil }
        #expect(moments.map(\.kind) == [.newPaid, .priceChanged])
        #expect(moments.map(\.monthlyDelta) == [1990, 11_000])
        #expect(moments.map(\.standardDelta) == [12_990, 0])
    }

    @Test func theNextPriceOfAnotherProductSaysNothingOfThisOne() {
        var life = ChurnLife()
        let pending = ChurnLife.renewal {
            $0.renewalPrice = 5000
            $0.autoRenewProductID = "silver.month"
        }
        let intro = ChurnLife.period(1, 0, 30, reason: .purchase, price: 1990) {
            $0.offerType = 1
            $0.offerDiscountType = .payAsYouGo
        }
        life.notify(.subscribed, .initialBuy, 0, intro, pending)
        #expect(life.moments.first?.standardDelta == 1990)
    }

    @Test func valuesWithoutOffersComeBackToNothing() {
        for seed in UInt64(4000)..<4300 {
            var standard: Int64 = 0
            var active: Int32 = 0
            for moment in ChurnRandomLife.life(seed: seed).moments {
                standard += moment.standardDelta
                active += moment.delta
                #expect(active == 1 || standard == 0, "seed \(seed)")
                #expect(standard >= 0, "seed \(seed)")
            }
        }
    }

    // MARK: - Retained revenue

    @Test func aCohortHasWhatItsPeriodsBroughtLessWhatWasPaidBack() {
        var life = ChurnLife()
        life.subscribe(renewals: 1)
        let dear = ChurnLife.period(3, 60, 90, price: 12_990)
        life.notify(.didRenew, nil, 60, dear, ChurnLife.renewal())
        var refunded = ChurnLife.period(2, 30, 60)
        refunded.revocationDate = ChurnLife.day(70)
        refunded.digest += 1
        life.notify(.refund, nil, 70, refunded)
        let cohort = life.moments.first { $0.kind == .cohort }
        #expect(cohort?.paidOrdinals == [0, 2])
        #expect(cohort?.paidAmounts == [9990, 12_990])
    }

    @Test func anAssignedSeatIsNobodysRevenue() {
        var life = ChurnLife()
        life.notify(
            .subscribed,
            .initialBuy,
            0,
            ChurnLife.period(1, 0, 30, reason: .purchase) { $0.ownership = .assigned },
            ChurnLife.renewal()
        )
        #expect(life.moments.isEmpty)
    }
}
