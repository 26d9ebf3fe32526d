import Testing

@testable import Ledger

/// Lives in which the fold and the naive evaluator once differed, event by event as they were
/// drawn, with the reading of the lifecycle reference that settled them.
@Suite struct SettledDifferenceTests {
    /// An instant as the simulator printed it.
    private static func at(_ text: String) -> Timestamp {
        Timestamp(parsing: "\(text)Z") ?? .earliest
    }

    private static func period(
        _ id: UInt64,
        _ product: Symbol,
        _ from: String,
        _ until: String,
        _ reason: TransactionReason = .purchase,
        revoked: String? = nil,
        isUpgraded: Bool = false
    ) -> TransactionFact {
        Life.transaction(id, from: at(from), until: at(until), product: product, reason: reason) {
            $0.revocationDate = revoked.map(at)
            $0.isUpgraded = isUpgraded
        }
    }

    private static func retrying(until grace: String? = nil) -> RenewalFact {
        Life.renewal {
            $0.isInBillingRetryPeriod = true
            $0.expirationIntent = 2
            $0.gracePeriodExpiresDate = grace.map(at)
        }
    }

    /// States and products, each with its start, without what splits them otherwise.
    private static func lines(_ life: Life) -> [String] {
        var lines: [String] = []
        var last = ""
        for interval in life.history.timeline {
            let what = "\(interval.state.name) \(interval.productID?.text ?? "")"
            if what != last { lines.append("\(interval.from) \(what)") }
            last = what
        }
        return lines
    }

