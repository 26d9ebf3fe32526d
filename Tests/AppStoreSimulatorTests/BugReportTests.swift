import AppStoreSimulator
import Testing

/// Published bug reports with a known right answer, put to the evaluator of delivered facts.
@Suite struct BugReportTests {
    static let t0: Int64 = 1_760_000_000_000
    static func day(_ days: Double) -> Int64 { t0 + Int64(days * 86_400_000) }

    /// A chain of notices written by hand, with inner dates as Apple's: a little earlier.
    struct Script {
        var notices: [Notice] = []

        mutating func add(
            _ type: String,
            _ subtype: String? = nil,
            at signedDate: Int64,
            transaction id: String,
            product: String = "plan",
            from start: Int64,
            to end: Int64,
            reason: NoticeTransaction.Reason = .purchase,
            revoked: Int64? = nil,
            renewal change: ((inout NoticeRenewal) -> Void)? = { _ in }
        ) {
            var transaction = NoticeTransaction(
                transactionID: id,
                productID: product,
                purchaseDate: start,
                expiresDate: end,
                reason: reason,
                signedDate: signedDate - 40
            )
            transaction.revocation = revoked.map { NoticeTransaction.Revocation(date: $0) }
            var renewal = NoticeRenewal(
                productID: product,
                renewalDate: end,
                recentSubscriptionStartDate: start,
                signedDate: signedDate - 60
            )
            change?(&renewal)
            notices.append(
                Notice(
                    uuid: "\(notices.count)",
                    type: type,
                    subtype: subtype,
                    signedDate: signedDate,
                    transaction: transaction,
                    renewal: change == nil ? nil : renewal
                )
            )
        }

        func at(_ instant: Int64) -> TruthAnswer? {
            TruthAnswer(at: instant, in: DeliveredTruth(notices).intervals())
        }
    }

    @Test func a01GraceRunsToItsDate() throws {
        var script = Script()
        let end = Self.day(30)
        script.add(
            "SUBSCRIBED",
            "INITIAL_BUY",
            at: Self.t0,
            transaction: "7001",
            from: Self.t0,
            to: end
        )
        script.add(
            "DID_FAIL_TO_RENEW",
            "GRACE_PERIOD",
            at: end,
            transaction: "7001",
            from: Self.t0,
            to: end
        ) {
            $0.gracePeriodExpiresDate = Self.day(46)
            $0.isInBillingRetryPeriod = true
        }
        let answer = try #require(script.at(Self.day(35)))
        #expect(answer.state == "grace_period" && answer.entitledApple)
        #expect(answer.from == end && answer.until == Self.day(46))
        let after = try #require(script.at(Self.day(46)))
        #expect(after.state == "billing_retry" && !after.entitledApple)
        #expect(after.until == Self.day(90))
        #expect(script.at(Self.t0 - 1) == nil)
    }

    @Test func a02RetryWithoutGraceGivesNoAccess() throws {
        var script = Script()
        let end = Self.day(30)
        script.add(
            "SUBSCRIBED",
            "INITIAL_BUY",
            at: Self.t0,
            transaction: "7002",
            from: Self.t0,
            to: end
        )
        script.add("DID_FAIL_TO_RENEW", at: end, transaction: "7002", from: Self.t0, to: end) {
            $0.isInBillingRetryPeriod = true
            $0.expirationIntent = 2
        }
        let answer = try #require(script.at(Self.day(31)))
        #expect(answer.state == "billing_retry" && !answer.entitledApple)
        #expect(answer.from == end && answer.until == Self.day(90))
        #expect(script.at(Self.day(90))?.cause == "billing_retry")
    }

    @Test func a03TurningAutoRenewOffEndsNothing() throws {
        var script = Script()
        let end = Self.day(30)
        script.add(
            "SUBSCRIBED",
            "INITIAL_BUY",
            at: Self.t0,
            transaction: "7003",
            from: Self.t0,
            to: end
        )
        script.add(
            "DID_CHANGE_RENEWAL_STATUS",
            "AUTO_RENEW_DISABLED",
            at: Self.day(3),
            transaction: "7003",
            from: Self.t0,
            to: end
        ) { $0.autoRenewStatus = 0 }
        let answer = try #require(script.at(Self.day(10)))
        #expect(answer.state == "active" && answer.entitledApple && answer.until == end)
        let after = try #require(script.at(end))
        #expect(after.state == "expired" && after.cause == "voluntary", "no leeway after a cancel")
    }

