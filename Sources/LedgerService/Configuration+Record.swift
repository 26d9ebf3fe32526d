public import EventLog
public import Ledger
public import Postgres

extension Configuration {
    /// Keeps what the configuration says of the apps as versioned rows, where it is new.
    ///
    /// Subscriptions that a change concerns are marked to be folded again.
    ///
    /// - Parameter connection: a session that may insert reference rows and marks, and lock
    ///   `read_model.current`.
    /// - Returns: the apps whose rules changed.
    /// - Throws: `EventLogError` or `ReadModelError`.
    public func record(_ connection: Connection) throws -> [AppKey] {
        let book = RuleBook(connection)
        return try rules.compactMap { key, rules, appAppleID in
            let change = try book.record(rules, appAppleID: appAppleID, of: key) { id in
                try Projector.markAll(ofApp: id, connection)
            }
            return change.rulesVersion != nil || change.policyVersion != nil ? key : nil
        }
    }

    /// What `record` would have the rules of the apps be, without writing anything.
    ///
    /// - Parameter connection: a session that may read what is recorded of the apps.
    /// - Returns: the apps whose rules would change, with what they would be.
    /// - Throws: `EventLogError`.
    public func preview(_ connection: Connection) throws -> [AppKey: AppRules] {
        let book = RuleBook(connection)
        var result: [AppKey: AppRules] = [:]
        for (key, rules, _) in rules { result[key] = try book.preview(rules, of: key) }
        return result
    }

    private var rules: [(key: AppKey, rules: AppRules, appAppleID: Int64?)] {
        apps.flatMap { app in
            app.environments.map { environment in
                let key = AppKey(bundleID: app.bundleID, environment: environment)
                return (key, app.rules(in: environment), app.appAppleID)
            }
        }
    }
}

extension Configuration.App {
    /// What the fold needs to know of the app in one environment.
    public func rules(in environment: Environment) -> AppRules {
        var rules = AppRules(
            environment: environment,
            gracePeriodDays: gracePeriodDays,
            graceScope: graceScope,
            policies: [accessPolicy],
            clockProfile: clockProfile
        )
        for (id, product) in products { rules.products[Symbol(id)] = product }
        return rules
    }
}
