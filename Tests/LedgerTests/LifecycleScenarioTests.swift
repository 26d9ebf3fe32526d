import Testing

@testable import Ledger

/// The scenario list of the lifecycle reference, section 10; the number stands in each name.
@Suite struct LifecycleScenarioTests {
    static func period(
        _ id: UInt64,
        _ from: Double,
        _ until: Double,
        _ product: Symbol = "gold.month",
        reason: TransactionReason = .renewal,
        change: (inout TransactionFact) -> Void = { _ in }
    ) -> TransactionFact {
        Life.transaction(
            id,
            from: Life.day(from),
            until: Life.day(until),
            product: product,
            reason: reason,
            change: change
        )
    }

    static func trial() -> Life {
        var life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            period(1, 0, 7, reason: .purchase) {
                $0.offerType = 1
                $0.offerDiscountType = .freeTrial
            },
            Life.renewal()
        )
        return life
    }

    static func paid(until end: Double = 30, _ product: Symbol = "gold.month") -> Life {
        var life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            period(1, 0, end, product, reason: .purchase),
            Life.renewal()
        )
        return life
    }

    static func failing(_ change: (inout RenewalFact) -> Void = { _ in }) -> RenewalFact {
        Life.renewal {
            $0.isInBillingRetryPeriod = true
            $0.expirationIntent = 2
            change(&$0)
        }
    }

    @Test func s01_aTrialConvertsByABareRenewal() {
        var life = Self.trial()
        life.notify(.didRenew, at: Life.day(7), Self.period(2, 7, 37), Life.renewal())
        #expect(life.at(Life.day(3))?.offer == .trial)
        #expect(life.at(Life.day(8))?.offer == .standard)
        #expect(life.at(Life.day(8))?.state == .active)
        #expect(life.history.anomalies.isEmpty)
    }

    @Test func s02_aTrialsFailureWithoutAGraceDateIsRecovered() {
        var life = Self.trial()
        life.rules.gracePeriodDays = 16
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(7),
            Self.period(1, 0, 7),
            Self.failing()
        )
        #expect(life.at(Life.day(10))?.confidence == .estimated)
        life.notify(
            .didRenew,
            .billingRecovery,
            at: Life.day(12),
            Self.period(2, 12, 42),
            Life.renewal()
        )
        #expect(life.at(Life.day(10))?.state == .gracePeriod)
        #expect(life.at(Life.day(13))?.state == .active)
    }

    @Test func s03_aTrialThatFailsWithoutGraceExpires() {
        var life = Self.trial()
        life.notify(.didFailToRenew, at: Life.day(7), Self.period(1, 0, 7), Self.failing())
        life.notify(
            .expired,
            .billingRetry,
            at: Life.day(67),
            Self.period(1, 0, 7),
            Life.renewal {
                $0.expirationIntent = 2
                $0.autoRenewStatus = 0
            }
        )
        #expect(
            life.history.timeline.map(\.state) == [
                .active, .billingRetry, .expired(.billingRetry),
            ]
        )
        #expect(life.at(Life.day(3))?.productID == life.at(Life.day(68))?.productID)
    }

    @Test func s04_anEarlyRenewalTakesOverAtTheOldEnd() {
        var life = Self.paid()
        life.notify(.didRenew, at: Life.day(29.4), Self.period(2, 30, 60), Life.renewal())
        #expect(life.at(Life.day(29.9))?.transactionID == AppleID(1))
        #expect(life.at(Life.day(30))?.transactionID == AppleID(2))
        var overlapping = Self.paid()
        overlapping.notify(.didRenew, at: Life.day(29.4), Self.period(2, 29.4, 60), Life.renewal())
        #expect(overlapping.at(Life.day(29.9))?.transactionID == AppleID(1))
        #expect(overlapping.at(Life.day(30))?.transactionID == AppleID(2))
    }

    @Test func s07_graceThenSixtyDaysOfRetry() {
        var life = Self.paid()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            Self.period(1, 0, 30),
            Self.failing { $0.gracePeriodExpiresDate = Life.day(46) }
        )
        life.notify(
            .gracePeriodExpired,
            at: Life.day(46),
            Self.period(1, 0, 30),
            Self.failing { $0.gracePeriodExpiresDate = Life.day(46) }
        )
        life.notify(
            .expired,
            .billingRetry,
            at: Life.day(90),
            Self.period(1, 0, 30),
            Life.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 2
                $0.gracePeriodExpiresDate = Life.day(46)
            }
        )
        #expect(
            life.history.timeline.map(\.state) == [
                .active, .gracePeriod, .billingRetry, .expired(.billingRetry),
            ]
        )
        #expect(life.at(Life.day(90))?.from == Life.day(90))
        #expect(life.history.anomalies.isEmpty)
    }

    @Test func s11_aRefundWithAutoRenewOnMayRenewLater() {
        var life = Self.paid()
        life.notify(
            .refund,
            at: Life.day(10),
            Self.period(1, 0, 30) { $0.revocationDate = Life.day(10) },
            Life.renewal()
        )
        life.notify(.didRenew, at: Life.day(30), Self.period(2, 30, 60), Life.renewal())
        #expect(life.at(Life.day(20))?.state == .revoked(.refund))
        #expect(life.at(Life.day(31))?.state == .active)
        #expect(life.at(Life.day(31))?.entitled == true)
    }

    @Test func s12_aReversalRestoresOnlyWhatStillRuns() {
        var life = Self.paid()
        life.notify(
            .refund,
            at: Life.day(10),
            Self.period(1, 0, 30) { $0.revocationDate = Life.day(10) }
        )
        var inTime = life
        inTime.notify(.refundReversed, at: Life.day(20), Self.period(1, 0, 30))
        #expect(inTime.at(Life.day(25))?.state == .active)
        life.notify(.refundReversed, at: Life.day(200), Self.period(1, 0, 30))
        #expect(life.at(Life.day(25))?.state == .active)
        #expect(life.at(Life.day(201))?.entitled == false)
    }

    @Test func s13_aProratedRefundEndsAtItsDate() {
        var life = Self.paid()
        life.notify(
            .refund,
            at: Life.day(18),
            Self.period(1, 0, 30) {
                $0.revocationDate = Life.day(18)
                $0.revocationType = .refundProrated
                $0.revocationPercentage = 40_000
            }
        )
        #expect(life.at(Life.day(19))?.state == .revoked(.refundProrated))
        #expect(life.at(Life.day(17))?.entitled == true)
    }

    @Test(arguments: [true, false])
    func s14_anUpgradeIsInferredOrSeen(_ isSeen: Bool) {
        var life = Self.paid(until: 30, "silver.month")
        life.notify(
            .didChangeRenewalPref,
            .upgrade,
            at: Life.day(5),
            Self.period(2, 5, 35, reason: .purchase),
            Life.renewal()
        )
        if isSeen {
            var fact = Fact(kind: .transaction, provenance: .jws, factAt: Life.day(6))
            fact.transaction = Self.period(1, 0, 30, "silver.month", reason: .purchase) {
                $0.isUpgraded = true
            }
            fact.transaction?.signedDate = Life.day(6)
            life.add(fact)
        }
        #expect(life.at(Life.day(4))?.productID == "silver.month")
        #expect(life.at(Life.day(7))?.productID == "gold.month")
        #expect(life.at(Life.day(7))?.until == Life.day(35))
    }

    @Test func s14_anUpgradeToWhatWeWereNeverToldIsPending() {
        var life = Self.paid()
        var fact = Fact(kind: .transaction, provenance: .jws, factAt: Life.day(6))
        fact.transaction = Self.period(1, 0, 30) { $0.isUpgraded = true }
        fact.transaction?.signedDate = Life.day(6)
        life.add(fact)
        #expect(life.at(Life.day(5))?.state == .active)
        #expect(life.at(Life.day(7))?.state == .renewalPending)
        #expect(life.at(Life.day(7))?.entitled == true)
        #expect(life.at(Life.day(31))?.state == .expired(.presumed))
    }

    @Test func s15_aDowngradeIsRevertedThenMadeAgain() {
        var life = Self.paid()
        let pending = Life.renewal { $0.autoRenewProductID = "silver.month" }
        life.notify(
            .didChangeRenewalPref,
            .downgrade,
            at: Life.day(5),
            Self.period(1, 0, 30),
            pending
        )
        life.notify(
            .didChangeRenewalPref,
            at: Life.day(8),
            Self.period(1, 0, 30),
            Life.renewal { $0.autoRenewProductID = "gold.month" }
        )
        life.notify(
            .didChangeRenewalPref,
            .downgrade,
            at: Life.day(12),
            Self.period(1, 0, 30),
            pending
        )
        life.notify(
            .didRenew,
            at: Life.day(30),
            Self.period(2, 30, 60, "silver.month"),
            Life.renewal { $0.autoRenewProductID = "silver.month" }
        )
        #expect(
            [4.0, 6, 9, 13].map { life.at(Life.day($0))?.pendingProductID } == [
                nil, "silver.month", nil, "silver.month",
            ]
        )
        #expect(life.at(Life.day(31))?.productID == "silver.month")
        #expect(life.at(Life.day(31))?.pendingProductID == nil)
    }

    @Test func s16_aCrossGradeOfTheSameDurationIsAtOnceAnotherWaits() {
        var now = Self.paid(until: 30, "news.month")
        now.notify(
            .didChangeRenewalPref,
            .upgrade,
            at: Life.day(5),
            Self.period(2, 5, 35, "sport.month", reason: .purchase),
            Life.renewal()
        )
        #expect(now.at(Life.day(6))?.productID == "sport.month")
        var later = Self.paid(until: 30, "news.month")
        later.notify(
            .didChangeRenewalPref,
            .downgrade,
            at: Life.day(5),
            Self.period(1, 0, 30, "news.month"),
            Life.renewal { $0.autoRenewProductID = "sport.year" }
        )
        #expect(later.at(Life.day(6))?.productID == "news.month")
        #expect(later.at(Life.day(6))?.pendingProductID == "sport.year")
    }

    @Test func s17_aPreferenceChangeWithANewTransactionIsANewPeriod() {
        var life = Self.paid()
        life.notify(
            .didChangeRenewalPref,
            at: Life.day(10),
            Self.period(2, 10, 40, reason: .purchase),
            Life.renewal()
        )
        #expect(life.at(Life.day(11))?.transactionID == AppleID(2))
        #expect(life.at(Life.day(35))?.entitled == true)
    }

    @Test func s18_aRenewalWithAnotherProductIsAPlanChange() {
        var life = Self.paid()
        life.notify(.didRenew, at: Life.day(30), Self.period(2, 30, 60, "silver.month"))
        #expect(life.at(Life.day(29))?.productID == "gold.month")
        #expect(life.at(Life.day(31))?.productID == "silver.month")
    }

    @Test func s19_noConsentToAPriceEndsIt() {
        var life = Self.paid()
        life.notify(
            .priceIncrease,
            .pending,
            at: Life.day(10),
            Self.period(1, 0, 30),
            Life.renewal { $0.priceIncreaseStatus = 0 }
        )
        life.notify(
            .expired,
            .priceIncrease,
            at: Life.day(30),
            Self.period(1, 0, 30),
            Life.renewal {
                $0.priceIncreaseStatus = 0
                $0.expirationIntent = 3
            }
        )
        #expect(life.at(Life.day(9))?.priceConsent == PriceConsent.none)
        #expect(life.at(Life.day(11))?.priceConsent == .pending)
        #expect(life.at(Life.day(30))?.state == .expired(.priceIncrease))
    }

    @Test func s20_whoCancelsAfterANoticeLeavesVoluntarily() {
        var life = Self.paid()
        life.notify(
            .priceIncrease,
            .accepted,
            at: Life.day(10),
            Self.period(1, 0, 30),
            Life.renewal { $0.priceIncreaseStatus = 1 }
        )
        life.notify(
            .didChangeRenewalStatus,
            at: Life.day(12),
            Self.period(1, 0, 30),
            Life.renewal {
                $0.priceIncreaseStatus = 1
                $0.autoRenewStatus = 0
            }
        )
        life.notify(
            .expired,
            .voluntary,
            at: Life.day(30),
            Self.period(1, 0, 30),
            Life.renewal {
                $0.priceIncreaseStatus = 1
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
            }
        )
        #expect(life.at(Life.day(11))?.priceConsent == .accepted)
        #expect(life.at(Life.day(30))?.state == .expired(.voluntary))
        #expect(life.at(Life.day(30))?.confidence == .confirmed)
    }
}
