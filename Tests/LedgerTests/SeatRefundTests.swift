import Testing

@testable import Ledger

/// When a period counts as taken back where several charges stand for it, or begin within it.
///
/// Lifecycle 4.9: the purchaser is revoked only once every transaction of the period is.
@Suite struct SeatRefundTests {
    private typealias Row = NotificationRow

    private static func life(_ facts: TransactionFact...) -> Life {
        var life = Life()
        for (number, fact) in facts.enumerated() {
            life.notify(.consumptionRequest, at: Life.day(Double(number) / 10), fact)
        }
        return life
    }

    private static func charge(
        _ id: UInt64,
        _ from: Double,
        _ until: Double,
        isSeats: Bool = false,
        revoked: Double? = nil,
        _ type: RevocationType = .refundFull
    ) -> TransactionFact {
        Row.month(id, from, until) {
            if isSeats { $0.additionalReason = "SEAT_ADDITION" }
            $0.revocationDate = revoked.map(Life.day)
            $0.revocationType = revoked == nil ? nil : type
        }
    }

    @Test func aPurchaseThatIsTakenBackAtItsStartIsRevokedFromThereOn() {
        let life = Self.life(Self.charge(1, 0, 30), Self.charge(2, 30, 60, revoked: 30))
        #expect(life.at(Life.day(29))?.state == .active)
        #expect(life.at(Life.day(31))?.state == .revoked(.refund))
        #expect(life.at(Life.day(31))?.transactionID == AppleID(2))
    }

    /// The purchase names the cause, whatever was added to it in turn.
    @Test func theCauseIsThePurchasesThoughSeatsWereAddedTwice() {
        let life = Self.life(
            Self.charge(1, 0, 30, revoked: 20, .refundProrated),
            Self.charge(2, 5, 30, isSeats: true, revoked: 15),
            Self.charge(3, 10, 30, isSeats: true, revoked: 12)
        )
        #expect(life.at(Life.day(19))?.state == .active)
        #expect(life.at(Life.day(21))?.state == .revoked(.refundProrated))
        #expect(life.at(Life.day(21))?.transactionID == AppleID(1))
    }

    /// Seats of which the purchase was never told stand for themselves, also right behind another.
    @Test(arguments: [30.0, 40])
    func seatsWithoutTheirPurchaseAreTakenBackOnTheirOwn(_ from: Double) {
        let life = Self.life(
            Self.charge(1, 0, 30),
            Self.charge(2, from, from + 30, isSeats: true, revoked: 45)
        )
        #expect(life.at(Life.day(44))?.state == .active)
        #expect(life.at(Life.day(46))?.state == .revoked(.refund))
        #expect(life.at(Life.day(46))?.transactionID == AppleID(2))
    }

    /// Seats that begin where the period ends are of the next one, and do not keep it.
    @Test func seatsOfTheNextPeriodDoNotKeepARefundedOne() {
        let life = Self.life(
            Self.charge(1, 0, 30, revoked: 10),
            Self.charge(2, 30, 60, isSeats: true)
        )
        #expect(life.at(Life.day(20))?.state == .revoked(.refund))
        #expect(life.at(Life.day(31))?.state == .active)
    }

    /// Nor does a renewal that was charged early and begins within it.
    @Test func anEarlyRenewalDoesNotKeepARefundedPeriod() {
        var life = Self.life(Self.charge(1, 0, 30, revoked: 10))
        life.notify(.didRenew, at: Life.day(9), Row.month(2, 28, 58, reason: .renewal))
        #expect(life.at(Life.day(20))?.state == .revoked(.refund))
        #expect(life.at(Life.day(29))?.state == .active)
    }

    /// Seats that were added keep it as long as they are not taken back, though they are over.
    @Test func thePeriodIsTakenBackWhenTheLastOfItsChargesIs() {
        let life = Self.life(
            Self.charge(1, 0, 30, revoked: 15),
            Self.charge(2, 10, 18, isSeats: true, revoked: 20)
        )
        #expect(life.at(Life.day(17))?.state == .active)
        #expect(life.at(Life.day(19))?.state == .renewalPending)
        #expect(life.at(Life.day(21))?.state == .revoked(.refund))
    }

    /// The steps tell the same story: other seats still stand when one of them is taken back.
    @Test func theStepToRevokedWaitsForTheLastSeats() {
        func steps(_ seats: [UInt64], _ from: Double = 10) -> [StateKind] {
            var life = Life()
            life.notify(.subscribed, .initialBuy, at: Life.t0, Row.month())
            for id in [2, 3] as [UInt64] {
                life.notify(
                    .didChangeRenewalPref,
                    .increaseQuantity,
                    at: Life.day(10),
                    Self.charge(id, from, 30, isSeats: true)
                )
            }
            life.notify(.refund, at: Life.day(12), Self.charge(1, 0, 30, revoked: 12))
            for id in seats {
                life.notify(
                    .refund,
                    at: Life.day(12 + Double(id)),
                    Self.charge(id, from, 30, isSeats: true, revoked: 12)
                )
            }
            return life.history.transitions.map { StateKind($0.to) }
        }
        #expect(steps([]) == [.active])
        #expect(steps([2]) == [.active])
        #expect(steps([2, 3]) == [.active, .revoked])
        // Seats that were bought together with the period keep it as well.
        #expect(steps([], 0) == [.active])
        #expect(steps([2, 3], 0) == [.active, .revoked])
    }

    @Test func seatsOfAPeriodDoNotKeepTheOneAfterIt() {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, Row.month())
        life.notify(
            .didChangeRenewalPref,
            .increaseQuantity,
            at: Life.day(10),
            Self.charge(2, 10, 30, isSeats: true)
        )
        life.notify(.didRenew, at: Life.day(30), Row.month(3, 30, 60, reason: .renewal))
        life.notify(.refund, at: Life.day(40), Self.charge(3, 30, 60, revoked: 40))
        #expect(life.history.transitions.map { StateKind($0.to) } == [.active, .revoked])
        // The refund may be the first word of it.
        var late = Life()
        for event in life.events where event.fact.notificationType != .didRenew {
            late.add(event.fact)
        }
        #expect(late.history.transitions.map { StateKind($0.to) } == [.active, .revoked])
    }

    /// Several transactions renew at once where there are seats, and theirs may be signed first.
    @Test(arguments: [(30.0, 0.0), (30, 30), (35, 30)])
    func seatsThatWereToldOfBeforeTheirPurchaseKeepItToo(_ seats: Double, _ first: Double) {
        var life = Life()
        if first < 30 { life.notify(.subscribed, .initialBuy, at: Life.t0, Row.month()) }
        life.read(at: Life.day(29.9), Self.charge(2, seats, 60, isSeats: true))
        life.notify(.didRenew, at: Life.day(30), Row.month(3, 30, 60, reason: .renewal))
        life.notify(.refund, at: Life.day(40), Self.charge(3, 30, 60, revoked: 40))
        #expect(life.at(Life.day(41))?.state == .active)
        #expect(life.history.transitions.map { StateKind($0.to) } == [.active])
        let last = Self.charge(2, seats, 60, isSeats: true, revoked: 50)
        life.notify(.refund, at: Life.day(50), last)
        #expect(life.at(Life.day(51))?.state == .revoked(.refund))
        #expect(life.history.transitions.map { StateKind($0.to) } == [.active, .revoked])
    }
}
