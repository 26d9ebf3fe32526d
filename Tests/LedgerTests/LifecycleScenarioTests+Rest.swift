import Testing

@testable import Ledger

/// What the other tests of the scenarios leave out.
extension LifecycleScenarioTests {
    @Test func s05_thePeriodToldAgainDoesNotUndoAnAnnouncedFailure() {
        var life = Self.paid()
        life.notify(.didFailToRenew, at: Life.day(29.2), Self.period(1, 0, 30), Self.failing())
        life.notify(.consumptionRequest, at: Life.day(29.5), Self.period(1, 0, 30), Self.failing())
        #expect(life.history.transitions.map(\.to) == [.active, .billingRetry])
        // An extension does: the period has a later end, and the charge is due later.
        life.notify(.renewalExtended, at: Life.day(29.6), Self.period(1, 0, 33), Life.renewal())
        #expect(life.history.transitions.map(\.to) == [.active, .billingRetry, .active])
        #expect(life.history.anomalies.isEmpty)
    }

    @Test func s10_aRefundOfTheMonthBeforeLastLeavesTheCurrentOne() {
        var life = Self.paid()
        life.notify(.didRenew, at: Life.day(30), Self.period(2, 30, 60), Life.renewal())
        life.notify(.didRenew, at: Life.day(60), Self.period(3, 60, 90), Life.renewal())
        let before = life.history
        life.notify(
            .refund,
            at: Life.day(70),
            Self.period(1, 0, 30, reason: .purchase) { $0.revocationDate = Life.day(70) },
            Life.renewal()
        )
        let after = life.history
        #expect(after.timeline.map(\.state) == before.timeline.map(\.state))
        #expect(after.timeline.map(\.until) == before.timeline.map(\.until))
        #expect(after.transitions == before.transitions)
        #expect(after.charges.map { $0.revokedAt != nil } == [true, false, false])
    }

    @Test func s11_whatBecomesOfTheRenewalOfARefundedPeriodLiftsNoRefund() {
        let refunded = Self.revoked(Self.period(1, 0, 30, reason: .purchase), at: 10)
        var life = Self.paid()
        life.notify(.refund, at: Life.day(10), refunded)
        life.notify(.didFailToRenew, .gracePeriod, at: Life.day(30), refunded, Self.failing())
        life.notify(.gracePeriodExpired, at: Life.day(46), refunded, Self.failing())
        #expect(life.at(Life.day(50))?.state == .revoked(.refund))
        #expect(life.history.transitions.map(\.to) == [.active, .revoked(.refund)])
        var lost = life
        lost.notify(.expired, .billingRetry, at: Life.day(90), refunded)
        #expect(lost.at(Life.day(91))?.state == .revoked(.refund))
        #expect(lost.history.transitions == life.history.transitions)
        // Only a new period does.
        life.notify(.didRenew, .billingRecovery, at: Life.day(60), Self.period(2, 60, 90))
        #expect(life.at(Life.day(61))?.state == .active)
        for history in [life.history, lost.history] {
            #expect(!history.anomalies.map(\.kind).contains(.unexpectedTransition))
        }
    }

    @Test func s24_aPurchasersRefundEndsBothChainsEachByItsOwnFact() {
        let refunded = Self.period(1, 0, 30, reason: .purchase) {
            $0.revocationDate = Life.day(9)
            $0.revocationReason = 1
        }
        var purchaser = Self.paid()
        purchaser.notify(.refund, at: Life.day(9), refunded)
        var member = Life()
        let granted = Self.period(11, 0, 30, reason: .purchase) { $0.ownership = .familyShared }
        member.notify(.subscribed, .initialBuy, at: Life.t0, granted)
        // Until the member's own notification comes nothing ends for the member.
        #expect(member.at(Life.day(10))?.entitled == true)
        member.notify(
            .revoke,
            at: Life.day(9),
            Self.period(11, 0, 30, reason: .purchase) {
                $0.ownership = .familyShared
                $0.revocationDate = Life.day(9)
                $0.revocationReason = 1
            }
        )
        #expect(purchaser.at(Life.day(10))?.state == .revoked(.refund))
        #expect(member.at(Life.day(10))?.state == .revoked(.familyRevoke))
    }

