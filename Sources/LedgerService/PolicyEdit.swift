public import EventLog
public import Ledger
public import Postgres

/// The switches of an access policy that an operator sets; the others stay as they are.
public struct PolicyEdit: Hashable, Sendable {
    /// Access while Apple retries a failed charge.
    public var billingRetryAccess: BillingRetryAccess?
    /// What to do when grace was announced without a date.
    public var missingGraceDate: MissingGraceDate?
    /// How long after the end access goes on while no news has come.
    public var lapseLeeway: Milliseconds?
    /// Whether a refund of the current period ends access at once.
    public var refundEndsAccess: Bool?

    /// Makes an edit that sets nothing.
    public init() {}

    /// Whether it sets anything.
    public var isEmpty: Bool { self == PolicyEdit() }

    /// Sets its switches in a policy.
    public func apply(to policy: inout AccessPolicy) {
        if let billingRetryAccess { policy.billingRetryAccess = billingRetryAccess }
        if let missingGraceDate { policy.missingGraceDate = missingGraceDate }
        if let lapseLeeway { policy.lapseLeeway = lapseLeeway }
        if let refundEndsAccess { policy.refundEndsAccess = refundEndsAccess }
    }

    /// Records the edit of one app's policy and marks its subscriptions to be folded again, in one
    /// transaction.
    ///
    /// - Parameters:
    ///   - app: the app.
    ///   - start: from when on it counts.
    ///   - operator: who changes it.
    ///   - ticket: on which ticket.
    ///   - connection: a session that may insert reference rows and marks.
    /// - Returns: the new version; nil where the newest says the same already.
    /// - Throws: `OwnerLinking.Refusal` for an operator or a ticket that says nothing,
    ///   `EventLogError` or `ReadModelError`.
    public func record(
        of app: AppKey,
        from start: RuleBook.Start,
        operator: String,
        ticket: String,
        _ connection: Connection
    ) throws -> AccessPolicy? {
        try OwnerLinking.check(`operator`, "--operator")
        try OwnerLinking.check(ticket, "--ticket")
        return try RuleBook(connection).changePolicy(
            of: app,
            from: start,
            operator: `operator`,
            ticket: ticket,
            change: { apply(to: &$0) },
            afterwards: { try Projector.markAll(ofApp: $0, connection) }
        )
    }

    /// The policies that would count if the edit were recorded now; nothing is written.
    ///
    /// - Parameters:
    ///   - app: the app.
    ///   - start: from when on it would count.
    ///   - connection: a session that may read reference rows.
    /// - Returns: the policies in order of `effectiveFrom`.
    /// - Throws: `EventLogError`, `.invalid` for a start that is not as said.
    public func policies(
        of app: AppKey,
        from start: RuleBook.Start,
        _ connection: Connection
    ) throws -> [AccessPolicy] {
        let book = RuleBook(connection)
        let policies = try book.policies(of: app)
        guard var next = policies.max(by: { $0.version < $1.version }) else { return policies }
        apply(to: &next)
        next.version += 1
        next.effectiveFrom = try book.effectiveFrom(start)
        return AccessPolicy.inForce(policies + [next])
    }
}
