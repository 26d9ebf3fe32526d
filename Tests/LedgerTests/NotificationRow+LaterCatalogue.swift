@testable import Ledger

/// Billing trouble, the end, money back, and the rest.
extension NotificationRow {
    /// 2.3 Billing trouble.
    static let billing = [
        Self(
            .didFailToRenew,
            .gracePeriod,
            given: .paid,
            day: 30,
            .lengthens(until: 46),
            month(),
            failing(graceUntil: 46),
            also: "in grace, then in billing retry"
        ) {
            $0.at(Life.day(30))?.state == .gracePeriod
                && $0.at(Life.day(46))?.state == .billingRetry
        },
        Self(
            .didFailToRenew,
            given: .paid,
            day: 30,
            .ends,
            month(),
            failing(),
            also: "in billing retry, 60 days at most"
        ) {
            $0.at(Life.day(89))?.state == .billingRetry
                && $0.at(Life.day(90))?.state == .expired(.billingRetry)
        },
        Self(
            .gracePeriodExpired,
            given: .grace,
            day: 46,
            .ends,
            month(),
            failing(graceUntil: 46),
            also: "billing retry goes on"
        ) { $0.at(Life.day(46))?.state == .billingRetry },
        Self(
            .gracePeriodExpired,
            given: .grace,
            day: 40,
            .ends,
            month(),
            failing(graceUntil: 46),
            also: "also before the announced date"
        ) { $0.at(Life.day(40))?.state == .billingRetry },
    ]

    /// 2.3 The end, by cause.
    static let end: [NotificationRow] =
        [
            ending(.voluntary, 1, .voluntary, given: .cancelled),
            ending(.priceIncrease, 3, .priceIncrease, given: .asked),
            ending(.productNotForSale, 4, .productNotForSale, given: .paid),
            ending(nil, 5, .other, given: .paid),
        ] + [
            Self(
                .expired,
                .billingRetry,
                given: .retry,
                day: 90,
                .keeps,
                month(),
                Life.renewal {
                    $0.autoRenewStatus = 0
                    $0.expirationIntent = 2
                },
                also: "expired by billing retry, though auto-renew is off now"
            ) { $0.at(Life.day(90))?.state == .expired(.billingRetry) },
            Self(
                .expired,
                .voluntary,
                given: .grace,
                day: 35,
                .ends,
                month(),
                Life.renewal {
                    $0.autoRenewStatus = 0
                    $0.expirationIntent = 1
                },
                also: "a customer who cancels during grace left voluntarily"
            ) { $0.at(Life.day(35))?.state == .expired(.voluntary) },
        ]

    private static func ending(
        _ subtype: Subtype?,
        _ intent: Int32,
        _ cause: ExpirationCause,
        given: Given
    ) -> NotificationRow {
        Self(
            .expired,
            subtype,
            given: given,
            day: 30,
            .ends,
            month(),
            Life.renewal {
                $0.expirationIntent = intent
                if intent == 1 { $0.autoRenewStatus = 0 }
            },
            also: "the cause is `\(cause.rawValue)`"
        ) {
            $0.at(Life.day(30))?.state == .expired(cause)
                && $0.at(Life.day(30))?.confidence == .confirmed
        }
    }

