import Ledger
import Testing

@testable import Projections

/// Scenarios of the lifecycle reference, section 10, and of public bug reports, as churn sees them.
@Suite struct ChurnScenarioTests {
    // MARK: - Leaving

    @Test func switchingAutoRenewOffIsNoChurnUntilThePeriodEnds() {
        var life = ChurnLife()
        life.subscribe()
        life.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            3,
            nil,
            ChurnLife.renewal { $0.autoRenewStatus = 0 }
        )
        #expect(life.told(upTo: 10) == ["0 new_paid"])
        // The end is foretold, but what is foretold takes effect on day 30.
        #expect(life.told(upTo: 29.9) == ["0 new_paid"])
        #expect(life.told() == ["0 new_paid", "30 lapsed_unconfirmed voluntary"])
        life.notify(
            .expired,
            .voluntary,
            30,
            ChurnLife.period(1, 0, 30, reason: .purchase),
            ChurnLife.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
            }
        )
        #expect(
            life.told() == ["0 new_paid", "30 access_churn voluntary", "30 final_churn voluntary"]
        )
    }

    @Test func autoRenewSwitchedOnAgainLeavesNoTrace() {
        var life = ChurnLife()
        life.subscribe()
        life.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            3,
            nil,
            ChurnLife.renewal { $0.autoRenewStatus = 0 }
        )
        life.notify(.didChangeRenewalStatus, .autoRenewEnabled, 5, nil, ChurnLife.renewal())
        life.notify(.didRenew, nil, 30, ChurnLife.period(2, 30, 60), ChurnLife.renewal())
        #expect(life.told(upTo: 59) == ["0 new_paid"])
    }

    @Test func oneFailedCardIsOneChurnWhateverTheNumberOfSignals() {
        var life = ChurnLife()
        life.rules.gracePeriodDays = nil
        life.subscribe()
        let failing = ChurnLife.renewal {
            $0.isInBillingRetryPeriod = true
            $0.expirationIntent = 2
        }
        life.notify(.didFailToRenew, nil, 30, ChurnLife.period(1, 0, 30), failing)
        life.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            31,
            nil,
            ChurnLife.renewal {
                $0.autoRenewStatus = 0
                $0.isInBillingRetryPeriod = true
                $0.expirationIntent = 2
            }
        )
        life.notify(
            .expired,
            .billingRetry,
            90,
            nil,
            ChurnLife.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 2
            }
        )
        #expect(
            life.told() == [
                "0 new_paid", "30 access_churn involuntary", "90 final_churn involuntary",
            ]
        )
        let churn = life.moments.filter { $0.kind == .accessChurn }
        #expect(churn.map(\.delta) == [-1])
        #expect(churn.first?.monthlyDelta == -9990)
        #expect(churn.first?.tenureDays == 30)
        #expect(churn.first?.paidPeriods == 1)
    }

    @Test func graceKeepsASubscriberAndItsEndLosesThem() {
        var life = ChurnLife()
        life.subscribe()
        let grace = ChurnLife.renewal {
            $0.isInBillingRetryPeriod = true
            $0.gracePeriodExpiresDate = ChurnLife.day(46)
        }
        life.notify(.didFailToRenew, .gracePeriod, 30, ChurnLife.period(1, 0, 30), grace)
        #expect(life.told(upTo: 45) == ["0 new_paid"])
        life.notify(.gracePeriodExpired, nil, 46, nil, grace)
        #expect(life.told(upTo: 50) == ["0 new_paid", "46 access_churn involuntary"])
        life.notify(
            .didRenew,
            .billingRecovery,
            70,
            ChurnLife.period(2, 70, 100),
            ChurnLife.renewal()
        )
        #expect(
            life.told(upTo: 99) == [
                "0 new_paid", "46 access_churn involuntary", "70 recovered after_grace",
            ]
        )
        #expect(life.moments.last { $0.kind == .recovered }?.spell == 1)
    }

    @Test func recoveryInGraceNeverLeaves() {
        var life = ChurnLife()
        life.subscribe()
        let grace = ChurnLife.renewal {
            $0.isInBillingRetryPeriod = true
            $0.gracePeriodExpiresDate = ChurnLife.day(46)
        }
        life.notify(.didFailToRenew, .gracePeriod, 30, ChurnLife.period(1, 0, 30), grace)
        let paid = ChurnLife.period(2, 35, 60)
        life.notify(.didRenew, .billingRecovery, 35, paid, ChurnLife.renewal())
        #expect(life.told(upTo: 59) == ["0 new_paid", "35 recovered in_grace"])
        #expect(life.moments.filter { $0.kind == .recovered }.map(\.delta) == [0])
    }

    @Test func aLostExpiryIsALapseThatOnlyTheClockKnows() {
        var life = ChurnLife()
        life.subscribe()
        #expect(life.told(upTo: 30) == ["0 new_paid"])
        let leeway = 30 + 2.0 / 24
        #expect(life.told() == ["0 new_paid", "\(leeway) lapsed_unconfirmed other"])
        // A renewal that came late, and whose period we hear of now, shows that it was none.
        life.notify(.didRenew, nil, 31, ChurnLife.period(2, 31, 61), ChurnLife.renewal())
        #expect(
            life.told(upTo: 60) == [
                "0 new_paid", "\(leeway) lapsed_unconfirmed other",
                "31 churn_corrected late_renewal",
            ]
        )
        // The renewal that closes the gap takes it all back.
        life.notify(.didRenew, nil, 31, ChurnLife.period(3, 30, 31), ChurnLife.renewal())
        #expect(life.told(upTo: 60) == ["0 new_paid"])
    }

    @Test func noConsentIsPriceChurn() {
        var life = ChurnLife()
        life.subscribe()
        let pending = ChurnLife.renewal { $0.priceIncreaseStatus = 0 }
        life.notify(.priceIncrease, .pending, 10, ChurnLife.period(1, 0, 30), pending)
        life.notify(
            .expired,
            .priceIncrease,
            30,
            nil,
            ChurnLife.renewal {
                $0.expirationIntent = 3
                $0.priceIncreaseStatus = 0
            }
        )
        #expect(life.told() == ["0 new_paid", "30 access_churn price", "30 final_churn price"])
        #expect(life.moments.first { $0.kind == .accessChurn }?.isPriceInfluenced == true)
    }

    @Test func aCancellationAfterAPriceNoticeIsVoluntaryAndPriceInfluenced() {
        var life = ChurnLife()
        life.subscribe()
        let informed = ChurnLife.renewal { $0.priceIncreaseStatus = 1 }
        life.notify(.priceIncrease, .accepted, 10, ChurnLife.period(1, 0, 30), informed)
        life.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            12,
            nil,
            ChurnLife.renewal { $0.autoRenewStatus = 0 }
        )
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
        let churn = life.moments.first { $0.kind == .accessChurn }
        #expect(churn?.cause == "voluntary")
        #expect(churn?.isPriceInfluenced == true)
    }

    // MARK: - Coming back

    private static func expired() -> ChurnLife {
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
        return life
    }

    @Test(arguments: [(40.0, false, "returning"), (120, false, "new_run"), (120, true, "win_back")])
    func whoeverComesBackIsReactivated(_ day: Double, isWinBack: Bool, cause: String) {
        var life = Self.expired()
        let period = ChurnLife.period(9, day, day + 30, reason: .purchase) {
            if isWinBack { $0.offerType = 4 }
        }
        life.notify(.subscribed, .resubscribe, day, period, ChurnLife.renewal())
        #expect(
            life.told(upTo: day + 29) == [
                "0 new_paid", "30 access_churn voluntary", "30 final_churn voluntary",
                "\(Int(day)) reactivated \(cause)",
            ]
        )
        let last = life.moments.first { $0.kind == .reactivated }
        #expect(last?.spell == 2)
        #expect(last?.movement == .reactivation)
    }

    @Test func comingBackToAnotherProductIsNoSwitch() {
        var life = Self.expired()
        let period = ChurnLife.period(9, 40, 70, product: "silver.month", reason: .purchase)
        life.notify(.subscribed, .resubscribe, 40, period, ChurnLife.renewal())
        #expect(life.told(upTo: 60).last == "40 reactivated returning")
        #expect(!life.moments.contains { $0.kind == .switchedIn })
    }

    @Test func aNewPurchaseConfirmsTheLapseBeforeIt() {
        var life = ChurnLife()
        life.subscribe()
        let period = ChurnLife.period(9, 50, 80, reason: .purchase)
        life.notify(.subscribed, .resubscribe, 50, period, ChurnLife.renewal())
        let leeway = 30 + 2.0 / 24
        #expect(
            life.told(upTo: 79) == [
                "0 new_paid", "\(leeway) access_churn other", "\(leeway) final_churn other",
                "50 reactivated returning",
            ]
        )
    }

    // MARK: - Trials

    @Test func aTrialThatRenewsIsConverted() {
        var life = ChurnLife()
        life.notify(.subscribed, .initialBuy, 0, ChurnLife.trial(1, 0, 7), ChurnLife.renewal())
        #expect(life.told(upTo: 6) == ["0 trial_started"])
        life.notify(.didRenew, nil, 7, ChurnLife.period(2, 7, 37), ChurnLife.renewal())
        #expect(life.told(upTo: 36) == ["0 trial_started", "7 trial_converted"])
        #expect(life.moments.first?.cause == "converted")
        #expect(life.moments.first?.relatedAt == ChurnLife.day(7))
        #expect(life.money == ["7 charge 9990"])
    }

    @Test func aTrialWhoseFirstChargeFailsAndRecoversIsConvertedAndNobodyChurned() {
        var life = ChurnLife()
        life.notify(.subscribed, .initialBuy, 0, ChurnLife.trial(1, 0, 7), ChurnLife.renewal())
        let failing = ChurnLife.renewal { $0.isInBillingRetryPeriod = true }
        life.notify(.didFailToRenew, .gracePeriod, 7, ChurnLife.trial(1, 0, 7), failing)
        #expect(life.told(upTo: 20) == ["0 trial_started"])
        life.notify(
            .didRenew,
            .billingRecovery,
            30,
            ChurnLife.period(2, 30, 60),
            ChurnLife.renewal()
        )
        #expect(life.told(upTo: 59) == ["0 trial_started", "30 trial_converted"])
    }

    @Test func aTrialThatIsNeverPaidIsLostAndNoChurn() {
        var life = ChurnLife()
        life.notify(.subscribed, .initialBuy, 0, ChurnLife.trial(1, 0, 7), ChurnLife.renewal())
        let failing = ChurnLife.renewal {
            $0.isInBillingRetryPeriod = true
            $0.expirationIntent = 2
        }
        life.notify(.didFailToRenew, nil, 7, ChurnLife.trial(1, 0, 7), failing)
        life.notify(
            .expired,
            .billingRetry,
            67,
            nil,
            ChurnLife.renewal { $0.expirationIntent = 2 }
        )
        #expect(life.told() == ["0 trial_started", "67 trial_lost billing"])
        #expect(life.moments.allSatisfy { $0.delta == 0 })
        #expect(life.money.isEmpty)
    }

    @Test func whoBuysLongAfterALostTrialIsNew() {
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
        let period = ChurnLife.period(2, 100, 130, reason: .purchase)
        life.notify(.subscribed, .resubscribe, 100, period, ChurnLife.renewal())
        #expect(
            life.told(upTo: 129) == ["0 trial_started", "7 trial_lost voluntary", "100 new_paid"]
        )
    }

    @Test func freeMonthsOfSomebodyWhoPaysAreNoTrial() {
        var life = ChurnLife()
        life.subscribe()
        let free = ChurnLife.period(2, 30, 60, price: 0) {
            $0.offerType = 2
            $0.offerDiscountType = .freeTrial
        }
        life.notify(.didRenew, nil, 30, free, ChurnLife.renewal())
        life.notify(.didRenew, nil, 60, ChurnLife.period(3, 60, 90), ChurnLife.renewal())
        #expect(
            life.told(upTo: 89) == ["0 new_paid", "30 price_changed", "60 price_changed"]
        )
        let movements = life.moments.filter { $0.kind == .priceChanged }.map(\.movement)
        #expect(movements == [.contraction, .expansion])
    }
}
