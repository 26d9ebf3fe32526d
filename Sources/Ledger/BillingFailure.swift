/// A charge that failed, from Apple's first word of it to how it ended.
///
/// There is one for each period that failed to renew, however many signals told of it.
public struct BillingFailure: Hashable, Sendable {
    /// When Apple first signed that the charge failed; that may be before the period ends.
    public var openedAt: Timestamp
    /// The event that said so.
    public var openedBy: Int64
    /// The newest event that said so; the same one where there is no other.
    public var repeatedBy: Int64
    /// The period that failed to renew.
    public var transactionID: AppleID
    /// Its product.
    public var productID: Symbol?
    /// How the customer came to it; only who purchased pays.
    public var ownership: Ownership
    /// Whether the period was a free trial, so that the charge was the first.
    public var isTrialConversion: Bool
    /// The end of the period, which is paid or free.
    public var expiresDate: Timestamp
    /// The grace period; nil where none was announced, or none applies.
    public var grace: Grace?
    /// Until when Apple retries at the longest.
    public var retryDeadline: Timestamp
    /// What the failed charge would have brought, milliunits of `currency`.
    ///
    /// Nil where nothing says so, and always for family members and assigned seats.
    public var amount: Int64?
    /// ISO 4217.
    public var currency: Symbol?
    /// Apple's `expirationIntent` as last signed before the next period.
    public var expirationIntent: Int32?
    /// The event that holds the renewal info as last signed; 0 where there is none.
    public var renewalPosition: Int64
    /// How it ended; nil where no event says so.
    public var ending: Ending?

    /// A grace period.
    public struct Grace: Hashable, Sendable {
        /// Where Apple, or else configuration, said that it would end.
        public var until: Timestamp
        /// Where it ended: there, or earlier where Apple said so.
        public var endedAt: Timestamp
        /// Whether configuration gave the date, since Apple gave none.
        public var isEstimated: Bool
        /// The event that gave the date; 0 for an estimate.
        public var position: Int64
    }

    /// How a failure ended.
    public struct Ending: Hashable, Sendable {
        /// In which way.
        public var outcome: Outcome
        /// When.
        public var at: Timestamp
        /// The event that says so; 0 where only a later purchase shows that it must have ended.
        public var position: Int64
    }

    /// In which way a failure can end.
    public enum Outcome: String, Hashable, Sendable, CaseIterable {
        /// The charge succeeded before access was lost: the new period follows on the old one or
        /// begins before the end of grace.
        case recoveredInGrace = "recovered_in_grace"
        /// The charge succeeded after grace, or after the period where there was none.
        case recoveredAfterGrace = "recovered_after_grace"
        /// The customer cancelled, or the period was taken back.
        case cancelled
        /// Apple gave up.
        case expired
        /// It ended, but no event says how.
        case unknown
    }

    /// Whether grace was used up before it ended otherwise; nil where there was no grace.
    ///
    /// Without an ending it is what comes to pass unless there is news.
    public var graceExhaustedAt: Timestamp? {
        guard let grace else { return nil }
        guard let ending else { return grace.endedAt }
        guard ending.outcome != .recoveredInGrace else { return nil }
        let isReached = grace.endedAt == grace.until && ending.at >= grace.endedAt
        return grace.endedAt < ending.at || isReached ? grace.endedAt : nil
    }
}
