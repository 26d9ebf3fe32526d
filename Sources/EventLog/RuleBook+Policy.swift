public import Ledger
public import Postgres

extension RuleBook {
    /// From when on a change of policy counts.
    public enum Start: Hashable, Sendable {
        /// From now on.
        case now
        /// From an instant that is not past.
        case at(Timestamp)
        /// From an instant that is past, on purpose; nil for the beginning.
        case retroactively(from: Timestamp?)
    }

    /// Records what an operator changes in an app's access policy.
    ///
    /// - Parameters:
    ///   - app: the app.
    ///   - start: from when on it counts; what was granted before is rewritten only
    ///     `retroactively`, and the row says so.
    ///   - operator: who changes it.
    ///   - ticket: on which ticket.
    ///   - change: changes the switches of the newest version.
    ///   - afterwards: called in the same transaction with the app's number.
    /// - Returns: the new version; nil where the newest says the same already.
    /// - Throws: `.invalid` for an app that the log does not know and for a start that is not as
    ///   said; SQLSTATE 23505 where another change took the number; what `afterwards` throws.
    public func changePolicy(
        of app: AppKey,
        from start: Start,
        operator: String,
        ticket: String,
        change: (inout AccessPolicy) -> Void,
        afterwards: (Int32) throws -> Void = { _ in }
    ) throws -> AccessPolicy? {
        let author = Author(operator: `operator`, ticket: ticket)
        return try connection.transaction { _ in
            guard let id = try number(of: app) else {
                throw EventLogError(.invalid, "the log knows no app \(app.bundleID)")
            }
            let versions = try PolicyRows.all(connection)[id] ?? []
            var newest = versions.max { $0.version < $1.version }
            if newest == nil {
                // Until now the default was in force.
                let first = AccessPolicy()
                try insert(first, id, Author())
                newest = first
            }
            guard let newest else { return nil }
            var wanted = newest
            change(&wanted)
            wanted.version = newest.version + 1
            wanted.effectiveFrom = try effectiveFrom(start)
            // Of the same switches only an earlier start is news.
            if wanted.decidesLike(newest), newest.effectiveFrom <= wanted.effectiveFrom {
                return nil
            }
            try insert(
                wanted,
                id,
                author,
                isConfigured: false,
                isRetroactive: start.isRetroactive
            )
            try afterwards(id)
            return wanted
        }
    }

    /// The access policies of an app that count, in order of `effectiveFrom`.
    public func policies(of app: AppKey) throws(EventLogError) -> [AccessPolicy] {
        do {
            guard let id = try number(of: app) else { return [] }
            let versions = try PolicyRows.all(connection)[id] ?? [AccessPolicy()]
            return AccessPolicy.inForce(versions)
        } catch {
            throw EventLogError(error, doing: "read the access policies of \(app.bundleID)")
        }
    }

    /// When a change that begins so counts from.
    ///
    /// - Throws: `.invalid` where the past is not meant to be rewritten and would be, or is and
    ///   would not.
    public func effectiveFrom(_ start: Start) throws -> Timestamp {
        let now = try now()
        switch start {
        case .now: return now
        case .at(let instant):
            guard instant >= now else {
                throw EventLogError(
                    .invalid,
                    "\(instant) is past: that would rewrite what was granted since"
                )
            }
            return instant
        case .retroactively(let instant):
            guard let instant else { return .earliest }
            guard instant < now else {
                throw EventLogError(.invalid, "\(instant) is not past: nothing is retroactive")
            }
            return instant
        }
    }

    /// Records the policy that configuration wants, where it wants another one than last time.
    func recordPolicy(
        _ rules: AppRules,
        _ id: Int32,
        isNew: Bool,
        _ author: Author
    ) throws -> Int32? {
        let versions = try PolicyRows.read(connection)[id] ?? []
        let plan = try policyPlan(rules, after: versions, isNew: isNew)
        for policy in plan.policies { try insert(policy, id, author) }
        return plan.version
    }

    /// What is to be recorded of the policy that configuration wants.
    ///
    /// - Returns: the policies to record, and the number of the one that is news, if any is.
    func policyPlan(
        _ rules: AppRules,
        after versions: [PolicyRows.Row],
        isNew: Bool
    ) throws -> (policies: [AccessPolicy], version: Int32?) {
        var wanted = rules.policies[rules.policies.count - 1]
        var policies: [AccessPolicy] = []
        if versions.isEmpty {
            // Until now the default was in force, unless nothing was.
            var first = isNew ? wanted : AccessPolicy()
            first.version = 1
            first.effectiveFrom = .earliest
            policies.append(first)
            if isNew || first.decidesLike(wanted) { return (policies, isNew ? 1 : nil) }
        } else if let configured = versions.last(where: \.isConfigured)?.policy,
            configured.decidesLike(wanted)
        {
            return ([], nil)
        }
        if wanted.effectiveFrom == .earliest { wanted.effectiveFrom = try now() }
        wanted.version = (versions.last?.policy.version ?? 1) + 1
        return (policies + [wanted], wanted.version)
    }

