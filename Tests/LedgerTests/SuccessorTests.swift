import Testing

@testable import Ledger

/// What the next purchase after a gap is, up to which news tell of the gap, in the rare cases.
@Suite struct SuccessorTests {
    private typealias Row = NotificationRow

    private static func life(_ facts: (Double, TransactionFact)...) -> Life {
        var life = Life()
        for (day, transaction) in facts {
            life.notify(.didRenew, at: Life.day(day), transaction, Life.renewal())
        }
        return life
    }

    private static let cancelled = Life.renewal {
        $0.autoRenewStatus = 0
        $0.expirationIntent = 1
    }

    /// Who buys, takes it back at once and buys another plan: the time before ends with the first.
    @Test func aPurchaseTakenBackAtItsStartStillEndsTheNewsOfTheTimeBeforeIt() {
        var life = Self.life(
            (0, Row.month()),
            (60, Row.month(2, 60, 67, "gold.week") { $0.revocationDate = Life.day(60) })
        )
        life.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            at: Life.day(62),
            nil,
            Self.cancelled
        )
        life.notify(.subscribed, .resubscribe, at: Life.day(65), Row.month(3, 60, 90))
        #expect(life.at(Life.day(40))?.state == .expired(.presumed))
        #expect(life.at(Life.day(61))?.transactionID == AppleID(3))
    }

    /// An upgrade that was itself superseded at once and refunded later held the old plan's time
    /// meanwhile; what was told of the old plan counts there.
    @Test func aPlanThatCountsAgainIsNotTheNextPurchaseAfterItself() {
        var life = Self.life((0, Row.month()))
        life.notify(.didChangeRenewalStatus, .autoRenewDisabled, at: Life.day(5), nil, Row.off)
        for (day, refund) in [(10.0, nil), (20, Life.day(20))] as [(Double, Timestamp?)] {
            life.read(
                at: Life.day(day),
                Row.month(2, 10, 40, "gold.year") {
                    $0.isUpgraded = true
                    $0.revocationDate = refund
                }
            )
        }
        #expect(life.at(Life.day(9))?.transactionID == AppleID(1))
        #expect(life.at(Life.day(15))?.state == .expired(.voluntary))
        #expect(life.at(Life.day(25))?.transactionID == AppleID(1))
        #expect(life.at(Life.day(25))?.state == .active)
    }

    /// Before 2023, without a reason, what began together took nothing over from the other.
    @Test func ofTwoPurchasesThatBeginTogetherNeitherHeldTheOthersTime() {
        let life = Self.life(
            (0, Row.month(1, 0, 20, "gold") { $0.reason = nil }),
            (
                15,
                Row.month(2, 0, 30, "plus") {
                    $0.reason = nil
                    $0.revocationDate = Life.day(15)
                }
            )
        )
        for day in [1.0, 10, 16] { #expect(life.at(Life.day(day))?.transactionID == AppleID(1)) }
    }

    /// One fold serves many streams; when each period was first told of is a stream's own.
    @Test func whenThePeriodsOfOneStreamWereToldDoesNotShowInTheNext() {
        let lives = [90.0, 95].map { third in
            var life = Self.life((0, Row.month()), (third, Row.month(3, 90, 120)))
            life.notify(
                .didChangeRenewalStatus,
                .autoRenewDisabled,
                at: Life.day(92),
                nil,
                Self.cancelled
            )
            life.read(at: Life.day(100), Row.month(2, 60, 90))
            return life
        }
        #expect(lives[0].at(Life.day(40))?.state == .expired(.presumed))
        #expect(lives[1].at(Life.day(40))?.state == .expired(.voluntary))
        var fold = SubscriptionFold(rules: Life().rules)
        for life in lives + lives.reversed() {
            #expect(fold.history(of: life.events) == life.history)
        }
    }
}
