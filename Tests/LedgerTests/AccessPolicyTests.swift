import Testing

@testable import Ledger

@Suite struct AccessPolicyTests {
    private static func failing(grace: Bool) -> Life {
        var life = Life()
        life.rules.gracePeriodDays = 16
        let month = Life.transaction(1, from: Life.t0, until: Life.day(30))
        life.notify(.subscribed, .initialBuy, at: Life.t0, month, Life.renewal())
        life.notify(
            .didFailToRenew,
            grace ? .gracePeriod : nil,
            at: Life.day(30),
            month,
            Life.renewal {
                $0.isInBillingRetryPeriod = true
                $0.gracePeriodExpiresDate = grace ? Life.day(46) : nil
            }
        )
        return life
    }

    /// The day on which access ends, for each policy, without and with grace.
    @Test(arguments: [
        (BillingRetryAccess.deny, 30.0, 46.0),
        (.untilGraceEnds, 46.0, 46.0),
        (.days(20), 50.0, 50.0),
        (.days(999), 90.0, 90.0),
        (.allow, 90.0, 90.0),
    ])
    func accessInRetryFollowsThePolicy(
        _ access: BillingRetryAccess,
        _ without: Double,
        _ with: Double
    ) {
        for (grace, end) in [(false, without), (true, with)] {
            var life = Self.failing(grace: grace)
            life.rules.policies = [AccessPolicy(billingRetryAccess: access)]
            let entitled = life.history.timeline.filter(\.entitled)
            #expect(entitled.last?.until == Life.day(end), "grace \(grace)")
            let apple = life.history.timeline.filter(\.entitledApple)
            #expect(apple.last?.until == Life.day(grace ? 46 : 30), "Apple's line never moves")
        }
    }

    @Test func aLaterPolicyNeverRewritesWhatWasGranted() {
        var life = Self.failing(grace: false)
        life.rules.policies = [
            AccessPolicy(version: 1, billingRetryAccess: .allow),
            AccessPolicy(version: 2, effectiveFrom: Life.day(40), billingRetryAccess: .deny),
        ]
        #expect(life.at(Life.day(39))?.entitled == true)
        #expect(life.at(Life.day(39))?.policyVersion == 1)
        #expect(life.at(Life.day(40))?.entitled == false)
        #expect(life.at(Life.day(40))?.policyVersion == 2)
    }

    @Test func aRefundMayLeaveThePeriod() {
        var life = Life()
        life.rules.policies = [AccessPolicy(refundEndsAccess: false)]
        life.notify(
            .refund,
            at: Life.day(9),
            Life.transaction(1, from: Life.t0, until: Life.day(30)) {
                $0.revocationDate = Life.day(9)
            }
        )
        #expect(life.at(Life.day(29))?.entitled == true)
        #expect(life.at(Life.day(29))?.entitledApple == false)
        #expect(life.at(Life.day(30))?.entitled == false)
    }

    @Test(arguments: [(PlanPeriod.oneWeek, 3, 3), (.oneWeek, 16, 6), (.oneMonth, 28, 28)])
    func aWeeklyPlansGraceIsCapped(_ plan: PlanPeriod, _ configured: Int, _ days: Int) {
        let rules = AppRules(environment: .production, gracePeriodDays: configured)
        #expect(Clock.configuredGrace(plan: plan, rules: rules) == .days(Int64(days)))
    }

    @Test(arguments: GraceScope.allCases)
    func aTrialsFirstChargeIsEstimatedAGraceOnlyWhereTheScopeHasIt(_ scope: GraceScope) {
        for (policy, subtype) in [
            (AccessPolicy(), Subtype.gracePeriod),
            (AccessPolicy(billingRetryAccess: .untilGraceEnds), nil),
        ] {
            var life = Life()
            life.rules.gracePeriodDays = 16
            life.rules.graceScope = scope
            life.rules.products["gold.month"] = ProductRules(
                groupID: "g",
                level: 1,
                period: .oneMonth
            )
            life.rules.policies = [policy]
            let trial = Life.transaction(1, from: Life.t0, until: Life.day(7)) {
                $0.offerDiscountType = .freeTrial
            }
            life.notify(.subscribed, .initialBuy, at: Life.t0, trial, Life.renewal())
            life.notify(
                .didFailToRenew,
                subtype,
                at: Life.day(7),
                trial,
                Life.renewal { $0.isInBillingRetryPeriod = true }
            )
            let end = life.history.timeline.last { $0.entitled }?.until
            #expect(end == Life.day(scope == .allRenewals ? 23 : 7))
        }
    }

    @Test func theClockIsChosenForEachTransaction() {
        let sandbox = AppRules(environment: .sandbox)
        #expect(Clock.profile(period: .hours(12), rules: sandbox) == .sandbox)
        #expect(Clock.profile(period: .hours(24), rules: sandbox) == .sandbox)
        #expect(Clock.profile(period: .days(7), rules: sandbox) == .production)
        let production = AppRules(environment: .production)
        #expect(Clock.profile(period: .minutes(5), rules: production) == .production)
    }
}