    /// Subscription 2000000004165000 of seed 1.
    ///
    /// 3.2: the new plan is live until it is revoked, whether it is paid or not, and what is live
    /// supersedes. So the old plan counts again from the refund on, which here is after its end,
    /// and not from the day on which the new one was not paid.
    @Test func anUpgradeThatIsNotPaidHoldsTheOldPlansTimeUntilItIsRefunded() {
        var life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Self.at("2025-07-02T06:46:02.000"),
            status: 1,
            Self.period(1, "monthly", "2025-07-02T06:46:00.000", "2025-08-02T06:46:00.000"),
            Life.renewal()
        )
        let weekly = ("2025-07-19T05:07:53.000", "2025-07-26T05:07:53.000")
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Self.at("2025-07-26T05:08:35.205"),
            status: 4,
            Self.period(2, "weekly", weekly.0, weekly.1),
            Self.retrying(until: "2025-08-01T05:07:53.000")
        )
        life.notify(
            .gracePeriodExpired,
            at: Self.at("2025-08-01T05:11:51.811"),
            status: 3,
            Self.period(2, "weekly", weekly.0, weekly.1),
            Self.retrying(until: "2025-08-01T05:07:53.000")
        )
        life.notify(
            .refund,
            at: Self.at("2025-08-10T01:12:21.000"),
            status: 5,
            Self.period(2, "weekly", weekly.0, weekly.1, revoked: "2025-08-10T01:12:16.000"),
            Self.retrying(until: "2025-08-01T05:07:53.000")
        )
        #expect(
            Self.lines(life) == [
                "2025-07-02T06:46:00.000Z active monthly",
                "2025-07-19T05:07:53.000Z active weekly",
                "2025-07-26T05:07:53.000Z grace_period weekly",
                "2025-08-01T05:07:53.000Z billing_retry weekly",
                "2025-08-10T01:12:16.000Z revoked weekly",
            ]
        )
    }

    /// Subscription 2000000012235000 of seed 1: the old plan still runs when the new is refunded.
    ///
    /// The gap before it is judged by what was signed before the next transaction, the comeback;
    /// the old plan, which only counts again, is no next transaction.
    @Test func theOldPlanCountsAgainFromTheRefundOfTheUnpaidNewOneOn() {
        var life = Life()
        life.notify(
            .didRenew,
            at: Self.at("2024-10-07T18:02:06.739"),
            status: 1,
            Self.period(
                1,
                "monthly",
                "2024-10-07T18:01:39.000",
                "2024-11-07T18:01:39.000",
                .renewal
            ),
            Life.renewal()
        )
        let weekly = ("2024-10-23T02:15:05.000", "2024-10-30T02:15:05.000")
        life.notify(
            .didChangeRenewalPref,
            at: Self.at("2024-10-23T02:15:08.275"),
            status: 1,
            Self.period(2, "weekly", weekly.0, weekly.1),
            Life.renewal()
        )
        life.notify(
            .didFailToRenew,
            at: Self.at("2024-10-30T02:15:35.751"),
            status: 3,
            Self.period(2, "weekly", weekly.0, weekly.1),
            Self.retrying()
        )
        life.notify(
            .refund,
            at: Self.at("2024-10-31T23:18:22.000"),
            status: 5,
            Self.period(2, "weekly", weekly.0, weekly.1, revoked: "2024-10-31T23:18:17.000"),
            Self.retrying()
        )
        life.notify(
            .subscribed,
            .resubscribe,
            at: Self.at("2025-01-31T02:08:53.891"),
            status: 1,
            Self.period(3, "weekly", "2025-01-31T02:08:51.000", "2025-02-07T02:08:51.000"),
            Life.renewal()
        )
        #expect(
            Self.lines(life).prefix(6) == [
                "2024-10-07T18:01:39.000Z active monthly",
                "2024-10-23T02:15:05.000Z active weekly",
                "2024-10-30T02:15:05.000Z billing_retry weekly",
                "2024-10-31T23:18:17.000Z active monthly",
                "2024-11-07T18:01:39.000Z revoked weekly",
                "2025-01-31T02:08:51.000Z active weekly",
            ]
        )
    }

    /// Subscription 2000000077163000 of seed 1: the same, from a year to a month.
    @Test func aYearCountsAgainFromTheRefundOfTheUnpaidMonthOn() {
        var life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Self.at("2024-04-25T10:26:07.000"),
            status: 1,
            Self.period(1, "yearly", "2024-04-25T10:26:05.000", "2025-04-25T10:26:05.000"),
            Life.renewal()
        )
        let month = ("2024-12-30T21:07:50.000", "2025-01-30T21:07:50.000")
        life.notify(
            .didChangeRenewalPref,
            .upgrade,
            at: Self.at("2024-12-30T21:07:53.757"),
            status: 1,
            Self.period(2, "premium", month.0, month.1),
            Life.renewal()
        )
        life.notify(
            .didFailToRenew,
            at: Self.at("2025-01-30T21:09:13.846"),
            status: 3,
            Self.period(2, "premium", month.0, month.1),
            Self.retrying()
        )
        life.notify(
            .refund,
            at: Self.at("2025-02-01T04:06:36.000"),
            status: 5,
            Self.period(2, "premium", month.0, month.1, revoked: "2025-02-01T04:06:31.000"),
            Self.retrying()
        )
        #expect(
            Self.lines(life) == [
                "2024-04-25T10:26:05.000Z active yearly",
                "2024-12-30T21:07:50.000Z active premium",
                "2025-01-30T21:07:50.000Z billing_retry premium",
                "2025-02-01T04:06:31.000Z active yearly",
                "2025-04-25T10:26:05.000Z revoked premium",
            ]
        )
    }

    /// Two failures of a monthly plan: one recovered in grace, so that the period which fails next
    /// has fifteen days, then one whose grace has no date.
    private static func recoveredThenFailed() -> Life {
        var life = Life()
        life.rules.gracePeriodDays = 16
        life.notify(
            .didRenew,
            at: at("2025-05-21T16:08:02.494"),
            period(11, "team", "2025-05-21T16:07:41.000", "2025-06-21T16:07:41.000", .renewal),
            Life.renewal()
        )
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: at("2025-06-21T16:12:39.804"),
            period(11, "team", "2025-05-21T16:07:41.000", "2025-06-21T16:07:41.000", .renewal),
            retrying(until: "2025-07-07T16:07:41.000")
        )
        life.notify(
            .didRenew,
            .billingRecovery,
            at: at("2025-07-06T02:10:28.348"),
            period(12, "team", "2025-07-06T02:10:26.000", "2025-07-21T16:07:41.000", .renewal),
            Life.renewal()
        )
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: at("2025-07-21T13:15:05.232"),
            period(12, "team", "2025-07-06T02:10:26.000", "2025-07-21T16:07:41.000", .renewal),
            retrying()
        )
        return life
    }

    /// Subscriptions 2000000069388000 and 2000000023149000 of seed 1.
    ///
    /// An unknown plan's period is the nearest to its *first* one: fifteen days that a recovery in
    /// grace left over do not make a monthly plan a weekly one, which has less grace.
    @Test func aRecoveryInGraceMakesNoWeeklyPlanOfAMonthlyOne() {
        let life = Self.recoveredThenFailed()
        #expect(
            Self.lines(life) == [
                "2025-05-21T16:07:41.000Z active team",
                "2025-06-21T16:07:41.000Z grace_period team",
                "2025-07-06T02:10:26.000Z active team",
                "2025-07-21T16:07:41.000Z grace_period team",
                "2025-08-06T16:07:41.000Z billing_retry team",
                "2025-09-19T16:07:41.000Z expired team",
            ]
        )
        let plans = life.history.charges.map { life.rules.plan(of: $0) }
        #expect(plans == [.oneMonth, .oneMonth])
    }

    /// The same of subscription 2000000023149000, where the end of grace was announced too.
    @Test func theEndOfGraceThatAppleAnnouncesAgreesWithTheEstimateOfAMonthlyPlan() {
        var life = Life()
        life.rules.gracePeriodDays = 16
        let full = ("2025-03-19T22:52:08.000", "2025-04-19T22:52:08.000")
        let rest = ("2025-05-02T11:28:45.000", "2025-05-19T22:52:08.000")
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Self.at("2025-04-19T11:13:56.814"),
            Self.period(8, "standard", full.0, full.1, .renewal),
            Self.retrying(until: "2025-05-05T22:52:08.000")
        )
        life.notify(
            .didRenew,
            .billingRecovery,
            at: Self.at("2025-05-02T11:28:47.150"),
            Self.period(9, "standard", rest.0, rest.1, .renewal),
            Life.renewal()
        )
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Self.at("2025-05-19T11:02:46.453"),
            Self.period(9, "standard", rest.0, rest.1, .renewal),
            Self.retrying()
        )
        life.notify(
            .gracePeriodExpired,
            at: Self.at("2025-06-04T22:54:55.623"),
            Self.period(9, "standard", rest.0, rest.1, .renewal),
            Self.retrying()
        )
        #expect(
            Self.lines(life).suffix(3) == [
                "2025-05-19T22:52:08.000Z grace_period standard",
                "2025-06-04T22:52:08.000Z billing_retry standard",
                "2025-07-18T22:52:08.000Z expired standard",
            ]
        )
    }

    /// Subscription 2000000077985000 of seed 2.
    ///
    /// The report of the next month was lost and its first news is a refund eight months later.
    /// What failed in between failed for later months, so it opens no grace and no retry here.
    @Test func aFailureOfALaterMonthTellsNothingOfAGapBeforeAMonthThatWasToldLate() {
        var life = Life()
        let third = ("2025-02-11T17:26:21.000", "2025-03-11T17:26:21.000")
        let fourth = ("2025-03-11T17:26:21.000", "2025-04-11T17:26:21.000")
        life.notify(
            .didRenew,
            at: Self.at("2025-01-10T20:04:59.081"),
            Self.period(2, "basic", "2025-01-11T16:34:32.000", "2025-02-11T16:34:32.000", .renewal),
            Life.renewal()
        )
        life.notify(
            .didRenew,
            at: Self.at("2025-03-11T12:27:09.358"),
            Self.period(4, "basic", fourth.0, fourth.1, .renewal),
            Life.renewal()
        )
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Self.at("2025-04-11T18:07:06.123"),
            Self.period(4, "basic", fourth.0, fourth.1, .renewal),
            Self.retrying(until: "2025-04-27T17:26:21.000")
        )
        life.notify(
            .refund,
            at: Self.at("2025-10-15T07:26:03.068"),
            Self.period(3, "basic", third.0, third.1, .renewal, revoked: "2025-10-15T07:25:58.000"),
            Life.renewal()
        )
        #expect(
            Self.lines(life).prefix(5) == [
                "2025-01-11T16:34:32.000Z active basic",
                "2025-02-11T16:34:32.000Z renewal_pending basic",
                "2025-02-11T17:26:21.000Z active basic",
                "2025-04-11T17:26:21.000Z grace_period basic",
                "2025-04-27T17:26:21.000Z billing_retry basic",
            ]
        )
    }

    /// Subscription 2000000037813000 of seed 1.
    ///
    /// Nor does an extension make a monthly plan of a weekly one: the first period counts as it was
    /// before. The evaluator had taken the extended length.
    @Test func anExtensionMakesNoMonthlyPlanOfAWeeklyOne() {
        var life = Life()
        life.rules.gracePeriodDays = 16
        let start = "2025-05-22T04:18:36.000"
        life.notify(
            .migration,
            at: Self.at("2025-05-22T20:28:48.336"),
            status: 1,
            Self.period(1, "weekly", start, "2025-05-29T04:18:36.000", .renewal),
            Life.renewal()
        )
        let extended = Self.period(1, "weekly", start, "2025-06-23T04:18:36.000", .renewal)
        life.notify(
            .renewalExtended,
            at: Self.at("2025-05-23T06:36:29.700"),
            status: 1,
            extended,
            Life.renewal()
        )
        life.notify(
            .didFailToRenew,
            .gracePeriod,
            at: Self.at("2025-06-23T04:20:07.632"),
            status: 4,
            extended,
            Self.retrying()
        )
        life.notify(
            .gracePeriodExpired,
            at: Self.at("2025-06-29T04:23:10.986"),
            status: 3,
            extended,
            Self.retrying()
        )
        #expect(
            Self.lines(life) == [
                "2025-05-22T04:18:36.000Z active weekly",
                "2025-06-23T04:18:36.000Z grace_period weekly",
                "2025-06-29T04:18:36.000Z billing_retry weekly",
                "2025-08-22T04:18:36.000Z expired weekly",
            ]
        )
    }
}
