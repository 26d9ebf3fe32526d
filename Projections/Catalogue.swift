/// The read models that this program has.
///
/// Adding one is adding its folder and its line here.
public enum Catalogue {
    /// Every read model, in the order in which they are built.
    public static let all: [any Projection.Type] = [
        Entitlement.self, BillingRecovery.self, Churn.self, ExtensionAudit.self,
    ]

    /// The read model of that name.
    public static func projection(named name: String) -> (any Projection.Type)? {
        all.first { $0.name == name }
    }

    /// The SQL of the read models, in the order in which it is to be run, each once.
    public static let definitions: [Definition] = [
        Definition(
            projection: Entitlement.name,
            number: 1,
            name: "entitlement_tables",
            sql: PackageResources.entitlement_tables_sql
        ),
        Definition(
            projection: Entitlement.name,
            number: 2,
            name: "entitlement_views",
            sql: PackageResources.entitlement_views_sql
        ),
        Definition(
            projection: Entitlement.name,
            number: 3,
            name: "entitlement_owners",
            sql: PackageResources.entitlement_owners_sql
        ),
        Definition(
            projection: Entitlement.name,
            number: 4,
            name: "entitlement_refund_reason",
            sql: PackageResources.entitlement_refund_reason_sql
        ),
        Definition(
            projection: BillingRecovery.name,
            number: 1,
            name: "billing_recovery_tables",
            sql: PackageResources.billing_recovery_tables_sql
        ),
        Definition(
            projection: BillingRecovery.name,
            number: 2,
            name: "billing_recovery_views",
            sql: PackageResources.billing_recovery_views_sql
        ),
        Definition(
            projection: Churn.name,
            number: 1,
            name: "churn_tables",
            sql: PackageResources.churn_tables_sql
        ),
        Definition(
            projection: Churn.name,
            number: 2,
            name: "churn_successions",
            sql: PackageResources.churn_successions_sql
        ),
        Definition(
            projection: Churn.name,
            number: 3,
            name: "churn_views",
            sql: PackageResources.churn_views_sql
        ),
        Definition(
            projection: Churn.name,
            number: 4,
            name: "churn_cohorts",
            sql: PackageResources.churn_cohorts_sql
        ),
        Definition(
            projection: Churn.name,
            number: 5,
            name: "churn_money_views",
            sql: PackageResources.churn_money_views_sql
        ),
        Definition(
            projection: Churn.name,
            number: 6,
            name: "churn_losses",
            sql: PackageResources.churn_losses_sql
        ),
        Definition(
            projection: Churn.name,
            number: 7,
            name: "churn_history_missing",
            sql: PackageResources.churn_history_missing_sql
        ),
        Definition(
            projection: ExtensionAudit.name,
            number: 1,
            name: "extension_tables",
            sql: PackageResources.extension_tables_sql
        ),
        Definition(
            projection: ExtensionAudit.name,
            number: 2,
            name: "extension_views",
            sql: PackageResources.extension_views_sql
        ),
        Definition(
            projection: ExtensionAudit.name,
            number: 3,
            name: "extension_reports",
            sql: PackageResources.extension_reports_sql
        ),
        Definition(
            projection: ExtensionAudit.name,
            number: 4,
            name: "extension_comments",
            sql: PackageResources.extension_comments_sql
        ),
    ]

    /// A numbered `.sql` file beside a read model; once released it never changes.
    public struct Definition: Sendable {
        /// The read model.
        public var projection: String
        /// Its place among the read model's files, from 1.
        public var number: Int
        /// The file's name without `.sql`.
        public var name: String
        /// The statements, which name roles as `:"projector"`.
        public var sql: String

        init(projection: String, number: Int, name: String, sql: [UInt8]) {
            self.projection = projection
            self.number = number
            self.name = name
            self.sql = String(decoding: sql, as: UTF8.self)
        }
    }
}
