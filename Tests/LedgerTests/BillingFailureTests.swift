import Testing

@testable import Ledger

/// What the fold says of charges that failed.
///
/// Scenario numbers are those of the lifecycle reference, section 10; A01, A02 and A10 those of
/// the bug reports.
@Suite struct BillingFailureTests {
    private static func period(
        _ id: UInt64,
        _ from: Double,
        _ until: Double,
        reason: TransactionReason = .renewal,
        change: (inout TransactionFact) -> Void = { _ in }
    ) -> TransactionFact {
        Life.transaction(
            id,
            from: Life.day(from),
            until: Life.day(until),
            reason: reason,
            change: change
        )
    }

    private static func failing(_ change: (inout RenewalFact) -> Void = { _ in }) -> RenewalFact {
        Life.renewal {
            $0.isInBillingRetryPeriod = true
            $0.expirationIntent = 2
            change(&$0)
        }
    }

    /// A month that was paid, 9.99 USD.
    private static func paid(change: (inout TransactionFact) -> Void = { _ in }) -> Life {
        var life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            period(1, 0, 30, reason: .purchase) {
                $0.price = 9_990
                $0.currency = "USD"
                change(&$0)
            },
            Life.renewal()
        )
        return life
    }

    /// Its charge fails on day 30; with a day, grace until then is announced.
    private static func failed(graceUntil: Double? = nil) -> Life {
        var life = paid()
        life.notify(
            .didFailToRenew,
            graceUntil == nil ? nil : .gracePeriod,
            at: Life.day(30),
            period(1, 0, 30) {
                $0.price = 9_990
                $0.currency = "USD"
            },
            failing { $0.gracePeriodExpiresDate = graceUntil.map(Life.day) }
        )
        return life
    }

    private static func only(_ life: Life) throws -> BillingFailure {
        #expect(life.history.failures.count == 1)
        return try #require(life.history.failures.first)
    }

    @Test func a01_graceIsOpenUntilItsAnnouncedEnd() throws {
        let failure = try Self.only(Self.failed(graceUntil: 46))
        #expect(failure.openedAt == Life.day(30))
        #expect(failure.expiresDate == Life.day(30))
        #expect(failure.grace?.until == Life.day(46))
        #expect(failure.grace?.isEstimated == false)
        #expect(failure.graceExhaustedAt == Life.day(46))
        #expect(failure.retryDeadline == Life.day(90))
        #expect(failure.ending == nil)
        #expect(failure.amount == 9_990)
        #expect(failure.currency == "USD")
    }

    @Test func a02_retryWithoutGraceHasNoGraceAndStaysOpen() throws {
        let failure = try Self.only(Self.failed())
        #expect(failure.grace == nil)
        #expect(failure.graceExhaustedAt == nil)
        #expect(failure.ending == nil)
    }

    @Test func a10_threeSignalsOfOneLossAreOneFailure() throws {
        var life = Self.failed()
        life.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            at: Life.day(31),
            Self.period(1, 0, 30),
            Self.failing { $0.autoRenewStatus = 0 }
        )
        #expect(try Self.only(life).ending == nil)
        life.notify(
            .expired,
            .billingRetry,
            at: Life.day(90),
            Self.period(1, 0, 30),
            Life.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 2
            }
        )
        let failure = try Self.only(life)
        #expect(failure.ending?.outcome == .expired)
        #expect(failure.ending?.at == Life.day(90))
        #expect(failure.ending?.position == 4)
        #expect(failure.openedBy == 2)
    }

    @Test func s02_aTrialsFailureWithoutAGraceDateIsRecoveredInEstimatedGrace() throws {
        var life = Life()
        life.rules.gracePeriodDays = 16
        life.rules.products = [
            "gold.month": ProductRules(groupID: "g", level: 1, period: .oneMonth)
        ]
        let trial = Self.period(1, 0, 7, reason: .purchase) {
            $0.offerType = 1
            $0.offerDiscountType = .freeTrial
            $0.price = 0
            $0.currency = "EUR"
        }
        life.notify(.subscribed, .initialBuy, at: Life.t0, trial, Life.renewal())
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(7),
            trial,
            Self.failing { $0.renewalPrice = 4_990 }
        )
        #expect(try Self.only(life).grace?.isEstimated == true)
        #expect(try Self.only(life).grace?.until == Life.day(23))
        life.notify(
            .didRenew,
            .billingRecovery,
            at: Life.day(12),
            Self.period(2, 12, 42),
            Life.renewal()
        )
        let failure = try Self.only(life)
        #expect(failure.isTrialConversion)
        #expect(failure.amount == 4_990)
        #expect(failure.currency == "EUR")
        #expect(failure.ending?.outcome == .recoveredInGrace)
        #expect(failure.ending?.at == Life.day(12))
        #expect(failure.graceExhaustedAt == nil)
    }

    @Test func s03_aTrialThatNobodyPaysForExpires() throws {
        var life = Life()
        let trial = Self.period(1, 0, 7, reason: .purchase) {
            $0.offerDiscountType = .freeTrial
            $0.price = 0
        }
        life.notify(.subscribed, .initialBuy, at: Life.t0, trial, Life.renewal())
        life.notify(.didFailToRenew, at: Life.day(7), trial, Self.failing())
        life.notify(.expired, .billingRetry, at: Life.day(67), trial, Self.failing())
        let failure = try Self.only(life)
        #expect(failure.isTrialConversion)
        #expect(failure.amount == nil)
        #expect(failure.ending?.outcome == .expired)
    }

    @Test func s05_aFailureBeforeTheEndIsOpenFromItsAnnouncementOn() throws {
        var life = Self.paid()
        life.notify(.didFailToRenew, at: Life.day(29.2), Self.period(1, 0, 30), Self.failing())
        #expect(try Self.only(life).openedAt == Life.day(29.2))
        #expect(life.at(Life.day(29.5))?.hasBillingTrouble == true)
        life.notify(.didRenew, at: Life.day(29.8), Self.period(2, 30, 60), Life.renewal())
        let failure = try Self.only(life)
        #expect(failure.ending?.outcome == .recoveredInGrace)
        #expect(failure.ending?.at == Life.day(29.8), "when it was reported")
    }

    @Test func aRecoveryThatKeepsTheCycleLeavesNoGapAndIsStillSeen() throws {
        var life = Self.failed(graceUntil: 46)
        // Within grace the new period begins where the old one ended, whenever the card worked.
        life.notify(
            .didRenew,
            .billingRecovery,
            at: Life.day(35),
            Self.period(2, 30, 60),
            Life.renewal()
        )
        #expect(life.history.timeline.allSatisfy { $0.state != .gracePeriod })
        let failure = try Self.only(life)
        #expect(failure.ending?.outcome == .recoveredInGrace)
        #expect(failure.ending?.at == Life.day(35))
        #expect(failure.ending?.position == 3)
    }

    @Test func s06_aRecoveryOnDayFortyComesAfterGrace() throws {
        var life = Self.failed(graceUntil: 46)
        life.notify(
            .gracePeriodExpired,
            at: Life.day(46),
            Self.period(1, 0, 30),
            Self.failing { $0.gracePeriodExpiresDate = Life.day(46) }
        )
        life.notify(
            .didRenew,
            .billingRecovery,
            at: Life.day(70),
            Self.period(2, 70, 100),
            Life.renewal()
        )
        let failure = try Self.only(life)
        #expect(failure.graceExhaustedAt == Life.day(46))
        #expect(failure.ending?.outcome == .recoveredAfterGrace)
        #expect(failure.ending?.at == Life.day(70))
    }

    @Test func s07_sixtyDaysWithoutSuccessExpire() throws {
        var life = Self.failed(graceUntil: 46)
        life.notify(.gracePeriodExpired, at: Life.day(46), Self.period(1, 0, 30), Self.failing())
        life.notify(.expired, .billingRetry, at: Life.day(90), Self.period(1, 0, 30))
        let failure = try Self.only(life)
        #expect(failure.graceExhaustedAt == Life.day(46))
        #expect(failure.ending?.outcome == .expired)
        #expect(failure.ending?.at == Life.day(90))
    }

    @Test func s29_aCommitmentHasNoGraceAndNinetyDays() throws {
        var life = Life()
        let month = Self.period(1, 0, 30, reason: .purchase) {
            $0.billingPlanType = .monthly
            $0.commitmentExpiresDate = Life.day(360)
        }
        life.notify(.subscribed, .initialBuy, at: Life.t0, month, Life.renewal())
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            month,
            Self.failing { $0.gracePeriodExpiresDate = Life.day(46) }
        )
        let failure = try Self.only(life)
        #expect(failure.grace == nil)
        #expect(failure.retryDeadline == Life.day(120))
    }

    @Test func cancellingDuringRetryCloses() throws {
        var life = Self.failed(graceUntil: 46)
        life.notify(
            .expired,
            .voluntary,
            at: Life.day(35),
            Self.period(1, 0, 30),
            Life.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
                $0.gracePeriodExpiresDate = Life.day(46)
            }
        )
        let failure = try Self.only(life)
        #expect(failure.ending?.outcome == .cancelled)
        #expect(failure.ending?.at == Life.day(35))
        #expect(failure.graceExhaustedAt == nil)
        #expect(failure.expirationIntent == 1)
    }

    @Test func aLostExpiredLeavesTheFailureWithoutAnEnd() throws {
        // The intent is 2 from the first failure on and proves nothing.
        #expect(try Self.only(Self.failed()).ending == nil)
        var life = Self.failed()
        life.notify(
            .subscribed,
            .resubscribe,
            at: Life.day(200),
            Self.period(2, 200, 230, reason: .purchase),
            Life.renewal()
        )
        let failure = try Self.only(life)
        #expect(failure.ending?.outcome == .unknown)
        #expect(failure.ending?.at == Life.day(90))
        #expect(failure.ending?.position == 0)
    }

    @Test func comingBackAfterExpiredRecoversNothing() throws {
        var life = Self.failed()
        life.notify(.expired, .billingRetry, at: Life.day(80), Self.period(1, 0, 30))
        life.notify(
            .subscribed,
            .resubscribe,
            at: Life.day(85),
            Self.period(2, 85, 115, reason: .purchase),
            Life.renewal()
        )
        #expect(try Self.only(life).ending?.outcome == .expired)
    }

    @Test func aFailureThatOnlyRenewalInfoTellsIsFound() throws {
        var life = Self.paid()
        var fact = Fact(kind: .subscriptionStatus, provenance: .jws, factAt: Life.day(33))
        fact.renewal = Self.failing()
        fact.renewal?.signedDate = Life.day(33)
        life.add(fact)
        #expect(try Self.only(life).openedAt == Life.day(33))
        #expect(try Self.only(life).openedBy == 2)
    }

    @Test func aFailureThatOnlyTheStatusTellsIsFound() throws {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, Self.period(1, 0, 30, reason: .purchase))
        var fact = Fact(kind: .subscriptionStatus, provenance: .tls, factAt: Life.day(33))
        fact.status = 3
        life.add(fact)
        #expect(try Self.only(life).openedAt == Life.day(33))
        #expect(life.at(Life.day(34))?.state == .billingRetry)
    }

    @Test func eachPeriodHasItsOwnFailure() {
        var life = Self.failed(graceUntil: 46)
        life.notify(.didRenew, .billingRecovery, at: Life.day(33), Self.period(2, 30, 60))
        life.notify(.didFailToRenew, at: Life.day(60), Self.period(2, 30, 60), Self.failing())
        life.notify(.didRenew, .billingRecovery, at: Life.day(64), Self.period(3, 64, 94))
        let failures = life.history.failures
        #expect(failures.map(\.transactionID) == [AppleID(1), AppleID(2)])
        #expect(failures.map(\.ending?.outcome) == [.recoveredInGrace, .recoveredAfterGrace])
    }

    @Test func aPeriodLearnedLateDoesNotDrawALaterFailureToIt() throws {
        var life = Self.paid()
        life.notify(.didRenew, at: Life.day(60), Self.period(3, 60, 90), Life.renewal())
        life.notify(.didFailToRenew, at: Life.day(90), Self.period(3, 60, 90), Self.failing())
        // The period in between comes from the transaction history, signed when it was read.
        var fact = Fact(kind: .transaction, provenance: .jws, factAt: Life.day(95))
        fact.transaction = Self.period(2, 30, 60)
        fact.transaction?.signedDate = Life.day(95)
        life.add(fact)
        #expect(try Self.only(life).transactionID == AppleID(3))
    }

    @Test func aFamilyMembersFailureHasNoAmount() throws {
        var life = Self.paid { $0.ownership = .familyShared }
        life.notify(
            .didFailToRenew,
            at: Life.day(30),
            Self.period(1, 0, 30) {
                $0.ownership = .familyShared
                $0.price = 9_990
            },
            Self.failing { $0.renewalPrice = 9_990 }
        )
        let failure = try Self.only(life)
        #expect(failure.ownership == .familyShared)
        #expect(failure.amount == nil)
    }

    @Test func aRefundOfTheFailedPeriodClosesItsFailure() throws {
        var life = Self.failed(graceUntil: 46)
        life.notify(
            .refund,
            at: Life.day(36),
            Self.period(1, 0, 30) { $0.revocationDate = Life.day(36) }
        )
        #expect(try Self.only(life).ending?.outcome == .cancelled)
        #expect(try Self.only(life).ending?.at == Life.day(36))
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func theOrderOfArrivalChangesNoFailure(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var life = Self.failed(graceUntil: 46)
        life.notify(.gracePeriodExpired, at: Life.day(46), Self.period(1, 0, 30), Self.failing())
        life.notify(.didRenew, .billingRecovery, at: Life.day(70), Self.period(2, 70, 100))
        life.notify(.didFailToRenew, at: Life.day(99), Self.period(2, 70, 100), Self.failing())
        life.notify(.expired, .voluntary, at: Life.day(103), Self.period(2, 70, 100))
        let expected = life.history.failures
        #expect(expected.count == 2)
        var events = life.events + [life.events[Int.random(in: 0..<6, using: &random)]]
        events.shuffle(using: &random)
        var fold = SubscriptionFold(rules: life.rules)
        #expect(fold.history(of: events).failures == expected, "seed \(seed)")
    }
}
