import Testing

@testable import Ledger

/// Which access policy counts when there are several, and what a policy never decides.
@Suite struct PolicyTimeTests {
    private static let month = NotificationRow.month()

    private static func life(_ policies: AccessPolicy...) -> Life {
        var life = Life()
        life.rules.policies = policies
        life.notify(.subscribed, .initialBuy, at: Life.t0, month, Life.renewal())
        return life
    }

    private static func taken(_ type: RevocationType?, _ policies: AccessPolicy...) -> Life {
        var life = Life()
        life.rules.policies = policies
        let back = NotificationRow.month {
            $0.revocationDate = Life.day(10)
            $0.revocationType = type
        }
        life.notify(.refund, at: Life.day(10), back, Life.renewal())
        return life
    }

    private static func entitled(_ life: Life, _ days: Double...) -> [Bool?] {
        days.map { life.at(Life.day($0))?.entitled }
    }

    /// Grace that Apple dated is Apple's own; only an estimate is the policy's to deny.
    @Test func anEstimatedGraceMayBeDeniedAndADatedOneNever() {
        let denying = AccessPolicy(missingGraceDate: .deny)
        for date in [nil, 46.0] {
            var life = Self.life(denying)
            life.rules.gracePeriodDays = 16
            life.notify(
                .didFailToRenew,
                .gracePeriod,
                at: Life.day(30),
                Self.month,
                NotificationRow.failing(graceUntil: date)
            )
            #expect(life.at(Life.day(40))?.state == .gracePeriod)
            #expect(Self.entitled(life, 40) == [date != nil])
            #expect(life.at(Life.day(40))?.entitledApple == true)
            // The same where the policy came into force within the grace period.
            life.rules.policies = [
                AccessPolicy(),
                AccessPolicy(version: 2, effectiveFrom: Life.day(35), missingGraceDate: .deny),
            ]
            #expect(Self.entitled(life, 34.9, 35, 45) == [true, date != nil, date != nil])
            #expect(life.at(Life.day(34.9))?.policyVersion == 1)
            #expect(life.at(Life.day(35))?.policyVersion == 2)
        }
    }

    @Test(arguments: [
        (RevocationType.refundFull, true), (.refundProrated, true), (.familyRevoke, false),
        (.assignmentRevoke, false),
    ])
    func onlyWhoWasRefundedMayKeepThePeriod(_ type: RevocationType, _ keeps: Bool) {
        let life = Self.taken(type, AccessPolicy(refundEndsAccess: false))
        #expect(Self.entitled(life, 9, 10, 29.9, 30, 40) == [true, keeps, keeps, false, false])
        #expect(life.at(Life.day(20))?.entitledApple == false)
    }

    @Test func whetherARefundEndsAccessIsAskedOfEachInstant() {
        let life = Self.taken(
            nil,
            AccessPolicy(),
            AccessPolicy(version: 2, effectiveFrom: Life.day(20), refundEndsAccess: false)
        )
        #expect(Self.entitled(life, 9, 15, 20, 29.9, 30) == [true, false, true, true, false])
        let turned = Self.taken(
            nil,
            AccessPolicy(refundEndsAccess: false),
            AccessPolicy(version: 2, effectiveFrom: Life.day(20))
        )
        #expect(Self.entitled(turned, 15, 20, 30) == [true, false, false])
    }

    /// States that grant nothing do so under every policy.
    @Test func nobodyIsServedAfterTheEndWhateverThePolicies() {
        let generous = AccessPolicy(
            version: 2,
            effectiveFrom: Life.day(20),
            billingRetryAccess: .allow,
            refundEndsAccess: false
        )
        var life = Self.life(AccessPolicy(), generous)
        life.notify(.expired, .voluntary, at: Life.day(30), Self.month, NotificationRow.off)
        #expect(Self.entitled(life, 29, 30, 100) == [true, false, false])
    }

    /// The leeway is that of the policy in force when the period ended.
    @Test func theLeewayIsThatOfThePolicyInForceAtTheEnd() {
        let life = Self.life(
            AccessPolicy(lapseLeeway: .hours(6)),
            AccessPolicy(version: 2, effectiveFrom: Life.day(30), lapseLeeway: .hours(12)),
            AccessPolicy(version: 3, effectiveFrom: Life.day(31), lapseLeeway: .hours(48))
        )
        #expect(Self.entitled(life, 30.49, 30.5) == [true, false])
        #expect(life.at(Life.day(30.49))?.state == .renewalPending)
    }

    /// Lifecycle 4.1: a sandbox's accelerated periods have an accelerated leeway; TestFlight's day
    /// is one of them, a week is not.
    @Test(arguments: [(24.0, 10.0), (24.1, 120), (168, 120)])
    func theLeewayFollowsTheLengthOfThePeriodInSandbox(_ hours: Double, _ minutes: Double) {
        var life = Life()
        life.rules.environment = .sandbox
        let end = Life.day(hours / 24)
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            Life.transaction(1, from: Life.t0, until: end),
            Life.renewal()
        )
        let pending = life.history.timeline.first { $0.state == .renewalPending }
        #expect(pending?.from == end)
        #expect(pending?.until == end.adding(.minutes(Int64(minutes))))
    }

    @Test func graceIsForPaidRenewalsWhereNothingIsSaidOfATrial() {
        let rules = AppRules(
            environment: .production,
            gracePeriodDays: 16,
            graceScope: .existingPaidRenewals
        )
        #expect(Clock.configuredGrace(plan: .oneMonth, rules: rules) == .days(16))
        #expect(Clock.configuredGrace(plan: .oneMonth, offer: .trial, rules: rules) == nil)
        #expect(Clock.configuredGrace(plan: .oneMonth, offer: .intro, rules: rules) == .days(16))
    }

    // MARK: - Withdrawn consent

    /// A life of two months of which consent was withdrawn on a day.
    private static func withdrawn(_ day: Double) -> [Interval] {
        var life = life(AccessPolicy())
        life.notify(
            .didRenew,
            at: Life.day(30),
            NotificationRow.month(2, 30, 60, reason: .renewal),
            Life.renewal()
        )
        var fold = SubscriptionFold(rules: life.rules)
        let withdrawal = ConsentWithdrawal(at: Life.day(day), position: 9)
        return Array(fold.history(of: life.events, withdrawals: [withdrawal]).timeline)
    }

    @Test(arguments: [0.0, 10, 30, 45, 60, 70])
    func aWithdrawalLeavesWhatWasOverBeforeItAsItWas(_ day: Double) {
        let timeline = Self.withdrawn(day)
        for (one, next) in zip(timeline, timeline.dropFirst()) {
            #expect(one.until == next.from)
            #expect(one.from < next.from)
        }
        #expect(timeline.last?.until == nil)
        for instant in [0.0, 9.9, 10, 29.9, 30, 44.9, 45, 59.9] {
            let interval = timeline.first { $0.contains(Life.day(instant)) }
            #expect(interval?.entitled == (instant < day), "day \(instant)")
            #expect(interval?.entitledApple == true)
            #expect(interval?.deciding.consent == (instant < day ? 0 : 9))
        }
    }
}
