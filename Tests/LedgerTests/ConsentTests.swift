import Testing

@testable import Ledger

/// A guardian's withdrawn consent, and what it takes away.
@Suite struct ConsentTests {
    private static func history(
        _ withdrawals: [(day: Double, position: Int64)],
        _ rules: AppRules = AppRules(environment: .production)
    ) -> History {
        var life = Life()
        let month = Life.transaction(1, from: Life.t0, until: Life.day(30))
        life.notify(.subscribed, .initialBuy, at: Life.t0, month, Life.renewal())
        var fold = SubscriptionFold(rules: rules)
        return fold.history(
            of: life.events,
            withdrawals: withdrawals.map {
                ConsentWithdrawal(at: Life.day($0.day), position: $0.position)
            }
        )
    }

    private static func at(_ day: Double, _ history: History) -> Interval? {
        history.timeline.first { $0.contains(Life.day(day)) }
    }

    @Test func accessEndsAtTheWithdrawalAndTheStateGoesOn() {
        let history = Self.history([(10, 7)])
        #expect(Self.at(9.99, history)?.entitled == true)
        #expect(Self.at(9.99, history)?.deciding.consent == 0)
        let after = Self.at(10, history)
        #expect(after?.from == Life.day(10))
        #expect(after?.state == .active)
        #expect(after?.entitled == false)
        // It is no billing fact: Apple's line says what it said.
        #expect(after?.entitledApple == true)
        #expect(after?.deciding.sorted == [1, 7])
        // Nor does the leeway after the end serve whoever must not be served.
        #expect(Self.at(30.01, history)?.state == .renewalPending)
        #expect(Self.at(30.01, history)?.entitled == false)
        #expect(history.knownToPosition == 7)
    }

    @Test func whatGrantsNothingAnywayIsNotDecidedByIt() {
        let history = Self.history([(10, 7)])
        #expect(Self.at(40, history)?.state == .expired(.presumed))
        #expect(Self.at(40, history)?.deciding.consent == 0)
    }

    @Test func theFirstOfSeveralWithdrawalsCounts() {
        #expect(Self.history([(12, 9), (10, 7)]).timeline == Self.history([(10, 7)]).timeline)
    }

    @Test func oneBeforeThePurchaseSuspendsItFromItsFirstInstantOn() {
        let history = Self.history([(-3, 7)])
        let served = history.timeline.filter { $0.entitled }
        #expect(served.isEmpty)
        #expect(history.timeline.first?.from == Life.t0)
    }

    @Test func aPolicyMayServeAllTheSame() {
        var rules = AppRules(environment: .production)
        rules.policies = [AccessPolicy(rescindedConsentSuspends: false)]
        #expect(Self.history([(10, 7)], rules).timeline == Self.history([], rules).timeline)
        // A policy counts from its own instant on, in either direction.
        rules.policies = [
            AccessPolicy(),
            AccessPolicy(version: 2, effectiveFrom: Life.day(20), rescindedConsentSuspends: false),
        ]
        let history = Self.history([(10, 7)], rules)
        #expect(Self.at(15, history)?.entitled == false)
        #expect(Self.at(20, history)?.entitled == true)
        #expect(Self.at(20, history)?.deciding.consent == 0)
    }
}
