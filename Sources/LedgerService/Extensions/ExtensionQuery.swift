internal import Crypto
public import Ledger
public import Postgres

/// Asks the audit of extensions.
public struct ExtensionQuery: Hashable, Sendable {
    /// Where a page begins: after this row.
    public struct Place: Hashable, Sendable {
        var at: Timestamp
        var stream: String
        var appID: Int32
        var sequence: Int32

        /// The place as the pages of a list hand it out.
        ///
        /// - Parameter list: which list it is, `Parameters.list`: in another one the place would pass
        ///   rows over.
        /// - Returns: the place, of which nobody else needs to know what it consists of.
        func text(of list: String) -> String {
            let text = "x2 \(list) \(at.milliseconds) \(appID) \(sequence) \(stream)"
            return Base64URL.encode(Array(text.utf8))
        }

        init(at: Timestamp, stream: String, appID: Int32, sequence: Int32) {
            self.at = at
            self.stream = stream
            self.appID = appID
            self.sequence = sequence
        }

        /// Reads a place; nil for what no page of this list has handed out.
        init?(_ text: String, of list: String) {
            guard let bytes = Base64URL.decode(text),
                let plain = String(validating: bytes, as: UTF8.self)
            else { return nil }
            let words = plain.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: false)
            guard words.count == 6, words[0] == "x2", words[1] == list,
                let milliseconds = Int64(words[2]), let appID = Int32(words[3]),
                let sequence = Int32(words[4]), !words[5].isEmpty, words[5].utf8.count <= 255,
                !words[5].utf8.contains(0)
            else { return nil }
            at = Timestamp(milliseconds: milliseconds)
            guard at.isStorable else { return nil }
            self.appID = appID
            self.sequence = sequence
            stream = String(words[5])
        }
    }

    /// Only what this one asked for, by any of the names that are known of them.
    public var operatorName: String?
    /// Only on this ticket.
    public var ticket: String?
    /// Only for this reason of Apple's.
    public var reason: ExtensionReason?
    /// Only from this instant on.
    public var since: Timestamp?
    /// Only before this instant.
    public var until: Timestamp?
    /// Only with this outcome.
    public var outcome: ExtensionRecord.Outcome?
    /// Only of this subscription.
    public var subscription: String?
    /// Only of this environment; nil for all.
    public var environment: Environment?

    /// Asks for everything.
    public init() {}

    /// The rows in the order of their instants.
    ///
    /// - Parameters:
    ///   - place: the last row of the page before; nil from the beginning.
    ///   - limit: at most so many.
    ///   - connection: a session that may read the audit.
    /// - Returns: the rows.
    /// - Throws: `ReadModelError`.
    public func rows(
        after place: Place? = nil,
        limit: Int,
        _ connection: Connection
    ) throws(ReadModelError) -> [ExtensionAuditRow] {
        try readModels("read the audit of extensions") {
            var (conditions, binds) = conditions
            if let place {
                let first = binds.count + 1
                binds += [
                    .instant(milliseconds: place.at.milliseconds), .text(place.stream),
                    .int(Int64(place.appID)), .int(Int64(place.sequence)),
                ]
                conditions.append(
                    "(x.at, x.original_transaction_id, x.app_id, x.sequence) > "
                        + "($\(first), $\(first + 1), $\(first + 2)::integer, "
                        + "$\(first + 3)::integer)"
                )
            }
            let names = ExtensionAuditRow.columns.map { column in
                column.type == .number ? "x.\(column.name)::text" : "x.\(column.name)"
            }
            let rows = try connection.query(
                """
                select \(names.joined(separator: ", ")), x.sequence, x.app_id
                from read_model.extension_audit x
                where \((["true"] + conditions).joined(separator: " and "))
                order by x.at, x.original_transaction_id, x.app_id, x.sequence
                limit \(limit)
                """,
                binds
            )
            return (0..<rows.count).map { ExtensionAuditRow(rows, $0) }
        }
    }

    private var conditions: ([String], [Bind]) {
        var conditions: [String] = []
        var binds: [Bind] = []
        func add(_ bind: Bind, _ condition: (String) -> String) {
            binds.append(bind)
            conditions.append(condition("$\(binds.count)"))
        }
        if let operatorName {
            add(.text(operatorName)) {
                "\($0) in (x.operator_authenticated, x.operator_claimed, x.on_behalf_of, "
                    + "substr(x.operator_authenticated, strpos(x.operator_authenticated, ':') + 1))"
            }
        }
        if let ticket { add(.text(ticket)) { "x.ticket_id = \($0)" } }
        if let reason { add(.text(reason.name)) { "x.apple_reason = \($0)" } }
        if let since { add(.instant(milliseconds: since.milliseconds)) { "x.at >= \($0)" } }
        if let until { add(.instant(milliseconds: until.milliseconds)) { "x.at < \($0)" } }
        if let outcome { add(.text(outcome.rawValue)) { "x.outcome = \($0)" } }
        if let subscription {
            add(.text(subscription)) { "x.original_transaction_id = \($0)" }
        }
        if let environment { add(.text(environment.description)) { "x.environment = \($0)" } }
        return (conditions, binds)
    }
}

