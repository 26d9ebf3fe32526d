import Testing

@testable import Ledger

/// What each stretch of the time after a period shows, and which events it names for it.
@Suite struct GapPieceTests {
    private typealias Row = NotificationRow

    private static func paid() -> Life {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, Row.month(), Life.renewal())
        return life
    }

    private static func failed(graceUntil: Double?) -> Life {
        var life = paid()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            Row.month(),
            Row.failing(graceUntil: graceUntil)
        )
        return life
    }

    private static func names(_ life: Life) -> [String] { life.history.timeline.map(\.state.name) }

    private static func hasNoEmptyStretch(_ life: Life) -> Bool {
        life.history.timeline.allSatisfy { interval in
            interval.until.map { interval.from < $0 } ?? true
        }
    }

    @Test func aWaitForARenewalIsCertainOnlyByTheClock() {
        #expect(Self.paid().at(Life.day(30))?.state == .renewalPending)
        #expect(Self.paid().at(Life.day(30))?.confidence == .clock)
    }

    /// A renewal that was charged early lies within a period that an extension made longer; a
    /// renewal is awaited from the later end on.
    @Test func theWaitBeginsAtTheEndOfWhatCoveredLast() {
        var life = Self.paid()
        life.notify(.renewalExtended, at: Life.day(10), Row.month(1, 0, 60), Life.renewal())
        life.notify(.didRenew, at: Life.day(29), Row.month(2, 29, 59, reason: .renewal))
        #expect(life.at(Life.day(59.5))?.transactionID == AppleID(1))
        #expect(life.at(Life.day(60.05))?.state == .renewalPending)
        #expect(life.at(Life.day(60.1))?.state == .expired(.presumed))
    }

    // MARK: Grace and retry

    @Test func graceIsDecidedByItsDateAndRetryByTheLastRenewalInfo() {
        var life = Self.failed(graceUntil: 46)
        life.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            at: Life.day(35),
            Row.month(),
            Life.renewal {
                $0.isInBillingRetryPeriod = true
                $0.autoRenewStatus = 0
                $0.expirationIntent = 2
            }
        )
        let grace = life.at(Life.day(40))
        #expect(grace?.state == .gracePeriod)
        #expect(grace?.gracePeriodExpiresDate == Life.day(46))
        #expect(grace?.deciding.renewal == 2)
        #expect(grace?.deciding.marker == 2)
        let retry = life.at(Life.day(50))
        #expect(retry?.state == .billingRetry)
        #expect(retry?.deciding.renewal == 3)
        #expect(retry?.deciding.transaction == 3)
    }

    @Test func retryAfterGraceThatWasEstimatedIsCertain() {
        var life = Self.failed(graceUntil: nil)
        life.rules.gracePeriodDays = 16
        #expect(life.at(Life.day(45))?.state == .gracePeriod)
        #expect(life.at(Life.day(45))?.confidence == .estimated)
        #expect(life.at(Life.day(46))?.state == .billingRetry)
        #expect(life.at(Life.day(46))?.confidence == .confirmed)
    }

    /// A policy of "until grace ends" adds nothing to a grace that Apple granted, however short.
    @Test func whoHadGraceGetsNoMoreOfItByPolicy() {
        var life = Self.failed(graceUntil: 36)
        life.rules.gracePeriodDays = 16
        life.rules.policies = [AccessPolicy(billingRetryAccess: .untilGraceEnds)]
        #expect(life.at(Life.day(35))?.entitled == true)
        #expect(life.at(Life.day(37))?.state == .billingRetry)
        #expect(life.at(Life.day(37))?.entitled == false)
    }

    @Test func anExpiryInGraceLeavesNoRetryBehindIt() {
        var life = Self.failed(graceUntil: 46)
        life.notify(.expired, .voluntary, at: Life.day(40), Row.month())
        #expect(Self.names(life) == ["active", "grace_period", "expired"])
        #expect(Self.hasNoEmptyStretch(life))
    }

    // MARK: What is over

    /// Renewal info that is read later tells of all the time after the period, and is named there.
    @Test func anEndThatIsReadLaterIsNamedFromThePeriodsEndOn() {
        var life = Self.paid()
        life.read(
            at: Life.day(31),
            Row.month(),
            Life.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
            }
        )
        for day in [30, 30.5, 32] {
            #expect(life.at(Life.day(day))?.state == .expired(.voluntary))
            #expect(life.at(Life.day(day))?.deciding.renewal == 2)
        }
    }

    @Test func whatWasTakenBackIsCertainAndNamesTheRefund() {
        var life = Self.paid()
        life.notify(.refund, at: Life.day(10), Row.month { $0.revocationDate = Life.day(10) })
        let revoked = life.at(Life.day(11))
        #expect(revoked?.state == .revoked(.refund))
        #expect(revoked?.confidence == .confirmed)
        #expect(revoked?.deciding.transaction == 2)
    }

    /// A period that was over is refunded on the day on which the customer comes back.
    @Test(
        arguments: [
            (40.0, ["active", "expired", "active"]),
            (35.0, ["active", "expired", "revoked", "active"]),
        ] as [(Double, [String])]
    )
    func aRefundCountsFromItsDateToTheNextPeriod(_ day: Double, _ names: [String]) {
        var life = Self.paid()
        life.notify(.expired, .voluntary, at: Life.day(30), Row.month(), Row.off)
        life.notify(.refund, at: Life.day(41), Row.month { $0.revocationDate = Life.day(day) })
        life.notify(
            .subscribed,
            .resubscribe,
            at: Life.day(42),
            Row.month(2, 40, 70),
            Life.renewal()
        )
        #expect(Array(Self.names(life).prefix(names.count)) == names)
        #expect(Self.hasNoEmptyStretch(life))
    }
}
