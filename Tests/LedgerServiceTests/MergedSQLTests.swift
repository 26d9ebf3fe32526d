import Crypto
import Projections
import Schema
import Testing

/// SQL that was merged never changes: databases exist that were made with it, and the migrator refuses
/// them as soon as one letter is another.
///
/// A new column or view is a new file with the next number of its component, and a line here.
@Suite struct MergedSQLTests {
    /// The component, the number and the name of each file, with the beginning of its SHA-256.
    private static let merged = [
        "log 1 reference": "ae91480408ac7e28",
        "log 2 event": "aa844a7b0ca29d7c",
        "log 3 evidence": "e40c818008376241",
        "log 4 fact": "e8bb138e5bf4aad8",
        "log 5 queues": "f233ce5aebfe0844",
        "log 6 read_model": "63da0c822d34506f",
        "log 7 immutable": "f393b595d7421e8c",
        "log 8 privileges": "ef1f762471448b5d",
        "log 9 policy": "34e7f11b111d8b51",
        "log 10 fx_rate": "9ca9a9d4f10e96c2",
        "log 11 service": "614aa8425b580cef",
        "log 12 quarantine_resolution": "c62897c550672f21",
        "log 13 consent": "3f8847fadfd4c28a",
        "log 14 forward": "fdd99e4019ea5f35",
        "log 15 reconcile": "7e31d7ac2b60bec7",
        "log 16 mark_position": "ed583b18bcc31da3",
        "log 17 extension": "d79ceacffb74265d",
        "log 19 known_at": "0f2e2b822ce5f4c4",
        "log 21 epoch": "eed7dc1a99837264",
        "log 22 posted_body": "0fbf8edccb2ca021",
        "log 23 consumption_request_reason": "89d18a7769dad8ac",
        "log 24 reader_columns": "6857482fec0c546b",
        "entitlement 1 entitlement_tables": "46598222691fe78b",
        "entitlement 2 entitlement_views": "c0b503e449c2b983",
        "entitlement 3 entitlement_owners": "200a8cab2070cb6c",
        "entitlement 4 entitlement_refund_reason": "adb677e014d81e2b",
        "billing_recovery 1 billing_recovery_tables": "3afb4e4f9e630ced",
        "billing_recovery 2 billing_recovery_views": "ab5287bcdefec4ac",
        "churn 1 churn_tables": "b0fcd03f29ccf61d",
        "churn 2 churn_successions": "4def886cec07aa4a",
        "churn 3 churn_views": "43343dc6faea2fc7",
        "churn 4 churn_cohorts": "b24eed6fa7e99109",
        "churn 5 churn_money_views": "c1cb5c02561738e6",
        "churn 6 churn_losses": "05052a96b5fc44d6",
        "churn 7 churn_history_missing": "5d18c4215bf714a6",
        "extension_audit 1 extension_tables": "7d91ff9e7a39878d",
        "extension_audit 2 extension_views": "3415037d53af9c62",
        "extension_audit 3 extension_reports": "b5a7c59f4655fb18",
        "extension_audit 4 extension_comments": "8cd020d1cc202486",
    ]

    private static func digest(_ sql: String) -> String {
        String(
            SHA256.digest(sql).flatMap { byte in
                (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
            .prefix(16)
        )
    }

    @Test func noFileThatWasMergedIsAnotherOne() {
        var found: [String: String] = [:]
        for migration in Schema.migrations {
            let name = "\(migration.component) \(migration.number) \(migration.name)"
            found[name] = Self.digest(migration.sql)
        }
        for definition in Catalogue.definitions {
            let name = "\(definition.projection) \(definition.number) \(definition.name)"
            found[name] = Self.digest(definition.sql)
        }
        #expect(found.count == Schema.migrations.count + Catalogue.definitions.count)
        for (name, digest) in Self.merged {
            #expect(found[name] == digest, "\(name) was merged and is another one, or gone")
        }
        for name in found.keys where Self.merged[name] == nil {
            Issue.record("\(name) is new: give it a line with \(found[name] ?? "")")
        }
    }
}
