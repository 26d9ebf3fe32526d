public import Ledger
public import Postgres

extension ExtensionNote {
    /// A column of one of the two tables, or a member that only the evidence has.
    struct Column {
        var name: String
        var type: ColumnType

        init(_ name: String, _ type: ColumnType) {
            self.name = name
            self.type = type
        }
    }

    enum ColumnType {
        case text, int, bool, instant, uuid
    }

    private static let operatorColumns = [
        "operator_authenticated", "operator_claimed", "on_behalf_of", "requester_role",
        "authn_method", "channel", "client_ip", "session_id", "os_user", "host", "database_role",
    ].map { Column($0, .text) }

    private static let requestColumns: [Column] =
        operatorColumns
        + [
            "ticket", "justification", "internal_reason", "ticket_system", "ticket_url",
            "incident_id", "service_identity", "idempotency_key", "state_before",
            "transaction_id", "web_order_line_item_id", "product_id", "storefronts", "ownership",
            "ineligible_rule", "approval_rule", "binding",
        ].map { Column($0, .text) }
        + [
            "days", "reason_code", "expires_before_position", "extensions_before_chain",
            "extensions_before_owner", "budget_rule_version", "policy_version",
        ].map { Column($0, .int) }
        + ["fresh_status", "attempt_ineligible", "again"].map { Column($0, .bool) }
        + [Column("expires_before", .instant), Column("owner", .uuid)]

    private static let stepColumns: [Column] =
        operatorColumns
        + [
            "requested_by", "binding", "rule", "note", "apple_key_id", "apple_error_message",
            "failure", "body_digest", "web_order_line_item_id", "resolution",
        ].map { Column($0, .text) }
        + [
            "attempt", "http_status", "apple_error_code", "latency_ms", "succeeded_count",
            "failed_count",
        ].map { Column($0, .int) }
        + ["success", "complete"].map { Column($0, .bool) }
        + ["effective_date", "expires_read", "complete_date"].map { Column($0, .instant) }

    /// Apple's body as it was received: as text, or in base64 where it is no text.
    static let evidenceOnly = [Column("body", .text), Column("body_base64", .text)]

    /// The columns of the table of requests or of steps, apart from the key.
    static func columns(isRequest: Bool) -> [Column] { isRequest ? requestColumns : stepColumns }

    private static let keyColumns = [
        "stream", "app_id", "position", "request_identifier", "kind", "at",
    ]

    private var table: String { isRequest ? "ledger.extension_request" : "ledger.extension_step" }

    /// Adds the row, in the transaction that adds the event.
    func insert(position: Int64, appID: Int32, _ connection: Connection) throws(PostgresError) {
        var names = Self.keyColumns
        var binds: [Bind] = [
            .text(stream), .int(Int64(appID)), .int(position), .uuid(request.bits),
            .text(kind.description), .instant(milliseconds: at.milliseconds),
        ]
        for column in Self.columns(isRequest: isRequest) {
            guard let value = fields[column.name] else { continue }
            names.append(column.name)
            switch value {
            case .text(let text): binds.append(.text(text))
            case .int(let number): binds.append(.int(number))
            case .bool(let bool): binds.append(.bool(bool))
            case .instant(let instant):
                binds.append(.instant(milliseconds: instant.milliseconds))
            case .uuid(let id): binds.append(.uuid(id.bits))
            }
        }
        let places = (1...names.count).map { "$\($0)" }
        try connection.query(
            "insert into \(table) (\(names.joined(separator: ", ")))"
                + " values (\(places.joined(separator: ", ")))",
            binds
        )
    }

    /// The rows of requests or of steps with their positions, those that a condition selects.
    ///
    /// - Parameters:
    ///   - isRequest: whether requests are wanted, or else steps.
    ///   - condition: the rest of the statement after `where`.
    ///   - binds: what it refers to.
    ///   - connection: a session that may read them.
    /// - Returns: the notes with the positions of their events.
    /// - Throws: `PostgresError`.
    public static func rows(
        isRequest: Bool,
        where condition: String,
        _ binds: [Bind],
        _ connection: Connection
    ) throws(PostgresError) -> [(position: Int64, note: ExtensionNote)] {
        let columns = Self.columns(isRequest: isRequest)
        let names = columns.map { "n.\($0.name)" }.joined(separator: ", ")
        let table = isRequest ? "ledger.extension_request" : "ledger.extension_step"
        let rows = try connection.query(
            """
            select n.position, n.kind, a.bundle_id, a.environment, n.stream,
                n.request_identifier, n.at, \(names)
            from \(table) n join ledger.app a on a.app_id = n.app_id where \(condition)
            """,
            binds
        )
        return (0..<rows.count).map { row in
            var note = ExtensionNote(
                EventKind(rows.text(row, 1) ?? ""),
                app: AppKey(
                    bundleID: rows.text(row, 2) ?? "",
                    environment: Environment(rows.text(row, 3) ?? "")
                ),
                stream: rows.text(row, 4) ?? "",
                request: UniqueID(bits: rows.uuid(row, 5) ?? 0),
                at: Timestamp(milliseconds: rows.instant(row, 6) ?? 0)
            )
            for (place, column) in columns.enumerated() where !rows.isNull(row, place + 7) {
                note[column.name] = value(rows, row, place + 7, column.type)
            }
            return (rows.int(row, 0) ?? 0, note)
        }
    }

    private static func value(
        _ rows: Rows,
        _ row: Int,
        _ column: Int,
        _ type: ColumnType
    ) -> Value? {
        switch type {
        case .text: rows.text(row, column).map { .text($0) }
        case .int: rows.int(row, column).map { .int($0) }
        case .bool: rows.bool(row, column).map { .bool($0) }
        case .instant: rows.instant(row, column).map { .instant(Timestamp(milliseconds: $0)) }
        case .uuid: rows.uuid(row, column).map { .uuid(UniqueID(bits: $0)) }
        }
    }

    /// The request of that identifier.
    public static func request(
        _ id: UniqueID,
        _ connection: Connection
    ) throws(PostgresError) -> (position: Int64, note: ExtensionNote)? {
        try rows(
            isRequest: true,
            where: "n.request_identifier = $1",
            [.uuid(id.bits)],
            connection
        ).first
    }
}
