public import Ledger
internal import Postgres

/// Who came, stayed and left, and what it was worth: the moments of each subscription's life.
///
/// One row for each moment, also for those that the timeline only predicts; every view ignores
/// what takes effect after its `as_of`. Only purchases of the subscriber's own count: shared and
/// assigned subscriptions are nobody's revenue.
public struct Churn: Projection {
    /// `churn`.
    public static let name = "churn"
    /// The version of the rows.
    public static let version: Int32 = 4
    /// `lifecycle_moment`.
    public static let tables = [moment]

    /// Makes the projection.
    public init() {}

    /// Adds one subscription's rows; none where it is nobody's revenue.
    public func write(_ history: History, of subject: Subject, into rows: inout ProjectedRows) {
        var last: Timestamp?
        var sequence: Int32 = 0
        for moment in MomentBuilder.moments(of: history, subject.rules) {
            sequence = moment.at == last ? sequence + 1 : 0
            last = moment.at
            rows.row(0) { Self.write(moment, sequence, of: subject, into: &$0) }
        }
    }

    static let moment = Table(
        name: "lifecycle_moment",
        columns: [
            "app_id", "stream", "effective_at", "sequence", "kind", "cause", "active_delta",
            "product_id", "plan_period", "currency", "storefront", "offer", "price_milliunits",
            "quantity", "mrr_milliunits", "mrr_delta", "mrr_movement", "amount_milliunits",
            "confidence", "spell", "paid_periods", "tenure_days", "active_since", "held_since",
            "related_at", "price_influenced", "extended", "charged_at", "paid_ordinals",
            "positions", "standard_mrr_milliunits", "standard_mrr_delta", "risk_delta",
            "paid_amounts", "succeeds",
        ],
        instantKey: "effective_at",
        sequenceKey: "sequence"
    )

    private static func write(
        _ moment: Moment,
        _ sequence: Int32,
        of subject: Subject,
        into row: inout RowBuffer
    ) {
        let isMoney = moment.amount != nil || moment.chargedAt != nil
        row.int32(subject.appID)
        row.text(subject.stream)
        row.instant(moment.at)
        row.int32(sequence)
        row.text(moment.kind.rawValue)
        row.text(moment.cause)
        row.int32(moment.delta)
        row.text(moment.holding?.productID)
        row.text(moment.holding?.plan.rawValue)
        row.text(moment.holding?.currency)
        row.text(moment.holding?.storefront)
        row.text(moment.holding?.offer.rawValue)
        row.int64(moment.holding?.price)
        row.int64(moment.holding?.quantity)
        row.int64(isMoney ? nil : moment.holding?.monthly)
        row.int64(moment.monthlyDelta)
        row.text(moment.movement?.rawValue)
        row.int64(moment.amount)
        row.text(moment.confidence.rawValue)
        row.int32(moment.spell)
        row.int32(moment.paidPeriods)
        row.int32(moment.tenureDays)
        row.instant(moment.activeSince)
        row.instant(moment.heldSince)
        row.instant(moment.relatedAt)
        row.bool(moment.isPriceInfluenced)
        row.bool(moment.isExtended)
        row.instantArray(milliseconds: moment.chargedAt?.map(\.milliseconds))
        if let ordinals = moment.paidOrdinals { row.int32Array(ordinals) } else { row.null() }
        row.int64Array(moment.positions)
        row.int64(isMoney ? nil : moment.holding?.standardMonthly)
        row.int64(moment.standardDelta)
        row.int32(moment.riskDelta)
        if let amounts = moment.paidAmounts { row.int64Array(amounts) } else { row.null() }
        row.text(moment.succeeds?.description)
    }
}
