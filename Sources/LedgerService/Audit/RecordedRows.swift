internal import Crypto
public import EventLog
public import Ledger
public import Postgres
internal import Schema

/// Makes changes beside the log events of it: apps and their rules, policies, anchors and headers,
/// tokens, exchange rates, what was quarantined and what became of it, migrations, swaps.
///
/// Such a row never changes, and once an event has recorded it, the chain covers each of its
/// columns: `check` compares all rows with their events. Rows that are newer than the last
/// recording are counted, not covered; `serve` records every minute, and commands that change
/// something at once.
public struct RecordedRows {
    private let connection: Connection

    /// Works over a session that may read everything.
    public init(_ connection: Connection) { self.connection = connection }

    /// A table beside the log.
    private struct Table {
        var name: String
        var columns: [(name: String, type: String)]
        var keys: [String]

        func has(_ column: String) -> Bool { columns.contains { $0.name == column } }

        /// The row as canonical text; bytes as their SHA-256, instants in microseconds.
        func text(of names: [String]) -> String {
            let members = columns.filter { names.contains($0.name) }.map { column in
                let value = "t.\(Roles.quoted(column.name))"
                let text =
                    switch column.type {
                    case "bytea": "encode(sha256(\(value)), 'hex')"
                    case "timestamp with time zone":
                        "(extract(epoch from \(value)) * 1000000)::bigint::text"
                    default: "\(value)::text"
                    }
                return "'\(column.name)', \(text)"
            }
            return "jsonb_build_object(\(members.joined(separator: ", ")))::text"
        }

        var row: String { text(of: columns.map(\.name)) }
        var appID: String { has("app_id") ? "coalesce(t.app_id, $1::integer)" : "$1::integer" }
        var eventKey: String {
            "'row:\(name):' || encode(sha256(convert_to(\(text(of: keys)), 'UTF8')), 'hex')"
        }

        /// Who did it, by the column that says so.
        var author: String {
            let column = ["operator", "created_by", "revoked_by"].first { has($0) }
            return column.map { "t.\(Roles.quoted($0))" } ?? "null::text"
        }
        var ticket: String { has("ticket") ? "t.ticket" : "null::text" }
    }

    /// What kind of event records a row of a table.
    private static let kinds = [
        "access_policy": "policy_changed", "anchor": "anchor_added", "api_token": "token_created",
        "api_token_revocation": "token_revoked", "app": "app_added",
        "app_product": "app_product_changed", "app_rules": "app_rules_changed",
        "conflict": "conflict_kept", "epoch": "epoch_opened", "fx_rate": "fx_rate_added",
        "jws_header": "header_added",
        "quarantine": "document_quarantined", "quarantine_resolution": "quarantine_resolved",
        "schema": "schema_migrated",
    ]

    /// What the log itself and its own checks cover.
    private static let covered = [
        "event", "evidence", "batch", "extension_request", "extension_step",
    ]

    /// How many rows are recorded in one go.
    private static let pageCount = 500

