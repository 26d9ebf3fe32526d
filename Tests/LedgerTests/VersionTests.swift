import Testing

@testable import Ledger

/// Several versions of one transaction: which one counts, and what all of them tell.
///
/// Lifecycle 0, rule 2, and 5.3: facts are ordered by signature, never by arrival.
@Suite struct VersionTests {
    private typealias Row = NotificationRow

    /// A notification that was signed on one day and carries a transaction signed on another.
    private static func fact(
        _ day: Double,
        envelope: Double? = nil,
        _ transaction: TransactionFact?,
        signed: Double? = nil,
        type: NotificationType = .consumptionRequest
    ) -> Fact {
        var fact = Fact(kind: .notification, provenance: .jws, factAt: Life.day(day))
        fact.notificationType = type
        fact.signedAt = Life.day(envelope ?? day)
        fact.transaction = transaction
        fact.transaction?.signedDate = Life.day(signed ?? day)
        return fact
    }

    private static func renewalInfo(_ day: Double, _ renewal: RenewalFact) -> Fact {
        var fact = Fact(kind: .renewalInfo, provenance: .jws, factAt: Life.day(day))
        fact.renewal = renewal
        fact.renewal?.signedDate = Life.day(day)
        return fact
    }

    private static func life(_ facts: Fact...) -> Life {
        var life = Life()
        for fact in facts { life.add(fact) }
        return life
    }

    private static func kinds(_ life: Life) -> [Anomaly.Kind] { life.history.anomalies.map(\.kind) }

    // MARK: Dates

    @Test func aPeriodWithoutItsStartCoversAllThatIsBeforeItsEndAndIsOdd() {
        let life = Self.life(Self.fact(1, Row.month { $0.purchaseDate = nil }))
        #expect(Self.kinds(life) == [.missingDates])
        #expect(life.history.timeline.first?.from == .earliest)
        #expect(life.at(Life.day(29))?.state == .active)
        #expect(life.at(Life.day(31))?.state != .active)
        #expect(life.history.charges.isEmpty)
    }

    @Test func aPeriodWithoutItsEndOrThatEndsBeforeItBeginsIsOdd() {
        for end in [nil, Life.day(-1)] {
            let life = Self.life(Self.fact(1, Row.month { $0.expiresDate = end }))
            #expect(Self.kinds(life) == [.missingDates])
        }
        // One without length has both dates.
        let empty = Self.life(Self.fact(1, Row.month { $0.expiresDate = Life.t0 }))
        #expect(Self.kinds(empty) == [])
        #expect(empty.history.charges.count == 1)
    }

    // MARK: Conflicts

    @Test func theSameVersionInTwoNotificationsOfOneInstantIsNoConflict() {
        let life = Self.life(
            Self.fact(1, Row.month()),
            Self.fact(1, Row.month(), type: .refundDeclined)
        )
        #expect(Self.kinds(life) == [])
        #expect(life.at(Life.day(2))?.deciding.transaction == 1)
    }

