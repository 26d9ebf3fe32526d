import Testing

@testable import Ledger

/// The quirk register of the lifecycle reference, section 6; the number stands in each name.
///
/// Those that are scenarios as well stand there; `docs/state-machine.md` says where.
@Suite struct QuirkTests {
    private typealias Row = NotificationRow

    private static func paid() -> Life {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, Row.month(), Life.renewal())
        return life
    }

    /// A fact as read from the Server API.
    private static func reading(
        _ day: Double,
        _ transaction: TransactionFact?,
        _ renewal: RenewalFact? = nil,
        provenance: Provenance = .jws
    ) -> Fact {
        var fact = Fact(kind: .subscriptionStatus, provenance: provenance, factAt: Life.day(day))
        fact.transaction = transaction
        fact.transaction?.signedDate = Life.day(day)
        fact.renewal = renewal
        fact.renewal?.signedDate = Life.day(day)
        return fact
    }

    @Test func q02GraceIsDecidedByItsMarkerAndDateAndNotByTheFlag() {
        var life = Self.paid()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            Row.month(),
            Life.renewal {
                $0.isInBillingRetryPeriod = false
                $0.gracePeriodExpiresDate = Life.day(46)
            }
        )
        #expect(life.at(Life.day(45))?.state == .gracePeriod)
        #expect(life.at(Life.day(46))?.state == .billingRetry)
    }

    @Test func q04AnIntentOfTwoEndsNothingWhileAppleRetries() {
        var life = Self.paid()
        life.notify(.didFailToRenew, at: Life.day(30), Row.month(), Row.failing())
        life.notify(.consumptionRequest, at: Life.day(50), Row.month(), Row.failing())
        #expect(life.at(Life.day(70))?.state == .billingRetry)
        #expect(life.history.failures.first?.ending == nil)
    }

    @Test func q05AutoRenewThatAppleTurnedOffIsNoVoluntaryEnd() {
        // For a refund request, before the refund.
        var refunded = Self.paid()
        refunded.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            at: Life.day(8),
            Row.month(),
            Row.off
        )
        refunded.notify(
            .refund,
            at: Life.day(9),
            Row.month { $0.revocationDate = Life.day(9) },
            Row.off
        )
        #expect(refunded.at(Life.day(31))?.state == .revoked(.refund))
        // At the end of billing retry.
        var failed = Self.paid()
        failed.notify(.didFailToRenew, at: Life.day(30), Row.month(), Row.failing())
        failed.notify(.didChangeRenewalStatus, at: Life.day(90), Row.month(), Row.off)
        failed.notify(.expired, .billingRetry, at: Life.day(90).adding(.minutes(1)), Row.month())
        #expect(failed.at(Life.day(91))?.state == .expired(.billingRetry))
    }

    @Test func q06ADowngradeDuringATrialIsABareRenewal() {
        var life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            Row.month(1, 0, 7) { $0.offerDiscountType = .freeTrial },
            Life.renewal()
        )
        life.notify(.didRenew, at: Life.day(7), Row.month(2, 7, 37, "silver.month"))
        #expect(life.at(Life.day(6))?.productID == "gold.month")
        #expect(life.at(Life.day(6))?.offer == .trial)
        #expect(life.at(Life.day(7))?.productID == "silver.month")
        #expect(life.at(Life.day(7))?.offer == .standard)
        #expect(life.history.anomalies.isEmpty)
    }

    @Test(arguments: [nil, Subtype.upgrade, .downgrade, .unknown("FUTURE")])
    func q08WhatACrossGradeIsCalledDoesNotMatter(_ subtype: Subtype?) {
        var now = Self.paid()
        now.notify(
            .didChangeRenewalPref,
            subtype,
            at: Life.day(5),
            Row.month(2, 5, 35, "sport.month"),
            Life.renewal()
        )
        #expect(now.at(Life.day(6))?.productID == "sport.month")
        var later = Self.paid()
        later.notify(.didChangeRenewalPref, subtype, at: Life.day(5), Row.month(), Row.cheaper)
        #expect(later.at(Life.day(6))?.productID == "gold.month")
        #expect(later.at(Life.day(6))?.pendingProductID == "silver.month")
    }

    @Test func q10AnUpgradeThatWasNeverToldIsFoundByReading() {
        var life = Self.paid()
        life.add(Self.reading(20, Row.month(2, 5, 35, "platinum.month"), Life.renewal()))
        #expect(life.at(Life.day(4))?.productID == "gold.month")
        #expect(life.at(Life.day(6))?.productID == "platinum.month")
        #expect(life.at(Life.day(34))?.entitledApple == true)
        #expect(life.history.anomalies.isEmpty)
    }

    @Test func q12ARenewalAfterTheEndIsAwaitedForALeeway() {
        var life = Self.paid()
        let late = Life.day(30).adding(.minutes(40))
        #expect(life.at(late)?.state == .renewalPending)
        life.notify(
            .didRenew,
            at: late,
            Life.transaction(2, from: late, until: late.adding(.days(30)), reason: .renewal),
            Life.renewal()
        )
        #expect(life.at(Life.day(30))?.state == .renewalPending)
        #expect(life.at(Life.day(30))?.entitled == true)
        #expect(life.at(late)?.state == .active)
        #expect(life.history.anomalies.isEmpty)
    }

    @Test func q14TwoNumbersOfOneOrderLineAreOnePurchase() {
        var life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            Row.month { $0.webOrderLineItemID = AppleID(500) },
            Life.renewal()
        )
        // The number that the customer's device knows, read from Apple.
        life.add(Self.reading(1, Row.month(77) { $0.webOrderLineItemID = AppleID(500) }))
        #expect(life.history.charges.count == 1)
        #expect(life.history.timeline.filter { $0.state == .active }.count == 1)
        var fold = SubscriptionFold(rules: life.rules)
        #expect(fold.history(of: life.events.reversed()) == life.history)
        // Seats of one order line are charges of their own, and so is the next period.
        life.notify(
            .didChangeRenewalPref,
            .increaseQuantity,
            at: Life.t0,
            Row.month(3) {
                $0.webOrderLineItemID = AppleID(500)
                $0.additionalReason = "SEAT_ADDITION"
            }
        )
        life.notify(
            .didRenew,
            at: Life.day(30),
            Row.month(4, 30, 60) { $0.webOrderLineItemID = AppleID(500) }
        )
        #expect(life.history.charges.count == 3)
    }

    @Test func q15RepeatedConsumptionRequestsChangeNothing() {
        var life = Self.paid()
        let before = life.history
        for hours in [0, 8, 16] as [Int64] {
            life.notify(
                .consumptionRequest,
                at: Life.day(9).adding(.hours(hours)),
                Row.month(),
                Life.renewal()
            )
        }
        let after = life.history
        #expect(after.timeline.map(\.state) == before.timeline.map(\.state))
        #expect(after.timeline.map(\.from) == before.timeline.map(\.from))
        #expect(after.charges.count == before.charges.count)
        #expect(after.transitions == before.transitions)
        #expect(after.anomalies.isEmpty)
    }

    @Test func q21WithoutRenewalInfoTheOldOneStays() {
        var life = Self.paid()
        life.notify(.didChangeRenewalStatus, .autoRenewDisabled, at: Life.day(3), nil, Row.off)
        life.notify(.consumptionRequest, at: Life.day(9), Row.month())
        #expect(life.at(Life.day(10))?.renewalIntent == .off)
        #expect(life.at(Life.day(30))?.state == .expired(.voluntary))
    }

    @Test func q22AnExtensionByNothingChangesNothing() {
        var life = Self.paid()
        let before = life.history.timeline
        var answer = Fact(kind: .extensionAnswered, provenance: .tls, factAt: Life.day(10))
        answer.extensionAnswer = ExtensionAnswer(success: true, effectiveDate: Life.day(30))
        life.add(answer)
        #expect(life.history.timeline == before)
        #expect(life.at(Life.day(29))?.confidence == .confirmed)
    }

    @Test func q23q24WhatApplesAnswerLeavesOutEndsNothing() {
        var life = Self.paid()
        let before = life.history.timeline
        // The account is not found, or the list of statuses lacks the chain.
        life.add(Fact(kind: .apiResponse, provenance: .tls, factAt: Life.day(10)))
        life.add(Self.reading(11, nil, provenance: .tls))
        #expect(life.history.timeline == before)
    }

    @Test func q25BothSpellingsOfApplesPagesAreKnown() {
        #expect(NotificationType("MIGRATE") == .migration)
        #expect(NotificationType("MIGRATION") == .migration)
        #expect(NotificationType.migration.description == "MIGRATION")
        for subtype in [Subtype("SUMMARY"), Subtype("SUCCESS")] {
            var life = Self.paid()
            life.notify(.renewalExtension, subtype, at: Life.day(9))
            #expect(life.history.anomalies.isEmpty)
            #expect(life.at(Life.day(10))?.state == .active)
        }
    }

    @Test func q27AChangeOfIntentLongAfterTheEndIsNoNewCancellation() {
        var life = Self.paid()
        life.notify(.didFailToRenew, at: Life.day(30), Row.month(), Row.failing())
        life.notify(.expired, .billingRetry, at: Life.day(90), Row.month(), Row.off)
        let before = life.history
        life.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            at: Life.day(150),
            Row.month(),
            Life.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
            }
        )
        #expect(life.at(Life.day(200))?.state == .expired(.billingRetry))
        #expect(life.history.transitions == before.transitions)
        #expect(life.history.failures.map(\.ending?.outcome) == [.expired])
    }

    @Test func q28AnExpiryThatComesBeforeItsFailureIsTheSameLife() {
        var told = Self.paid()
        told.notify(.didFailToRenew, at: Life.day(30), Row.month(), Row.failing())
        told.notify(.expired, .billingRetry, at: Life.day(90), Row.month(), Row.off)
        var fold = SubscriptionFold(rules: told.rules)
        let events = told.events
        #expect(fold.history(of: [events[2], events[1], events[0]]) == told.history)
        // Even signed the wrong way round it is kept, shown as odd, and grants nothing.
        var signed = Self.paid()
        signed.notify(.expired, .billingRetry, at: Life.day(90), Row.month(), Row.off)
        signed.notify(.didFailToRenew, at: Life.day(91), Row.month(), Row.failing())
        #expect(signed.history.anomalies.map(\.kind).contains(.unexpectedTransition))
        #expect(signed.accessEnd(0) == Life.day(30))
    }

    @Test func q29TwoRenewalInfosOfOneMillisecondHaveAWinnerInAnyOrder() {
        var life = Self.paid()
        life.notify(.didChangeRenewalStatus, .autoRenewDisabled, at: Life.day(3), nil, Row.off)
        life.notify(
            .didChangeRenewalPref,
            .downgrade,
            at: Life.day(3),
            nil,
            Life.renewal {
                $0.autoRenewProductID = "silver.month"
                $0.renewalDate = Life.day(30)
            }
        )
        // The later `renewalDate` counts.
        #expect(life.at(Life.day(4))?.pendingProductID == "silver.month")
        #expect(life.at(Life.day(4))?.renewalIntent == .on)
        #expect(life.history.anomalies.contains { $0.kind == .orderConflict })
        var fold = SubscriptionFold(rules: life.rules)
        #expect(fold.history(of: life.events.reversed()) == life.history)
    }
}