    /// 2.4 Money back and sharing.
    static let money = [
        Self(
            .consumptionRequest,
            given: .paid,
            day: 9,
            .changesNothing,
            month(),
            Life.renewal(),
            also: "a refund case is open, to be answered within 12 hours"
        ) { life in
            let cases = life.history.refundCases
            return cases.map(\.decision) == [nil] && cases.map(\.answerBy) == [Life.day(9.5)]
        },
        Self(
            .refund,
            given: .paid,
            day: 9,
            .ends,
            month { $0.revocationDate = Life.day(9) },
            Life.renewal(),
            also: "revoked by refund"
        ) { $0.at(Life.day(9))?.state == .revoked(.refund) },
        Self(
            .refund,
            given: .paid,
            day: 9,
            .ends,
            month {
                $0.revocationDate = Life.day(9)
                $0.revocationType = .refundProrated
                $0.revocationPercentage = 70_000
            },
            Life.renewal(),
            also: "a part paid back ends it too"
        ) { $0.at(Life.day(9))?.state == .revoked(.refundProrated) },
        Self(
            .refund,
            given: .renewed,
            day: 40,
            .keeps,
            month { $0.revocationDate = Life.day(40) },
            Life.renewal(),
            also: "a past month's refund is money only"
        ) { $0.history.charges.map { $0.revokedAt != nil } == [true, false] },
        Self(
            .refund,
            .seats,
            given: .paid,
            day: 9,
            .keeps,
            month {
                $0.quantity = 5
                $0.revokedSeatQuantity = 2
            },
            Life.renewal(),
            also: "so many seats less"
        ) { $0.history.seatRefunds.map(\.seats) == [2] },
        Self(
            .refundDeclined,
            given: .paid,
            day: 9,
            .changesNothing,
            month(),
            Life.renewal(),
            also: "it closes the refund case, if Apple had asked"
        ) { life in
            var asked = life
            asked.notify(.consumptionRequest, at: Life.day(8), month(), Life.renewal())
            return life.history.refundCases.isEmpty
                && asked.history.refundCases.map(\.decision) == [.declined]
        },
        Self(
            .refundReversed,
            given: .refunded,
            day: 20,
            .grants(until: 30),
            month(),
            Life.renewal(),
            also: "as if it had never been"
        ) { $0.at(Life.day(15))?.state == .active && $0.history.reversals.count == 1 },
        Self(
            .refundReversed,
            given: .refunded,
            day: 40,
            .keepsNone,
            month(),
            Life.renewal(),
            also: "too late for access; the past is put right"
        ) {
            $0.at(Life.day(15))?.state == .active && !$0.isEntitled(40)
        },
        Self(
            .revoke,
            given: .shared,
            day: 9,
            .ends,
            month {
                $0.ownership = .familyShared
                $0.revocationDate = Life.day(9)
                $0.revocationType = .familyRevoke
            },
            also: "sharing ended"
        ) { $0.at(Life.day(9))?.state == .revoked(.familyRevoke) },
        Self(
            .revoke,
            given: .paid,
            day: 9,
            .ends,
            month {
                $0.ownership = .assigned
                $0.revocationDate = Life.day(9)
                $0.revocationType = .assignmentRevoke
            },
            also: "an assigned seat was taken back"
        ) { $0.at(Life.day(9))?.state == .revoked(.assignmentRevoke) },
    ]

    /// 2.4 Extensions.
    static let extensions = [
        Self(
            .renewalExtended,
            given: .paid,
            day: 20,
            .lengthens(until: 37),
            month(1, 0, 37),
            Life.renewal(),
            also: "the same transaction, no new period"
        ) {
            $0.at(Life.day(36))?.transactionID == AppleID(1) && $0.history.charges.count == 1
                && $0.history.charges[0].isExtended
        },
        Self(
            .renewalExtension,
            .failure,
            given: .paid,
            day: 20,
            .changesNothing,
            month(),
            Life.renewal()
        ),
        Self(.renewalExtension, .summary, given: .paid, day: 20, .changesNothing),
        Self(.renewalExtension, .success, given: .paid, day: 20, .changesNothing),
    ]

    /// 2.4 What is about no purchase, and what is not known yet.
    static let others = [
        Self(.externalPurchaseToken, .created, given: .paid, day: 9, .changesNothing),
        Self(.externalPurchaseToken, .activeTokenReminder, given: .paid, day: 9, .changesNothing),
        Self(.externalPurchaseToken, .unreported, given: .paid, day: 9, .changesNothing),
        Self(
            .rescindConsent,
            given: .paid,
            day: 9,
            .changesNothing,
            also: "but for the customer's subscriptions, to whose folds it is told: no access"
        ) { life in
            var fold = SubscriptionFold(rules: life.rules)
            let withdrawal = ConsentWithdrawal(at: Life.day(9), position: 9)
            let history = fold.history(of: life.events, withdrawals: [withdrawal])
            return history.timeline.allSatisfy {
                $0.entitled == ($0.from < Life.day(9)) || !$0.entitledApple
            }
        },
        Self(
            .unclaimSeats,
            given: .paid,
            day: 9,
            .changesNothing,
            also: "whose seats they are is in your records alone"
        ),
        Self(.test, given: .paid, day: 9, .changesNothing),
        Self(
            NotificationType("FUTURE_TYPE"),
            Subtype("FUTURE_SUBTYPE"),
            given: .paid,
            day: 9,
            .changesNothing,
            month(),
            Life.renewal(),
            also: "it is kept and noted as unknown"
        ) { $0.history.anomalies.map(\.kind) == [.unknownValue] },
    ]
}