    @Test func a04ADowngradeWaits() throws {
        var script = Script()
        let end = Self.day(365)
        script.add(
            "SUBSCRIBED",
            "INITIAL_BUY",
            at: Self.t0,
            transaction: "7004",
            product: "gold.year",
            from: Self.t0,
            to: end
        )
        script.add(
            "DID_CHANGE_RENEWAL_PREF",
            "DOWNGRADE",
            at: Self.day(20),
            transaction: "7004",
            product: "gold.year",
            from: Self.t0,
            to: end
        ) { $0.autoRenewProductID = "silver.year" }
        let answer = try #require(script.at(Self.day(364)))
        #expect(answer.productID == "gold.year" && answer.until == end)
    }

    @Test func a05AnUpgradeReplacesAtOnce() throws {
        var script = Script()
        script.add(
            "SUBSCRIBED",
            "INITIAL_BUY",
            at: Self.t0,
            transaction: "7005",
            product: "silver.month",
            from: Self.t0,
            to: Self.day(30)
        )
        script.add(
            "DID_CHANGE_RENEWAL_PREF",
            "UPGRADE",
            at: Self.day(5),
            transaction: "7006",
            product: "gold.month",
            from: Self.day(5),
            to: Self.day(35)
        )
        let intervals = DeliveredTruth(script.notices).intervals()
        #expect(intervals.prefix(2).map(\.productID) == ["silver.month", "gold.month"])
        #expect(intervals.prefix(2).map(\.from) == [Self.t0, Self.day(5)])
        let answer = try #require(script.at(Self.day(10)))
        #expect(answer.productID == "gold.month" && answer.until == Self.day(35))
        #expect(answer.from == Self.t0, "the state has been the same all the time")
    }

    @Test func a06ARefundEndsThePeriod() throws {
        var script = Script()
        let end = Self.day(365)
        script.add(
            "DID_RENEW",
            at: Self.t0,
            transaction: "7007",
            from: Self.t0,
            to: end,
            reason: .renewal
        )
        script.add(
            "REFUND",
            at: Self.day(9),
            transaction: "7007",
            from: Self.t0,
            to: end,
            reason: .renewal,
            revoked: Self.day(9)
        )
        #expect(script.at(Self.day(9) - 1)?.state == "active")
        let answer = try #require(script.at(Self.day(10)))
        #expect(answer.state == "revoked" && answer.cause == "refund" && !answer.entitledApple)
        #expect(answer.from == Self.day(9) && answer.until == nil)
    }

    @Test func a07TheClockEndsWhatNobodyEnds() throws {
        var script = Script()
        let end = Self.day(30)
        script.add(
            "SUBSCRIBED",
            "INITIAL_BUY",
            at: Self.t0,
            transaction: "7008",
            from: Self.t0,
            to: end
        )
        let pending = try #require(script.at(end))
        #expect(pending.state == "renewal_pending" && !pending.entitledApple)
        #expect(pending.until == end + 7_200_000)
        let answer = try #require(script.at(Self.day(31)))
        #expect(answer.state == "expired" && answer.cause == "presumed" && answer.until == nil)
    }

    @Test func c05ALateRenewalDoesNotUndoARefund() throws {
        var script = Script()
        let end = Self.day(30)
        let refund = Self.t0 + 7_200_000
        script.add(
            "REFUND",
            at: refund,
            transaction: "7020",
            from: Self.t0,
            to: end,
            reason: .renewal,
            revoked: refund
        )
        script.add(
            "DID_RENEW",
            at: Self.t0,
            transaction: "7020",
            from: Self.t0,
            to: end,
            reason: .renewal
        )
        #expect(script.at(refund)?.state == "revoked")
        #expect(script.at(refund - 1)?.state == "active")
    }

