import Testing

@testable import Ledger

/// How a failed charge ended, where the news of it lie close together or are lost in part.
@Suite struct FailureEndingTests {
    private typealias Row = NotificationRow

    /// A month whose charge fails on day 30.
    private static func failed() -> Life {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, Row.month(), Life.renewal())
        life.notify(.didFailToRenew, at: Life.day(30), Row.month())
        return life
    }

    private static func ended(_ intent: Int32?, autoRenew: Int32) -> RenewalFact {
        Life.renewal {
            $0.autoRenewStatus = autoRenew
            $0.expirationIntent = intent
        }
    }

    private static func ending(_ life: Life) throws -> BillingFailure.Ending? {
        #expect(life.history.failures.count == 1)
        return try #require(life.history.failures.first).ending
    }

    @Test func anExpirySignedTogetherWithTheLastAnnouncementEndsTheFailure() throws {
        var life = Self.failed()
        life.notify(.didFailToRenew, at: Life.day(40), Row.month())
        life.notify(.expired, .billingRetry, at: Life.day(40), Row.month())
        let ending = try #require(try Self.ending(life))
        #expect(ending.outcome == .expired)
        #expect(ending.at == Life.day(40))
        #expect(ending.position == 4)
        #expect(life.at(Life.day(39))?.state == .billingRetry)
        #expect(life.at(Life.day(41))?.state == .expired(.billingRetry))
    }

    /// An announcement after it says that Apple still tries.
    @Test func anExpiryBeforeTheLastAnnouncementEndsNothing() throws {
        var life = Self.failed()
        life.notify(.expired, .billingRetry, at: Life.day(40), Row.month())
        life.notify(.didFailToRenew, at: Life.day(41), Row.month())
        #expect(try Self.ending(life) == nil)
        #expect(life.at(Life.day(50))?.state == .billingRetry)
    }

    /// What was signed before the new period was told of counts, up to where that period begins.
    @Test(arguments: [(84.0, true), (85, true), (86, false)])
    func anExpiryCountsUpToTheStartOfTheNextPeriod(_ day: Double, _ counts: Bool) throws {
        var life = Self.failed()
        life.notify(.expired, .billingRetry, at: Life.day(day), Row.month())
        life.notify(.subscribed, .resubscribe, at: Life.day(87), Row.month(2, 85, 115))
        #expect(
            try Self.ending(life)?.outcome == (counts ? .expired : .recoveredAfterGrace)
        )
    }

    /// Lifecycle 4.1: Apple retries for sixty days.
    @Test(arguments: [(90.0, BillingFailure.Outcome.recoveredAfterGrace), (90.1, .unknown)])
    func aPurchaseRecoversTheFailureUpToTheLastDayOfRetry(
        _ day: Double,
        _ outcome: BillingFailure.Outcome
    ) throws {
        var life = Self.failed()
        life.notify(.subscribed, .resubscribe, at: Life.day(day), Row.month(2, day, day + 30))
        #expect(try Self.ending(life)?.outcome == outcome)
        #expect(try Self.ending(life)?.at == Life.day(90))
    }

    // MARK: Where EXPIRED never came

    /// Lifecycle 6, Q4, Q5: the intent is 2 from the first failure on, and Apple turns auto-renew
    /// off itself; only the customer's own word ends a failure before the deadline.
    @Test(
        arguments: [
            (50.0, 1, 0, BillingFailure.Outcome.cancelled),
            (50, 1, 1, nil),
            (50, 2, 0, nil),
            (50, 2, 1, nil),
            (89.9, 2, 0, nil),
            (90, 2, 0, .expired),
            (95, 2, 1, .expired),
            (95, 3, 0, .expired),
            (95, 1, 0, .cancelled),
        ] as [(Double, Int32, Int32, BillingFailure.Outcome?)]
    )
    func anAnnouncedFailureEndsByRenewalInfoAtItsDeadline(
        _ day: Double,
        _ intent: Int32,
        _ autoRenew: Int32,
        _ outcome: BillingFailure.Outcome?
    ) throws {
        var life = Self.failed()
        life.read(at: Life.day(day), Row.month(), Self.ended(intent, autoRenew: autoRenew))
        let ending = try Self.ending(life)
        #expect(ending?.outcome == outcome)
        #expect(ending?.at == (outcome == nil ? nil : Life.day(90)))
        #expect(ending?.position == (outcome == nil ? nil : 3))
    }

    /// What was signed before the failure, or with it, is no word about how it ended.
    @Test(arguments: [29.0, 30])
    func renewalInfoThatIsNoNewerThanTheFailureEndsNothing(_ day: Double) throws {
        var life = Self.failed()
        life.read(at: Life.day(day), Row.month(), Self.ended(1, autoRenew: 0))
        #expect(try Self.ending(life) == nil)
    }

    /// Who told of the failure alone tells of its end alone, at once.
    @Test(arguments: [(50.0, 50.0), (120, 90)])
    func aFailureThatOnlyRenewalInfoToldOfEndsWhereItSaysSo(_ day: Double, _ end: Double) throws {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, Row.month(), Life.renewal())
        life.read(at: Life.day(33), Row.month(), Row.failing())
        #expect(try Self.ending(life) == nil)
        life.read(at: Life.day(day), Row.month(), Self.ended(2, autoRenew: 0))
        let ending = try #require(try Self.ending(life))
        #expect(ending.outcome == .expired)
        #expect(ending.at == Life.day(end))
        #expect(ending.position == 3)
        // The timeline says the same.
        #expect(life.at(Life.day(end - 1))?.state == .billingRetry)
        #expect(life.at(Life.day(end))?.state == .expired(.billingRetry))
    }
}
