import Testing

@testable import Ledger

/// Which transaction covers which time where several overlap (lifecycle 3.2, `live`, `superseded`).
@Suite struct OverlapTests {
    private typealias Row = NotificationRow

    private static func life(_ facts: (Double, TransactionFact)...) -> Life {
        var life = Life()
        for (day, transaction) in facts {
            life.notify(.didRenew, at: Life.day(day), transaction, Life.renewal())
        }
        return life
    }

    /// The transactions that cover the time, each with its bounds in days.
    private static func cover(_ life: Life) -> [String] {
        let active = life.history.timeline.filter { $0.state == .active }
        return active.map { interval in
            let from = Self.day(interval.from)
            return
                "\(interval.transactionID?.number ?? 0): \(from)-\(interval.until.map(day) ?? -1)"
        }
    }

    private static func day(_ instant: Timestamp) -> Int64 {
        (instant.milliseconds - Life.t0.milliseconds) / 86_400_000
    }

    private static func seats(_ id: UInt64, _ from: Double, _ until: Double) -> TransactionFact {
        Row.month(id, from, until) { $0.additionalReason = "SEAT_ADDITION" }
    }

    @Test func eachOfSeveralEarlyRenewalsWaitsForTheOneBeforeIt() {
        let life = Self.life(
            (0, Row.month(1, 0, 30)),
            (28, Row.month(2, 28, 58, reason: .renewal)),
            (56, Row.month(3, 56, 86, reason: .renewal)),
            (84, Row.month(4, 84, 114, reason: .renewal))
        )
        #expect(Self.cover(life) == ["1: 0-30", "2: 30-58", "3: 58-86", "4: 86-114"])
    }