    func number(of app: AppKey) throws(PostgresError) -> Int32? {
        let rows = try connection.query(
            "select app_id from ledger.app where bundle_id = $1 and environment = $2",
            [.text(app.bundleID), .text(app.environment.description)]
        )
        return rows.count == 1 ? rows.int(0, 0).map { Int32($0) } : nil
    }

    private func now() throws -> Timestamp {
        let rows = try connection.query("select date_trunc('milliseconds', now())")
        return Timestamp(milliseconds: rows.instant(0, 0) ?? 0)
    }

    private func insert(
        _ policy: AccessPolicy,
        _ id: Int32,
        _ author: Author,
        isConfigured: Bool = true,
        isRetroactive: Bool = false
    ) throws {
        let access: String
        var days: Int64?
        switch policy.billingRetryAccess {
        case .deny: access = "deny"
        case .untilGraceEnds: access = "until_grace_ends"
        case .days(let count):
            access = "days"
            days = Int64(count)
        case .allow: access = "allow"
        }
        try connection.query(
            """
            insert into ledger.access_policy (app_id, version, effective_from,
                billing_retry_access, billing_retry_days, missing_grace_date, lapse_leeway_ms,
                refund_ends_access, rescinded_consent_suspends, operator, ticket,
                is_configured, retroactive)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
            """,
            [
                .int(Int64(id)), .int(Int64(policy.version)),
                .instant(milliseconds: policy.effectiveFrom.milliseconds), .text(access),
                .int(days), .text(policy.missingGraceDate.rawValue),
                .int(policy.lapseLeeway?.rawValue), .bool(policy.refundEndsAccess),
                .bool(policy.rescindedConsentSuspends), .text(author.operator),
                .text(author.ticket), .bool(isConfigured), .bool(isRetroactive),
            ]
        )
    }
}

extension RuleBook.Start {
    /// Whether it reaches back.
    public var isRetroactive: Bool {
        if case .retroactively = self { true } else { false }
    }
}

/// The rows of `ledger.access_policy`.
public enum PolicyRows {
    /// One version with where it comes from.
    struct Row {
        var policy: AccessPolicy
        var isConfigured: Bool
    }

    /// All versions of all apps by the app's number, in order of version.
    ///
    /// - Parameters:
    ///   - instant: leaves out what was recorded after this instant; nil for everything.
    ///   - connection: a session that may read them.
    /// - Returns: the versions.
    /// - Throws: `PostgresError` where the statement fails.
    public static func all(
        recordedBy instant: Timestamp? = nil,
        _ connection: Connection
    ) throws(PostgresError) -> [Int32: [AccessPolicy]] {
        try read(recordedBy: instant, connection).mapValues { $0.map(\.policy) }
    }

    static func read(
        recordedBy instant: Timestamp? = nil,
        _ connection: Connection
    ) throws(PostgresError) -> [Int32: [Row]] {
        let rows = try connection.query(
            prepared: """
                select app_id, version, effective_from, billing_retry_access, billing_retry_days,
                    missing_grace_date, lapse_leeway_ms, refund_ends_access,
                    rescinded_consent_suspends, is_configured
                from ledger.access_policy
                where date_trunc('milliseconds', recorded_at) <= $1
                order by app_id, version
                """,
            [.instant(milliseconds: (instant ?? .latest).milliseconds)]
        )
        var result: [Int32: [Row]] = [:]
        for row in 0..<rows.count {
            let access: BillingRetryAccess =
                switch rows.text(row, 3) {
                case "until_grace_ends": .untilGraceEnds
                case "days": .days(Int(rows.int(row, 4) ?? 1))
                case "allow": .allow
                default: .deny
                }
            let policy = AccessPolicy(
                version: Int32(rows.int(row, 1) ?? 1),
                effectiveFrom: Timestamp(milliseconds: rows.instant(row, 2) ?? 0),
                billingRetryAccess: access,
                missingGraceDate: MissingGraceDate(rawValue: rows.text(row, 5) ?? "") ?? .estimate,
                lapseLeeway: rows.int(row, 6).map { Milliseconds(rawValue: $0) },
                refundEndsAccess: rows.bool(row, 7) ?? true,
                rescindedConsentSuspends: rows.bool(row, 8) ?? true
            )
            result[Int32(rows.int(row, 0) ?? 0), default: []].append(
                Row(policy: policy, isConfigured: rows.bool(row, 9) ?? true)
            )
        }
        return result
    }
}
