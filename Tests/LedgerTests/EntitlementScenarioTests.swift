import Testing

@testable import Ledger

/// Class A of the public bug reports, and the lifecycle's scenarios of one subscription.
@Suite struct EntitlementScenarioTests {
    static func month(_ id: UInt64, _ from: Double = 0) -> TransactionFact {
        Life.transaction(
            id,
            from: Life.day(from),
            until: Life.day(from + 30),
            reason: from == 0 ? .purchase : .renewal
        )
    }

    static func subscribed() -> Life {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, month(1), Life.renewal())
        return life
    }

    @Test func a01GraceLastsToItsDateAndNotLonger() {
        var life = Self.subscribed()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            Self.month(1),
            Life.renewal {
                $0.gracePeriodExpiresDate = Life.day(46)
                $0.isInBillingRetryPeriod = true
            }
        )
        let inGrace = life.at(Life.day(35))
        #expect(inGrace?.state == .gracePeriod)
        #expect(inGrace?.entitled == true)
        #expect(inGrace?.entitledApple == true)
        #expect(inGrace?.until == Life.day(46))
        let after = life.at(Life.day(46))
        #expect(after?.state == .billingRetry)
        #expect(after?.entitled == false)
    }

    @Test func a02BillingRetryWithoutGraceIsNotEntitled() {
        var life = Self.subscribed()
        life.notify(
            .didFailToRenew,
            at: Life.day(30),
            Self.month(1),
            Life.renewal {
                $0.isInBillingRetryPeriod = true
                $0.expirationIntent = 2
            }
        )
        let retry = life.at(Life.day(31))
        #expect(retry?.state == .billingRetry)
        #expect(retry?.entitled == false)
        #expect(retry?.until == Life.day(90))
        #expect(life.at(Life.day(90))?.state == .expired(.billingRetry))
    }

    @Test func a03TurningAutoRenewOffKeepsAccessToTheEnd() {
        var life = Self.subscribed()
        life.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            at: Life.day(3),
            Self.month(1),
            Life.renewal { $0.autoRenewStatus = 0 }
        )
        #expect(life.at(Life.day(2))?.renewalIntent == .on)
        let later = life.at(Life.day(10))
        #expect(later?.state == .active)
        #expect(later?.entitled == true)
        #expect(later?.renewalIntent == .off)
        #expect(later?.until == Life.day(30))
        #expect(life.at(Life.day(30))?.entitled == false)
        #expect(life.at(Life.day(30))?.state == .expired(.voluntary))
        #expect(life.at(Life.day(30))?.confidence == .clock)
    }

    @Test func a04ADowngradeWaitsForTheNextTransaction() {
        var life = Life()
        let gold = Life.transaction(
            1,
            from: Life.t0,
            until: Life.day(365),
            product: "gold.year"
        )
        life.notify(.subscribed, .initialBuy, at: Life.t0, gold, Life.renewal())
        life.notify(
            .didChangeRenewalPref,
            .downgrade,
            at: Life.day(20),
            gold,
            Life.renewal { $0.autoRenewProductID = "silver.year" }
        )
        #expect(life.at(Life.day(364))?.productID == "gold.year")
        #expect(life.at(Life.day(364))?.pendingProductID == "silver.year")
        #expect(life.at(Life.day(19))?.pendingProductID == nil)
    }

    @Test func a05AnUpgradeLeavesOneProduct() {
        var life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            Life.transaction(1, from: Life.t0, until: Life.day(30), product: "silver.month"),
            Life.renewal()
        )
        life.notify(
            .didChangeRenewalPref,
            .upgrade,
            at: Life.day(5),
            Life.transaction(2, from: Life.day(5), until: Life.day(35), product: "gold.month"),
            Life.renewal()
        )
        #expect(life.at(Life.day(4))?.productID == "silver.month")
        #expect(life.at(Life.day(6))?.productID == "gold.month")
        #expect(life.at(Life.day(6))?.until == Life.day(35))
        #expect(life.at(Life.day(34))?.entitled == true)
        // Superseded, neither refunded nor lost.
        #expect(life.history.charges.allSatisfy { $0.revokedAt == nil })
        #expect(life.history.transitions.count == 1)
        let products = life.history.timeline.filter(\.entitledApple).map(\.productID)
        #expect(products == ["silver.month", "gold.month"])
    }

    @Test func a06ARefundEndsAccessAtItsDate() {
        var life = Life()
        let year = Life.transaction(7, from: Life.t0, until: Life.day(365), reason: .renewal)
        life.notify(.didRenew, at: Life.t0, year, Life.renewal())
        life.notify(
            .refund,
            at: Life.day(9),
            Life.transaction(7, from: Life.t0, until: Life.day(365), reason: .renewal) {
                $0.revocationDate = Life.day(9)
                $0.revocationReason = 0
            }
        )
        #expect(life.at(Life.day(8.9))?.entitled == true)
        #expect(life.at(Life.day(9))?.state == .revoked(.refund))
        #expect(life.at(Life.day(10))?.entitled == false)
        #expect(life.at(Life.day(400))?.state == .revoked(.refund))
        #expect(life.history.charges.map(\.transactionID) == [AppleID(7)])
        #expect(life.history.charges.map(\.revokedAt) == [Life.day(9)])
    }

    @Test func aReversedRefundIsAsIfItNeverWas() {
        var life = Self.subscribed()
        let before = life.history.timeline
        life.notify(
            .refund,
            at: Life.day(9),
            Life.transaction(1, from: Life.t0, until: Life.day(30)) {
                $0.revocationDate = Life.day(9)
            }
        )
        life.notify(.refundReversed, at: Life.day(12), Self.month(1))
        #expect(life.history.timeline.map(\.state) == before.map(\.state))
        #expect(life.history.timeline.map(\.from) == before.map(\.from))
        #expect(life.history.transitions.count == 3)
    }

    @Test func aRefundOfAnOldPeriodChangesNothing() {
        var life = Self.subscribed()
        life.notify(.didRenew, at: Life.day(29.5), Self.month(2, 30), Life.renewal())
        let before = life.history.timeline.map(\.state)
        life.notify(
            .refund,
            at: Life.day(40),
            Life.transaction(1, from: Life.t0, until: Life.day(30)) {
                $0.revocationDate = Life.day(40)
            }
        )
        #expect(life.at(Life.day(41))?.entitled == true)
        #expect(life.history.timeline.map(\.state) == before)
    }

    @Test func a07WithoutNewsAPeriodLapsesByTheClock() {
        let life = Self.subscribed()
        let pending = life.at(Life.day(30))
        #expect(pending?.state == .renewalPending)
        #expect(pending?.entitled == true)
        #expect(pending?.entitledApple == false)
        #expect(pending?.until == Life.day(30).adding(.hours(2)))
        let lapsed = life.at(Life.day(31))
        #expect(lapsed?.state == .expired(.presumed))
        #expect(lapsed?.confidence == .clock)
        #expect(lapsed?.entitled == false)
        #expect(lapsed?.until == nil)
    }

    @Test func a08AConsumableHasNoTimeline() {
        var life = Life()
        var coins = TransactionFact(transactionID: AppleID(9), signedDate: Life.t0, digest: 1)
        coins.productType = .consumable
        coins.purchaseDate = Life.t0
        life.notify(.oneTimeCharge, at: Life.t0, coins)
        #expect(life.history.timeline.isEmpty)
        #expect(life.history.transitions.isEmpty)
        #expect(life.history.knownToPosition == 1)
    }

    @Test func a09APeriodIsHalfOpen() {
        var life = Life()
        life.rules.environment = .sandbox
        let end = Life.t0.adding(Milliseconds(rawValue: 30_000))
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            Life.transaction(1, from: Life.t0, until: end),
            Life.renewal()
        )
        #expect(life.at(Life.t0)?.entitledApple == true)
        #expect(life.at(end.adding(Milliseconds(rawValue: -1)))?.entitledApple == true)
        #expect(life.at(end)?.entitledApple == false)
    }

    /// Nor does what may follow a period: leeway for a renewal that is not known yet.
    @Test(arguments: [0, -5], [true, false])
    func a09AnEmptyPeriodGrantsNothing(days: Int64, renews: Bool) {
        var life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            Life.transaction(1, from: Life.t0, until: Life.t0.adding(.days(days))),
            renews ? Life.renewal() : nil
        )
        #expect(life.history.timeline.allSatisfy { !$0.entitledApple && !$0.entitled })
        #expect(life.history.timeline.allSatisfy { $0.state != .renewalPending })
        #expect(life.history.timeline.first?.from == Life.t0)
        #expect(life.history.timeline.last?.until == nil)
    }

    @Test func a10OneFailedCardIsOneLapse() {
        var life = Self.subscribed()
        life.notify(
            .didFailToRenew,
            at: Life.day(30),
            Self.month(1),
            Life.renewal { $0.isInBillingRetryPeriod = true }
        )
        life.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            at: Life.day(31),
            Self.month(1),
            Life.renewal {
                $0.autoRenewStatus = 0
                $0.isInBillingRetryPeriod = true
            }
        )
        life.notify(
            .expired,
            .billingRetry,
            at: Life.day(90),
            Self.month(1),
            Life.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 2
                $0.isInBillingRetryPeriod = false
            }
        )
        let states = life.history.timeline.map(\.state)
        #expect(states.filter { $0.isOver } == [.expired(.billingRetry)])
        #expect(life.at(Life.day(30))?.entitled == false)
        #expect(life.at(Life.day(89))?.state == .billingRetry)
        #expect(life.at(Life.day(90))?.from == Life.day(90))
    }

    @Test func a11AMissingTokenKeepsTheOwner() {
        var life = Life()
        let token = UniqueID(bits: 0x1f01)
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            Life.transaction(1, from: Life.t0, until: Life.day(30)) { $0.appAccountToken = token }
        )
        life.notify(.didRenew, at: Life.day(30), Self.month(2, 30), Life.renewal())
        #expect(life.history.ownership.map(\.owner) == [token])
        #expect(life.history.ownership.last?.until == nil)
        #expect(Self.subscribed().history.ownership.isEmpty)
    }

    @Test func c05AnOlderRenewalThatComesAfterItsRefundDoesNotReopenIt() {
        var life = Life()
        life.notify(
            .refund,
            at: Life.day(0.1),
            Life.transaction(20, from: Life.t0, until: Life.day(30)) {
                $0.revocationDate = Life.day(0.1)
            }
        )
        life.notify(
            .didRenew,
            at: Life.t0,
            Life.transaction(20, from: Life.t0, until: Life.day(30)),
            Life.renewal()
        )
        #expect(life.at(Life.day(1))?.state == .revoked(.refund))
    }

    @Test func recoveryInGraceKeepsTheCycleAndTheGraceThatWas() {
        var life = Self.subscribed()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            Self.month(1),
            Life.renewal {
                $0.gracePeriodExpiresDate = Life.day(46)
                $0.isInBillingRetryPeriod = true
            }
        )
        life.notify(
            .didRenew,
            .billingRecovery,
            at: Life.day(36),
            Self.month(2, 36),
            Life.renewal()
        )
        #expect(life.at(Life.day(33))?.state == .gracePeriod)
        #expect(life.at(Life.day(33))?.until == Life.day(36))
        #expect(life.at(Life.day(37))?.state == .active)
    }

    @Test func graceThenRetryThenRecoveryLeavesAnUnpaidGap() {
        var life = Self.subscribed()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            Self.month(1),
            Life.renewal {
                $0.gracePeriodExpiresDate = Life.day(46)
                $0.isInBillingRetryPeriod = true
            }
        )
        life.notify(
            .gracePeriodExpired,
            at: Life.day(46),
            Self.month(1),
            Life.renewal {
                $0.gracePeriodExpiresDate = Life.day(46)
                $0.isInBillingRetryPeriod = true
            }
        )
        life.notify(
            .didRenew,
            .billingRecovery,
            at: Life.day(70),
            Self.month(2, 70),
            Life.renewal()
        )
        #expect(
            life.history.timeline.map(\.state.name) == [
                "active", "grace_period", "billing_retry", "active", "renewal_pending", "expired",
            ]
        )
        #expect(life.at(Life.day(46))?.state == .billingRetry)
        #expect(life.at(Life.day(46))?.entitledApple == false)
    }

    @Test func aGraceDateThatPersistsDoesNotRevivePastGrace() {
        var life = Self.subscribed()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            Self.month(1),
            Life.renewal { $0.gracePeriodExpiresDate = Life.day(46) }
        )
        life.notify(
            .expired,
            .voluntary,
            at: Life.day(40),
            Self.month(1),
            Life.renewal {
                $0.gracePeriodExpiresDate = Life.day(46)
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
            }
        )
        #expect(life.at(Life.day(39))?.state == .gracePeriod)
        #expect(life.at(Life.day(40))?.state == .expired(.voluntary))
        #expect(life.at(Life.day(41))?.entitledApple == false)
    }
}
