/// A customer's wish to have a charge paid back, as far as Apple told of it.
///
/// It begins with `CONSUMPTION_REQUEST`, by which Apple asks how the purchase was used; the same
/// wish is told several times while nobody answers. It moves no state: access ends with the refund
/// itself, if there is one.
public struct RefundCase: Hashable, Sendable {
    /// What became of it.
    public enum Decision: String, Hashable, Sendable, CaseIterable {
        /// Apple declined it.
        case declined
        /// Apple paid back the charge or some of its seats.
        case refunded
    }

    /// How long Apple waits for an answer: 12 hours, by what others wrote; Apple's page was not
    /// seen.
    public static let answerLimit = Milliseconds.hours(12)

    /// The charge; nil where the notification carried none.
    public var transactionID: AppleID?
    /// When Apple first asked.
    public var askedAt: Timestamp
    /// When Apple last asked.
    public var lastAskedAt: Timestamp
    /// How often Apple asked.
    public var requests: Int32 = 1
    /// Why the customer wishes for it, as the last request says that says so.
    public var reason: ConsumptionRequestReason?
    /// The event by which Apple first asked.
    public var position: Int64
    /// What became of it; nil while nothing is known.
    public var decision: Decision?
    /// When Apple signed that.
    public var decidedAt: Timestamp?
    /// The event that says so.
    public var decisionPosition: Int64?

    /// Until when an answer to the last request is of use.
    public var answerBy: Timestamp { lastAskedAt.adding(Self.answerLimit) }
}
