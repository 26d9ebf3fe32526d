/// One numbered step of the schema, as text.
///
/// The text may name the roles as `:"owner"`, `:"appender"`, `:"projector"`, `:"reader"` and
/// `:"auditor"`, as psql's variables; `Roles.applied(to:)` puts the real names in.
public struct Migration: Hashable, Sendable {
    /// What the migration belongs to: `log`, or the name of a read model.
    public var component: String
    /// Its place within the component, from 1.
    public var number: Int
    /// Its name, as the file's without number and ending.
    public var name: String
    /// The SQL, run in one transaction as the owner of the log.
    public var sql: String

    /// Makes a migration; the read models hand theirs to the migrator so.
    public init(component: String, number: Int, name: String, sql: String) {
        self.component = component
        self.number = number
        self.name = name
        self.sql = sql
    }
}

/// The log's own SQL.
public enum Schema {
    /// The migrations of the log, in order; equal to the folder `migrations`.
    public static let migrations: [Migration] = [
        migration(1, "reference", PackageResources._001_reference_sql),
        migration(2, "event", PackageResources._002_event_sql),
        migration(3, "evidence", PackageResources._003_evidence_sql),
        migration(4, "fact", PackageResources._004_fact_sql),
        migration(5, "queues", PackageResources._005_queues_sql),
        migration(6, "read_model", PackageResources._006_read_model_sql),
        migration(7, "immutable", PackageResources._007_immutable_sql),
        migration(8, "privileges", PackageResources._008_privileges_sql),
        migration(9, "policy", PackageResources._009_policy_sql),
        migration(10, "fx_rate", PackageResources._010_fx_rate_sql),
        migration(11, "service", PackageResources._011_service_sql),
        migration(
            12,
            "quarantine_resolution",
            PackageResources._012_quarantine_resolution_sql
        ),
        migration(13, "consent", PackageResources._013_consent_sql),
        migration(14, "forward", PackageResources._014_forward_sql),
        migration(15, "reconcile", PackageResources._015_reconcile_sql),
        migration(16, "mark_position", PackageResources._016_mark_position_sql),
        migration(17, "extension", PackageResources._017_extension_sql),
        migration(19, "known_at", PackageResources._019_known_at_sql),
        migration(21, "epoch", PackageResources._021_epoch_sql),
        migration(22, "posted_body", PackageResources._022_posted_body_sql),
        migration(
            23,
            "consumption_request_reason",
            PackageResources._023_consumption_request_reason_sql
        ),
        migration(24, "reader_columns", PackageResources._024_reader_columns_sql),
    ]

    /// The programs that the newest migrations serve, written beside each migration.
    public static let serves = "subledger 0.1"

    /// What makes the schemas and the list of migrations.
    public static let bootstrap = text(PackageResources.bootstrap_sql)

    /// What makes the roles, one statement a line, for a DBA to run beforehand.
    public static let roles = text(PackageResources.roles_sql)

    private static func migration(_ number: Int, _ name: String, _ bytes: [UInt8]) -> Migration {
        Migration(component: "log", number: number, name: name, sql: text(bytes))
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