/// One row of the audit, column by column.
public struct ExtensionAuditRow: Hashable, Sendable {
    enum ColumnType {
        case text, int, bool, instant, uuid, number, positions
    }

    struct Column {
        var name: String
        var type: ColumnType
    }

    enum Cell: Hashable {
        case text(String)
        case int(Int64)
        case bool(Bool)
        case instant(Timestamp)
        case number(String)
        case positions([Int64])
    }

    private(set) var cells: [Cell?]
    let place: ExtensionQuery.Place

    /// Where the row stands, for the page after it.
    public var position: ExtensionQuery.Place { place }

    /// The names of the columns, in order.
    public static let names = columns.map(\.name)

    static let columns: [Column] = {
        let types: [(ColumnType, String)] = [
            (.text, "original_transaction_id environment bundle_id outcome scope requested_by"),
            (.text, "operator_authenticated operator_claimed requester_role authn_method"),
            (.text, "on_behalf_of approved_by approver_role rejected_by service_identity"),
            (.text, "apple_key_id client_ip session_id os_user host database_role channel"),
            (.instant, "requested_at approved_at rejected_at submitted_at acked_at confirmed_at"),
            (.instant, "apple_signed_at apple_effective_at"),
            (.text, "clock_source"),
            (.int, "apple_reason_code"),
            (.text, "apple_reason internal_reason justification ticket_system ticket_id"),
            (.text, "ticket_url incident_id"),
            (.int, "policy_version"),
            (.text, "chain_id transaction_id web_order_line_item_id product_id"),
            (.uuid, "owner"),
            (.text, "ownership storefront"),
            (.uuid, "mass_request_id"),
            (.int, "days_requested"),
            (.instant, "expires_before"),
            (.int, "expires_before_position"),
            (.text, "state_before"),
            (.instant, "expires_acked expires_confirmed"),
            (.int, "expires_confirmed_position"),
            (.number, "days_effective"),
            (.text, "state_after"),
            (.int, "extensions_365d_before_chain extensions_365d_before_owner"),
            (.int, "budget_rule_version"),
            (.text, "override_by"),
            (.instant, "counts_from"),
            (.uuid, "request_identifier"),
            (.int, "http_status apple_error_code"),
            (.text, "apple_error_message transport_failure raw_body_hash"),
            (.int, "raw_body_position attempt latency_ms"),
            (.text, "status"),
            (.bool, "contradiction"),
            (.text, "resolution resolved_by refusal_rule ineligible_rule approval_rule"),
            (.bool, "fresh_status attempt_ineligible"),
            (.text, "notification_uuid"),
            (.int, "requested_position approved_position submitted_position answered_position"),
            (.int, "confirmed_position"),
            (.positions, "evidence_positions"),
            (.bool, "is_open"),
            (.instant, "at"),
            (.int, "known_to_position refused_approvals"),
            (.text, "refused_approver"),
            (.instant, "refused_approval_at"),
            (.uuid, "retried_by_request retry_of_mass_request"),
        ]
        return types.flatMap { type, names in
            names.split(separator: " ").map { Column(name: String($0), type: type) }
        }
    }()

