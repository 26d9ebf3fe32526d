internal import EventLog
internal import Ledger
internal import Postgres

/// How a subscription stands, folded from the log itself: the read models may be behind.
struct ExtensionStanding {
    let key: SubscriptionKey
    let app: AppKey
    let history: History
    /// The interval of the timeline that holds now; nil where there is none.
    let interval: Interval?
    /// The present owner.
    let owner: UniqueID?
    /// How many extensions of the subscription count.
    let usedByChain: Int
    /// How many extensions of its owner's subscriptions count, its own among them.
    let usedByOwner: Int
    /// The last position of every stream that this was read from.
    let positions: [SubscriptionKey: Int64]

    /// How long an extension counts.
    static let window = Milliseconds.hours(365 * 24)
    /// How many extensions Apple allows within that.
    static let budget = 2
    /// The version of these rules, for the audit.
    static let ruleVersion: Int64 = 1

    /// Reads and folds a subscription and what counts of its owner's others.
    ///
    /// - Parameters:
    ///   - key: the subscription.
    ///   - app: its app.
    ///   - now: our clock.
    ///   - request: a request that is not to count, since it is the one in question.
    ///   - connection: a session that may read everything.
    /// - Throws: `EventLogError`, `ReadModelError` or `PostgresError`.
    init(
        _ key: SubscriptionKey,
        _ app: AppKey,
        at now: Timestamp,
        apartFrom request: UniqueID? = nil,
        _ connection: Connection
    ) throws {
        self.key = key
        self.app = app
        let rules = try AppRegistry(connection).rules(of: key.appID)
        var fold = SubscriptionFold(rules: rules)
        var positions: [SubscriptionKey: Int64] = [:]
        // The position is read first: what comes between is then news, never overlooked.
        positions[key] = try Self.lastPosition(of: key, connection)
        let reader = LogReader(connection)
        let history = fold.history(of: try reader.facts(of: key))
        self.history = history
        interval = history.timeline.first { $0.contains(now) }
        owner =
            history.ownership.last { owned in
                owned.from <= now && owned.until.map { now < $0 } ?? true
            }?.owner
        func count(_ records: [ExtensionRecord], of owner: UniqueID?) -> Int {
            records.count { record in
                guard record.request == nil || record.request != request else { return false }
                guard let from = record.countsFrom, !record.isMass else { return false }
                return now.milliseconds - from.milliseconds < Self.window.rawValue
                    && (owner == nil || record.owner == owner)
            }
        }
        usedByChain = count(history.extensions, of: nil)
        var usedByOwner = owner == nil ? 0 : count(history.extensions, of: owner)
        if let owner {
            for other in try Self.chains(of: owner, key.appID, connection) where other != key {
                positions[other] = try Self.lastPosition(of: other, connection)
                let others = fold.history(of: try reader.facts(of: other)).extensions
                usedByOwner += count(others, of: owner)
            }
        }
        self.usedByOwner = usedByOwner
        self.positions = positions
    }

    /// Why Apple would refuse an extension by our rules; nil where it would not.
    var ineligibility: ExtensionRule? {
        guard let interval else { return .notAutoRenewable }
        switch interval.ownership {
        case .familyShared: return .familyMember
        case .assigned: return .assignedSeat
        default: break
        }
        switch interval.state {
        case .active: break
        case .renewalPending: return .renewalPending
        case .gracePeriod: return .inGracePeriod
        case .billingRetry: return .inBillingRetry
        case .expired: return .expired
        case .revoked: return .revoked
        }
        if interval.offer == .trial { return .freeOffer }
        let isPaid = history.charges.contains { charge in
            charge.offer != .trial && charge.revokedAt == nil && charge.price != 0
        }
        if !isPaid { return .neverPaid }
        if usedByChain >= Self.budget { return .budgetOfSubscription }
        return usedByOwner >= Self.budget ? .budgetOfOwner : nil
    }

    /// The request that is not settled yet, if there is one.
    func open(apartFrom request: UniqueID? = nil) -> ExtensionRecord? {
        history.extensions.first { $0.isOpen && $0.request != nil && $0.request != request }
    }

    /// Writes how the subscription stands into a request.
    func freeze(into note: inout ExtensionNote) {
        note[text: "state_before"] = interval?.state.name
        note[instant: "expires_before"] = interval?.expiresDate
        if let position = interval?.deciding.transaction, position > 0 {
            note[int: "expires_before_position"] = position
        }
        note[text: "product_id"] = interval?.productID?.text
        note[text: "ownership"] = interval?.ownership.description
        note[text: "transaction_id"] = interval?.transactionID?.description
        if let last = history.latestTransaction, last.transactionID == interval?.transactionID {
            note[text: "web_order_line_item_id"] = last.webOrderLineItemID?.description
        }
        note["owner"] = owner.map { .uuid($0) }
        note[int: "policy_version"] = interval.map { Int64($0.policyVersion) }
        note[int: "extensions_before_chain"] = Int64(usedByChain)
        note[int: "extensions_before_owner"] = Int64(usedByOwner)
        note[int: "budget_rule_version"] = Self.ruleVersion
    }

    private static func lastPosition(
        of key: SubscriptionKey,
        _ connection: Connection
    ) throws(PostgresError) -> Int64 {
        let rows = try connection.query(
            "select coalesce(max(position), 0) from ledger.event"
                + " where stream = $1 and app_id = $2",
            [.text(key.stream), .int(Int64(key.appID))]
        )
        return rows.int(0, 0) ?? 0
    }

    /// The subscriptions that an owner has now, by the read model.
    private static func chains(
        of owner: UniqueID,
        _ appID: Int32,
        _ connection: Connection
    ) throws(PostgresError) -> [SubscriptionKey] {
        let rows = try connection.query(
            """
            select stream from read_model.subscription_owner_live
            where app_account_token = $1 and app_id = $2 and valid_until > now()
            order by stream
            """,
            [.uuid(owner.bits), .int(Int64(appID))]
        )
        return (0..<rows.count).map {
            SubscriptionKey(appID: appID, stream: rows.text($0, 0) ?? "")
        }
    }
}
