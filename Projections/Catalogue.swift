/// The read models that this program has.
///
/// Adding one is adding its folder and its line here.
public enum Catalogue {
    /// Every read model, in the order in which they are built.
    public static let all: [any Projection.Type] = [Entitlement.self]

    /// The SQL of the read models: tables first, then views, each safe to run again.
    public static let definitions: [Definition] = [
        Definition(
            name: "entitlement_tables",
            sql: PackageResources.entitlement_tables_sql
        ),
        Definition(
            name: "entitlement_views",
            sql: PackageResources.entitlement_views_sql
        ),
    ]

    /// A `.sql` file beside a read model.
    public struct Definition: Sendable {
        /// The file's name without `.sql`.
        public var name: String
        /// The statements.
        public var sql: String

        init(name: String, sql: [UInt8]) {
            self.name = name
            self.sql = String(decoding: sql, as: UTF8.self)
        }
    }
}