    init(_ rows: Rows, _ row: Int) {
        cells = Self.columns.enumerated().map { place, column in
            switch column.type {
            case .text: rows.text(row, place).map { .text($0) }
            case .int: rows.int(row, place).map { .int($0) }
            case .bool: rows.bool(row, place).map { .bool($0) }
            case .instant: rows.timestamp(row, place).map { .instant($0) }
            case .uuid: rows.uuid(row, place).map { .text(UniqueID(bits: $0).description) }
            case .number: rows.text(row, place).map { .number($0) }
            case .positions: rows.intArray(row, place).map { .positions($0) }
            }
        }
        let count = Self.columns.count
        let at = Self.columns.firstIndex { $0.name == "at" } ?? 0
        place = ExtensionQuery.Place(
            at: rows.timestamp(row, at) ?? .earliest,
            stream: rows.text(row, 0) ?? "",
            appID: Int32(rows.int(row, count + 1) ?? 0),
            sequence: Int32(rows.int(row, count) ?? 0)
        )
    }

    /// A column as text; nil where it is null.
    public subscript(name: String) -> String? {
        Self.columns.firstIndex { $0.name == name }.flatMap { fields[$0] }
    }

    /// The fields as a table in a file has them.
    public var fields: [String?] {
        cells.map { cell in
            switch cell {
            case nil: nil
            case .text(let text)?, .number(let text)?: text
            case .int(let number)?: "\(number)"
            case .bool(let bool)?: "\(bool)"
            case .instant(let instant)?: instant.description
            case .positions(let positions)?:
                positions.map { "\($0)" }.joined(separator: " ")
            }
        }
    }

    /// Writes the row as an object, a member for each column.
    public func write(to json: inout JSONWriter) {
        json.beginObject()
        for (column, cell) in zip(Self.columns, cells) {
            json.key(column.name)
            switch cell {
            case nil: json.null()
            case .text(let text)?: json.string(text)
            case .number(let text)?: json.raw(text.utf8)
            case .int(let number)?: json.int(number)
            case .bool(let bool)?: json.bool(bool)
            case .instant(let instant)?: json.string(instant.description)
            case .positions(let positions)?:
                json.beginArray()
                for position in positions { json.int(position) }
                json.endArray()
            }
        }
        json.endObject()
    }
}

extension ExtensionResult {
    /// Writes it as commands and answers show it.
    public func write(to json: inout JSONWriter) {
        json.beginObject()
        json.member("request_identifier", isDryRun ? nil : request.description)
        json.member("original_transaction_id", subscription)
        json.member("environment", environment.description)
        json.member("outcome", outcome.rawValue)
        json.member("dry_run", isDryRun)
        json.member("repeated", isRepeated)
        json.member("refusal_rule", rule)
        json.member("approval_rule", approvalRule)
        json.member("days", Int64(days))
        json.member("ticket", ticket)
        json.member("expires_before", expiresBefore)
        json.member("expires_acked", expiresAcked)
        json.member("expires_confirmed", expiresConfirmed)
        json.member("http_status", httpStatus.map { Int64($0) })
        json.member("apple_error_code", appleErrorCode)
        json.member("apple_error_name", appleErrorName)
        json.member("apple_error_message", appleErrorMessage)
        json.member("detail", detail)
        json.member(
            "resolution",
            resolution.map { $0 == .extended ? "extended" : "not_extended" }
        )
        json.member("attempts", Int64(attempts))
        json.member("extensions_365d_chain", Int64(usedByChain))
        json.member("extensions_365d_owner", Int64(usedByOwner))
        json.endObject()
    }
}
