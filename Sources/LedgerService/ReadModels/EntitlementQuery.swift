public import Ledger
public import Postgres

/// The question "who has access to what at an instant".
///
/// It looks rows up and computes nothing: what they say was folded before.
public struct EntitlementQuery: Hashable, Sendable {
    /// The instant that is asked about.
    public var at: Timestamp
    /// Only subscriptions that belonged to this account token at that instant, by whatever way.
    public var owner: UniqueID?
    /// Only this subscription, in every app that has it.
    public var subscription: String?
    /// Only subscriptions that are to this product at that instant.
    public var product: String?
    /// Only this environment; nil answers all, and each answer says which it is of.
    public var environment: Environment?

    /// How many answers are read at a time.
    var pageSize = 5000

    /// Asks about every subscription at an instant.
    public init(
        at: Timestamp,
        owner: UniqueID? = nil,
        subscription: String? = nil,
        environment: Environment? = nil
    ) {
        self.at = at
        self.owner = owner
        self.subscription = subscription
        self.environment = environment
    }

    /// The answers, by subscription and app, for where they are few.
    public func answers(
        _ connection: Connection
    ) throws(ReadModelError) -> [EntitlementAnswer] {
        try readModels("look entitlements up") {
            var answers: [EntitlementAnswer] = []
            try forEach(connection) { answers.append($0) }
            return answers
        }
    }

    /// Calls `body` with each answer, by subscription and app, as of one moment of the database.
    ///
    /// - Parameters:
    ///   - connection: a session without an open transaction.
    ///   - body: what to do with an answer.
    /// - Throws: `ReadModelError`, and what `body` throws.
    public func forEach(
        _ connection: Connection,
        _ body: (EntitlementAnswer) throws -> Void
    ) throws {
        do {
            try connection.transaction("begin isolation level repeatable read read only") {
                connection in
                var last = SubscriptionKey(appID: .min, stream: "")
                while true {
                    let page = try page(
                        after: last,
                        // One owner has few.
                        limit: owner == nil ? pageSize : nil,
                        connection
                    )
                    for answer in page { try body(answer) }
                    guard owner == nil, page.count == pageSize, let end = page.last else {
                        break
                    }
                    last = end.key
                }
            }
        } catch let error as PostgresError {
            throw ReadModelError(error, doing: "look entitlements up")
        }
    }

    /// The answers that follow a subscription, by subscription and app.
    ///
    /// - Parameters:
    ///   - last: the subscription after which to begin; nil begins with the first.
    ///   - limit: how many answers there may be.
    ///   - connection: a session of the reader's role.
    /// - Returns: the answers, so many at most.
    /// - Throws: `ReadModelError`.
    public func answers(
        after last: SubscriptionKey?,
        limit: Int,
        _ connection: Connection
    ) throws(ReadModelError) -> [EntitlementAnswer] {
        let start = last ?? SubscriptionKey(appID: .min, stream: "")
        return try readModels("look entitlements up") {
            try page(after: start, limit: limit, connection)
        }
    }

    private func page(
        after last: SubscriptionKey,
        limit: Int?,
        _ connection: Connection
    ) throws(PostgresError) -> [EntitlementAnswer] {
        var binds: [Bind] = [
            .instant(milliseconds: at.milliseconds), .text(last.stream), .int(Int64(last.appID)),
        ]
        var conditions = ""
        if let owner { binds.append(.uuid(owner.bits)) }
        if let subscription {
            binds.append(.text(subscription))
            conditions += " and original_transaction_id = $\(binds.count)"
        }
        if let product {
            binds.append(.text(product))
            conditions += " and product_id = $\(binds.count)"
        }
        if let environment {
            binds.append(.text(environment.description))
            conditions += " and environment = $\(binds.count)"
        }
        if let limit { binds.append(.int(Int64(limit))) }
        let sql = """
            select \(EntitlementAnswer.columns)\(owner == nil ? "" : ", via, counts")
            from \(owner == nil ? "read_model.entitlement_all" : Self.ofOwner)
            where valid_from <= $1 and $1 < valid_until
                and (original_transaction_id, app_id) > ($2, $3::integer)\(conditions)
            order by original_transaction_id, app_id
            \(limit.map { _ in "limit $\(binds.count)" } ?? "")
            """
        // To plan what is asked about one of many takes far longer than to look it up; a walk over
        // all is planned for the values it has.
        let isAboutOne = owner != nil || subscription != nil
        let rows =
            isAboutOne
            ? try connection.query(prepared: sql, binds) : try connection.query(sql, binds)
        return (0..<rows.count).map { EntitlementAnswer(rows, $0, ofOwner: owner != nil) }
    }

    /// All subscriptions of the owner `$4` at the instant, each once, with the one that counts for
    /// each group: the same choice as in `read_model.owner_entitlement_in`.
    private static let ofOwner = """
        (
            select t.*, row_number() over (
                partition by environment, bundle_id,
                    coalesce(subscription_group_identifier, original_transaction_id)
                order by entitled desc, level nulls last, access_until desc nulls last,
                    original_transaction_id
            ) = 1 as counts
            from (
                select distinct on (original_transaction_id, app_id) *
                from read_model.owner_timeline
                where app_account_token = $4 and valid_from <= $1 and $1 < valid_until
                    and owned_from <= $1 and $1 < owned_until
                order by original_transaction_id, app_id, via
            ) t
        ) a
        """
}

extension EntitlementAnswer {
    /// The subscription that the answer is about.
    var key: SubscriptionKey { SubscriptionKey(appID: appID, stream: originalTransactionID) }
}

/// How far the read models are behind the log.
public struct Staleness: Hashable, Sendable {
    /// How many subscriptions have events that the read models do not hold yet.
    public var staleStreams: Int64
    /// The subscriptions that could not be folded, with the reasons.
    public var parked: [Parked]

    /// A subscription that could not be folded.
    public struct Parked: Hashable, Sendable {
        /// Which one.
        public var key: SubscriptionKey
        /// The highest of its positions when it was parked.
        public var position: Int64
        /// Why.
        public var error: String
    }

    /// Counts open marks and lists what is parked.
    public init(_ connection: Connection) throws(ReadModelError) {
        (staleStreams, parked) = try readModels("count what is not folded yet") {
            let marks = try connection.query(
                "select count(*) from (select distinct stream, app_id from ledger.mark) m"
            )
            let rows = try connection.query(
                "select stream, app_id, position, error from read_model.parked"
                    + " order by stream, app_id"
            )
            let parked = (0..<rows.count).map { row in
                Parked(
                    key: SubscriptionKey(
                        appID: Int32(rows.int(row, 1) ?? 0),
                        stream: rows.text(row, 0) ?? ""
                    ),
                    position: rows.int(row, 2) ?? 0,
                    error: rows.text(row, 3) ?? ""
                )
            }
            return (marks.int(0, 0) ?? 0, parked)
        }
    }
}
