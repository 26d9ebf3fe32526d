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
}
