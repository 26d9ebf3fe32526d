import Testing

@testable import Ledger

/// What is missing, unsigned, unknown, shared or taken back.
extension EntitlementScenarioTests {
    @Test(arguments: [MissingGraceDate.estimate, .deny])
    func aMissingGraceDateIsEstimatedFromConfiguration(_ choice: MissingGraceDate) {
        var life = Self.subscribed()
        life.rules.gracePeriodDays = 16
        life.rules.policies = [AccessPolicy(missingGraceDate: choice)]
        life.notify(.didFailToRenew, .gracePeriod, at: Life.day(30), Self.month(1), Life.renewal())
        let grace = life.at(Life.day(40))
        #expect(grace?.state == .gracePeriod)
        #expect(grace?.confidence == .estimated)
        #expect(grace?.until == Life.day(46))
        #expect(grace?.entitledApple == true)
        #expect(grace?.entitled == (choice == .estimate))
        #expect(life.history.anomalies.contains { $0.kind == .missingGraceDate })
    }

    @Test func aMissingGraceDateWithoutConfigurationDenies() {
        var life = Self.subscribed()
        life.notify(.didFailToRenew, .gracePeriod, at: Life.day(30), Self.month(1), Life.renewal())
        #expect(life.at(Life.day(31))?.state == .billingRetry)
        #expect(life.at(Life.day(31))?.entitled == false)
    }

    @Test func anAnnouncedFailureBeforeTheEndShowsAsTrouble() {
        var life = Self.subscribed()
        life.notify(
            .didFailToRenew,
            at: Life.day(29.5),
            Self.month(1),
            Life.renewal { $0.isInBillingRetryPeriod = true }
        )
        #expect(life.at(Life.day(29))?.hasBillingTrouble == false)
        #expect(life.at(Life.day(29.6))?.hasBillingTrouble == true)
        #expect(life.at(Life.day(29.6))?.state == .active)
        #expect(life.at(Life.day(30))?.state == .billingRetry)
    }

    @Test func aRefundedUpgradeGivesTheTimeBackToTheOldPlan() {
        var life = Life()
        life.notify(
            .subscribed,
            .initialBuy,
            at: Life.t0,
            Life.transaction(1, from: Life.t0, until: Life.day(30), product: "silver.month")
        )
        let gold = Life.transaction(
            2,
            from: Life.day(5),
            until: Life.day(35),
            product: "gold.month"
        )
        life.notify(.didChangeRenewalPref, .upgrade, at: Life.day(5), gold)
        life.notify(
            .refund,
            at: Life.day(8),
            Life.transaction(2, from: Life.day(5), until: Life.day(35), product: "gold.month") {
                $0.revocationDate = Life.day(8)
            }
        )
        #expect(life.at(Life.day(6))?.productID == "gold.month")
        #expect(life.at(Life.day(9))?.productID == "silver.month")
        #expect(life.at(Life.day(9))?.state == .active)
        #expect(life.at(Life.day(31))?.state == .revoked(.refund))
    }

    @Test func seatsShareThePeriod() {
        var life = Self.subscribed()
        life.notify(
            .didChangeRenewalPref,
            .increaseQuantity,
            at: Life.day(10),
            Life.transaction(2, from: Life.day(10), until: Life.day(30)) {
                $0.additionalReason = "SEAT_ADDITION"
                $0.quantity = 3
            },
            Life.renewal()
        )
        life.notify(
            .refund,
            at: Life.day(12),
            Life.transaction(2, from: Life.day(10), until: Life.day(30)) {
                $0.additionalReason = "SEAT_ADDITION"
                $0.revocationDate = Life.day(12)
            }
        )
        #expect(life.at(Life.day(11))?.transactionID == AppleID(1))
        #expect(life.at(Life.day(13))?.entitled == true)
    }

    @Test func anUnsignedExtensionIsProvisionalUntilSigned() {
        var life = Self.subscribed()
        var answer = Fact(
            kind: .extensionAnswered,
            provenance: .tls,
            factAt: Life.day(10)
        )
        answer.extensionAnswer = ExtensionAnswer(success: true, effectiveDate: Life.day(37))
        life.add(answer)
        #expect(life.at(Life.day(35))?.state == .active)
        #expect(life.at(Life.day(35))?.confidence == .provisional)
        #expect(life.at(Life.day(29))?.confidence == .confirmed)
        life.notify(
            .renewalExtended,
            at: Life.day(11),
            Life.transaction(1, from: Life.t0, until: Life.day(36)),
            Life.renewal()
        )
        #expect(life.at(Life.day(35))?.confidence == .confirmed)
        #expect(life.at(Life.day(36))?.state == .renewalPending)
    }

    @Test func unknownValuesNeitherGrantNorEnd() {
        var life = Self.subscribed()
        life.notify(
            NotificationType("FUTURE_TYPE"),
            Subtype("FUTURE"),
            at: Life.day(2),
            status: 42,
            Self.month(1),
            Life.renewal()
        )
        #expect(life.at(Life.day(3))?.state == .active)
        #expect(life.at(Life.day(3))?.until == Life.day(30))
        #expect(life.history.anomalies.contains { $0.kind == .unknownValue })
        var alone = Life()
        alone.notify(NotificationType("FUTURE_TYPE"), at: Life.t0, status: 1)
        #expect(alone.history.timeline.isEmpty)
    }

    @Test func whatAnUnsignedReceiptSaysNeverOutranksASignature() {
        var life = Self.subscribed()
        var receipt = Fact(kind: .receipt, provenance: .receipt, factAt: Life.day(20))
        receipt.transaction = Life.transaction(1, from: Life.t0, until: Life.day(900))
        receipt.transaction?.signedDate = Life.day(20)
        life.add(receipt)
        #expect(life.at(Life.day(29))?.until == Life.day(30))
    }
}
