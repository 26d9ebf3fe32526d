internal import Projections
public import Schema

#if canImport(Glibc)
internal import Glibc
#endif

/// The read models of this program.
public enum ReadModels {
    /// Their names, in the order in which they are built.
    public static let names: [String] = Catalogue.all.map { $0.name }

    /// The migrations of the read models, for `Migrator(extra:)`.
    public static let migrations: [Migration] = Catalogue.definitions.map {
        Migration(component: $0.projection, number: $0.number, name: $0.name, sql: $0.sql)
    }

    /// The read models of those names; all of them where none is named.
    ///
    /// - Throws: `.unknownProjection` with the names that there are.
    static func projections(
        named names: [String]
    ) throws(ReadModelError) -> [any Projection.Type] {
        for name in names where Catalogue.projection(named: name) == nil {
            throw ReadModelError(
                .unknownProjection,
                "there is no read model \"\(name)\"; there are: "
                    + Self.names.joined(separator: ", ")
            )
        }
        return Catalogue.all.filter { names.isEmpty || names.contains($0.name) }
    }
}

/// Waiting between two tries.
enum Sleep {
    static func milliseconds(_ count: Int) { usleep(UInt32(count) * 1000) }
}
