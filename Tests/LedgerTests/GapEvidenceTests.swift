import Testing

@testable import Ledger

/// Which news count in the time after a period, and which of them wins (lifecycle 3.2).
@Suite struct GapEvidenceTests {
    private typealias Row = NotificationRow

    private static func paid(_ renewal: RenewalFact? = Life.renewal()) -> Life {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, Row.month(), renewal)
        return life
    }

    private static func ended(_ intent: Int32? = 2) -> RenewalFact {
        Life.renewal {
            $0.autoRenewStatus = 0
            $0.expirationIntent = intent
        }
    }

    // MARK: Without a failed charge

    /// 3.2: the cause is voluntary only where auto-renew was off before the period ended.
    @Test(arguments: [(29.9, ExpirationCause.voluntary), (30, .presumed), (30.05, .presumed)])
    func whoTurnsAutoRenewOffCountsAsLeavingOnlyBeforeTheEnd(
        _ day: Double,
        _ cause: ExpirationCause
    ) {
        var life = Self.paid()
        life.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            at: Life.day(day),
            Row.month(),
            Row.off
        )
        #expect(life.at(Life.day(31))?.state == .expired(cause))
    }

    @Test func anExpiryWithoutRenewalInfoLeavesNothingToWaitFor() {
        var life = Self.paid()
        life.notify(.expired, .voluntary, at: Life.day(30.01), Row.month())
        #expect(life.at(Life.day(30))?.state == .expired(.voluntary))
        #expect(life.at(Life.day(30))?.deciding.marker == 2)
    }

    /// 3.3, invariant 8: an unknown status by itself never ends access and never grants it.
    @Test func aStatusOfAnUnknownNumberLeavesTheOneBeforeItInForce() {
        var life = Self.paid(nil)
        life.read(at: Life.day(29), status: 2)
        life.read(at: Life.day(29.5), status: 9)
        #expect(life.at(Life.day(30.01))?.state == .expired(.other))
        #expect(life.at(Life.day(30.01))?.deciding.status == 2)
    }

    /// Apple may sign the end of a period and the one that follows it in one millisecond.
    @Test func anExpirySignedTogetherWithTheNextPeriodIsNotThatPeriods() {
        var life = Self.paid()
        life.notify(.expired, .voluntary, at: Life.day(40), Row.month())
        life.notify(
            .subscribed,
            .resubscribe,
            at: Life.day(40),
            Row.month(2, 40, 70),
            Life.renewal()
        )
        #expect(life.at(Life.day(70))?.state == .renewalPending)
    }

    @Test func anExpiryThatIsTheFirstNewsOfItsPeriodCounts() {
        var life = Life()
        life.notify(.expired, .voluntary, at: Life.day(30), Row.month())
        #expect(life.at(Life.day(30))?.state == .expired(.voluntary))
        #expect(life.at(Life.day(31))?.confidence == .confirmed)
    }

    // MARK: Failures that nothing announced

    @Test func whatOnlyRenewalInfoToldIsRetriedAsLongAsItSaysSo() {
        var life = Self.paid()
        life.read(at: Life.day(33), Row.month(), Row.failing())
        // The intent is 2 from the first failure on: it ends nothing while Apple retries.
        life.read(at: Life.day(40), Row.month(), Row.failing())
        #expect(life.at(Life.day(89))?.state == .billingRetry)
        #expect(life.at(Life.day(90))?.state == .expired(.billingRetry))
        // Nor does the flag alone, where it falls without an intent.
        var silent = Self.paid()
        silent.read(at: Life.day(33), Row.month(), Row.failing())
        silent.read(at: Life.day(40), Row.month(), Life.renewal())
        #expect(silent.at(Life.day(89))?.state == .billingRetry)
    }

    /// Of two renewal infos of one millisecond neither is the end of the other.
    @Test func anEndSignedTogetherWithTheFailureDoesNotCloseIt() {
        var life = Self.paid()
        life.read(at: Life.day(33), nil, Row.failing())
        var end = Self.ended()
        end.renewalDate = Life.day(60)
        life.read(at: Life.day(33), nil, end)
        #expect(life.at(Life.day(60))?.state == .billingRetry)
    }

    /// Lifecycle 6, Q3: the date persists after grace is over.
    @Test(arguments: [(29.8, 30.0), (46, 46), (50, 46)])
    func aGraceDateThatGrantsNothingIsNoGrace(_ day: Double, _ until: Double) {
        var life = Self.paid()
        life.rules.gracePeriodDays = 16
        life.rules.policies = [AccessPolicy(billingRetryAccess: .untilGraceEnds)]
        life.read(at: Life.day(day), Row.month(), Row.failing(graceUntil: until))
        #expect(life.at(Life.day(40))?.state == .billingRetry)
        // So the policy that serves as long as grace would have lasted still does.
        #expect(life.at(Life.day(45))?.entitled == true)
        #expect(life.at(Life.day(46))?.entitled == false)
    }

    /// 1.2: status fills the hole that missing renewal info leaves; 3 is retry, 4 is grace.
    @Test(
        arguments: [(3, SubscriptionState.billingRetry), (4, .gracePeriod)]
            as [(Int32, SubscriptionState)]
    )
    func aStatusAloneTellsGraceFromRetry(_ status: Int32, _ state: SubscriptionState) {
        var life = Self.paid(nil)
        life.rules.gracePeriodDays = 16
        life.read(at: Life.day(33), status: status)
        #expect(life.at(Life.day(40))?.state == state)
        #expect(life.at(Life.day(40))?.confidence == (status == 4 ? .estimated : .confirmed))
        #expect(life.at(Life.day(47))?.state == .billingRetry)
    }

    /// Of several statuses only the last says what is so.
    @Test func aStatusThatCallsItOverLeavesNothingOfAFailureBeforeIt() {
        var life = Self.paid(nil)
        life.read(at: Life.day(31), status: 3)
        #expect(life.at(Life.day(35))?.state == .billingRetry)
        life.read(at: Life.day(40), status: 2)
        #expect(life.at(Life.day(35))?.state == .expired(.other))
        #expect(life.history.failures.isEmpty)
    }

    /// Lifecycle 0, rule 8: the status that Apple's server answers is not signed.
    @Test(arguments: [(Provenance.jws, Confidence.confirmed), (.tls, .clock)])
    func anEndThatOnlyTheStatusTellsIsAsCertainAsItsSignature(
        _ provenance: Provenance,
        _ confidence: Confidence
    ) {
        var life = Self.paid(nil)
        life.read(at: Life.day(31), status: 2, provenance: provenance)
        #expect(life.at(Life.day(32))?.state == .expired(.other))
        #expect(life.at(Life.day(32))?.confidence == confidence)
    }

    /// Where EXPIRED never comes, the failure is what the end after the last retry goes back to.
    @Test func anEndThatNoNewsTellsOfNamesTheFailure() {
        var life = Self.paid(nil)
        life.notify(.didFailToRenew, at: Life.day(30), Row.month())
        #expect(life.at(Life.day(91))?.state == .expired(.billingRetry))
        #expect(life.at(Life.day(91))?.confidence == .clock)
        #expect(life.at(Life.day(91))?.deciding.marker == 2)
    }

    // MARK: How long grace lasts

    /// Without a date grace lasted until its end was announced, but never longer than Apple's
    /// longest.
    @Test(arguments: [(46.0, 46.0), (70, 58)])
    func graceWithoutADateIsShownUntilItsAnnouncedEnd(_ announced: Double, _ end: Double) {
        var life = Self.paid()
        life.notify(.didFailToRenew, .gracePeriod, at: Life.day(30), Row.month(), Life.renewal())
        life.notify(.gracePeriodExpired, at: Life.day(announced))
        #expect(life.at(Life.day(31))?.gracePeriodExpiresDate == Life.day(end))
        #expect(life.at(Life.day(end - 0.1))?.state == .gracePeriod)
        #expect(life.at(Life.day(end))?.state == .billingRetry)
        #expect(life.history.failures.first?.grace?.endedAt == Life.day(end))
    }

    /// What closed a failure before grace was announced anew does not close that.
    @Test func whatWasSignedBeforeTheAnnouncementOfGraceDoesNotCloseIt() {
        var life = Self.paid()
        life.notify(.expired, .billingRetry, at: Life.day(31), Row.month())
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(33),
            Row.month(),
            Row.failing(graceUntil: 46)
        )
        #expect(life.at(Life.day(45))?.state == .gracePeriod)
        #expect(life.at(Life.day(46))?.state == .billingRetry)
    }

    /// Nor does the end of an earlier grace say how long the later one is.
    @Test func theEndOfAnEarlierGraceIsNoDateForALaterOne() {
        var life = Self.paid()
        life.notify(.gracePeriodExpired, at: Life.day(31), Row.month())
        life.notify(.didFailToRenew, .gracePeriod, at: Life.day(33), Row.month(), Life.renewal())
        #expect(life.at(Life.day(30.5))?.state == .billingRetry)
        #expect(life.history.failures.first?.grace == nil)
    }

    /// The first news of a period is its failure; in the same millisecond comes the end of the
    /// period before.
    @Test func theEndOfThePeriodBeforeDoesNotCloseGraceOfTheSameInstant() {
        var life = Life()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(60),
            Row.month(2, 30, 60),
            Row.failing(graceUntil: 76)
        )
        life.notify(.expired, .voluntary, at: Life.day(60), Row.month())
        #expect(life.at(Life.day(75))?.state == .gracePeriod)
        var undated = Life()
        undated.notify(.didFailToRenew, .gracePeriod, at: Life.day(60), Row.month(2, 30, 60))
        undated.notify(.gracePeriodExpired, at: Life.day(60), Row.month())
        undated.notify(.gracePeriodExpired, at: Life.day(70), Row.month(2, 30, 60))
        #expect(undated.at(Life.day(65))?.state == .gracePeriod)
        #expect(undated.at(Life.day(70))?.state == .billingRetry)
    }

    /// Grace that only renewal info told of ends by what is signed first: the notice of its end, or
    /// renewal info that calls the subscription over.
    @Test(arguments: [(44.0, 60.0, 44.0), (45, 42, 42)])
    func graceEndsByTheFirstWordThatClosesIt(_ notice: Double, _ info: Double, _ end: Double) {
        var life = Self.paid()
        life.read(at: Life.day(31), Row.month(), Row.failing(graceUntil: 46))
        life.notify(.gracePeriodExpired, at: Life.day(notice), Row.month())
        life.read(at: Life.day(info), Row.month(), Self.ended())
        #expect(life.at(Life.day(end - 0.1))?.state == .gracePeriod)
        #expect(life.at(Life.day(end))?.state != .gracePeriod)
        #expect(life.at(Life.day(60))?.state == .expired(.billingRetry))
    }

    @Test func anEndSignedTogetherWithTheGraceDateClosesIt() {
        var life = Self.paid()
        life.read(at: Life.day(33), nil, Row.failing())
        life.read(at: Life.day(40), nil, Row.failing(graceUntil: 46))
        var end = Self.ended()
        end.renewalDate = Life.day(60)
        life.read(at: Life.day(40), nil, end)
        #expect(life.at(Life.day(39))?.state == .gracePeriod)
        #expect(life.at(Life.day(41))?.state == .expired(.billingRetry))
    }

    /// Of several dates since the announcement the one signed last counts, in whatever order.
    @Test(arguments: [(31.0, 58.0), (40, 50)])
    func aLaterGraceDateTakesTheEarlierOnesPlace(_ day: Double, _ until: Double) {
        var life = Self.paid()
        life.read(at: Life.day(day), Row.month(), Row.failing(graceUntil: until))
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            Row.month(),
            Row.failing(graceUntil: 46)
        )
        #expect(life.at(Life.day(until - 1))?.state == .gracePeriod)
        #expect(life.at(Life.day(until - 1))?.gracePeriodExpiresDate == Life.day(until))
        #expect(life.at(Life.day(until))?.state == .billingRetry)
    }

    /// What was dated before grace was announced anew is no date of that one.
    @Test func aDateOfAnEarlierGraceIsNoneOfALaterOne() {
        var life = Self.paid()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            Row.month(),
            Row.failing(graceUntil: 46)
        )
        life.notify(.didFailToRenew, .gracePeriod, at: Life.day(31), Row.month())
        #expect(life.at(Life.day(32))?.state == .billingRetry)
        life.rules.gracePeriodDays = 3
        #expect(life.at(Life.day(32))?.state == .gracePeriod)
        #expect(life.at(Life.day(32))?.confidence == .estimated)
    }

    /// Of a failure before the end of the period a date that is not after that end is no grace.
    @Test(arguments: [29.9, 30])
    func graceThatEndsWithThePeriodIsNone(_ until: Double) {
        var life = Self.paid()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(29.5),
            Row.month(),
            Row.failing(graceUntil: until)
        )
        #expect(life.history.failures.count == 1)
        #expect(life.history.failures.first?.grace == nil)
        #expect(life.at(Life.day(30))?.state == .billingRetry)
    }

    /// Lifecycle 1.2, `expirationIntent`: 5 names no cause, and neither does a number to come.
    @Test(
        arguments: [
            (1, ExpirationCause.voluntary), (2, .billingRetry), (3, .priceIncrease),
            (4, .productNotForSale), (5, .other), (6, .other),
        ] as [(Int32, ExpirationCause)]
    )
    func theIntentNamesTheCauseOfTheEnd(_ intent: Int32, _ cause: ExpirationCause) {
        var life = Self.paid()
        life.read(at: Life.day(31), Row.month(), Self.ended(intent))
        #expect(life.at(Life.day(31))?.state == .expired(cause))
    }
}
