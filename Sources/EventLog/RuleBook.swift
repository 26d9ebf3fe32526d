public import Ledger
public import Postgres

/// Keeps what configuration says of each app, as versions that never change.
public struct RuleBook {
    /// What `record` wrote; nil for what was the same already.
    public struct Change: Hashable, Sendable {
        /// The new version of the rules.
        public var rulesVersion: Int32?
        /// The new version of the access policy.
        public var policyVersion: Int32?
    }

    /// How often a version is numbered anew where another program took the number.
    private static let attempts = 5

    let connection: Connection

    /// Makes a book over a session of the appender's role.
    public init(_ connection: Connection) { self.connection = connection }

    /// Records what configuration says of an app, where it differs from the newest version.
    ///
    /// The app gets its row if it has none. The last of `rules.policies` is the wanted access
    /// policy; its number is given here. An app's first policy counts from the beginning. A later
    /// one counts from its `effectiveFrom`, and where that is the beginning from now on: an edit
    /// does not rewrite what was granted before. What an operator set with `changePolicy` stays
    /// until the wanted policy is another one than was recorded here last.
    ///
    /// - Parameters:
    ///   - rules: what configuration says.
    ///   - appAppleID: Apple's number of the app, for Production.
    ///   - app: the app.
    ///   - operator: who changed it.
    ///   - ticket: on which ticket.
    ///   - afterwards: called with the app's number where something changed, in the same transaction.
    /// - Returns: the versions that were written.
    /// - Throws: `EventLogError`, and what `afterwards` throws as one.
    @discardableResult
    public func record(
        _ rules: AppRules,
        appAppleID: Int64? = nil,
        of app: AppKey,
        operator: String? = nil,
        ticket: String? = nil,
        afterwards: (Int32) throws -> Void = { _ in }
    ) throws(EventLogError) -> Change {
        let what = "record the rules of \(app.bundleID)"
        let author = Author(operator: `operator`, ticket: ticket)
        var references = ReferenceRows()
        var attempt = 1
        while true {
            do {
                let isNew = try !exists(app)
                let id = try references.appID(app, connection)
                return try connection.transaction { _ in
                    let change = Change(
                        rulesVersion: try recordRules(rules, appAppleID, id, author),
                        policyVersion: try recordPolicy(rules, id, isNew: isNew, author)
                    )
                    if change != Change() { try afterwards(id) }
                    return change
                }
            } catch let error as PostgresError where error.sqlState == "23505" {
                guard attempt < Self.attempts else { throw EventLogError(error, doing: what) }
                attempt += 1
            } catch {
                throw EventLogError.made(from: error, doing: what)
            }
        }
    }

    /// What `record` would have an app's rules be, without writing anything.
    ///
    /// - Parameters:
    ///   - rules: what configuration says.
    ///   - app: the app.
    /// - Returns: the rules that would count then; nil where those that count already would stay,
    ///   or where the log knows nothing of the app.
    /// - Throws: `EventLogError`.
    public func preview(_ rules: AppRules, of app: AppKey) throws(EventLogError) -> AppRules? {
        do {
            guard let id = try number(of: app) else { return nil }
            let versions = try PolicyRows.read(connection)[id] ?? []
            let plan = try policyPlan(rules, after: versions, isNew: false)
            let isRecorded = try isRecorded(rules, newest(id), id)
            guard plan.version != nil || !isRecorded else { return nil }
            var result = rules
            result.policies = AccessPolicy.inForce(versions.map(\.policy) + plan.policies)
            return result
        } catch {
            throw EventLogError.made(
                from: error,
                doing: "compare the configuration of \(app.bundleID) with the ledger"
            )
        }
    }

    struct Author {
        var `operator`: String?
        var ticket: String?
    }

    private func exists(_ app: AppKey) throws -> Bool {
        let rows = try connection.query(
            "select from ledger.app where bundle_id = $1 and environment = $2",
            [.text(app.bundleID), .text(app.environment.description)]
        )
        return rows.count == 1
    }

    private func recordRules(
        _ rules: AppRules,
        _ appAppleID: Int64?,
        _ id: Int32,
        _ author: Author
    ) throws -> Int32? {
        let newest = try newest(id)
        let version = newest.count == 0 ? 0 : newest.int(0, 0) ?? 0
        if newest.count == 1, newest.int(0, 1) == appAppleID,
            try isRecorded(rules, newest, id)
        {
            return nil
        }
        try connection.query(
            """
            insert into ledger.app_rules (app_id, version, app_apple_id, grace_period_days,
                grace_scope, clock_profile, operator, ticket)
            values ($1, $2, $3, $4, $5, $6, $7, $8)
            """,
            [
                .int(Int64(id)), .int(version + 1), .int(appAppleID),
                .int(rules.gracePeriodDays.map { Int64($0) }), .text(rules.graceScope.rawValue),
                .text(rules.clockProfile?.rawValue), .text(author.operator), .text(author.ticket),
            ]
        )
        for (product, rule) in rules.products.sorted(by: { $0.key.text < $1.key.text }) {
            try connection.query(
                """
                insert into ledger.app_product (app_id, version, product_id,
                    subscription_group_identifier, level, period)
                values ($1, $2, $3, $4, $5, $6)
                """,
                [
                    .int(Int64(id)), .int(version + 1), .text(product.text),
                    .text(rule.groupID.text), .int(Int64(rule.level)), .text(rule.period.rawValue),
                ]
            )
        }
        return Int32(version + 1)
    }

    /// The newest version of an app's rules; no row where there is none.
    private func newest(_ id: Int32) throws(PostgresError) -> Rows {
        try connection.query(
            """
            select version, app_apple_id, grace_period_days, grace_scope, clock_profile
            from ledger.app_rules where app_id = $1 order by version desc limit 1
            """,
            [.int(Int64(id))]
        )
    }

    /// Whether the newest version says what these rules do, but for the policy.
    private func isRecorded(_ rules: AppRules, _ newest: Rows, _ id: Int32) throws -> Bool {
        guard newest.count == 1, newest.int(0, 2) == rules.gracePeriodDays.map({ Int64($0) }),
            newest.text(0, 3) == rules.graceScope.rawValue,
            newest.text(0, 4) == rules.clockProfile?.rawValue
        else { return false }
        return try products(id, newest.int(0, 0) ?? 0) == rules.products
    }

    private func products(_ id: Int32, _ version: Int64) throws -> [Symbol: ProductRules] {
        let rows = try connection.query(
            """
            select product_id, subscription_group_identifier, level, period
            from ledger.app_product where app_id = $1 and version = $2
            """,
            [.int(Int64(id)), .int(version)]
        )
        var result: [Symbol: ProductRules] = [:]
        for row in 0..<rows.count {
            guard let period = rows.text(row, 3).flatMap({ PlanPeriod(rawValue: $0) }) else {
                continue
            }
            result[Symbol(rows.text(row, 0) ?? "")] = ProductRules(
                groupID: Symbol(rows.text(row, 1) ?? ""),
                level: Int(rows.int(row, 2) ?? 0),
                period: period
            )
        }
        return result
    }
}
