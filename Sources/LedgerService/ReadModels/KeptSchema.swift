internal import EventLog
public import Ledger
public import Postgres
internal import Projections
internal import Schema

/// A schema of its own with the read models as they were known at an instant or a position.
///
/// It has the tables, views and functions of `read_model` under the same names, so that every
/// question about them is asked there in the same words. What they look up in the log ends at the
/// same position. Nothing keeps it up; it is dropped by name.
public struct KeptSchema: Hashable, Sendable {
    /// The schema's name.
    public var name: String
    /// When the last position was recorded, or the instant that was asked for; nil before everything.
    public var knownAt: Timestamp?
    /// The last position that is in it.
    public var knownToPosition: Int64
    /// How many events were folded.
    public var events: Int64
    /// How many streams they belong to.
    public var subscriptions: Int64
    /// When it was begun.
    public var startedAt: Timestamp
    /// When it was whole; nil where that never was.
    public var finishedAt: Timestamp?

    /// The schemas that there are, by name.
    public static func all(_ connection: Connection) throws(ReadModelError) -> [KeptSchema] {
        try readModels("list the schemas of what was known") {
            let rows = try connection.query(
                """
                select name, known_at, known_to_position, events, subscriptions, started_at,
                    finished_at
                from read_model.kept order by name
                """
            )
            return (0..<rows.count).map { row in
                KeptSchema(
                    name: rows.text(row, 0) ?? "",
                    knownAt: rows.timestamp(row, 1),
                    knownToPosition: rows.int(row, 2) ?? 0,
                    events: rows.int(row, 3) ?? 0,
                    subscriptions: rows.int(row, 4) ?? 0,
                    startedAt: rows.timestamp(row, 5) ?? .earliest,
                    finishedAt: rows.timestamp(row, 6)
                )
            }
        }
    }

    /// Drops a schema that `rebuild --into` made.
    ///
    /// - Returns: whether there was one of that name.
    /// - Throws: `.rebuildRuns` while it is being made, `.unavailable` while somebody reads it.
    public static func drop(
        _ name: String,
        _ connect: () throws -> Connection
    ) throws(ReadModelError) -> Bool {
        try readModels("drop \(name)") {
            let connection = try connect()
            let lock = try RebuildLock([RebuildLock.into(name)], connect())
            defer { lock.release() }
            return try remove(name, connection)
        }
    }

    /// Drops the schema and its row; the rebuild lock of the name must be held.
    static func remove(_ name: String, _ connection: Connection) throws -> Bool {
        try connection.transaction { connection in
            let rows = try connection.query(
                "delete from read_model.kept where name = $1 returning name",
                [.text(name)]
            )
            guard rows.count == 1 else { return false }
            try connection.execute(
                """
                set local lock_timeout = '2s';
                drop schema if exists \(Roles.quoted(name)) cascade
                """
            )
            return true
        }
    }

    // MARK: - Making one

    /// Whether a schema may have a name; what is quoted nowhere is easiest to ask.
    static func isUsable(_ name: String) -> Bool {
        let letters = "abcdefghijklmnopqrstuvwxyz"
        guard let first = name.first, letters.contains(first), name.utf8.count <= 40 else {
            return false
        }
        let taken = ["ledger", "read_model", "public", "information_schema"]
        return name.allSatisfy { (letters + "0123456789_").contains($0) }
            && !taken.contains(name) && !name.hasPrefix("pg_")
    }

    /// Makes the schema with empty tables and all views.
    static func make(_ name: String, _ prefix: LogPrefix, _ connection: Connection) throws {
        let roles = try roles(connection)
        let schema = Roles.quoted(name)
        try connection.transaction { connection in
            try connection.query(
                """
                insert into read_model.kept
                    (name, known_at, known_to_position, rules_recorded_by, decoder)
                values ($1, $2, $3, $4, $5)
                """,
                [
                    .text(name), .instant(prefix.knownAt), .int(prefix.position),
                    .instant(prefix.rulesRecordedBy), .int(Int64(FactSource.current.version)),
                ]
            )
            do {
                try connection.execute(
                    "create schema \(schema) authorization \(Roles.quoted(roles.projector))"
                )
            } catch let error as PostgresError where error.sqlState == "42501" {
                throw ReadModelError(
                    .unavailable,
                    "the projector may not make schemas; a DBA may: grant create on database … to "
                        + Roles.quoted(roles.projector),
                    sqlState: error.sqlState
                )
            }
            try connection.execute(roles.applied(to: frame(schema, prefix)))
            for definition in Catalogue.definitions {
                try connection.execute(roles.applied(to: moved(definition.sql, to: schema)))
            }
        }
    }

