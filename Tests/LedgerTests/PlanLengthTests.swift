import Testing

@testable import Ledger

/// The length of the plan behind each charge, where configuration does not know the product.
@Suite struct PlanLengthTests {
    private typealias Row = NotificationRow

    /// The plan length of each charge, in days.
    private static func lengths(_ periods: TransactionFact...) -> [Int64] {
        var life = Life()
        for period in periods {
            life.notify(.didRenew, at: period.purchaseDate ?? Life.t0, period, Life.renewal())
        }
        return life.history.charges.map { $0.planLength.rawValue / 86_400_000 }
    }

    private static func period(
        _ id: UInt64,
        _ from: Double,
        _ until: Double,
        _ product: Symbol?,
        change: (inout TransactionFact) -> Void = { _ in }
    ) -> TransactionFact {
        Row.month(id, from, until, "any", reason: .renewal) {
            $0.productID = product
            change(&$0)
        }
    }

    /// A period that began late, by a recovery in grace, is shorter than its plan.
    @Test func aPlanIsAsLongAsItsFirstPeriodThatIsNoOffers() {
        #expect(
            Self.lengths(
                Self.period(1, 0, 7, "gold") { $0.offerDiscountType = .freeTrial },
                Self.period(2, 7, 37, "gold"),
                Self.period(3, 50, 67, "gold")
            ) == [30, 30, 30]
        )
    }

    /// Nor do added seats tell the length, though they may be the first of their product.
    @Test func addedSeatsDoNotTellHowLongAPlanIs() {
        #expect(
            Self.lengths(
                Self.period(1, 0, 10, "gold") { $0.additionalReason = "SEAT_ADDITION" },
                Self.period(2, 10, 40, "gold")
            ) == [30, 30]
        )
    }

    @Test func whereOnlyOffersAreKnownEachPeriodHasItsOwnLength() {
        #expect(
            Self.lengths(
                Self.period(1, 0, 7, "gold") { $0.offerType = 1 },
                Self.period(2, 7, 21, "gold") { $0.offerType = 2 }
            ) == [7, 14]
        )
    }

    /// Each product has its own, however often the customer changes between two or three of them.
    @Test func whoChangesBetweenPlansFindsEachAsItWas() {
        #expect(
            Self.lengths(
                Self.period(1, 0, 30, "gold"),
                Self.period(2, 30, 37, "week"),
                Self.period(3, 40, 50, "gold"),
                Self.period(4, 50, 51, "week"),
                Self.period(5, 51, 111, "two"),
                Self.period(6, 111, 112, "gold"),
                Self.period(7, 112, 113, "two"),
                Self.period(8, 113, 114, "week"),
                Self.period(9, 114, 115, "week")
            ) == [30, 7, 30, 7, 60, 30, 60, 7, 7]
        )
    }

    /// What names no product is of no plan but its own.
    @Test func aPeriodWithoutAProductHasItsOwnLength() {
        #expect(
            Self.lengths(
                Self.period(1, 0, 30, "gold"),
                Self.period(2, 30, 40, nil),
                Self.period(3, 40, 45, nil),
                Self.period(4, 45, 46, "gold")
            ) == [30, 10, 5, 30]
        )
    }

    /// A period of which the dates are not known tells no length.
    @Test func aPeriodWithoutItsDatesDoesNotTellHowLongAPlanIs() {
        var life = Life()
        life.notify(
            .didRenew,
            at: Life.t0,
            Self.period(1, 0, 7, "gold") { $0.purchaseDate = nil },
            Life.renewal()
        )
        life.notify(.didRenew, at: Life.day(7), Self.period(2, 7, 37, "gold"), Life.renewal())
        life.notify(.didRenew, at: Life.day(37), Self.period(3, 37, 40, "gold"), Life.renewal())
        #expect(life.history.charges.map(\.planLength) == [.days(30), .days(30)])
    }
}
