import Testing

@testable import Ledger

/// A failed charge of which no news came until it was over (lifecycle 3.2, 8.2; Q2, Q4).
@Suite struct LostFailureTests {
    private typealias Row = NotificationRow

    private static func paid() -> Life {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, Row.month(), Life.renewal())
        return life
    }

    private static let given = Life.renewal {
        $0.autoRenewStatus = 0
        $0.expirationIntent = 2
    }

    @Test func theEndOfBillingRetryTellsThatItWasTried() throws {
        var life = Self.paid()
        life.notify(.expired, .billingRetry, at: Life.day(90), Row.month(), Self.given)
        #expect(life.at(Life.day(30))?.state == .billingRetry)
        #expect(life.at(Life.day(89.9))?.state == .billingRetry)
        #expect(life.at(Life.day(90))?.state == .expired(.billingRetry))
        let failure = try #require(life.history.failures.first)
        #expect(life.history.failures.count == 1)
        #expect(failure.openedAt == Life.day(30))
        #expect(failure.openedBy == 2, "the event that told of it")
        #expect(failure.ending?.outcome == .expired)
        #expect(failure.ending?.at == Life.day(90))
    }

    @Test func noOtherEndTellsOfAFailure() {
        for subtype in [Subtype.voluntary, .priceIncrease, .productNotForSale] {
            var life = Self.paid()
            life.notify(.expired, subtype, at: Life.day(90), Row.month(), Row.off)
            #expect(life.at(Life.day(31))?.state.isOver == true, "\(subtype)")
            #expect(life.history.failures.isEmpty, "\(subtype)")
        }
    }

    @Test func aRecoveryTellsThatTheChargeHadFailed() throws {
        var life = Self.paid()
        life.notify(
            .didRenew,
            .billingRecovery,
            at: Life.day(40),
            Row.month(2, 40, 70, reason: .renewal),
            Life.renewal()
        )
        #expect(life.at(Life.day(35))?.state == .billingRetry)
        #expect(life.at(Life.day(41))?.state == .active)
        let failure = try #require(life.history.failures.first)
        #expect(failure.openedAt == Life.day(30))
        #expect(failure.ending?.outcome == .recoveredAfterGrace)
        #expect(failure.ending?.at == Life.day(40))
    }

    /// Apple tries for sixty days: what was recovered after a hundred had failed in between.
    @Test func aRecoveryTellsNothingOfALongerTime() {
        var life = Self.paid()
        life.notify(
            .didRenew,
            .billingRecovery,
            at: Life.day(130),
            Row.month(2, 130, 160, reason: .renewal),
            Life.renewal()
        )
        #expect(life.at(Life.day(60))?.state == .expired(.presumed))
        #expect(life.history.failures.isEmpty)
    }

    @Test(arguments: [nil, 46.0])
    func theEndOfGraceTellsThatThereWasGrace(_ date: Double?) {
        var life = Self.paid()
        life.notify(
            .gracePeriodExpired,
            at: Life.day(46),
            Row.month(),
            Row.failing(graceUntil: date)
        )
        #expect(life.at(Life.day(31))?.state == .gracePeriod)
        #expect(life.at(Life.day(45.9))?.entitledApple == true)
        #expect(life.at(Life.day(46))?.state == .billingRetry)
        #expect(life.history.failures.first?.openedAt == Life.day(30))
        #expect(life.history.failures.first?.graceExhaustedAt == Life.day(46))
    }

    /// The flag was seen to be wrong beside a grace date (Q2); the notice of the end of grace says
    /// that Apple goes on trying.
    @Test func whatComesWithTheEndOfGraceDoesNotEndTheRetry() {
        var life = Self.paid()
        life.notify(.gracePeriodExpired, at: Life.day(46), Row.month(), Self.given)
        #expect(life.at(Life.day(50))?.state == .billingRetry)
        #expect(life.at(Life.day(89))?.state == .billingRetry)
        #expect(life.at(Life.day(91))?.state == .expired(.billingRetry))
        #expect(life.at(Life.day(91))?.confidence == .clock)
        #expect(life.history.failures.map(\.ending) == [nil], "nobody said how it ended")
    }

    /// The intent is there from the first failure on, so only the clock knows that it is over.
    @Test func aRetryThatRunsOutWithoutNewsIsOverByTheClock() {
        var life = Self.paid()
        life.notify(.didFailToRenew, at: Life.day(30), Row.month(), Row.failing())
        #expect(life.at(Life.day(91))?.state == .expired(.billingRetry))
        #expect(life.at(Life.day(91))?.confidence == .clock)
        life.read(at: Life.day(95), Row.month(), Self.given)
        #expect(life.at(Life.day(91))?.confidence == .confirmed)
    }

    @Test func anEmptyPeriodHasNoGraceThatOnlyItsEndTellsOf() {
        var life = Life()
        life.notify(.gracePeriodExpired, at: Life.day(10), Row.month(1, 0, 0), Row.failing())
        #expect(life.history.timeline.allSatisfy { !$0.entitled })
    }

    /// 3.2: `EXPIRED` subtype, then `expirationIntent`.
    @Test(arguments: [(Int32(1), ExpirationCause.voluntary), (2, .billingRetry), (5, .other)])
    func anExpiryWithoutASubtypeHasTheCauseOfItsIntent(_ intent: Int32, _ cause: ExpirationCause) {
        var life = Self.paid()
        let renewal = Life.renewal {
            $0.autoRenewStatus = 0
            $0.expirationIntent = intent
        }
        life.notify(.expired, at: Life.day(30), Row.month(), renewal)
        #expect(life.at(Life.day(31))?.state == .expired(cause))
        life.notify(.expired, .unknown("STRANGE"), at: Life.day(31), Row.month(), renewal)
        #expect(life.at(Life.day(32))?.state == .expired(cause))
    }

    /// A charge that was made a day early and whose plan was changed before it counted.
    @Test func aRenewalChargedEarlyDoesNotComeBackOverAnUpgrade() {
        var life = Self.paid()
        life.notify(
            .didRenew,
            at: Life.day(29.2),
            Row.month(2, 30, 60, reason: .renewal),
            Life.renewal()
        )
        life.notify(
            .didChangeRenewalPref,
            .upgrade,
            at: Life.day(29.5),
            Row.month(3, 29.5, 36.5, "gold.week"),
            Life.renewal()
        )
        #expect(life.at(Life.day(29.4))?.productID == "gold.month")
        #expect(life.at(Life.day(31))?.productID == "gold.week")
        life.notify(
            .expired,
            .voluntary,
            at: Life.day(36.5),
            Row.month(3, 29.5, 36.5, "gold.week"),
            Row.off
        )
        #expect(life.at(Life.day(37))?.state == .expired(.voluntary))
        #expect(life.history.latestTransaction?.transactionID == AppleID(3))
        // Taken back, it leaves what was paid before.
        life.notify(
            .refund,
            at: Life.day(40),
            Row.month(3, 29.5, 36.5, "gold.week") { $0.revocationDate = Life.day(33) }
        )
        #expect(life.at(Life.day(34))?.productID == "gold.month")
        #expect(life.at(Life.day(59))?.state == .active)
    }

    /// A period that was taken back ends its failure, whatever was charged later.
    @Test func aRefundOfTheFailedPeriodEndsItsFailure() {
        var life = Self.paid()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            Row.month(),
            Row.failing(graceUntil: 46)
        )
        life.notify(
            .refund,
            at: Life.day(36),
            Row.month { $0.revocationDate = Life.day(36) },
            Row.failing(graceUntil: 46)
        )
        life.notify(
            .didRenew,
            .billingRecovery,
            at: Life.day(41),
            Row.month(2, 41, 71, reason: .renewal),
            Life.renewal()
        )
        #expect(life.history.failures.map(\.ending?.outcome) == [.cancelled])
        #expect(life.history.failures.first?.ending?.at == Life.day(36))
    }
}
