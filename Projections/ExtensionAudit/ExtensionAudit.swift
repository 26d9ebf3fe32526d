public import Ledger
internal import Postgres

/// Who had which subscription extended, when, why, and what became of it.
///
/// `extension_record` has one row for each request, refused ones too, and one for each extension
/// that nobody here asked for. It holds what the fold knows: events, codes and instants. Names,
/// tickets and Apple's words are columns beside the events; the views join them.
public struct ExtensionAudit: Projection {
    /// `extension_audit`.
    public static let name = "extension_audit"
    /// The version of the rows.
    public static let version: Int32 = 1
    /// `extension_record`.
    public static let tables = [record]

    /// Makes the projection.
    public init() {}

    /// Adds one row for each request and each extension seen; most subscriptions have none.
    public func write(_ history: History, of subject: Subject, into rows: inout ProjectedRows) {
        var last: Timestamp?
        var sequence: Int32 = 0
        for record in history.extensions {
            sequence = record.at == last ? sequence + 1 : 0
            last = record.at
            rows.row(0) { Self.write(record, sequence, history, of: subject, into: &$0) }
        }
    }

    static let record = Table(
        name: "extension_record",
        columns: [
            "app_id", "stream", "at", "sequence", "request_identifier", "scope", "outcome",
            "days_requested", "attempts", "resolution", "counts_from", "is_open",
            "requested_position", "refused_position", "refused_at", "approved_position",
            "approved_at", "rejected_position", "rejected_at", "submitted_position",
            "submitted_at", "answered_position", "answered_at", "resolved_position",
            "resolved_at", "confirmed_position", "confirmed_at", "expires_before",
            "expires_before_position", "expires_acked", "expires_confirmed", "gained_ms",
            "state_before", "state_after", "owner", "transaction_id", "web_order_line_item_id",
            "product_id", "storefront", "ownership", "positions", "known_to_position",
        ],
        instantKey: "at",
        sequenceKey: "sequence"
    )

    private static func write(
        _ record: ExtensionRecord,
        _ sequence: Int32,
        _ history: History,
        of subject: Subject,
        into row: inout RowBuffer
    ) {
        row.int32(subject.appID)
        row.text(subject.stream)
        row.instant(record.at)
        row.int32(sequence)
        row.uuid(record.request?.bits)
        row.text(record.isMass ? "mass" : "single")
        row.text(record.outcome.rawValue)
        row.int32(record.daysRequested)
        row.int32(record.attempts)
        row.text(record.resolution.map { $0 == .extended ? "extended" : "not_extended" })
        row.instant(record.isMass ? nil : record.countsFrom)
        row.bool(record.isOpen)
        row.int64(record.requested?.position)
        for step in [
            record.refused, record.approved, record.rejected, record.submitted, record.answered,
            record.resolved, record.confirmed,
        ] {
            row.int64(step?.position)
            row.instant(step?.at)
        }
        row.instant(record.expiresBefore)
        row.int64(record.expiresBeforePosition == 0 ? nil : record.expiresBeforePosition)
        row.instant(record.expiresAcked)
        row.instant(record.expiresConfirmed)
        row.int64(record.gained?.rawValue)
        row.text(record.stateBefore?.name)
        row.text(record.stateAfter?.name)
        row.uuid(record.owner?.bits)
        row.text(record.transactionID?.description)
        row.text(record.webOrderLineItemID?.description)
        row.text(record.productID)
        row.text(record.storefront)
        row.text(record.ownership?.description)
        row.int64Array(record.positions)
        row.int64(history.knownToPosition)
    }
}
