import Testing

@testable import Ledger

/// Apple's status against each state, and against what was known when it was signed.
///
/// Lifecycle 1.2: status is a cross-check; it is as of the instant of its own signature.
@Suite struct StatusTableTests {
    private typealias Row = NotificationRow

    private static func paid(_ renewal: RenewalFact? = Life.renewal()) -> Life {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, Row.month(), renewal)
        return life
    }

    /// The statuses of one to five that the timeline contradicts on a day.
    private static func odd(_ life: Life, _ day: Double) -> [Int32] {
        (1...5).filter { status in
            var told = life
            told.read(at: Life.day(day), status: status)
            return told.history.anomalies.contains { $0.kind == .statusDisagrees }
        }
    }

    private static func failed() -> Life {
        var life = paid()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(29.2),
            Row.month(),
            Row.failing(graceUntil: 46)
        )
        return life
    }

    // MARK: Each state

    @Test func eachStateHasItsStatus() {
        #expect(Self.odd(Self.paid(), 10) == [2, 3, 4, 5])
        #expect(Self.odd(Self.paid(), 30.05) == [2, 3, 4, 5])
        // A failed charge may be announced while the period still runs.
        #expect(Self.odd(Self.failed(), 29.1) == [2, 3, 4, 5])
        #expect(Self.odd(Self.failed(), 29.5) == [2, 5])
        #expect(Self.odd(Self.failed(), 40) == [1, 2, 3, 5])
        #expect(Self.odd(Self.failed(), 50) == [1, 2, 4, 5])
        var over = Self.paid()
        over.notify(.expired, .voluntary, at: Life.day(30), Row.month(), Row.off)
        #expect(Self.odd(over, 40) == [1, 3, 4, 5])
    }

    /// What was refunded expires as well, from the end of its period on.
    @Test(
        arguments: [
            (20.0, [1, 2, 3, 4]), (29.9, [1, 2, 3, 4]), (30, [1, 3, 4]), (31, [1, 3, 4]),
        ] as [(Double, [Int32])]
    )
    func aRefundedPeriodIsExpiredOnceItIsOver(_ day: Double, _ odd: [Int32]) {
        var life = Self.paid()
        life.notify(.refund, at: Life.day(10), Row.month { $0.revocationDate = Life.day(10) })
        #expect(Self.odd(life, day) == odd)
    }

    /// The whole timeline may be one stretch.
    @Test func aPeriodThatWasTakenBackAtItsStartIsComparedToo() {
        var life = Life()
        life.read(at: Life.day(1), Row.month { $0.revocationDate = Life.t0 })
        #expect(life.history.timeline.count == 1)
        #expect(Self.odd(life, 2) == [1, 2, 3, 4])
    }

    // MARK: What was known

    /// Before the first period the timeline says nothing.
    @Test func beforeThePeriodThatWasToldAheadNoStatusIsOdd() {
        var life = Life()
        life.read(at: Life.t0, Row.month(1, 5, 35))
        #expect(Self.odd(life, 1) == [])
        #expect(Self.odd(life, 5) == [2, 3, 4, 5])
    }

    /// Apple calls active what has paid for the next period, which is yet to begin.
    @Test func aPeriodThatIsKnownAheadMayBeCalledActive() {
        var life = Self.paid()
        life.notify(.expired, .voluntary, at: Life.day(30), Row.month(), Row.off)
        life.read(at: Life.day(40), Row.month(2, 60, 90))
        #expect(Self.odd(life, 39) == [1, 3, 4, 5])
        #expect(Self.odd(life, 50) == [3, 4, 5])
    }

    /// What was told later does not make odd what was right when it was signed.
    @Test func aStatusFromBeforeTheNewsIsNotOdd() {
        // The period itself.
        var late = Life()
        late.read(at: Life.day(1), Row.month(), Life.renewal())
        #expect(Self.odd(late, 0.9) == [])
        #expect(Self.odd(late, 1) == [2, 3, 4, 5])
        // Its end.
        var over = Self.paid()
        over.notify(.expired, .voluntary, at: Life.day(45), Row.month())
        #expect(Self.odd(over, 44) == [])
        #expect(Self.odd(over, 45) == [1, 3, 4, 5])
        // An end that only renewal info tells of.
        var read = Self.paid()
        read.read(
            at: Life.day(40),
            Row.month(),
            Life.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
            }
        )
        #expect(Self.odd(read, 39) == [])
        #expect(Self.odd(read, 40) == [1, 3, 4, 5])
        // A failure that only renewal info tells of.
        var implied = Self.paid()
        implied.read(at: Life.day(33), Row.month(), Row.failing())
        #expect(Self.odd(implied, 32) == [])
        #expect(Self.odd(implied, 33) == [1, 2, 4, 5])
        // A refund.
        var refunded = Self.paid()
        refunded.notify(.refund, at: Life.day(12), Row.month { $0.revocationDate = Life.day(10) })
        #expect(Self.odd(refunded, 11) == [])
        #expect(Self.odd(refunded, 12) == [1, 2, 3, 4])
    }

    /// An extension that was signed after the old end: until then Apple may have called it over.
    @Test func aStatusFromBeforeAnExtensionIsNotOdd() {
        var life = Self.paid()
        life.notify(.renewalExtended, at: Life.day(36), Row.month(1, 0, 37), Life.renewal())
        #expect(Self.odd(life, 29) == [2, 3, 4, 5])
        #expect(Self.odd(life, 30) == [])
        #expect(Self.odd(life, 35) == [])
        #expect(Self.odd(life, 36) == [2, 3, 4, 5])
    }

    /// While a refund stood that was undone later, revoked was right.
    @Test func aStatusFromWhileARefundStoodIsNotOdd() {
        var life = Self.paid()
        life.notify(.refund, at: Life.day(10), Row.month { $0.revocationDate = Life.day(9) })
        life.notify(.refundReversed, at: Life.day(12), Row.month())
        #expect(Self.odd(life, 8.9) == [2, 3, 4, 5])
        #expect(Self.odd(life, 9) == [])
        #expect(Self.odd(life, 11.9) == [])
        #expect(Self.odd(life, 12) == [2, 3, 4, 5])
    }

    /// What only the clock says was so all along, though renewal info came later.
    @Test func whatOnlyTheClockSaysIsComparedWhateverCameLater() {
        var life = Self.paid()
        life.notify(.consumptionRequest, at: Life.day(50), Row.month(), Life.renewal())
        #expect(life.at(Life.day(40))?.confidence == .clock)
        #expect(Self.odd(life, 40) == [1, 3, 4, 5])
    }

    /// Grace that has neither date nor configuration is shown as retry; then the status disagrees.
    @Test func aStatusOfGraceOfWhichNothingElseIsKnownIsOdd() {
        #expect(Self.odd(Self.paid(nil), 31) == [1, 4, 5])
        var life = Self.paid(nil)
        life.rules.gracePeriodDays = 16
        #expect(Self.odd(life, 31) == [1, 5])
    }
}
