public import EventLog
public import Ledger
public import Postgres

/// Gives a subscription without an account token its owner, on an operator's word.
///
/// Where Apple's token names an owner nothing is recorded: the link would change nothing now and
/// nothing later, and the log would hold a claim to a stranger's purchase.
public struct OwnerLinking {
    /// What became of a link.
    public enum Outcome: Hashable, Sendable {
        /// It is an event at this position; the second is the owner by an earlier link.
        case linked(position: Int64, before: UniqueID?)
        /// The same was said before, at this position.
        case repeated(position: Int64)
        /// Apple's token names this owner already; nothing was recorded.
        case ownedAlready
    }

    /// Why a link is refused; nothing was recorded.
    public enum Refusal: Error, Hashable, Sendable, CustomStringConvertible {
        /// The log has no such stream.
        case unknownSubscription(String)
        /// Several apps or environments have it; one is to be named.
        case ambiguous(String, [AppKey])
        /// The stream holds no auto-renewable subscription.
        case noSubscription(String)
        /// Apple's token names another owner.
        case ownedByAnother(String, owner: UniqueID)
        /// The operator or the ticket is missing, too long or no text.
        case unusable(field: String)

        /// What is wrong, and what to do.
        public var description: String {
            switch self {
            case .unknownSubscription(let id):
                "the ledger has no subscription \(id)"
            case .ambiguous(let id, let apps):
                "several apps have a subscription \(id): "
                    + apps.map { "\($0.bundleID) in \($0.environment)" }.joined(separator: ", ")
                    + "; name one with --bundle-id and --environment"
            case .noSubscription(let id):
                "\(id) is no auto-renewable subscription, so nobody can own it"
            case .ownedByAnother(let id, let owner):
                "Apple's account token says that \(id) belongs to \(owner); a link does not outrank "
                    + "it, so none was recorded. Only Apple's Set App Account Token changes the owner"
            case .unusable(let field):
                "\(field) takes \(OneLine.want(OwnerLinking.textMax))"
            }
        }
    }

    /// How many characters an operator's name or a ticket may have.
    public static let textMax = 200

    private let connection: Connection

    /// Works over a session of the appender's role, which nothing else uses meanwhile.
    public init(_ connection: Connection) { self.connection = connection }

    /// Records whose a subscription is; the stream is then marked to be folded again.
    ///
    /// - Parameters:
    ///   - id: Apple's `originalTransactionId`.
    ///   - owner: the account.
    ///   - operator: who says so.
    ///   - ticket: on which ticket.
    ///   - bundleID: only this app, where several have the subscription.
    ///   - environment: only this environment.
    ///   - now: when it is said.
    /// - Returns: what became of it.
    /// - Throws: `Refusal`, `EventLogError`.
    public func link(
        _ id: String,
        to owner: UniqueID,
        operator: String,
        ticket: String,
        bundleID: String? = nil,
        environment: Environment? = nil,
        now: Timestamp
    ) throws -> Outcome {
        try Self.check(`operator`, "--operator")
        try Self.check(ticket, "--ticket")
        let reader = LogReader(connection)
        let (key, app) = try find(id, bundleID, environment, reader)
        let ownership = try ownership(of: key, app, reader)
        let appleOwner = ownership.last { !$0.isLinked }?.owner
        if let appleOwner {
            guard appleOwner == owner else {
                throw Refusal.ownedByAnother(id, owner: appleOwner)
            }
            return .ownedAlready
        }
        let link = OwnerLink(
            app: app,
            originalTransactionID: id,
            owner: owner,
            operator: `operator`,
            ticket: ticket,
            linkedAt: now
        )
        let event = link.event(among: try reader.events(of: key))
        let outcome = try Appender(connection).append([event]).first
        switch outcome {
        case .appended(let position):
            return .linked(position: position, before: ownership.last?.owner)
        case .duplicate(let position): return .repeated(position: position)
        case .conflict(let position):
            throw EventLogError(.corrupt, "another link has this key, at \(position)")
        case .quarantined(let reason):
            throw EventLogError(.invalid, "the database cannot hold the link: \(reason)")
        case nil: throw EventLogError(.corrupt, "the append of the link had no outcome")
        }
    }

    private func find(
        _ id: String,
        _ bundleID: String?,
        _ environment: Environment?,
        _ reader: LogReader
    ) throws -> (SubscriptionKey, AppKey) {
        let apps = try reader.apps()
        let found = try reader.keys(ofStream: id).compactMap { key in
            apps[key.appID].map { (key, $0) }
        }
        .filter { _, app in
            (bundleID.map { $0 == app.bundleID } ?? true)
                && (environment.map { $0 == app.environment } ?? true)
        }
        guard let first = found.first else { throw Refusal.unknownSubscription(id) }
        guard found.count == 1 else { throw Refusal.ambiguous(id, found.map(\.1)) }
        return first
    }

    /// Who owned it by the events themselves; the read model may be behind.
    private func ownership(
        of key: SubscriptionKey,
        _ app: AppKey,
        _ reader: LogReader
    ) throws -> [OwnershipInterval] {
        var fold = SubscriptionFold(rules: AppRules(environment: app.environment))
        let history = fold.history(of: try reader.facts(of: key))
        guard !history.timeline.isEmpty else { throw Refusal.noSubscription(key.stream) }
        return history.ownership
    }

    /// Refuses a text that says nothing or cannot be shown.
    public static func check(_ text: String, _ field: String) throws(Refusal) {
        guard OneLine.isOne(text, countMax: textMax) else { throw .unusable(field: field) }
    }
}
