import Testing

@testable import Ledger

/// What holds where a notification or renewal info is missing (lifecycle 1.2, 3.2).
@Suite struct MissingNewsTests {
    private typealias Row = NotificationRow

    private static func paid(_ renewal: RenewalFact? = nil) -> Life {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, Row.month(), renewal)
        return life
    }

    private static func read(
        _ day: Double,
        _ renewal: RenewalFact?,
        status: Int32? = nil,
        _ provenance: Provenance = .jws
    ) -> Fact {
        var fact = Fact(
            kind: .subscriptionStatus,
            provenance: provenance,
            factAt: Life.day(day)
        )
        fact.transaction = Row.month()
        fact.transaction?.signedDate = Life.day(day)
        fact.renewal = renewal
        fact.renewal?.signedDate = Life.day(day)
        fact.status = status
        return fact
    }

    /// Rule 6: a renewal is awaited unless auto-renew is known to be off.
    @Test func withoutAnyRenewalInfoARenewalIsAwaited() {
        #expect(Self.paid().at(Life.day(30.01))?.state == .renewalPending)
        #expect(Self.paid(Life.renewal()).at(Life.day(30.01))?.state == .renewalPending)
        #expect(Self.paid(Row.off).at(Life.day(30.01))?.state == .expired(.voluntary))
    }

    /// 1.2: status fills the hole that missing renewal info leaves, and nothing else.
    @Test func anExpiredStatusCountsOnlyWithoutRenewalInfo() {
        var known = Self.paid(Life.renewal())
        known.add(Self.read(29, nil, status: 2))
        #expect(known.at(Life.day(30.01))?.state == .renewalPending)
        var unknown = Self.paid()
        unknown.add(Self.read(29, nil, status: 2))
        #expect(unknown.at(Life.day(30.01))?.state == .expired(.other))
        #expect(unknown.at(Life.day(30.01))?.confidence == .confirmed)
    }

    @Test func anEndThatOnlyRenewalInfoTellsOfIsAsCertainAsItsSignature() {
        let cancelled = Life.renewal {
            $0.autoRenewStatus = 0
            $0.expirationIntent = 1
        }
        var signed = Self.paid()
        signed.add(Self.read(31, cancelled))
        #expect(signed.at(Life.day(32))?.state == .expired(.voluntary))
        #expect(signed.at(Life.day(32))?.confidence == .confirmed)
        var unsigned = Self.paid()
        unsigned.add(Self.read(31, cancelled, .receipt))
        #expect(unsigned.at(Life.day(32))?.state == .expired(.voluntary))
        #expect(unsigned.at(Life.day(32))?.confidence == .provisional)
    }

    /// A retry that is only read is a step there, to grace where a date ahead says so.
    @Test(arguments: [(nil, StateKind.billingRetry), (31.0, .billingRetry), (46.0, .gracePeriod)])
    func aRetryThatIsReadIsAStep(_ graceUntil: Double?, _ state: StateKind) {
        var life = Self.paid(Life.renewal())
        life.add(Self.read(31, Row.failing(graceUntil: graceUntil)))
        #expect(life.history.transitions.last.map { StateKind($0.to) } == state)
        #expect(life.history.anomalies.isEmpty)
    }

    /// Each interval names the event that announced the failure.
    @Test func graceAndRetryAreDecidedByTheAnnouncement() {
        var life = Self.paid(Life.renewal())
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Life.day(30),
            Row.month(),
            Row.failing(graceUntil: 46)
        )
        #expect(life.at(Life.day(40))?.deciding.marker == 2)
        #expect(life.at(Life.day(50))?.state == .billingRetry)
        #expect(life.at(Life.day(50))?.deciding.marker == 2)
        #expect(life.at(Life.day(50))?.deciding.transaction == 2)
    }
}