    @Test func s25_s31_anExtensionThatAppleRefusesMovesNothing() {
        // A family member's, one during a trial, one of an expired subscription.
        var member = Life()
        member.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            Self.period(1, 0, 30, reason: .purchase) { $0.ownership = .familyShared }
        )
        var expired = Self.paid()
        expired.notify(.expired, .voluntary, at: Life.day(30), Self.period(1, 0, 30))
        for life in [member, Self.trial(), expired] {
            var asked = life
            let before = asked.history.timeline
            var answer = Fact(kind: .extensionAnswered, provenance: .tls, factAt: Life.day(5))
            answer.extensionAnswer = ExtensionAnswer(success: false, effectiveDate: Life.day(60))
            asked.add(answer)
            #expect(asked.history.timeline == before)
        }
    }

    @Test func s31_anExtensionThatWeDidNotAskForCountsByItsSignature() {
        var life = Self.paid()
        life.notify(
            .renewalExtended,
            at: Life.day(20),
            Self.period(1, 0, 45, reason: .purchase),
            Life.renewal()
        )
        #expect(life.at(Life.day(44))?.state == .active)
        #expect(life.at(Life.day(44))?.confidence == .confirmed)
        #expect(life.history.charges.map(\.isExtended) == [true])
        #expect(life.history.anomalies.isEmpty)
    }

    @Test func s31_anExtensionDuringATrialLeavesItATrial() {
        var life = Self.trial()
        life.notify(
            .renewalExtended,
            at: Life.day(5),
            Self.period(1, 0, 14, reason: .purchase) {
                $0.offerType = 1
                $0.offerDiscountType = .freeTrial
            },
            Life.renewal()
        )
        #expect(life.at(Life.day(13))?.offer == .trial)
        #expect(life.at(Life.day(13))?.state == .active)
        #expect(life.history.charges.count == 1)
    }

    @Test func s31_anExpiredSubscriptionThatIsExtendedAllTheSameIsASurprise() {
        var life = Self.paid()
        life.notify(.expired, .voluntary, at: Life.day(30), Self.period(1, 0, 30))
        life.notify(.renewalExtended, at: Life.day(35), Self.period(1, 0, 60, reason: .purchase))
        // Apple's signature counts, and the anomaly says that Apple's rule was broken.
        #expect(life.at(Life.day(40))?.state == .active)
        #expect(life.history.anomalies.map(\.kind).contains(.unexpectedTransition))
    }

    @Test func s34_noUnknownWordGrantsOrEndsAccess() {
        let before = Self.paid()
        let changes: [@Sendable (inout TransactionFact) -> Void] = [
            { $0.ownership = .unknown("FUTURE") },
            { $0.reason = .unknown("FUTURE") },
            { $0.revocationType = .unknown("FUTURE") },
            { $0.offerType = 9 },
            { $0.offerDiscountType = .unknown("FUTURE") },
            { $0.billingPlanType = .unknown("FUTURE") },
        ]
        for change in changes {
            var life = before
            life.notify(
                NotificationType("FUTURE_TYPE"),
                Subtype("FUTURE"),
                at: Life.day(9),
                status: 9,
                Self.period(1, 0, 30, reason: .purchase, change: change),
                Life.renewal { $0.expirationIntent = 17 }
            )
            #expect(life.accessEnd(0) == Life.day(30))
            #expect(life.history.anomalies.map(\.kind) == [.unknownValue])
        }
        // A revocation date counts, whatever kind of revocation it is.
        var revoked = before
        revoked.notify(
            .refund,
            at: Life.day(9),
            Self.period(1, 0, 30, reason: .purchase) {
                $0.revocationDate = Life.day(9)
                $0.revocationType = .unknown("FUTURE")
            }
        )
        #expect(revoked.at(Life.day(9))?.state == .revoked(.refund))
    }

    @Test func s30_thePurchaserIsServedUntilTheLastChargeOfThePeriodIsTakenBack() {
        let more = Self.period(2, 10, 30, reason: .purchase) {
            $0.additionalReason = "SEAT_ADDITION"
            $0.quantity = 3
        }
        var life = Self.paid()
        life.notify(.didChangeRenewalPref, .increaseQuantity, at: Life.day(10), more)
        // The seats that were added go back: the period itself stands, and ends as any other.
        var seatsBack = life
        seatsBack.notify(.refund, at: Life.day(12), Self.revoked(more, at: 12))
        #expect(seatsBack.at(Life.day(29))?.state == .active)
        #expect(seatsBack.at(Life.day(31))?.state == .expired(.presumed))
        #expect(seatsBack.history.transitions.count == 1)
        // The period's own charge goes back first, then that of the seats.
        let first = Self.period(1, 0, 30, reason: .purchase)
        life.notify(.refund, at: Life.day(14), Self.revoked(first, at: 14))
        #expect(life.at(Life.day(15))?.state == .active)
        #expect(life.history.transitions.count == 1)
        life.notify(.refund, at: Life.day(16), Self.revoked(more, at: 16))
        #expect(life.at(Life.day(15))?.state == .active)
        #expect(life.at(Life.day(16))?.state == .revoked(.refund))
        #expect(life.at(Life.day(31))?.state == .revoked(.refund))
        #expect(life.history.transitions.map(\.to) == [.active, .revoked(.refund)])
    }

    private static func revoked(_ fact: TransactionFact, at day: Double) -> TransactionFact {
        var fact = fact
        fact.revocationDate = Life.day(day)
        fact.digest = Life.digest(of: fact)
        return fact
    }
}