    @Test func aReversedRefundNeverHappened() throws {
        var script = Script()
        let end = Self.day(30)
        script.add(
            "DID_RENEW",
            at: Self.t0,
            transaction: "1",
            from: Self.t0,
            to: end,
            reason: .renewal
        )
        script.add(
            "REFUND",
            at: Self.day(2),
            transaction: "1",
            from: Self.t0,
            to: end,
            reason: .renewal,
            revoked: Self.day(2)
        )
        script.add(
            "REFUND_REVERSED",
            at: Self.day(4),
            transaction: "1",
            from: Self.t0,
            to: end,
            reason: .renewal
        )
        let answer = try #require(script.at(Self.day(3)))
        #expect(answer.state == "active" && answer.from == Self.t0 && answer.until == end)
    }

    @Test func anOldRefundNeverEndsTheRunningPeriod() throws {
        var script = Script()
        script.add(
            "SUBSCRIBED",
            "INITIAL_BUY",
            at: Self.t0,
            transaction: "1",
            from: Self.t0,
            to: Self.day(30)
        )
        script.add(
            "DID_RENEW",
            at: Self.day(30),
            transaction: "2",
            from: Self.day(30),
            to: Self.day(60),
            reason: .renewal
        )
        script.add(
            "REFUND",
            at: Self.day(40),
            transaction: "1",
            from: Self.t0,
            to: Self.day(30),
            revoked: Self.day(40)
        )
        let answer = try #require(script.at(Self.day(41)))
        #expect(answer.state == "active" && answer.from == Self.t0 && answer.until == Self.day(60))
    }

    @Test func graceStaysInTheHistoryAfterItIsOver() throws {
        var script = Script()
        let end = Self.day(30)
        script.add(
            "SUBSCRIBED",
            "INITIAL_BUY",
            at: Self.t0,
            transaction: "1",
            from: Self.t0,
            to: end
        )
        for (type, subtype, days) in [
            ("DID_FAIL_TO_RENEW", "GRACE_PERIOD", 29.9), ("GRACE_PERIOD_EXPIRED", nil, 46.001),
        ] as [(String, String?, Double)] {
            script.add(
                type,
                subtype,
                at: Self.day(days),
                transaction: "1",
                from: Self.t0,
                to: end
            ) {
                $0.gracePeriodExpiresDate = Self.day(46)
                $0.isInBillingRetryPeriod = true
                $0.expirationIntent = 2
            }
        }
        script.add(
            "DID_RENEW",
            "BILLING_RECOVERY",
            at: Self.day(70),
            transaction: "2",
            from: Self.day(70),
            to: Self.day(100),
            reason: .renewal
        )
        #expect(script.at(Self.day(29.95))?.state == "active")
        #expect(script.at(Self.day(40))?.state == "grace_period")
        #expect(script.at(Self.day(46))?.state == "billing_retry")
        #expect(script.at(Self.day(46))?.until == Self.day(70))
        #expect(script.at(Self.day(70))?.state == "active")
    }

    @Test func aMissingGraceDateIsEstimatedOnlyWhereALengthIsConfigured() {
        var script = Script()
        let end = Self.day(30)
        script.add(
            "SUBSCRIBED",
            "INITIAL_BUY",
            at: Self.t0,
            transaction: "1",
            from: Self.t0,
            to: end
        )
        script.add(
            "DID_FAIL_TO_RENEW",
            "GRACE_PERIOD",
            at: end,
            transaction: "1",
            from: Self.t0,
            to: end
        ) {
            $0.isInBillingRetryPeriod = true
        }
        let blind = DeliveredTruth(script.notices)
        #expect(blind.condition(at: Self.day(31))?.condition.state == .billingRetry)
        let configured = DeliveredTruth(script.notices, configuredGraceDays: 16)
        #expect(configured.condition(at: Self.day(45))?.condition.state == .gracePeriod)
        #expect(configured.condition(at: Self.day(46))?.condition.state == .billingRetry)
    }
}