    /// Records every row that no event has recorded yet.
    ///
    /// - Parameters:
    ///   - appender: writes the events.
    ///   - now: our clock.
    /// - Returns: how many were recorded; none as long as the log knows no app.
    /// - Throws: `EventLogError` or `PostgresError`.
    @discardableResult
    public func record(through appender: Appender, now: Timestamp) throws -> Int {
        let apps = try LogReader(connection).apps()
        guard let first = apps.keys.min() else { return 0 }
        var count = 0
        for table in try tables() {
            while true {
                let rows = try connection.query(
                    """
                    select \(table.row), \(table.eventKey), \(table.appID), \(table.author),
                        \(table.ticket)
                    from ledger.\(Roles.quoted(table.name)) t
                    left join ledger.app a on a.app_id = \(table.appID)
                    where not exists (
                        select from ledger.event e
                        where e.stream = \(Self.stream(table)) and e.app_id = \(table.appID)
                            and e.event_key = \(table.eventKey)
                    )
                    limit \(Self.pageCount)
                    """,
                    [.int(Int64(first))]
                )
                guard rows.count > 0 else { break }
                let events = (0..<rows.count).compactMap { row -> NewEvent? in
                    guard let app = apps[Int32(rows.int(row, 2) ?? 0)] else { return nil }
                    return Self.event(
                        app,
                        stream: table.has("app_id") ? "app:\(app.bundleID)" : Self.installation,
                        key: rows.text(row, 1) ?? "",
                        kind: Self.kinds[table.name] ?? "row_recorded",
                        evidence: Self.evidence(of: rows.text(row, 0) ?? "", in: table.name),
                        operator: rows.text(row, 3),
                        ticket: rows.text(row, 4)
                    )
                }
                guard !events.isEmpty else { break }
                for case .quarantined(let reason) in try appender.append(events) {
                    throw EventLogError(.invalid, "a row cannot be recorded: \(reason)")
                }
                count += events.count
                if rows.count < Self.pageCount { break }
            }
        }
        if let app = apps[first] { count += try recordSwaps(app, appender) }
        return count
    }

    /// Records that somebody took the audit out of the house.
    public static func recordExport(
        of what: String,
        filter: String,
        by actor: ExtensionActor,
        now: Timestamp,
        _ connection: Connection,
        through appender: Appender
    ) throws {
        let apps = try LogReader(connection).apps()
        guard let app = apps.min(by: { $0.key < $1.key })?.value else { return }
        var json = JSONWriter()
        json.beginObject()
        json.member("at", now)
        json.member("channel", actor.channel.rawValue)
        json.member("client_ip", actor.clientAddress)
        json.member("export", what)
        json.member("filter", filter)
        json.member("operator_authenticated", actor.authenticated)
        json.member("operator_claimed", actor.claimed)
        json.endObject()
        let event = event(
            app,
            stream: installation,
            key: "export:\(UniqueID.random())",
            kind: "audit_exported",
            evidence: json.text,
            operator: actor.authenticated,
            ticket: nil
        )
        _ = try appender.append([event])
    }

    // MARK: - The check

    /// Compares every row with the event that recorded it, and every such event with its row.
    func check(_ report: inout LedgerAudit.Report) throws {
        let apps = try LogReader(connection).apps()
        guard let first = apps.keys.min() else { return }
        for table in try tables() {
            let rows = try connection.query(
                """
                select \(table.row), \(table.eventKey), e.position,
                    ledger.utf8_or_null(v.payloads[1]), \(table.text(of: table.keys))
                from ledger.\(Roles.quoted(table.name)) t
                left join ledger.app a on a.app_id = \(table.appID)
                left join ledger.event e
                    on e.stream = \(Self.stream(table)) and e.app_id = \(table.appID)
                    and e.event_key = \(table.eventKey)
                left join ledger.evidence v
                    on v.stream = e.stream and v.app_id = e.app_id and v.position = e.position
                order by e.position
                """,
                [.int(Int64(first))]
            )
            var seen: Set<String> = []
            for row in 0..<rows.count {
                guard let position = rows.int(row, 2) else {
                    report.unrecordedRows += 1
                    continue
                }
                seen.insert(rows.text(row, 1) ?? "")
                report.rows += 1
                let wanted = Self.evidence(of: rows.text(row, 0) ?? "", in: table.name)
                guard rows.text(row, 3) == wanted else {
                    report.difference = LogAudit.Difference(
                        position: position,
                        description: "the row \(rows.text(row, 4) ?? "") of ledger.\(table.name) "
                            + "is not as event \(position) recorded it"
                    )
                    return
                }
            }
            if let lost = try missing(table, among: seen) {
                report.difference = lost
                return
            }
        }
    }

