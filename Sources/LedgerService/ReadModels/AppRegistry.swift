public import EventLog
public import Ledger
public import Postgres

/// The apps that the log knows, with the newest version of what configuration says of each.
public struct AppRegistry: Hashable, Sendable {
    /// One app in one environment.
    public struct App: Hashable, Sendable {
        /// The number in `ledger.app`.
        public var id: Int32
        /// The bundle id and the environment.
        public var key: AppKey
        /// What the fold needs to know.
        public var rules: AppRules
    }

    /// The apps by their number.
    public private(set) var apps: [Int32: App] = [:]

    /// Reads the apps and their rules.
    ///
    /// - Parameters:
    ///   - instant: reads the rules that were recorded by this instant; nil for the newest.
    ///   - connection: a session that may read them.
    /// - Throws: `ReadModelError` where they cannot be read.
    public init(
        recordedBy instant: Timestamp? = nil,
        _ connection: Connection
    ) throws(ReadModelError) {
        let binds: [Bind] = [.instant(milliseconds: (instant ?? .latest).milliseconds)]
        apps = try readModels("read the apps' rules") {
            var apps: [Int32: App] = [:]
            let rows = try connection.query(
                prepared: """
                    select a.app_id, a.bundle_id, a.environment, r.grace_period_days, r.grace_scope,
                        r.clock_profile
                    from ledger.app a
                    left join ledger.app_rules r on r.app_id = a.app_id and r.version = (
                        select max(version) from ledger.app_rules n
                        where n.app_id = a.app_id and date_trunc('milliseconds', n.recorded_at) <= $1
                    )
                    """,
                binds
            )
            for row in 0..<rows.count {
                let environment = Environment(rows.text(row, 2) ?? "")
                var rules = AppRules(environment: environment)
                rules.gracePeriodDays = rows.int(row, 3).map { Int($0) }
                rules.graceScope =
                    rows.text(row, 4).flatMap { GraceScope(rawValue: $0) } ?? .allRenewals
                rules.clockProfile = rows.text(row, 5).flatMap { ClockProfile(rawValue: $0) }
                let id = Int32(rows.int(row, 0) ?? 0)
                let key = AppKey(bundleID: rows.text(row, 1) ?? "", environment: environment)
                apps[id] = App(id: id, key: key, rules: rules)
            }
            try Self.readProducts(binds, connection, into: &apps)
            for (id, policies) in try PolicyRows.all(recordedBy: instant, connection) {
                apps[id]?.rules.policies = AccessPolicy.inForce(policies)
            }
            return apps
        }
    }

    /// The rules of an app; those of an app without a row are the defaults for Sandbox.
    public func rules(of appID: Int32) -> AppRules {
        apps[appID]?.rules ?? AppRules(environment: .sandbox)
    }

    private static func readProducts(
        _ binds: [Bind],
        _ connection: Connection,
        into apps: inout [Int32: App]
    ) throws(PostgresError) {
        let rows = try connection.query(
            prepared: """
                select p.app_id, p.product_id, p.subscription_group_identifier, p.level, p.period
                from ledger.app_product p
                where p.version = (
                    select max(version) from ledger.app_rules n
                    where n.app_id = p.app_id and date_trunc('milliseconds', n.recorded_at) <= $1
                )
                """,
            binds
        )
        for row in 0..<rows.count {
            guard let period = rows.text(row, 4).flatMap({ PlanPeriod(rawValue: $0) }) else {
                continue
            }
            let product = Symbol(rows.text(row, 1) ?? "")
            apps[Int32(rows.int(row, 0) ?? 0)]?.rules.products[product] = ProductRules(
                groupID: Symbol(rows.text(row, 2) ?? ""),
                level: Int(rows.int(row, 3) ?? 0),
                period: period
            )
        }
    }
}
