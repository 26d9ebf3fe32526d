/// What one of our own events tells of a request to extend a subscription.
///
/// The texts of it (who, why, on which ticket, Apple's words) stay in the log, beside the event:
/// a read model names the event and a view joins them.
public struct ExtensionStep: Hashable, Sendable {
    /// Our `requestIdentifier`, which all steps of one request have in common.
    public var request: UniqueID
    /// A number, by the kind of event: the days that are asked for, the number of the attempt,
    /// Apple's error, or a `Resolution`.
    public var detail: Int32
    /// An instant, by the kind of event: the end that is asked for, or the end that was read.
    public var until: Timestamp?

    /// Tells a step.
    public init(request: UniqueID, detail: Int32 = 0, until: Timestamp? = nil) {
        self.request = request
        self.detail = detail
        self.until = until
    }

    /// How a request without an answer was settled.
    public enum Resolution: Int32, Hashable, Sendable, CaseIterable {
        /// The end had moved: Apple did extend.
        case extended = 1
        /// It had not, and will not any more.
        case notExtended = 2
    }
}

/// One request to extend a subscription, or one extension that was seen without a request.
public struct ExtensionRecord: Hashable, Sendable {
    /// What became of it.
    public enum Outcome: String, Hashable, Sendable, CaseIterable {
        /// It waits for approval.
        case requested
        /// Our own rules or an approver refused it: it never left.
        case refusedLocally = "refused_locally"
        /// Apple refused it.
        case refusedByApple = "refused_by_apple"
        /// Apple's unsigned answer says that it is done.
        case accepted
        /// Apple's signature says so too.
        case confirmed
        /// Apple's signature says something else than Apple's answer did.
        case contradicted
        /// It was sent, and what Apple made of it is not known.
        case unknown
        /// Nobody here asked for it.
        case external
    }

    /// An event that is a step of it.
    public struct Step: Hashable, Sendable {
        /// The event.
        public var position: Int64
        /// When it was, by our clock for our own events and by Apple's for signed ones.
        public var at: Timestamp

        /// Makes a step.
        public init(position: Int64, at: Timestamp) {
            self.position = position
            self.at = at
        }
    }

    /// Our `requestIdentifier`; nil for an extension that nobody here asked for.
    public var request: UniqueID?
    /// When it was asked for, or signed where nobody asked.
    public var at: Timestamp
    /// What became of it.
    public var outcome: Outcome
    /// Whether it asks for a whole product, not for one subscription.
    public var isMass = false
    /// How many days were asked for.
    public var daysRequested: Int32?
    /// How often it was sent.
    public var attempts: Int32 = 0
    /// How a request without an answer was settled.
    public var resolution: ExtensionStep.Resolution?

    /// That it was asked for.
    public var requested: Step?
    /// That our own rules refused it.
    public var refused: Step?
    /// That another operator approved it.
    public var approved: Step?
    /// That another operator rejected it.
    public var rejected: Step?
    /// That it was about to be sent, the first time.
    public var submitted: Step?
    /// Apple's answer, the last one; or else that there was none.
    public var answered: Step?
    /// That a request without an answer was settled.
    public var resolved: Step?
    /// What Apple signed of it.
    public var confirmed: Step?

    /// The end of the period before it.
    public var expiresBefore: Timestamp?
    /// The event that signs that end; 0 where none does.
    public var expiresBeforePosition: Int64 = 0
    /// The end that Apple's answer promises.
    public var expiresAcked: Timestamp?
    /// The end that Apple signed.
    public var expiresConfirmed: Timestamp?
    /// The state before it.
    public var stateBefore: SubscriptionState?
    /// The state once it was confirmed, or else answered.
    public var stateAfter: SubscriptionState?
    /// Who owned the subscription then.
    public var owner: UniqueID?
    /// The transaction whose end moves.
    public var transactionID: AppleID?
    /// The purchase event of that transaction.
    public var webOrderLineItemID: AppleID?
    /// What was bought with it.
    public var productID: Symbol?
    /// Where.
    public var storefront: Symbol?
    /// How the customer came to it.
    public var ownership: Ownership?

    /// Makes a record with what every one has.
    public init(request: UniqueID?, at: Timestamp, outcome: Outcome) {
        self.request = request
        self.at = at
        self.outcome = outcome
    }

    /// From when on it counts among the two that Apple allows in 365 days; nil where it does not.
    ///
    /// What is not settled counts: Apple may have done it.
    public var countsFrom: Timestamp? {
        switch outcome {
        case .refusedLocally, .refusedByApple: nil
        case .requested: at
        case .unknown: resolution == .notExtended ? nil : submitted?.at ?? at
        case .accepted: answered?.at ?? submitted?.at ?? at
        case .confirmed, .contradicted, .external: confirmed?.at ?? at
        }
    }

    /// Whether something is still to come of it that this side waits for.
    public var isOpen: Bool {
        outcome == .requested || outcome == .unknown && resolution == nil
    }

    /// By how much the end moved, by what Apple signed or else answered.
    public var gained: Milliseconds? {
        guard let before = expiresBefore, let after = expiresConfirmed ?? expiresAcked else {
            return nil
        }
        return Milliseconds(rawValue: after.milliseconds - before.milliseconds)
    }

    /// The positions of all events that it was made of, in ascending order.
    public var positions: [Int64] {
        let steps = [
            requested, refused, approved, rejected, submitted, answered, resolved, confirmed,
        ]
        var result: [Int64] = []
        for position in (steps.compactMap { $0?.position } + [expiresBeforePosition]).sorted()
        where position > 0 && result.last != position {
            result.append(position)
        }
        return result
    }
}
