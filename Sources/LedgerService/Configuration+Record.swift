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
        var changed: [AppKey] = []
        for app in apps {
            for environment in app.environments {
                let key = AppKey(bundleID: app.bundleID, environment: environment)
                let change = try book.record(
                    app.rules(in: environment),
                    appAppleID: app.appAppleID,
                    of: key
                )
                guard change.rulesVersion != nil || change.policyVersion != nil else { continue }
                changed.append(key)
                for (id, known) in try LogReader(connection).apps() where known == key {
                    try Projector.markAll(ofApp: id, connection)
                }
            }
        }
        return changed
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