    /// Only two contents of one signature contradict each other.
    @Test func anOlderVersionThatIsToldLaterIsNoConflict() {
        let other = Row.month { $0.price = 1_000 }
        #expect(
            Self.kinds(Self.life(Self.fact(1, Row.month()), Self.fact(2, other, signed: 0.5))) == []
        )
        let same = Self.life(Self.fact(1, Row.month()), Self.fact(2, Row.month(), signed: 0.5))
        #expect(Self.kinds(same) == [])
        #expect(
            Self.kinds(Self.life(Self.fact(1, Row.month()), Self.fact(1, other))) == [
                .orderConflict
            ]
        )
    }

    /// 5.3: after the inner signature that of the envelope decides, then what is longer.
    @Test func ofTwoVersionsSignedTogetherTheOneInTheLaterEnvelopeCounts() {
        let life = Self.life(
            Self.fact(1, envelope: 1, Row.month(1, 0, 37), signed: 1),
            Self.fact(1, envelope: 2, Row.month(1, 0, 30), signed: 1)
        )
        #expect(life.at(Life.day(1))?.expiresDate == Life.day(30))
        let together = Self.life(
            Self.fact(1, Row.month(1, 0, 37)),
            Self.fact(1, Row.month(1, 0, 30))
        )
        #expect(together.at(Life.day(1))?.expiresDate == Life.day(37))
    }

    /// The shorter of two that were signed together is the one that was extended.
    @Test func ofTwoEndsSignedTogetherTheEarlierIsThatBeforeTheExtension() {
        let life = Self.life(Self.fact(1, Row.month(1, 0, 37)), Self.fact(1, Row.month(1, 0, 30)))
        #expect(life.history.charges.map(\.isExtended) == [true])
        #expect(life.history.charges.map(\.length) == [.days(30)])
    }

    // MARK: What all versions tell

    /// The oldest signature begins the time of a period, also where it is told last.
    @Test func anOlderVersionThatIsToldLaterLetsEarlierNewsCount() {
        let life = Self.life(
            Self.fact(2, Row.month()),
            Self.renewalInfo(1.5, Row.off)
        )
        #expect(life.at(Life.day(10))?.renewalIntent == .unknown)
        var told = life
        told.add(Self.fact(3, Row.month(), signed: 1))
        #expect(told.at(Life.day(10))?.renewalIntent == .off)
    }

    /// When a period was first known is when any event first told of it.
    @Test func whatAStatusDisagreesWithWasKnownFromTheFirstEventOn() {
        func told(_ facts: Fact...) -> [Anomaly.Kind] {
            var life = Life()
            for fact in facts { life.add(fact) }
            life.read(at: Life.day(1.5), status: 3)
            return Self.kinds(life)
        }
        let first = Self.fact(1, Row.month())
        #expect(told(first) == [.statusDisagrees])
        // An older version that comes later does not make it known later.
        #expect(told(first, Self.fact(2, Row.month(), signed: 0.5)) == [.statusDisagrees])
        // Nor does renewal info newer than its envelope, where the next event is earlier.
        var late = Self.fact(0.5, Row.month())
        late.renewal = Life.renewal()
        late.renewal?.signedDate = Life.day(2)
        #expect(told(late) == [])
        #expect(told(late, Self.fact(1, Row.month())) == [.statusDisagrees])
    }

    /// The parts of one event count together, from the latest of its signatures on.
    @Test func renewalInfoThatIsNewerThanItsEnvelopeCountsFromItsOwnSignatureOn() {
        var life = Self.life(Self.fact(1, Row.month()), Self.renewalInfo(2, Life.renewal()))
        var fact = Self.fact(10, nil)
        fact.renewal = Row.off
        fact.renewal?.signedDate = Life.day(12)
        life.add(fact)
        #expect(life.at(Life.day(11))?.renewalIntent == .on)
        #expect(life.at(Life.day(12))?.renewalIntent == .off)
    }

    /// What the report of a purchase told counts from the start of the period on, but no other
    /// notice does that is first known together with it.
    @Test func onlyTheReportOfAPurchaseTellsOfTheTimeBeforeIt() {
        for (type, intent) in [
            (NotificationType.subscribed, RenewalIntent.off), (.consumptionRequest, .unknown),
        ] {
            let life = Self.life(
                Self.fact(1, Row.month(), type: type),
                Self.renewalInfo(1, Row.off)
            )
            #expect(life.at(Life.day(0.2))?.renewalIntent == intent)
            #expect(life.at(Life.day(1))?.renewalIntent == .off)
        }
        // Nor a newer version that comes in the same instant as the first.
        let life = Self.life(
            Self.fact(0, envelope: 1, Row.month()),
            Self.fact(1, Row.month()),
            Self.renewalInfo(0.5, Row.off)
        )
        #expect(life.at(Life.day(0.2))?.renewalIntent == .unknown)
        #expect(life.at(Life.day(0.5))?.renewalIntent == .off)
    }

    /// Where a version of the same signature and a later envelope counts, the first one still tells
    /// when the period was known, and what its report told.
    @Test func aVersionOfALaterEnvelopeForgetsNothingOfTheFirst() {
        var life = Self.life(
            Self.fact(1, Row.month(), type: .subscribed),
            Self.fact(1, envelope: 2, Row.month()),
            Self.renewalInfo(1, Row.off)
        )
        #expect(life.at(Life.day(0.2))?.renewalIntent == .off)
        #expect(life.at(Life.day(5))?.deciding.transaction == 2)
        life.read(at: Life.day(1.5), status: 3)
        #expect(Self.kinds(life) == [.statusDisagrees])
    }

    /// The report does not come first: what it told is no news of the time before the first notice.
    @Test func aReportThatComesAfterANoticeTellsNothingOfTheTimeBeforeIt() {
        let life = Self.life(
            Self.fact(1, Row.month()),
            Self.renewalInfo(2, Row.off),
            Self.fact(3, Row.month(), type: .subscribed)
        )
        #expect(life.at(Life.day(0.5))?.renewalIntent == .unknown)
        #expect(life.at(Life.day(2))?.renewalIntent == .off)
    }

    /// Of one purchase under two numbers either may tell first that it was upgraded.
    @Test(arguments: [(6.0, 10.0), (10, 6)])
    func onePurchaseUnderTwoNumbersIsUpgradedWhenTheFirstOfThemSaysSo(
        _ first: Double,
        _ second: Double
    ) {
        func upgraded(_ id: UInt64) -> TransactionFact {
            Row.month(id) {
                $0.webOrderLineItemID = AppleID(500)
                $0.isUpgraded = true
            }
        }
        let life = Self.life(Self.fact(first, upgraded(1)), Self.fact(second, upgraded(2)))
        #expect(life.history.charges.count == 1)
        #expect(life.at(Life.day(5.9))?.state == .active)
        #expect(life.at(Life.day(6))?.state == .renewalPending)
    }
}
