internal import EventLog
internal import Ledger
internal import Postgres
internal import Projections

/// The read model "entitlement" of single subscriptions as a prefix of the log makes it.
///
/// It folds and projects as a rebuild does; nothing is written. What was folded is kept, since the
/// owner of one subscription may depend on others.
struct PrefixFold {
    /// What the prefix says of one subscription.
    struct Folded {
        /// The row of `read_model.subscription`.
        var subscription: ProjectedRow
        /// The stretches in order of time.
        var timeline: [EntitlementAnswer]
        /// The owners in order of time.
        var owners: [Explanation.Owner]
    }

    let prefix: LogPrefix
    let reader: LogReader
    private let connection: Connection
    private let registry: AppRegistry
    private var folder: StreamFolder
    private var known: [SubscriptionKey: Folded?] = [:]

    /// Prepares to fold; the session should hold one snapshot meanwhile.
    init(_ prefix: LogPrefix, _ connection: Connection) throws {
        self.prefix = prefix
        self.connection = connection
        reader = LogReader(connection)
        registry = try AppRegistry(recordedBy: prefix.rulesRecordedBy, connection)
        folder = StreamFolder([Generation(Entitlement.self, 0)], registry)
    }

    /// Folds a subscription; nil where the prefix knows none.
    mutating func fold(_ key: SubscriptionKey) throws -> Folded? {
        if let folded = known[key] { return folded }
        let folded = try foldAnew(key)
        known[key] = .some(folded)
        return folded
    }

    private mutating func foldAnew(_ key: SubscriptionKey) throws -> Folded? {
        let events = try reader.facts(of: key, upTo: prefix.position)
        guard !events.isEmpty, let app = registry.apps[key.appID]?.key else { return nil }
        folder.withdrawals = try Withdrawals(
            of: Withdrawals.customers(of: events),
            upTo: prefix.position,
            connection
        )
        folder.removeAll()
        folder.add(events, of: key)
        let rows = Entitlement.tables.indices.map { place in
            let table = folder.rows[0].tables[place]
            return table.starts.indices.map {
                ProjectedRow(table.buffer.bytes[table.range($0)], of: Entitlement.tables[place])
            }
        }
        guard let subscription = rows[0].first else { return nil }
        let owners = rows[2].map { Explanation.Owner($0) }
        return Folded(
            subscription: subscription,
            timeline: rows[1].map { EntitlementAnswer($0, subscription, app, owners) },
            owners: owners
        )
    }
}

extension Explanation.Owner {
    /// Reads a row of `read_model.subscription_owner`.
    fileprivate init(_ row: ProjectedRow) {
        token = row.uuid("app_account_token") ?? UniqueID(bits: 0)
        from = row.timestamp("valid_from") ?? .earliest
        until = row.timestamp("valid_until")
        position = row.int("position") ?? 0
        isLinked = row.bool("is_linked") ?? false
    }

    /// Whether the owner had it at an instant.
    func contains(_ instant: Timestamp) -> Bool {
        from <= instant && until.map { instant < $0 } ?? true
    }
}

extension EntitlementAnswer {
    /// Puts a stretch together as the view `entitlement_all` does.
    fileprivate init(
        _ row: ProjectedRow,
        _ subscription: ProjectedRow,
        _ app: AppKey,
        _ owners: [Explanation.Owner]
    ) {
        originalTransactionID = row.text("stream") ?? ""
        self.app = app
        appID = Int32(row.int("app_id") ?? 0)
        productID = row.text("product_id")
        state = row.text("state") ?? ""
        cause = row.text("cause")
        entitled = row.bool("entitled") ?? false
        entitledApple = row.bool("entitled_apple") ?? false
        validFrom = row.timestamp("valid_from") ?? .earliest
        validUntil = row.timestamp("valid_until")
        stateFrom = row.timestamp("state_from") ?? .earliest
        stateUntil = row.timestamp("state_until")
        accessUntilApple = row.timestamp("access_until_apple")
        accessUntil = row.timestamp("access_until")
        expiresDate = row.timestamp("expires_date")
        gracePeriodExpiresDate = row.timestamp("grace_period_expires_date")
        confidence = row.text("confidence") ?? ""
        renewalIntent = row.text("renewal_intent") ?? ""
        pendingProductID = row.text("pending_product_id")
        priceConsent = row.text("price_consent") ?? ""
        hasBillingTrouble = row.bool("has_billing_trouble") ?? false
        offer = row.text("offer") ?? ""
        ownership = row.text("ownership") ?? ""
        subscriptionGroupID = subscription.text("subscription_group_identifier")
        level = row.int("level").map { Int32($0) }
        appTransactionID = subscription.text("app_transaction_id")
        transactionID = row.text("transaction_id")
        policyVersion = Int32(row.int("policy_version") ?? 0)
        knownToPosition = subscription.int("known_to_position") ?? 0
        positions = row.intArray("positions")
        // Stretches are cut where the owner changes.
        let start = validFrom
        appAccountToken = owners.first { $0.contains(start) }?.token
    }
}
