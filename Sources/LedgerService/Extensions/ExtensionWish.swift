public import Ledger

/// What an operator wants extended, and why.
public struct ExtensionWish: Hashable, Sendable {
    /// Apple's `originalTransactionId`.
    public var subscription: String
    /// Only this app, where several have the subscription.
    public var bundleID: String?
    /// Only this environment.
    public var environment: Environment?
    /// How many days, 1 to 90.
    public var days: Int
    /// Apple's reason.
    public var reason: ExtensionReason
    /// On which ticket.
    public var ticket: String
    /// Why, in words; a must where Apple's reason says nothing.
    public var justification: String?
    /// Our own reason, a word of the company's.
    public var internalReason: String?
    /// Where the ticket is.
    public var ticketURL: String?
    /// The incident behind it.
    public var incident: String?
    /// Whether a second extension on the same ticket is meant.
    public var again = false
    /// Whether it is sent although our rules say that Apple will refuse it.
    public var attemptIneligible = false
    /// Whether it is judged without asking Apple first.
    public var withoutFreshStatus = false
    /// Whether nothing is to be written or sent.
    public var isDryRun = false
    /// What makes the same request sent twice one request.
    public var idempotencyKey: String?

    /// Wishes for an extension.
    public init(
        subscription: String,
        days: Int,
        reason: ExtensionReason,
        ticket: String
    ) {
        self.subscription = subscription
        self.days = days
        self.reason = reason
        self.ticket = ticket
    }

    /// What `days` may be.
    public static let daysRange = 1...90
    /// How many characters a justification may have.
    public static let justificationMax = 2000
}

/// Why our own rules refuse an extension, by the names that the audit keeps.
public enum ExtensionRule: String, Hashable, Sendable, CaseIterable {
    /// The stream holds no auto-renewable subscription.
    case notAutoRenewable = "not_auto_renewable"
    /// It is over.
    case expired
    /// Its charge failed and Apple retries.
    case inBillingRetry = "in_billing_retry"
    /// Its charge failed and grace runs; its paid period is over.
    case inGracePeriod = "in_grace_period"
    /// Apple took it back.
    case revoked
    /// Its period is over and no news has come.
    case renewalPending = "renewal_pending"
    /// It is in a free period.
    case freeOffer = "free_offer"
    /// No period was ever paid.
    case neverPaid = "never_paid"
    /// It is a family member's; the purchaser's is to be extended.
    case familyMember = "family_member"
    /// It is an assigned seat; the buyer's is to be extended.
    case assignedSeat = "assigned_seat"
    /// Two extensions of this subscription count already.
    case budgetOfSubscription = "budget_used_subscription"
    /// Two extensions of this owner's subscriptions count already.
    case budgetOfOwner = "budget_used_owner"
    /// Another request for it is not settled.
    case inProgress = "extension_in_progress"
    /// It was extended on this ticket before.
    case duplicateTicket = "duplicate_ticket"
    /// Apple could not be asked how it stands.
    case statusUnavailable = "status_unavailable"
    /// It could not be sent to Apple, for sure.
    case notSent = "not_sent"

    /// Whether `attemptIneligible` lets it pass: then Apple says what it thinks.
    public var isApples: Bool {
        switch self {
        case .inProgress, .duplicateTicket, .statusUnavailable, .notAutoRenewable, .notSent: false
        default: true
        }
    }

    /// What is meant, and what to do.
    public var explanation: String {
        switch self {
        case .notAutoRenewable: "it is no auto-renewable subscription"
        case .expired: "it has expired; Apple extends active subscriptions only"
        case .inBillingRetry: "its charge failed and Apple retries; Apple does not extend that"
        case .inGracePeriod: "its paid period is over and grace runs; Apple does not extend that"
        case .revoked: "Apple took it back"
        case .renewalPending: "its period is over and no news of a renewal has come"
        case .freeOffer: "it is in a free period; Apple extends paid ones only"
        case .neverPaid: "no period of it was ever paid"
        case .familyMember: "it is a family member's; extend the purchaser's instead"
        case .assignedSeat: "it is an assigned seat; extend the buyer's instead"
        case .budgetOfSubscription:
            "two extensions of it count in the last 365 days, and Apple allows two"
        case .budgetOfOwner:
            "two extensions of its owner's subscriptions count in the last 365 days, and Apple "
                + "allows two"
        case .inProgress:
            "another request for it is not settled, or Apple still works on it; see: "
                + "subledger extend status"
        case .duplicateTicket: "it was extended on this ticket before; say so if that is meant"
        case .notSent: "it could not be sent to Apple; nothing was done, so ask again"
        case .statusUnavailable: "Apple could not be asked how it stands now"
        }
    }
}

/// What keeps a wish from becoming a request at all; nothing is recorded.
public enum ExtensionProblem: Error, Hashable, Sendable, CustomStringConvertible {
    /// A part of the wish is missing or makes no sense.
    case unusable(field: String, want: String)
    /// The ledger has no such subscription.
    case unknownSubscription(String)
    /// Several apps or environments have it; one is to be named.
    case ambiguous(String)
    /// The key was used for another request.
    case idempotencyMismatch
    /// There is no such request.
    case unknownRequest(String)
    /// The request is not in the state for that.
    case notOpen(String)
    /// Who approves is who asked.
    case selfApproval
    /// What was asked for is not what would be done now.
    case changed
    /// There is no connection to Apple.
    case noGateway
    /// It cannot be settled yet.
    case tooEarly(Timestamp)
    /// It was sent twice without an answer; a person must decide.
    case needsDecision
    /// The end has moved to this instant, which is not the one that was asked for; a person must
    /// decide.
    case movedOtherwise(Timestamp)

    /// What is wrong, and what to do.
    public var description: String {
        switch self {
        case .unusable(let field, let want): "\(field): \(want)"
        case .unknownSubscription(let id): "the ledger has no subscription \(id)"
        case .ambiguous(let id): "several apps or environments have \(id); name one"
        case .idempotencyMismatch: "this Idempotency-Key was used for another request"
        case .unknownRequest(let id): "there is no request \(id)"
        case .notOpen(let what): what
        case .selfApproval: "who asked for an extension cannot approve it"
        case .changed:
            "the subscription is not as it was when the request was made; reject it and ask anew"
        case .noGateway: "Apple cannot be asked: no App Store Server API key is set up"
        case .tooEarly(let instant):
            "the subscription's end has not moved; not sent again before \(instant)"
        case .needsDecision:
            "it was sent twice without an answer and the end has not moved; an operator must "
                + "decide with --decide extended|not-extended"
        case .movedOtherwise(let instant):
            "the end has moved to \(instant), which is not what was asked for; an operator must "
                + "find out why and decide with --decide extended|not-extended"
        }
    }
}