    @Test func twoStretchesOfOverlapDoNotTouchEachOther() {
        let life = Self.life(
            (0, Row.month(1, 0, 30)),
            (5, Row.month(2, 5, 35, "gold.year")),
            (100, Row.month(3, 100, 120)),
            (110, Row.month(4, 110, 140, "gold.year")),
            (200, Row.month(5, 200, 230))
        )
        #expect(
            Self.cover(life) == ["1: 0-5", "2: 5-35", "3: 100-110", "4: 110-140", "5: 200-230"]
        )
    }

    /// Lifecycle 3.2: a purchase of seats never takes over from the purchase that it adds to.
    @Test(arguments: [20.0, 30, 40])
    func addedSeatsLeaveTheCoverToThePurchase(_ until: Double) {
        let life = Self.life((0, Row.month(1, 0, 30)), (10, Self.seats(2, 10, until)))
        let rest = until > 30 ? ["2: 30-40"] : []
        #expect(Self.cover(life) == ["1: 0-30"] + rest)
    }

    /// Lifecycle 3.2: if the newer is revoked, the older counts again.
    @Test func aRefundedUpgradeGivesTheRestBack() {
        let upgrade = Row.month(2, 5, 35, "gold.year") { $0.revocationDate = Life.day(15) }
        let life = Self.life((0, Row.month(1, 0, 30)), (15, upgrade))
        #expect(Self.cover(life) == ["1: 0-5", "2: 5-15", "1: 15-30"])
    }

    /// Lifecycle 3.2: unless Apple itself says `isUpgraded`, whenever it says so.
    @Test(arguments: [6.0, 12, 20])
    func whatAppleCallsUpgradedDoesNotCountAgain(_ told: Double) {
        let upgrade = Row.month(2, 5, 35, "gold.year") { $0.revocationDate = Life.day(10) }
        var life = Self.life((0, Row.month(1, 0, 30)), (10, upgrade))
        var fact = Fact(kind: .transaction, provenance: .jws, factAt: Life.day(told))
        fact.transaction = Row.month(1, 0, 30) { $0.isUpgraded = true }
        fact.transaction?.signedDate = Life.day(told)
        life.add(fact)
        #expect(Self.cover(life) == ["1: 0-5", "2: 5-10"])
        #expect(life.at(Life.day(11))?.state == .revoked(.refund))
    }

    /// Who did not pay for the new plan is not served under the old one until the refund.
    @Test func anUpgradeThatEndsBeforeItIsTakenBackHoldsTheTimeUntilThen() {
        let upgrade = Row.month(2, 5, 12, "gold.week") { $0.revocationDate = Life.day(20) }
        let life = Self.life((0, Row.month(1, 0, 30)), (20, upgrade))
        #expect(Self.cover(life) == ["1: 0-5", "2: 5-12", "1: 20-30"])
        #expect(life.at(Life.day(15))?.entitled == false)
    }

    /// What it was upgraded to was never told; a purchase at the old end does not bring it back.
    @Test func anUpgradedPeriodEndsWhereItWasToldAlsoBeforeAPurchaseAtItsEnd() {
        var life = Self.life((0, Row.month(1, 0, 30)))
        var fact = Fact(kind: .transaction, provenance: .jws, factAt: Life.day(6))
        fact.transaction = Row.month(1, 0, 30) { $0.isUpgraded = true }
        fact.transaction?.signedDate = Life.day(6)
        life.add(fact)
        life.notify(.subscribed, .resubscribe, at: Life.day(30), Row.month(2, 30, 60))
        #expect(Self.cover(life) == ["1: 0-6", "2: 30-60"])
        // The same where seats run across both.
        life.notify(.didRenew, at: Life.day(30), Self.seats(3, 10, 40))
        #expect(Self.cover(life) == ["1: 0-6", "3: 10-30", "2: 30-60"])
    }

    /// Before 2023 payloads carry no reason; a purchase is then known by its other product.
    @Test func withoutAReasonOnlyAnotherProductTakesOver() {
        func bare(
            _ id: UInt64,
            _ from: Double,
            _ until: Double,
            _ product: Symbol
        )
            -> TransactionFact
        {
            Row.month(id, from, until, product) { $0.reason = nil }
        }
        let renewal = Self.life((0, bare(1, 0, 30, "gold")), (29, bare(2, 29, 59, "gold")))
        #expect(Self.cover(renewal) == ["1: 0-30", "2: 30-59"])
        let upgrade = Self.life((0, bare(1, 0, 30, "gold")), (5, bare(2, 5, 35, "platinum")))
        #expect(Self.cover(upgrade) == ["1: 0-5", "2: 5-35"])
        // Of several the first of another product counts.
        let both = Self.life(
            (0, bare(1, 0, 60, "gold")),
            (29, bare(2, 29, 59, "gold")),
            (40, bare(3, 40, 70, "platinum"))
        )
        #expect(Self.cover(both) == ["1: 0-40", "3: 40-70"])
    }

    /// The first purchase within counts, whether it says that it is one or not.
    @Test(arguments: [(10.0, 20.0), (20, 10)])
    func theFirstOfAPurchaseThatSaysSoAndOneThatDoesNotTakesOver(_ said: Double, _ bare: Double) {
        let silent = Row.month(3, bare, bare + 60, "platinum") { $0.reason = nil }
        let life = Self.life(
            (0, Row.month(1, 0, 60)),
            (said, Row.month(2, said, said + 60, "gold.year")),
            (bare, silent)
        )
        #expect(Self.cover(life).first == "1: 0-10")
        #expect(Self.cover(life).count { $0.hasPrefix("1:") } == 1)
    }

    /// Without reasons too, a purchase of another product that is refunded gives the rest back.
    @Test func aRefundedPurchaseWithoutAReasonGivesBackWhatItTookOver() {
        func bare(
            _ id: UInt64,
            _ from: Double,
            _ until: Double,
            _ product: Symbol,
            revokedOn day: Double? = nil
        ) -> TransactionFact {
            Row.month(id, from, until, product) {
                $0.reason = nil
                $0.revocationDate = day.map(Life.day)
            }
        }
        let other = Self.life(
            (0, bare(1, 0, 30, "gold")),
            (5, bare(2, 5, 35, "plus", revokedOn: 15))
        )
        #expect(Self.cover(other) == ["1: 0-5", "2: 5-15", "1: 15-30"])
        // One of the same product is a renewal, and had taken nothing over.
        let same = Self.life(
            (0, bare(1, 0, 30, "gold")),
            (5, bare(2, 20, 50, "gold", revokedOn: 35))
        )
        #expect(Self.cover(same) == ["1: 0-30", "2: 30-35"])
        // What is over before it is taken back holds the time until then.
        let short = Self.life(
            (0, bare(1, 0, 30, "gold")),
            (5, bare(2, 5, 12, "plus", revokedOn: 20))
        )
        #expect(Self.cover(short) == ["1: 0-5", "2: 5-12", "1: 20-30"])
        // Until then it holds the time of those before it, not of what took over from it.
        let three = Self.life(
            (0, bare(1, 0, 60, "gold")),
            (5, bare(2, 5, 15, "plus", revokedOn: 30)),
            (10, bare(3, 10, 50, "gold"))
        )
        #expect(Self.cover(three) == ["1: 0-5", "2: 5-10", "3: 10-30", "1: 30-60"])
        // Of two that are refunded each gives back what it took over.
        let two = Self.life(
            (0, bare(1, 0, 60, "gold")),
            (5, bare(2, 5, 65, "plus", revokedOn: 40)),
            (10, bare(3, 10, 70, "gold", revokedOn: 20))
        )
        #expect(Self.cover(two) == ["1: 0-5", "2: 5-10", "3: 10-20", "2: 20-40", "1: 40-60"])
    }

    /// What was refunded and counts again is not the next purchase, up to which news count.
    @Test func whatCountsAgainDoesNotEndTheNewsOfTheGapBeforeIt() {
        var life = Self.life((0, Row.month(1, 0, 30)), (5, Row.month(2, 5, 12, "gold.week")))
        life.notify(.didChangeRenewalStatus, .autoRenewDisabled, at: Life.day(8), nil, Row.off)
        life.notify(
            .refund,
            at: Life.day(20),
            Row.month(2, 5, 12, "gold.week") { $0.revocationDate = Life.day(20) },
            Row.off
        )
        #expect(Self.cover(life).map { $0.prefix(2) } == ["1:", "2:", "2:", "1:"])
        #expect(life.at(Life.day(15))?.state == .expired(.voluntary))
    }

    /// The time before a period is judged by what was signed before it, or any later one, was told.
    @Test func aPeriodThatIsToldLateDoesNotDrawLaterNewsIntoTheTimeBeforeIt() {
        let life = Self.toldLate()
        #expect(life.at(Life.day(40))?.state == .expired(.presumed))
        #expect(Self.cover(life).map { $0.prefix(2) } == ["1:", "2:", "3:", "3:"])
    }

    /// Three periods, the second of which was only read from Apple after the third had come.
    private static func toldLate() -> Life {
        var life = Self.life((0, Row.month(1, 0, 30)), (90, Row.month(3, 90, 120)))
        life.notify(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            at: Life.day(92),
            nil,
            Life.renewal {
                $0.autoRenewStatus = 0
                $0.expirationIntent = 1
            }
        )
        var fact = Fact(kind: .transaction, provenance: .jws, factAt: Life.day(100))
        fact.transaction = Row.month(2, 60, 90)
        fact.transaction?.signedDate = Life.day(100)
        life.add(fact)
        return life
    }

    /// One fold serves many streams in turn, and nothing of one is left for the next.
    @Test func whatOneStreamLeftBehindDoesNotShowInTheNext() {
        let lives = [
            Self.life((0, Row.month(1, 0, 30)), (90, Row.month(2, 90, 120))),
            Self.life(
                (50, Row.month(1, 0, 30)),
                (60, Row.month(2, 40, 70)),
                (80, Row.month(3, 80, 90))
            ),
            Self.life(
                (0, Row.month(1, 0, 30)),
                (10, Self.seats(2, 10, 20)),
                (70, Row.month(3, 70, 90))
            ),
            Self.life((0, Row.month(1, 0, 30)), (5, Row.month(2, 5, 35, "gold.year"))),
            Self.toldLate(),
            // Refunds that come after everything else is over.
            Self.life(
                (0, Row.month(1, 0, 30)),
                (9, Row.month(2, 5, 12, "gold.year") { $0.revocationDate = Life.day(80) }),
                (60, Row.month(3, 60, 90)),
                (61, Row.month(4, 61, 91, "gold.year"))
            ),
            Self.life(
                (0, Row.month(1, 0, 30) { $0.reason = nil }),
                (
                    9,
                    Row.month(2, 5, 12, "gold.year") {
                        $0.revocationDate = Life.day(80)
                        $0.reason = nil
                    }
                ),
                (60, Row.month(3, 60, 90) { $0.reason = nil }),
                (61, Row.month(4, 61, 91, "gold.year") { $0.reason = nil })
            ),
            Self.life(),
        ]
        var fold = SubscriptionFold(rules: Life().rules)
        for first in lives {
            for second in lives {
                _ = fold.history(of: first.events)
                #expect(fold.history(of: second.events) == second.history)
            }
        }
    }
}