    /// The roles of this installation, by who owns the read models.
    private static func roles(_ connection: Connection) throws -> Roles {
        let rows = try connection.query(
            """
            select pg_get_userbyid(nspowner)::text from pg_namespace
            where nspname = 'read_model'
            """
        )
        let owner = rows.text(0, 0) ?? ""
        let suffix = "_projector"
        guard owner.hasSuffix(suffix) else { return try Migrator.defaultRoles(connection) }
        return Roles(prefix: String(owner.dropLast(suffix.count)))
    }

    /// What stands in for the parts of the log that views look up, cut off where it ends.
    private static func frame(_ schema: String, _ prefix: LogPrefix) -> String {
        let rules = (prefix.rulesRecordedBy ?? .latest).description
        let parts = ["event", "evidence", "extension_request", "extension_step"].map { table in
            "create view \(schema).log_\(table) as select * from ledger.\(table)"
                + " where position <= \(prefix.position);"
        }
        return """
            set local role :"projector";
            grant usage on schema \(schema) to :"reader", :"auditor";
            create table \(schema).generation (like read_model.generation including all);
            create table \(schema).current (like read_model.current including all);
            \(parts.joined(separator: "\n"))
            create view \(schema).log_head as
            select bigint '\(prefix.position)' as position;
            create view \(schema).log_mark as select * from ledger.mark where false;
            create view \(schema).log_fx_rate as select * from ledger.fx_rate
            where date_trunc('milliseconds', recorded_at) <= timestamptz '\(rules)';
            create function \(schema).log_fx_rate_at(
                from_currency text, to_currency text, day date
            ) returns numeric language plpgsql stable parallel safe as $$
            declare
                found_rate numeric;
            begin
                if log_fx_rate_at.from_currency = log_fx_rate_at.to_currency then
                    return 1;
                end if;
                select r.rate into found_rate
                from \(schema).log_fx_rate r
                where r.from_currency = log_fx_rate_at.from_currency
                    and r.to_currency = log_fx_rate_at.to_currency
                    and r.rate_date <= log_fx_rate_at.day
                    and r.rate_date > log_fx_rate_at.day - 31
                order by r.rate_date desc, r.version desc
                limit 1;
                if found_rate is null then
                    raise exception 'no exchange rate from % to % of % or the 30 days before',
                        coalesce(log_fx_rate_at.from_currency, 'an unknown currency'),
                        log_fx_rate_at.to_currency, log_fx_rate_at.day
                        using errcode = 'no_data_found', hint = 'subledger fx import FILE';
                end if;
                return found_rate;
            end
            $$;
            grant select on all tables in schema \(schema) to :"auditor";
            grant select on \(schema).generation, \(schema).current, \(schema).log_head,
                \(schema).log_mark, \(schema).log_fx_rate to :"reader";
            alter default privileges in schema \(schema)
                grant select on tables to :"reader", :"auditor";
            """
    }

    /// The tables of the log of which the schema has views of its own.
    private static let replaced = [
        "event", "evidence", "extension_request", "extension_step", "head", "mark", "fx_rate_at",
        "fx_rate",
    ]

    /// A read model's SQL with the schema's name in place of `read_model`, and its views of the log
    /// in place of the log.
    static func moved(_ sql: String, to schema: String) -> String {
        var result = ""
        var rest = sql[...]
        while let dot = rest.firstIndex(of: ".") {
            let before = rest[..<dot]
            let word = before.reversed().prefix { $0.isLetter || $0.isNumber || $0 == "_" }.count
            let name = before.suffix(word)
            let after = rest[rest.index(after: dot)...]
            let table = after.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
            if name == "read_model" {
                result += before.dropLast(word) + schema + "."
            } else if name == "ledger", replaced.contains(String(table)) {
                result += before.dropLast(word) + schema + ".log_"
            } else {
                result += before + "."
            }
            rest = after
        }
        return result + rest
    }
}

extension Bind {
    /// An instant or null.
    fileprivate static func instant(_ value: Timestamp?) -> Bind {
        value.map { .instant(milliseconds: $0.milliseconds) } ?? .null
    }
}