    /// An event whose row is no longer there.
    private func missing(_ table: Table, among seen: Set<String>) throws -> LogAudit.Difference? {
        let events = try connection.query(
            """
            select event_key, position from ledger.event
            where kind = $1 and stream like 'app:%' and event_key like $2
            order by position
            """,
            [
                .text(Self.kinds[table.name] ?? "row_recorded"),
                .text("row:\(table.name.replacing("_", with: "\\_")):%"),
            ]
        )
        for row in 0..<events.count where !seen.contains(events.text(row, 0) ?? "") {
            let position = events.int(row, 1) ?? 0
            return LogAudit.Difference(
                position: position,
                description: "a row of ledger.\(table.name) that event \(position) recorded is "
                    + "gone or has another key"
            )
        }
        return nil
    }

    // MARK: - Parts

    private static let installation = "app:installation"

    private static func stream(_ table: Table) -> String {
        table.has("app_id") ? "'app:' || a.bundle_id" : "'\(installation)'"
    }

    private static func evidence(of row: String, in table: String) -> String {
        "{\"row\":\(row),\"table\":\"\(table)\"}"
    }

    private static func event(
        _ app: AppKey,
        stream: String,
        key: String,
        kind: String,
        evidence: String,
        operator: String?,
        ticket: String?
    ) -> NewEvent {
        let bytes = Array(evidence.utf8)
        return NewEvent(
            app: app,
            stream: stream,
            eventKey: key,
            kind: EventKind(kind),
            provenance: .operator,
            received: bytes,
            form: .raw,
            contentDigest: SHA256.digest(bytes),
            operator: `operator`,
            ticket: ticket
        )
    }

    /// The immutable tables beside the log, from the catalogue.
    private func tables() throws(PostgresError) -> [Table] {
        let rows = try connection.query(
            """
            select c.relname::text, a.attname::text, format_type(a.atttypid, null),
                a.attnum = any (k.conkey)
            from pg_class c
            join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            join pg_constraint k on k.conrelid = c.oid and k.contype = 'p'
            where c.relnamespace = 'ledger'::regnamespace and c.relkind = 'r'
                and not c.relispartition and not c.relname = any ($1)
                and exists (
                    select from pg_trigger t where t.tgrelid = c.oid and t.tgname = 'refuse_row'
                )
            order by c.relname, a.attname collate "C"
            """,
            [.textArray(Self.covered)]
        )
        var tables: [Table] = []
        for row in 0..<rows.count {
            let name = rows.text(row, 0) ?? ""
            if tables.last?.name != name {
                tables.append(Table(name: name, columns: [], keys: []))
            }
            let column = rows.text(row, 1) ?? ""
            tables[tables.count - 1].columns.append((column, rows.text(row, 2) ?? ""))
            if rows.bool(row, 3) == true { tables[tables.count - 1].keys.append(column) }
        }
        return tables
    }

    /// Records which generation of a read model was swapped in when.
    private func recordSwaps(_ app: AppKey, _ appender: Appender) throws -> Int {
        let rows = try connection.query(
            """
            select 'swap:' || g.projection || ':' || g.generation,
                jsonb_build_object('projection', g.projection, 'generation', g.generation,
                    'version', g.version, 'decoder', g.decoder,
                    'known_to_position', g.known_to_position,
                    'finished_at', (extract(epoch from g.finished_at) * 1000000)::bigint)::text
            from read_model.generation g
            where g.state in ('live', 'retired', 'dropped') and g.finished_at is not null
                and not exists (
                    select from ledger.event e
                    where e.stream = $1 and e.event_key = 'swap:' || g.projection || ':'
                        || g.generation
                )
            order by g.finished_at
            """,
            [.text(Self.installation)]
        )
        let events = (0..<rows.count).map { row in
            Self.event(
                app,
                stream: Self.installation,
                key: rows.text(row, 0) ?? "",
                kind: "read_model_swapped",
                evidence: rows.text(row, 1) ?? "{}",
                operator: nil,
                ticket: nil
            )
        }
        if !events.isEmpty { _ = try appender.append(events) }
        return events.count
    }
}
