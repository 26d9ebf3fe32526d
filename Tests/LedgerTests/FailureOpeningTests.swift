import Testing

@testable import Ledger

/// Which period a failed charge belongs to, what opened it, and what it would have brought.
@Suite struct FailureOpeningTests {
    private typealias Row = NotificationRow

    private static func paid() -> Life {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, Row.month(), Life.renewal())
        return life
    }

    private static func only(_ life: Life) throws -> BillingFailure {
        #expect(life.history.failures.count == 1)
        return try #require(life.history.failures.first)
    }

    /// Lifecycle 4.9: seats added to a period are no period of their own.
    @Test func aFailureAfterSeatsWereAddedIsThatOfThePurchase() throws {
        var life = Self.paid()
        life.notify(
            .didChangeRenewalPref,
            .increaseQuantity,
            at: Life.day(10),
            Row.month(2, 10, 30) { $0.additionalReason = "SEAT_ADDITION" },
            Life.renewal()
        )
        life.notify(.didFailToRenew, at: Life.day(30), Row.month(), Row.failing())
        #expect(try Self.only(life).transactionID == AppleID(1))
        #expect(try Self.only(life).openedBy == 3)
    }

    /// Apple may sign the failure of a period and the period that recovers it in one millisecond.
    @Test func aFailureSignedTogetherWithTheNextPeriodIsNotThatPeriods() throws {
        var life = Self.paid()
        life.notify(.didFailToRenew, at: Life.day(30), Row.month())
        life.notify(.didRenew, at: Life.day(30), Row.month(2, 30, 60, reason: .renewal))
        #expect(life.history.failures.isEmpty)
        life.notify(.didFailToRenew, at: Life.day(60), Row.month(2, 30, 60), Row.failing())
        let failure = try Self.only(life)
        #expect(failure.transactionID == AppleID(2))
        #expect(failure.openedAt == Life.day(60))
        #expect(failure.openedBy == 4)
    }

    /// The log may begin with the failure; it is then the first word of its period.
    @Test func aFailureThatIsTheFirstNewsOfItsPeriodOpensThere() throws {
        var life = Life()
        life.notify(.didFailToRenew, at: Life.day(30), Row.month(), Row.failing())
        life.notify(.didFailToRenew, at: Life.day(31), Row.month(), Row.failing())
        let failure = try Self.only(life)
        #expect(failure.openedAt == Life.day(30))
        #expect(failure.openedBy == 1)
        #expect(failure.repeatedBy == 2)
    }

    @Test func anAnnouncementThatNamesNoTransactionOpensAFailureToo() throws {
        var life = Self.paid()
        life.notify(.didFailToRenew, at: Life.day(30))
        life.notify(.didFailToRenew, at: Life.day(31), Row.month())
        let failure = try Self.only(life)
        #expect(failure.openedAt == Life.day(30))
        #expect(failure.openedBy == 2)
        #expect(failure.repeatedBy == 3)
    }

    @Test func twoAnnouncementsOfOneInstantAreOne() throws {
        var life = Self.paid()
        life.notify(.didFailToRenew, at: Life.day(30), Row.month())
        life.notify(.didFailToRenew, .gracePeriod, at: Life.day(30), Row.month())
        let failure = try Self.only(life)
        #expect(failure.openedAt == Life.day(30))
        // The one with grace says more.
        #expect(failure.openedBy == 3)
        #expect(failure.repeatedBy == 3)
    }

    /// Lifecycle 1.2: `isInBillingRetryPeriod` is signed too, and may be read before it is told.
    @Test func renewalInfoThatWasReadBeforeTheAnnouncementOpensTheFailure() throws {
        var life = Self.paid()
        life.notify(.didFailToRenew, at: Life.day(30.5), Row.month())
        life.read(at: Life.day(30.2), Row.month(), Row.failing())
        life.read(at: Life.day(30.3), Row.month(), Row.failing())
        let failure = try Self.only(life)
        #expect(failure.openedAt == Life.day(30.2))
        #expect(failure.openedBy == 3)
        #expect(failure.repeatedBy == 2)
    }

    @Test(arguments: [30.5, 30.7])
    func renewalInfoThatIsNoOlderThanTheAnnouncementOpensNothing(_ day: Double) throws {
        var life = Self.paid()
        life.notify(.didFailToRenew, at: Life.day(30.5), Row.month())
        life.read(at: Life.day(day), Row.month(), Row.failing())
        let failure = try Self.only(life)
        #expect(failure.openedAt == Life.day(30.5))
        #expect(failure.openedBy == 2)
    }

    // MARK: The amount

    /// What the next charge would have been, for so many seats: lifecycle 4.9 calls the price the
    /// average of one.
    @Test(arguments: [(nil, 9_990), (0, 9_990), (1, 9_990), (3, 29_970)] as [(Int32?, Int64)])
    func theAmountIsThePriceOfAllSeats(_ seats: Int32?, _ amount: Int64) throws {
        var life = Self.paid()
        life.notify(
            .didFailToRenew,
            at: Life.day(30),
            Row.month { $0.currency = "EUR" },
            Life.renewal {
                $0.isInBillingRetryPeriod = true
                $0.renewalPrice = 9_990
                $0.renewalQuantity = seats
            }
        )
        #expect(try Self.only(life).amount == amount)
        #expect(try Self.only(life).currency == "EUR")
        // Where nothing tells the next price, it is what the period cost.
        var silent = Life()
        silent.notify(
            .didFailToRenew,
            at: Life.day(30),
            Row.month {
                $0.price = 9_990
                $0.quantity = seats
            }
        )
        #expect(try Self.only(silent).amount == amount)
    }

    @Test func aFailureThatTheOnlyRenewalInfoTellsOfIsFound() throws {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, Row.month())
        life.read(at: Life.day(33), Row.month(), Row.failing())
        #expect(try Self.only(life).openedBy == 2)
        // Nor does a later word that nothing fails hide it.
        life.read(at: Life.day(34), Row.month(), Life.renewal())
        #expect(try Self.only(life).openedBy == 2)
    }

    /// All that the log holds may be the failure itself.
    @Test func aFailureOfWhichThereIsNoOtherNewsIsFound() throws {
        var life = Life()
        life.notify(.didFailToRenew, at: Life.day(30), Row.month())
        #expect(try Self.only(life).openedAt == Life.day(30))
    }
}
