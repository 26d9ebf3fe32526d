import Testing

@testable import Ledger

/// Where the timeline is split, and what each part shows of renewal info, trouble and policies.
@Suite struct StretchTests {
    private typealias Row = NotificationRow

    private static func paid(_ renewal: RenewalFact? = Life.renewal()) -> Life {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.t0, Row.month(), renewal)
        return life
    }

    private static func changed(_ life: inout Life, _ day: Double, _ renewal: RenewalFact) {
        life.notify(.didChangeRenewalStatus, at: Life.day(day), nil, renewal)
    }

    /// One policy, or two of which the second begins on day 15: all ways to the timeline.
    private static func ways(_ life: Life) -> [Life] {
        var two = life
        two.rules.policies = [
            AccessPolicy(version: 1), AccessPolicy(version: 2, effectiveFrom: Life.day(15)),
        ]
        var failed = life
        failed.notify(.didFailToRenew, at: Life.day(500))
        return [life, two, failed]
    }

    // MARK: Renewal info

    @Test func eachPartShowsTheRenewalInfoThatCountsInItAndNamesIt() {
        var life = Self.paid()
        Self.changed(&life, 10, Row.off)
        Self.changed(&life, 20, Life.renewal())
        Self.changed(&life, 40, Row.off)
        for way in Self.ways(life) {
            for (day, intent, position) in [
                (5.0, RenewalIntent.on, 1), (10, .off, 2), (14, .off, 2), (16, .off, 2),
                (19.9, .off, 2), (20, .on, 3), (29, .on, 3), (31, .on, 3), (40, .off, 4),
                (400, .off, 4),
            ] as [(Double, RenewalIntent, Int64)] {
                let interval = way.at(Life.day(day))
                #expect(interval?.renewalIntent == intent, "day \(day)")
                if day < 30 { #expect(interval?.deciding.renewal == position, "day \(day)") }
                #expect(interval?.deciding.transaction == 1, "day \(day)")
                let version = way.rules.policies.count == 2 && day >= 15 ? 2 : 1
                #expect(interval?.policyVersion == Int32(version), "day \(day)")
            }
        }
    }

    /// An older one that comes late changes no part, whichever way the timeline is made.
    @Test func olderRenewalInfoSplitsNothing() {
        var life = Self.paid()
        Self.changed(&life, 10, Row.off)
        let plain = life.at(Life.day(20))?.renewalIntent
        var fact = Fact(kind: .notification, provenance: .jws, factAt: Life.day(12))
        fact.renewal = Life.renewal()
        fact.renewal?.signedDate = Life.day(5)
        life.add(fact)
        for way in Self.ways(life) {
            #expect(way.at(Life.day(20))?.renewalIntent == plain)
            #expect(way.at(Life.day(11))?.renewalIntent == .off)
            #expect(way.history.timeline.allSatisfy { $0.from != Life.day(12) })
        }
    }

    /// What was signed of the period before tells nothing of a period that came without any.
    @Test func aPeriodWithoutRenewalInfoShowsNoneOfThePeriodBefore() {
        var life = Self.paid(Row.off)
        life.notify(.didRenew, at: Life.day(31), Row.month(2, 30, 60, reason: .renewal))
        for way in Self.ways(life) {
            #expect(way.at(Life.day(20))?.renewalIntent == .off)
            #expect(way.at(Life.day(40))?.renewalIntent == .unknown)
            #expect(way.at(Life.day(61))?.renewalIntent == .unknown)
        }
        // That which was signed with it does.
        Self.changed(&life, 31, Row.off)
        for way in Self.ways(life) { #expect(way.at(Life.day(40))?.renewalIntent == .off) }
    }

    /// What was signed before the transaction was, is no news of it, also where it was taken back.
    @Test func renewalInfoFromBeforeARefundedPurchaseSaysNothingOfIt() {
        var life = Life()
        life.notify(.didChangeRenewalStatus, at: Life.t0, nil, Row.off)
        life.notify(.refund, at: Life.day(1), Row.month { $0.revocationDate = Life.t0 })
        for way in Self.ways(life) {
            #expect(way.at(Life.day(2))?.state == .revoked(.refund))
            #expect(way.at(Life.day(2))?.renewalIntent == .unknown)
        }
    }

    /// Once the next period was told of, news are of that one, though it is yet to begin.
    @Test func newsAfterTheNextPeriodWasToldOfSplitNoGapBeforeIt() {
        var life = Self.paid(Row.off)
        life.notify(.subscribed, .resubscribe, at: Life.day(50), Row.month(2, 60, 90))
        Self.changed(&life, 55, Life.renewal())
        for way in Self.ways(life) {
            #expect(way.at(Life.day(57))?.renewalIntent == .off)
            #expect(way.history.timeline.allSatisfy { $0.from != Life.day(55) })
            #expect(way.at(Life.day(61))?.renewalIntent == .on)
        }
    }

    /// A purchase may be reported late; what its report told counts from its start on, but not where
    /// its time was over by then.
    @Test(arguments: [(29.9, RenewalIntent.on), (30, .unknown), (31, .unknown)])
    func aLateReportTellsOfThePeriodWhileItRuns(_ day: Double, _ intent: RenewalIntent) {
        var life = Life()
        life.notify(.subscribed, .initialBuy, at: Life.day(day), Row.month(), Life.renewal())
        for way in Self.ways(life) { #expect(way.at(Life.day(10))?.renewalIntent == intent) }
    }

    // MARK: Trouble while the period runs

    /// Lifecycle 0, rule 11: a failure may be announced before the period ends.
    @Test func troubleShowsFromTheFirstWordOfItOn() {
        for (notice, info, first) in [
            (29.2, nil, 29.2), (nil, 29.4, 29.4), (29.2, 29.4, 29.2), (29.6, 29.4, 29.4),
        ] as [(Double?, Double?, Double)] {
            var life = Self.paid()
            if let notice { life.notify(.didFailToRenew, at: Life.day(notice), Row.month()) }
            if let info { life.read(at: Life.day(info), nil, Row.failing()) }
            #expect(life.at(Life.day(first - 0.1))?.hasBillingTrouble == false)
            #expect(life.at(Life.day(first))?.hasBillingTrouble == true)
            #expect(life.at(Life.day(29.9))?.hasBillingTrouble == true)
            #expect(life.at(Life.day(29.9))?.state == .active)
            #expect(life.at(Life.day(30))?.hasBillingTrouble == false)
        }
    }

    /// It is over once the next period is told of, which may begin only where this one ends.
    @Test func troubleIsOverOnceTheNextPeriodIsToldOf() {
        var life = Self.paid()
        life.notify(.didFailToRenew, at: Life.day(29.2), Row.month())
        life.notify(.didRenew, at: Life.day(29.8), Row.month(2, 30, 60, reason: .renewal))
        for (day, hasTrouble) in [(29.1, false), (29.2, true), (29.7, true), (29.8, false)] {
            #expect(life.at(Life.day(day))?.hasBillingTrouble == hasTrouble, "day \(day)")
            #expect(life.at(Life.day(day))?.transactionID == AppleID(1))
        }
        #expect(life.at(Life.day(31))?.hasBillingTrouble == false)
    }

    // MARK: What is less than certain

    /// A signed word about a period that only a receipt told of is no surer than the receipt.
    @Test func whatIsSaidOfAnUnsignedPeriodIsProvisionalUnlessTheClockSaysIt() {
        var life = Life()
        life.read(at: Life.day(1), Row.month(), provenance: .receipt)
        #expect(life.at(Life.day(10))?.confidence == .provisional)
        #expect(life.at(Life.day(30))?.state == .renewalPending)
        #expect(life.at(Life.day(30))?.confidence == .clock)
        life.notify(.expired, .voluntary, at: Life.day(30))
        #expect(life.at(Life.day(31))?.state == .expired(.voluntary))
        #expect(life.at(Life.day(31))?.confidence == .provisional)
        #expect(Self.paid().at(Life.day(10))?.confidence == .confirmed)
    }

    /// What counts again after a refund shows what was told of it, though nothing was since.
    @Test func aPlanThatCountsAgainShowsItsOwnRenewalInfo() {
        var life = Self.paid()
        life.read(
            at: Life.day(15),
            Row.month(2, 5, 35, "gold.year") { $0.revocationDate = Life.day(15) }
        )
        for way in Self.ways(life) {
            #expect(way.at(Life.day(10))?.transactionID == AppleID(2))
            #expect(way.at(Life.day(10))?.renewalIntent == .unknown)
            #expect(way.at(Life.day(20))?.transactionID == AppleID(1))
            #expect(way.at(Life.day(20))?.renewalIntent == .on)
        }
    }
}
