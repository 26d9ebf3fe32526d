public import Ledger
public import Postgres
internal import Projections

/// A read model and one of its generations, with the partitions that hold its rows.
struct Generation: Hashable, Sendable {
    var projection: String
    var tables: [Table]
    var number: Int32
    /// The schema that it is in, as SQL names it.
    var schema: String

    init(_ projection: any Projection.Type, _ number: Int32, in schema: String = "read_model") {
        self.projection = projection.name
        self.tables = projection.tables
        self.number = number
        self.schema = schema
    }

    /// The partition of a table, as SQL names it.
    func partition(_ table: Table) -> String { "\(schema).\(table.name)_g\(number)" }

    /// The statement that reads the rows of `table`, as the projection wrote them.
    func copyOut(_ table: Table) -> String {
        "copy \(partition(table)) (\(table.columns.joined(separator: ", "))) to stdout"
            + " (format binary)"
    }

    /// The statement that takes rows of `table`, as the projection writes them.
    func copyIn(_ table: Table) -> String {
        "copy \(partition(table)) (\(table.columns.joined(separator: ", "))) from stdin"
            + " (format binary)"
    }
}

/// The generation that a read model's views show, and who made it.
struct Current: Hashable {
    var projection: String
    var generation: Int32
    var version: Int32
    var decoder: Int16

    // `for share` keeps a swap away until the transaction ends, `for update` other projectors too.
    static func read(_ connection: Connection, lock: String = "") throws(PostgresError) -> [Current]
    {
        let rows = try connection.query(
            prepared: "select projection, generation, version, decoder from read_model.current"
                + " order by projection \(lock)",
            []
        )
        return (0..<rows.count).map { row in
            Current(
                projection: rows.text(row, 0) ?? "",
                generation: Int32(rows.int(row, 1) ?? 0),
                version: Int32(rows.int(row, 2) ?? 0),
                decoder: Int16(rows.int(row, 3) ?? 0)
            )
        }
    }
}

extension Generation {
    /// Makes empty tables without keys and constraints, which no view shows yet.
    func createTables(_ connection: Connection) throws {
        for table in tables {
            let partition = partition(table)
            let parent = "\(schema).\(table.name)"
            try connection.transaction { connection in
                try connection.execute(
                    """
                    set local lock_timeout = '2s';
                    create table \(partition) (like \(parent) including defaults);
                    alter table \(partition) alter column generation set default \(number)
                    """
                )
                try giveToOwner(of: parent, partition, connection)
            }
        }
    }

    /// A superuser may run this; the partitions belong to who owns the read models all the same.
    private func giveToOwner(
        of parent: String,
        _ partition: String,
        _ connection: Connection
    ) throws(PostgresError) {
        let rows = try connection.query(
            """
            select format('alter table %s owner to %I', $2::text, r.rolname)
            from pg_class c join pg_roles r on r.oid = c.relowner
            where c.oid = $1::text::regclass and r.rolname <> current_user
            """,
            [.text(parent), .text(partition)]
        )
        if rows.count == 1, let statement = rows.text(0, 0) { try connection.execute(statement) }
    }

    /// Checks the rows of one table, builds its keys and puts it under its parent; readers of the
    /// live generation do not wait for that.
    ///
    /// Checking every row as it comes would cost a third of the loading.
    func attach(_ table: Table, _ connection: Connection) throws {
        let partition = partition(table)
        // With its own check the rows need not be read again to see that they belong there.
        let isOurs = "\(table.name)_g\(number)_generation_check"
        let constraints =
            try checks(of: table, connection)
            + ["add constraint \(isOurs) check (generation = \(number))"]
        try connection.execute("alter table \(partition) \(constraints.joined(separator: ", "))")
        try Retry.whileLocked {
            try connection.execute(
                """
                set maintenance_work_mem = '128MB'; set lock_timeout = '2s';
                alter table \(schema).\(table.name) attach partition \(partition)
                    for values in (\(number))
                """
            )
        }
        try connection.execute("set default_statistics_target = 10; analyze \(partition)")
    }

    /// What gives a partition the checks of its parent, without which it cannot be attached.
    private func checks(of table: Table, _ connection: Connection) throws -> [String] {
        let rows = try connection.query(
            """
            select format('add constraint %I %s', conname, pg_get_constraintdef(oid))
            from pg_constraint
            where conrelid = $1::text::regclass and contype = 'c' order by conname
            """,
            [.text("\(schema).\(table.name)")]
        )
        return (0..<rows.count).compactMap { rows.text($0, 0) }
    }

    /// Drops the tables where that needs no waiting.
    ///
    /// - Returns: whether they are gone.
    func dropTables(_ connection: Connection) throws -> Bool {
        for table in tables {
            let partition = partition(table)
            let rows = try connection.query(
                """
                select c.relispartition from pg_class c
                where c.oid = to_regclass($1::text)
                """,
                [.text(partition)]
            )
            guard rows.count == 1 else { continue }
            // Detaching locks the parent: not even a reader in a queue shall wait for that.
            let detach =
                rows.bool(0, 0) == true
                ? "alter table \(schema).\(table.name) detach partition \(partition);" : ""
            do {
                try connection.transaction { connection in
                    try connection.execute(
                        "set local lock_timeout = '20ms'; \(detach) drop table \(partition)"
                    )
                }
            } catch let error as PostgresError where error.sqlState == "55P03" {
                return false
            }
        }
        return true
    }
}

/// Trying again what a lock refused.
enum Retry {
    /// Runs `body` up to 50 times while it fails for want of a lock or by a deadlock.
    static func whileLocked<Value>(_ body: () throws -> Value) throws -> Value {
        var attempt = 1
        while true {
            do {
                return try body()
            } catch let error as PostgresError
                where ["55P03", "40P01"].contains(error.sqlState) && attempt < 50
            {
                attempt += 1
                Sleep.milliseconds(min(10 * attempt, 200))
            }
        }
    }
}

/// How a build of a read model stands.
public struct GenerationStanding: Hashable, Sendable {
    /// The read model.
    public var readModel: String
    /// Its number among the builds.
    public var number: Int32
    /// `building`, `live` or `retired`.
    public var state: String
    /// The version of what made it.
    public var version: Int32
    /// How many events it was built from; what was projected live is not counted.
    public var events: Int64
    /// When it was begun.
    public var startedAt: Timestamp

    /// The builds whose rows are there, by read model.
    public static func all(
        _ connection: Connection
    ) throws(ReadModelError) -> [GenerationStanding] {
        try readModels("list the generations") {
            let rows = try connection.query(
                """
                select projection, generation, state, version, events, started_at
                from read_model.generation where state <> 'dropped'
                order by projection, generation
                """
            )
            return (0..<rows.count).map { row in
                GenerationStanding(
                    readModel: rows.text(row, 0) ?? "",
                    number: Int32(rows.int(row, 1) ?? 0),
                    state: rows.text(row, 2) ?? "",
                    version: Int32(rows.int(row, 3) ?? 0),
                    events: rows.int(row, 4) ?? 0,
                    startedAt: rows.timestamp(row, 5) ?? .earliest
                )
            }
        }
    }
}
