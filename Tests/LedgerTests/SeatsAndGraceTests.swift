import Testing

@testable import Ledger

/// What long simulations brought to light: refunds of added seats, and grace without a date.
@Suite struct SeatsAndGraceTests {
    /// A month with seats, and more seats from day 10 on.
    private static func team(isEachMarked: Bool = false) -> Life {
        var life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            base { if isEachMarked { $0.additionalReason = "SEAT_ADDITION" } },
            Life.renewal()
        )
        life.notify(
            .didChangeRenewalPref,
            .increaseQuantity,
            at: Life.day(10),
            addition { _ in },
            Life.renewal()
        )
        return life
    }

    private static func base(_ change: (inout TransactionFact) -> Void) -> TransactionFact {
        Life.transaction(1, from: Life.t0, until: Life.day(30), change: change)
    }

    private static func addition(_ change: (inout TransactionFact) -> Void) -> TransactionFact {
        Life.transaction(2, from: Life.day(10), until: Life.day(30)) {
            $0.additionalReason = "SEAT_ADDITION"
            change(&$0)
        }
    }

    @Test(arguments: [true, false])
    func aRefundOfAddedSeatsRevokesNothing(_ isEachMarked: Bool) {
        var life = Self.team(isEachMarked: isEachMarked)
        life.notify(.refund, at: Life.day(15), Self.addition { $0.revocationDate = Life.day(15) })
        #expect(life.at(Life.day(20))?.state == .active)
        #expect(life.at(Life.day(30))?.state == .renewalPending)
        #expect(life.at(Life.day(31))?.state == .expired(.presumed))
    }

    @Test func theRefundOfThePurchaseNamesTheCauseOnceAllSeatsAreTakenBack() {
        var life = Self.team()
        life.notify(
            .refund,
            at: Life.day(15),
            Self.addition {
                $0.revocationDate = Life.day(15)
                $0.revocationType = .refundFull
            }
        )
        life.notify(
            .refund,
            at: Life.day(20),
            Self.base {
                $0.revocationDate = Life.day(20)
                $0.revocationType = .refundProrated
            }
        )
        #expect(life.at(Life.day(19))?.state == .active)
        #expect(life.at(Life.day(21))?.state == .revoked(.refundProrated))
        #expect(life.at(Life.day(40))?.state == .revoked(.refundProrated))
    }

    @Test func aPurchaserWhoseAddedSeatsAreLeftKeepsThePeriod() {
        var life = Self.team()
        life.notify(.refund, at: Life.day(15), Self.base { $0.revocationDate = Life.day(15) })
        #expect(life.at(Life.day(20))?.state == .active)
        #expect(life.at(Life.day(30))?.state == .renewalPending)
    }

    private static func failing() -> Life {
        var life = Life()
        let month = Life.transaction(1, from: Life.t0, until: Life.day(30))
        life.notify(.subscribed, .initialBuy, at: Life.t0, month, Life.renewal())
        life.notify(.didFailToRenew, .gracePeriod, at: Life.day(30), month, Life.renewal())
        return life
    }

    @Test func graceWithoutADateLastedUntilItsEndWasAnnounced() {
        var life = Self.failing()
        life.notify(.gracePeriodExpired, at: Life.day(46))
        #expect(life.at(Life.day(45))?.state == .gracePeriod)
        #expect(life.at(Life.day(45))?.confidence == .estimated)
        #expect(life.at(Life.day(47))?.state == .billingRetry)
    }

    @Test func theEndOfTheSubscriptionSaysNothingOfHowLongGraceWas() {
        var life = Self.failing()
        life.notify(.expired, .billingRetry, at: Life.day(90))
        #expect(life.at(Life.day(31))?.state == .billingRetry)
        #expect(life.at(Life.day(31))?.entitledApple == false)
    }
}
