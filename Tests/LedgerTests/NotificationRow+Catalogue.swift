@testable import Ledger

extension NotificationRow {
    /// The rows of the reference, in its order.
    static let all = entry + intent + plan + price + billing + end + money + extensions + others

    /// 2.1 Entry and renewal.
    private static let entry = [
        Self(
            .subscribed,
            .initialBuy,
            given: .nothing,
            day: 0,
            .grants(until: 7),
            month(1, 0, 7) { $0.offerDiscountType = .freeTrial },
            Life.renewal(),
            also: "a trial is told by its offer, there is no type for it"
        ) { $0.at(Life.t0)?.offer == .trial },
        Self(
            .subscribed,
            .initialBuy,
            given: .nothing,
            day: 0,
            .grants(until: 30),
            month { $0.ownership = .familyShared },
            also: "a family member's first grant"
        ) { $0.at(Life.t0)?.ownership == .familyShared },
        Self(
            .subscribed,
            .resubscribe,
            given: .expired,
            day: 50,
            .grants(until: 80),
            month(2, 50, 80),
            Life.renewal()
        ),
        Self(
            .didRenew,
            given: .paid,
            day: 30,
            .lengthens(until: 60),
            month(2, 30, 60, reason: .renewal),
            Life.renewal()
        ),
        Self(
            .didRenew,
            given: .downgrading,
            day: 30,
            .lengthens(until: 60),
            month(2, 30, 60, "silver.month", reason: .renewal),
            cheaper,
            also: "the pending plan has taken effect"
        ) {
            $0.at(Life.day(29))?.pendingProductID == "silver.month"
                && $0.at(Life.day(31))?.productID == "silver.month"
                && $0.at(Life.day(31))?.pendingProductID == nil
        },
        Self(
            .didRenew,
            .billingRecovery,
            given: .grace,
            day: 36,
            .lengthens(until: 60),
            month(2, 30, 60, reason: .renewal),
            Life.renewal(),
            also: "within grace the cycle goes on as if nothing had been"
        ) { $0.at(Life.day(30))?.state == .active },
        Self(
            .didRenew,
            .billingRecovery,
            given: .retry,
            day: 40,
            .grants(until: 70),
            month(2, 40, 70, reason: .renewal),
            Life.renewal(),
            also: "the days between stay unpaid and unserved"
        ) { $0.at(Life.day(35))?.state == .billingRetry },
        Self(
            .offerRedeemed,
            given: .paid,
            day: 5,
            .keeps,
            month(),
            Life.renewal { $0.offerType = 2 }
        ),
        Self(
            .offerRedeemed,
            .upgrade,
            given: .paid,
            day: 5,
            .switches(to: "platinum.month", until: 35),
            month(2, 5, 35, "platinum.month") { $0.offerType = 2 },
            Life.renewal(),
            also: "with its offer"
        ) { $0.at(Life.day(5))?.offer == .promotional },
        Self(
            .offerRedeemed,
            .downgrade,
            given: .paid,
            day: 5,
            .keeps,
            month(),
            cheaper,
            also: "the other plan is pending"
        ) { $0.at(Life.day(5))?.pendingProductID == "silver.month" },
        Self(
            .oneTimeCharge,
            given: .nothing,
            day: 0,
            .changesNothing,
            month {
                $0.productType = .consumable
                $0.expiresDate = nil
            },
            also: "it is no subscription"
        ) { $0.history.timeline.isEmpty && $0.history.charges.isEmpty },
    ]

    /// 2.2 Intent.
    private static let intent = [
        Self(
            .didChangeRenewalStatus,
            .autoRenewDisabled,
            given: .paid,
            day: 3,
            .keeps,
            month(),
            off,
            also: "the intent is off"
        ) {
            $0.at(Life.day(2))?.renewalIntent == .on && $0.at(Life.day(3))?.renewalIntent == .off
        },
        Self(
            .didChangeRenewalStatus,
            .autoRenewEnabled,
            given: .cancelled,
            day: 6,
            .keeps,
            month(),
            Life.renewal(),
            also: "the intent is on"
        ) {
            $0.at(Life.day(5))?.renewalIntent == .off && $0.at(Life.day(6))?.renewalIntent == .on
        },
        Self(
            .didChangeRenewalStatus,
            given: .asked,
            day: 12,
            .keeps,
            month(),
            Life.renewal {
                $0.autoRenewStatus = 0
                $0.priceIncreaseStatus = 0
            },
            also: "the intent is read from renewal info: off"
        ) { $0.at(Life.day(12))?.renewalIntent == .off },
    ]

    /// 2.2 Plan and seats.
    private static let plan = [
        Self(
            .didChangeRenewalPref,
            .upgrade,
            given: .paid,
            day: 5,
            .switches(to: "platinum.month", until: 35),
            month(2, 5, 35, "platinum.month"),
            Life.renewal()
        ),
        Self(
            .didChangeRenewalPref,
            .downgrade,
            given: .paid,
            day: 5,
            .keeps,
            month(),
            cheaper,
            also: "the other plan is pending"
        ) {
            $0.at(Life.day(5))?.pendingProductID == "silver.month"
                && $0.at(Life.day(29))?.productID == "gold.month"
        },
        Self(
            .didChangeRenewalPref,
            given: .downgrading,
            day: 8,
            .keeps,
            month(),
            Life.renewal { $0.autoRenewProductID = "gold.month" },
            also: "nothing is pending any more"
        ) { $0.at(Life.day(8))?.pendingProductID == nil },
        Self(
            .didChangeRenewalPref,
            given: .paid,
            day: 10,
            .switches(to: "sport.month", until: 40),
            month(2, 10, 40, "sport.month"),
            Life.renewal(),
            also: "a new transaction is a new period"
        ),
        Self(
            .didChangeRenewalPref,
            .increaseQuantity,
            given: .paid,
            day: 10,
            .keeps,
            month(2, 10, 30) {
                $0.additionalReason = "SEAT_ADDITION"
                $0.quantity = 3
            },
            Life.renewal(),
            also: "one more charge of the same period"
        ) { $0.history.charges.map(\.quantity) == [1, 3] },
        Self(
            .didChangeRenewalPref,
            .decreaseQuantity,
            given: .paid,
            day: 10,
            .keeps,
            month(),
            Life.renewal { $0.renewalQuantity = 1 },
            also: "the seats of the next period are in renewal info"
        ) { $0.history.latestRenewal?.renewalQuantity == 1 },
    ]

    /// 2.2 Price, and what follows from our own calls.
    private static let price = [
        Self(
            .priceIncrease,
            .pending,
            given: .paid,
            day: 10,
            .keeps,
            month(),
            Life.renewal { $0.priceIncreaseStatus = 0 },
            also: "consent is pending"
        ) { $0.at(Life.day(10))?.priceConsent == .pending },
        Self(
            .priceIncrease,
            .accepted,
            given: .asked,
            day: 12,
            .keeps,
            month(),
            Life.renewal { $0.priceIncreaseStatus = 1 },
            also: "consented, or informed where that is enough"
        ) { $0.at(Life.day(12))?.priceConsent == .accepted },
        Self(.priceChange, given: .paid, day: 10, .changesNothing, month(), Life.renewal()),
        Self(.metadataUpdate, given: .paid, day: 10, .changesNothing, month(), Life.renewal()),
        Self(
            .migration,
            given: .paid,
            day: 10,
            .keeps,
            month { $0.previousOriginalTransactionID = AppleID(900) },
            Life.renewal(),
            also: "the chain of before is known"
        ) { $0.history.latestTransaction?.previousOriginalTransactionID == AppleID(900) },
    ]
}
