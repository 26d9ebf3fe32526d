import Testing

@testable import Ledger

/// The scenarios from number 21 on, and those that have none.
extension LifecycleScenarioTests {
    @Test(arguments: [40.0, 120.0])
    func s21_s22_aComebackIsANewPeriod(_ day: Double) {
        var life = Self.paid()
        life.notify(
            .expired,
            .voluntary,
            at: Life.day(30),
            Self.period(1, 0, 30),
            Life.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
            }
        )
        life.notify(
            .subscribed,
            .resubscribe,
            at: Life.day(day),
            Self.period(2, day, day + 30, "silver.month", reason: .purchase) { $0.offerType = 4 },
            Life.renewal()
        )
        #expect(life.at(Life.day(35))?.state == .expired(.voluntary))
        #expect(life.at(Life.day(day))?.offer == .winBack)
        #expect(life.at(Life.day(day))?.productID == "silver.month")
        // The renewal info of before the comeback says nothing about its end.
        #expect(life.at(Life.day(day + 30))?.state == .renewalPending)
    }

    @Test func s24_aFamilyMembersAccessEndsByRevoke() {
        var life = Life()
        let member = Self.period(1, 0, 30, reason: .purchase) { $0.ownership = .familyShared }
        life.notify(.subscribed, .initialBuy, at: Life.t0, member)
        life.notify(
            .revoke,
            at: Life.day(9),
            Self.period(1, 0, 30, reason: .purchase) {
                $0.ownership = .familyShared
                $0.revocationDate = Life.day(9)
            }
        )
        #expect(life.at(Life.day(8))?.ownership == .familyShared)
        #expect(life.at(Life.day(10))?.state == .revoked(.familyRevoke))
    }

    @Test func s26_aTokenReplacedMidChainIsATransfer() {
        var life = Self.paid()
        let (first, second) = (UniqueID(bits: 1), UniqueID(bits: 2))
        life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            Self.period(1, 0, 30, reason: .purchase) { $0.appAccountToken = first }
        )
        life.notify(
            .didRenew,
            at: Life.day(30),
            Self.period(2, 30, 60) { $0.appAccountToken = second }
        )
        // The old transaction, signed again with the old token, takes nothing back.
        life.notify(
            .refund,
            at: Life.day(40),
            Self.period(1, 0, 30, reason: .purchase) {
                $0.appAccountToken = first
                $0.revocationDate = Life.day(40)
            }
        )
        #expect(life.history.ownership.map(\.owner) == [first, second])
        #expect(life.history.ownership.first?.until == Life.day(30))
        #expect(!life.history.anomalies.contains { $0.kind == .ownerConflict })
    }

    @Test func s26_appleWinsOverALinkAndALinkFillsAHole() {
        var life = Self.paid()
        let (linked, apple) = (UniqueID(bits: 7), UniqueID(bits: 8))
        var link = Fact(kind: .ownerLinked, provenance: .operator, factAt: Life.day(3))
        link.linkedOwner = linked
        life.add(link)
        #expect(life.history.ownership.map(\.owner) == [linked])
        #expect(life.history.ownership.first?.isLinked == true)
        life.notify(
            .didRenew,
            at: Life.day(30),
            Self.period(2, 30, 60) { $0.appAccountToken = apple }
        )
        #expect(life.history.ownership.last?.owner == apple)
        #expect(life.history.ownership.last?.isLinked == false)
    }

    @Test func s28_aCancelledCommitmentGoesOnRenewing() {
        var life = Life()
        for month in 0..<4 as Range<UInt64> {
            let from = Double(month) * 30
            life.notify(
                month == 0 ? .subscribed : .didRenew,
                at: Life.day(from),
                Self.period(month + 1, from, from + 30) {
                    $0.billingPlanType = .monthly
                    $0.billingPeriodNumber = Int32(month + 1)
                    $0.totalBillingPeriods = 12
                    $0.commitmentExpiresDate = Life.day(360)
                },
                Life.renewal { $0.commitmentAutoRenewStatus = month == 2 ? 0 : 1 }
            )
        }
        #expect(life.at(Life.day(100))?.state == .active)
        #expect(life.at(Life.day(100))?.renewalIntent == .on)
    }

    /// The next charge will be made; that no commitment follows is told beside it.
    @Test func s28_aCancelledCommitmentIsToldBesideTheNextCharge() {
        var life = Life()
        let month = Self.period(1, 0, 30, reason: .purchase) { $0.billingPlanType = .monthly }
        func renewal(_ status: Int32) -> RenewalFact {
            Life.renewal { $0.commitmentAutoRenewStatus = status }
        }
        life.notify(.subscribed, .initialBuy, at: Life.t0, month, renewal(1))
        life.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            at: Life.day(10),
            month,
            renewal(0)
        )
        #expect(life.at(Life.day(5))?.commitmentIntent == .on)
        let after = life.at(Life.day(10))
        #expect(after?.commitmentIntent == .off)
        #expect(after?.renewalIntent == .on)
        #expect(after?.from == Life.day(10))
        // A renewal may still come, so the end waits for it.
        #expect(life.at(Life.day(30))?.state == .renewalPending)
    }

    @Test func noOtherPlanHasTheIntentOfACommitment() {
        var life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            Self.period(1, 0, 30, reason: .purchase),
            Life.renewal { $0.commitmentAutoRenewStatus = 0 }
        )
        #expect(life.at(Life.day(5))?.commitmentIntent == .unknown)
    }

    @Test func s29_aCommitmentNeverHasGraceAndNinetyDaysOfRetry() {
        var life = Life()
        let month = Self.period(1, 0, 30, reason: .purchase) { $0.billingPlanType = .monthly }
        life.notify(.subscribed, .initialBuy, at: Life.t0, month, Life.renewal())
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            month,
            Self.failing { $0.gracePeriodExpiresDate = Life.day(46) }
        )
        #expect(life.at(Life.day(31))?.state == .billingRetry)
        #expect(life.at(Life.day(119))?.state == .billingRetry)
        #expect(life.at(Life.day(120))?.state == .expired(.billingRetry))
    }

    @Test func s30_aSeatRefundLeavesThePurchaserServed() {
        var life = Self.paid()
        life.notify(
            .refund,
            .seats,
            at: Life.day(5),
            Self.period(1, 0, 30, reason: .purchase) { $0.revokedSeatQuantity = 2 }
        )
        #expect(life.at(Life.day(6))?.state == .active)
    }

    @Test func s31_anExtensionMovesTheEndOfTheSameTransaction() {
        var life = Self.paid()
        life.notify(
            .renewalExtended,
            at: Life.day(20),
            Self.period(1, 0, 37, reason: .purchase),
            Life.renewal()
        )
        #expect(life.at(Life.day(36))?.state == .active)
        #expect(life.at(Life.day(36))?.transactionID == AppleID(1))
        #expect(life.history.timeline.filter { $0.state == .active }.count == 1)
        // Signed without the days that the answer promised: the signature decides.
        var contradicted = Self.paid()
        var answer = Fact(kind: .extensionAnswered, provenance: .tls, factAt: Life.day(10))
        answer.extensionAnswer = ExtensionAnswer(success: true, effectiveDate: Life.day(60))
        contradicted.add(answer)
        contradicted.notify(.didChangeRenewalStatus, at: Life.day(11), Self.period(1, 0, 30))
        #expect(contradicted.at(Life.day(45))?.entitled == false)
    }

    @Test func s36_theSandboxClockRunsFast() {
        var life = Life()
        life.rules.environment = .sandbox
        let end = Life.t0.adding(.minutes(5))
        let month = Life.transaction(1, from: Life.t0, until: end)
        life.notify(.subscribed, .initialBuy, at: Life.t0, month, Life.renewal())
        #expect(life.at(end)?.until == end.adding(.minutes(10)))
        life.notify(.didFailToRenew, at: end, month, Self.failing())
        #expect(life.at(end)?.state == .billingRetry)
        #expect(life.at(end)?.until == end.adding(.minutes(10)))
    }

    @Test func s37_newsThatComesSixDaysLateCountsFromItsDate() {
        var life = Self.paid()
        let before = life.history
        #expect(before.timeline.last?.state == .expired(.presumed))
        life.notify(.didRenew, at: Life.day(30), Self.period(2, 30, 60), Life.renewal())
        #expect(life.at(Life.day(31))?.state == .active)
        #expect(life.history.timeline.filter { $0.state == .renewalPending }.count == 1)
    }

    @Test func s38_theSameMillisecondHasAWinnerInAnyOrder() {
        var life = Self.paid()
        let refunded = Self.period(1, 0, 30, reason: .purchase) { $0.revocationDate = Life.day(5) }
        life.notify(.refund, at: Life.day(5), refunded)
        life.notify(.refundDeclined, at: Life.day(5), Self.period(1, 0, 30, reason: .purchase))
        #expect(life.at(Life.day(6))?.state == .revoked(.refund))
        #expect(life.history.anomalies.contains { $0.kind == .orderConflict })
        var fold = SubscriptionFold(rules: life.rules)
        #expect(fold.history(of: life.events.reversed()).timeline == life.history.timeline)
    }

    @Test func aNoticeThatIsTheFirstWordTellsNothingOfTheTimeBeforeIt() {
        var life = Life()
        life.notify(
            .didChangeRenewalPref,
            .downgrade,
            at: Life.day(20),
            Self.period(1, 0, 30),
            Life.renewal { $0.autoRenewProductID = "silver.month" }
        )
        #expect(life.at(Life.day(19))?.state == .active)
        #expect(life.at(Life.day(19))?.pendingProductID == nil)
        #expect(life.at(Life.day(19))?.renewalIntent == .unknown)
        #expect(life.at(Life.day(20))?.pendingProductID == "silver.month")
        #expect(life.at(Life.day(20))?.renewalIntent == .on)
        // The report of a purchase is signed a little later and counts from its start on.
        var reported = Life()
        reported.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0.adding(.minutes(3)),
            Self.period(1, 0, 30),
            Life.renewal()
        )
        #expect(reported.history.timeline.first?.renewalIntent == .on)
    }

    @Test func aLostFailureShowsInRenewalInfo() {
        var life = Self.paid()
        life.notify(
            .refundDeclined,
            at: Life.day(33),
            Self.period(1, 0, 30),
            Self.failing { $0.gracePeriodExpiresDate = Life.day(46) }
        )
        #expect(life.at(Life.day(34))?.state == .gracePeriod)
        #expect(life.at(Life.day(47))?.state == .billingRetry)
    }

    @Test func statusFillsAHoleOnlyWhereRenewalInfoIsMissing() {
        var life = Life()
        let month = Self.period(1, 0, 30, reason: .purchase)
        life.notify(.subscribed, .initialBuy, at: Life.t0, month)
        var status = Fact(kind: .subscriptionStatus, provenance: .tls, factAt: Life.day(31))
        status.status = 3
        life.add(status)
        #expect(life.at(Life.day(32))?.state == .billingRetry)
        life.notify(.refundDeclined, at: Life.day(33), month, Life.renewal())
        #expect(life.at(Life.day(34))?.state == .expired(.presumed))
    }
}
