/// What can happen in the life of a subscription; statistics count them.
public enum LifeEvent: String, Hashable, Sendable, CaseIterable {
    /// The first purchase.
    case initialBuy
    /// It began with a free trial.
    case trial
    /// A renewal was charged hours before the end, for the time after it.
    case renewedEarly
    /// A renewal was charged before the end and its period starts at the charge.
    case renewedOverlapping
    /// A renewal came just at the end.
    case renewedOnTime
    /// A renewal came up to two hours after the end.
    case renewedLate
    /// Auto-renew was turned off and on again.
    case reenabled
    /// Auto-renew was turned off and the period ran out.
    case cancelled
    /// A change to a higher plan, at once.
    case upgraded
    /// A change to a lower plan was asked for.
    case downgradeScheduled
    /// That change was taken back.
    case downgradeReverted
    /// That change took effect.
    case downgradeApplied
    /// A charge failed and grace began.
    case failedWithGrace
    /// A charge failed without grace.
    case failedWithoutGrace
    /// A charge failed before the period was over.
    case failedEarly
    /// A retry succeeded within grace.
    case recoveredInGrace
    /// A retry succeeded after grace or without it.
    case recoveredAfterGrace
    /// Grace ran out.
    case graceExpired
    /// The customer cancelled while Apple retried.
    case cancelledWhileFailing
    /// Sixty days of retries did not help.
    case retriesExhausted
    /// Another way to end: price not accepted, product gone, other.
    case endedOtherwise
    /// The running period was refunded.
    case refundedCurrent
    /// A period that was over was refunded.
    case refundedPast
    /// The last period was refunded while Apple retried.
    case refundedWhileFailing
    /// A refund was undone.
    case refundReversed
    /// A refund was asked for and declined.
    case refundDeclined
    /// A price increase was announced and accepted.
    case priceAccepted
    /// Apple extended the running period.
    case extended
    /// A promotional offer was redeemed for the next period.
    case offerRedeemed
    /// The customer came back after the end.
    case resubscribed
    /// It was for the same plan.
    case resubscribedSame
    /// It was for another plan.
    case resubscribedOther
    /// It was by a win-back offer.
    case wonBack
    /// It began with an offer code.
    case offerCode
    /// A promotional offer for a lower plan was redeemed.
    case offerDowngraded
    /// A renewal was for another plan and nothing had said so.
    case changedUnannounced
    /// Another plan began at once, by a notification without a subtype.
    case crossgradedUnannounced
    /// The transaction that an upgrade took the place of was read again.
    case upgradeReadAgain
    /// The transaction that an upgrade took the place of was refunded.
    case refundedUpgraded
    /// The customer cancelled after a price increase was announced.
    case cancelledForPrice
    /// Grace was announced without its end.
    case graceDateMissing
    /// The date of grace stayed after it was over for good.
    case graceDatePersisted
    /// A 12-month commitment began.
    case committed
    /// A payment of a commitment was made.
    case paid
    /// The customer cancelled the commitment's renewal.
    case commitmentCancelled
    /// A payment was made although the commitment was cancelled.
    case paidAfterCancelling
    /// Another commitment followed.
    case commitmentRenewed
    /// A commitment ended after its last payment.
    case commitmentEnded
    /// A subscription by the seat began.
    case seatsBought
    /// Seats were added within a period.
    case seatsAdded
    /// Fewer seats were asked for.
    case seatsRemoved
    /// Some seats were refunded.
    case seatsRefunded
    /// Apple took developer-hosted seats back.
    case seatsUnclaimed
    /// Seats that had been added were refunded as a whole.
    case additionRefunded
    /// A family member got access.
    case familyGranted
    /// A family member lost access before the period was over.
    case familyRevoked
    /// A member got a seat.
    case seatAssigned
    /// A member lost the seat before the period was over.
    case seatRevoked
    /// The subscription went on under another chain.
    case migrated
    /// The description or price of a migrated subscription was changed.
    case itemChanged
    /// The newest transaction and renewal info were read from the Server API.
    case statusRead
    /// The newest transactions were read from the Server API.
    case historyRead
    /// The account token was replaced.
    case tokenReplaced
    /// A mass extension failed for this subscription.
    case massExtensionFailed
    /// A mass extension was summed up.
    case massExtensionSummed
    /// Something was bought that is no subscription.
    case boughtOnce
    /// An external purchase token was created or never reported.
    case externalToken
    /// A guardian withdrew consent.
    case consentRescinded
    /// A test was asked for.
    case tested
    /// A notification of an unknown type.
    case unknownType
    /// A notification with an unknown subtype.
    case unknownSubtype
    /// A notification with an unknown status.
    case unknownStatus
    /// A request about a refund that is wished for with an unknown reason.
    case unknownReason
    /// A subscription with an unknown ownership.
    case unknownOwnership
    /// A refund was asked for once and announced three times.
    case consumptionRepeated
}
