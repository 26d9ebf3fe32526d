import Testing

@testable import Ledger

/// Apple's status against the timeline: where the two disagree there is something to ask for.
@Suite struct StatusCheckTests {
    private static let month = Life.transaction(1, from: Life.t0, until: Life.day(30))

    /// A paid month; auto-renew is on.
    private static func paid() -> Life {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, status: 1, month, Life.renewal())
        return life
    }

    /// A status as the Server API gives it: outside of any signature.
    private static func read(_ status: Int32, _ day: Double) -> Fact {
        var fact = Fact(kind: .subscriptionStatus, provenance: .tls, factAt: Life.day(day))
        fact.status = status
        return fact
    }

    private static func disagreements(_ life: Life) -> [Int64] {
        life.history.anomalies.filter { $0.kind == .statusDisagrees }.map(\.position)
    }

    private static let failing = Life.renewal {
        $0.isInBillingRetryPeriod = true
        $0.gracePeriodExpiresDate = Life.day(46)
        $0.expirationIntent = 2
    }

    /// A life through all five states, each told with the status that Apple gives it.
    @Test func whatEveryNoticeOfAWholeLifeSaysAgrees() {
        var life = Self.paid()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(29),
            status: 4,
            Self.month,
            Self.failing
        )
        life.add(Self.read(4, 29.5))
        life.add(Self.read(4, 40))
        life.notify(.gracePeriodExpired, at: Life.day(46), status: 3, Self.month, Self.failing)
        life.add(Self.read(3, 60))
        life.notify(
            .expired,
            .billingRetry,
            at: Life.day(90),
            status: 2,
            Self.month,
            Life.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 2
            }
        )
        let again = Life.transaction(2, from: Life.day(100), until: Life.day(130))
        life.notify(.subscribed, .resubscribe, at: Life.day(100), status: 1, again, Life.renewal())
        let refunded = Life.transaction(2, from: Life.day(100), until: Life.day(130)) {
            $0.revocationDate = Life.day(110)
        }
        life.notify(.refund, at: Life.day(110), status: 5, refunded, Life.renewal())
        #expect(Self.disagreements(life) == [])
        for name in ["active", "grace_period", "billing_retry", "expired", "revoked"] {
            let isReached = life.history.timeline.contains { $0.state.name == name }
            #expect(isReached, "\(name)")
        }
    }

    @Test(arguments: [2, 3, 4, 5] as [Int32])
    func anActiveMonthThatAppleCallsOtherwiseIsNoted(_ status: Int32) {
        var life = Self.paid()
        life.add(Self.read(status, 10))
        #expect(Self.disagreements(life) == [2])
        #expect(life.at(Life.day(11))?.state == .active)
    }

    @Test func aLapseThatAppleCallsActiveIsNoted() {
        var life = Self.paid()
        // Within the leeway no news may have come yet; a day later a renewal must have been lost.
        life.add(Self.read(1, 30.01))
        #expect(Self.disagreements(life) == [])
        life.add(Self.read(1, 31))
        #expect(Self.disagreements(life) == [3])
        #expect(life.at(Life.day(31))?.state == .expired(.presumed))
    }

    /// The newer plan was refunded: 3.2 lets the old one count again, and a reconcile is due.
    @Test func aSignedStatusThatContradictsTheReadingIsNotedToo() {
        var life = Self.paid()
        let upgrade = Life.transaction(
            2,
            from: Life.day(10),
            until: Life.day(40),
            product: "gold.year"
        )
        life.notify(
            .didChangeRenewalPref,
            .upgrade,
            at: Life.day(10),
            status: 1,
            upgrade,
            Life.renewal()
        )
        var refunded = upgrade
        refunded.revocationDate = Life.day(15)
        refunded.digest += 1
        life.notify(.refund, at: Life.day(15), status: 5, refunded, Life.renewal())
        #expect(life.at(Life.day(16))?.state == .active)
        #expect(Self.disagreements(life) == [3])
    }

    /// A status is about its own instant, whenever it comes.
    @Test func aLateStatusIsComparedWithThePastThatItIsAbout() {
        var life = Self.paid()
        life.notify(
            .expired,
            .voluntary,
            at: Life.day(30),
            status: 2,
            Self.month,
            Life.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
            }
        )
        // Delivered after the end, signed before it: active, as it was then.
        life.add(Self.read(1, 20))
        #expect(Self.disagreements(life) == [])
        // And expired before the end is wrong, though it is right by now.
        life.add(Self.read(2, 20))
        #expect(Self.disagreements(life) == [4])
    }

    /// What was signed later changed the past; the status was right when it was signed.
    @Test func aStatusThatLaterNewsOvertookIsNoDisagreement() {
        var life = Self.paid()
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            status: 4,
            Self.month,
            Self.failing
        )
        #expect(life.at(Life.day(35))?.state == .gracePeriod)
        // Recovered in grace: the next period begins where the last one ended.
        let next = Life.transaction(2, from: Life.day(30), until: Life.day(60), reason: .renewal)
        life.notify(.didRenew, .billingRecovery, at: Life.day(40), status: 1, next, Life.renewal())
        #expect(life.at(Life.day(35))?.state == .active)
        // Refunded, and that undone.
        var refunded = next
        refunded.revocationDate = Life.day(45)
        refunded.digest += 1
        life.notify(.refund, at: Life.day(45), status: 5, refunded, Life.renewal())
        life.notify(.refundReversed, at: Life.day(50), status: 1, next, Life.renewal())
        #expect(life.at(Life.day(47))?.state == .active)
        #expect(Self.disagreements(life) == [])
    }

    @Test func anUnknownStatusAndOneBeforeTheFirstPeriodSayNothing() {
        var life = Self.paid()
        life.add(Self.read(9, 10))
        life.add(Self.read(2, -1))
        #expect(Self.disagreements(life) == [])
    }
}
