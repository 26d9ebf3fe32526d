public import Ledger
internal import Postgres

/// Whose payment failed, since when, until when, what is at stake and how it ended.
///
/// `billing_episode` has one row for each period that failed to renew. What has no end by any
/// event is `open`: whether the time for it is over is for the views to say, which know the
/// instant that they are asked about.
public struct BillingRecovery: Projection {
    /// `billing_recovery`.
    public static let name = "billing_recovery"
    /// The version of the rows.
    public static let version: Int32 = 2
    /// `billing_episode`.
    public static let tables = [episode]

    /// Makes the projection.
    public init() {}

    /// Adds one row for each failed charge; most subscriptions have none.
    public func write(_ history: History, of subject: Subject, into rows: inout ProjectedRows) {
        guard !history.failures.isEmpty else { return }
        // Two periods never share an announcement, so no two failures open at one instant unless
        // Apple signs two announcements in one millisecond; then the later period's is kept.
        var latest: [Timestamp: Int] = [:]
        for (place, failure) in history.failures.enumerated() { latest[failure.openedAt] = place }
        for (place, failure) in history.failures.enumerated()
        where latest[failure.openedAt] == place {
            rows.row(0) { Self.write(failure, history, of: subject, into: &$0) }
        }
    }
}

extension BillingRecovery {
    static let episode = Table(
        name: "billing_episode",
        columns: [
            "app_id", "stream", "opened_at", "product_id", "transaction_id", "ownership",
            "was_trial_conversion", "expires_date", "grace_from", "grace_until", "grace_source",
            "grace_exhausted_at", "retry_deadline", "outcome", "closed_at", "unpaid_access_ms",
            "amount_at_risk", "currency", "expiration_intent", "opening_position",
            "closing_position", "positions", "known_to_position",
        ],
        instantKey: "opened_at"
    )

    private static func write(
        _ failure: BillingFailure,
        _ history: History,
        of subject: Subject,
        into row: inout RowBuffer
    ) {
        row.int32(subject.appID)
        row.text(subject.stream)
        row.instant(failure.openedAt)
        row.text(failure.productID)
        row.text(failure.transactionID.description)
        row.text(failure.ownership.description)
        row.bool(failure.isTrialConversion)
        row.instant(failure.expiresDate)
        row.instant(failure.grace == nil ? nil : failure.expiresDate)
        row.instant(failure.grace?.until)
        row.text(failure.grace.map { $0.isEstimated ? "estimated" : "apple" })
        row.instant(failure.graceExhaustedAt)
        row.instant(failure.retryDeadline)
        row.text(failure.ending?.outcome.rawValue ?? "open")
        row.instant(failure.ending?.at)
        row.int64(unpaidAccess(during: failure, history.timeline).rawValue)
        row.int64(failure.amount)
        row.text(failure.currency)
        row.int32(failure.expirationIntent)
        row.int64(failure.openedBy)
        row.int64(failure.ending.flatMap { $0.position == 0 ? nil : $0.position })
        row.int64Array(positions(of: failure))
        row.int64(history.knownToPosition)
    }

    /// How long our policy grants access that nobody paid for, from the end of the period until
    /// the end of the episode; for an open one until Apple gives up.
    static func unpaidAccess(
        during failure: BillingFailure,
        _ timeline: ArraySlice<Interval>
    ) -> Milliseconds {
        let end = failure.ending?.at ?? failure.retryDeadline
        var sum: Int64 = 0
        for place in timeline.firstPlace(endingAfter: failure.expiresDate)..<timeline.endIndex {
            let interval = timeline[place]
            if interval.from >= end { break }
            guard interval.entitled,
                interval.state == .gracePeriod || interval.state == .billingRetry
            else { continue }
            let from = max(interval.from, failure.expiresDate)
            sum += max(0, min(interval.until ?? end, end).milliseconds - from.milliseconds)
        }
        return Milliseconds(rawValue: sum)
    }

    private static func positions(of failure: BillingFailure) -> [Int64] {
        let all = [
            failure.openedBy, failure.repeatedBy, failure.grace?.position ?? 0,
            failure.renewalPosition, failure.ending?.position ?? 0,
        ]
        return Set(all).subtracting([0]).sorted()
    }
}

extension ArraySlice<Interval> {
    /// The place of the first interval that ends after an instant; they are in order.
    fileprivate func firstPlace(endingAfter instant: Timestamp) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if self[middle].until.map({ $0 > instant }) ?? true {
                high = middle
            } else {
                low = middle + 1
            }
        }
        return low
    }
}
