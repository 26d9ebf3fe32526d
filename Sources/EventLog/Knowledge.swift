public import Ledger
internal import Postgres

/// Up to where the log is read when somebody asks what was known then.
public enum Knowledge: Hashable, Sendable {
    /// What had been recorded when the event at a position was the last one.
    case position(Int64)
    /// What had been recorded by an instant, that instant included.
    case instant(Timestamp)
}

/// A prefix of the log: what was known, and the rules that were known with it.
///
/// Knowledge is half-open like all else: `position` is what was known from when its event was
/// recorded until the next one was. All events of one append have one instant, so that an instant
/// never cuts an append in two; a position may.
public struct LogPrefix: Hashable, Sendable {
    /// The last position of the prefix; 0 is before everything.
    public var position: Int64
    /// The instant that was asked about, or when the event at the position was recorded; nil before
    /// everything.
    public var knownAt: Timestamp?
    /// Rules that were recorded later are not known; nil where everything is known.
    public var rulesRecordedBy: Timestamp?

    /// Names a prefix.
    public init(position: Int64, knownAt: Timestamp?, rulesRecordedBy: Timestamp?) {
        self.position = position
        self.knownAt = knownAt
        self.rulesRecordedBy = rulesRecordedBy
    }
}

extension LogReader {
    /// The prefix of the log that holds what was known.
    ///
    /// A position stands for the last moment at which it was the end of the log, so that the rules
    /// are those that were recorded before the next event was. Of an instant that is still to come
    /// it is what is known now.
    ///
    /// - Parameter knowledge: the instant or position.
    /// - Returns: the prefix; nil for a position that the log has not come to.
    /// - Throws: `EventLogError` where the log cannot be read.
    public func prefix(of knowledge: Knowledge) throws(EventLogError) -> LogPrefix? {
        switch knowledge {
        case .instant(let instant):
            return LogPrefix(
                position: try position(knownAt: instant),
                knownAt: instant,
                rulesRecordedBy: instant
            )
        case .position(let position):
            guard position >= 0, position <= (try head().position) else { return nil }
            return try logged("find what was known at \(position)") {
                let recorded = try recordedAt(position)
                guard let next = try recordedAt(position + 1) else {
                    return LogPrefix(position: position, knownAt: recorded, rulesRecordedBy: nil)
                }
                // Those of one append were recorded together.
                let before = Timestamp(milliseconds: next.milliseconds - 1)
                return LogPrefix(
                    position: position,
                    knownAt: recorded,
                    rulesRecordedBy: max(before, recorded ?? before)
                )
            }
        }
    }

    /// The last position that was committed at an instant: what was known then.
    public func position(knownAt instant: Timestamp) throws(EventLogError) -> Int64 {
        try logged("find what was known at \(instant)") {
            let rows = try connection.query(
                """
                select last_position from ledger.batch where recorded_at <= $1
                order by recorded_at desc, last_position desc limit 1
                """,
                [.instant(milliseconds: instant.milliseconds)]
            )
            return rows.count == 0 ? 0 : rows.int(0, 0) ?? 0
        }
    }

    private func recordedAt(_ position: Int64) throws(PostgresError) -> Timestamp? {
        let rows = try connection.query(
            """
            select recorded_at from (
                select recorded_at, last_position from ledger.batch where first_position <= $1
                order by first_position desc limit 1
            ) b where $1 <= last_position
            """,
            [.int(position)]
        )
        return rows.count == 0 ? nil : rows.instant(0, 0).map { Timestamp(milliseconds: $0) }
    }

    // MARK: - Which subscriptions may belong to whom

    /// The subscriptions with an event that names an owner, by Apple's token or a link.
    public func subscriptions(
        naming owner: UniqueID,
        upTo position: Int64
    ) throws(EventLogError) -> [SubscriptionKey] {
        try keys(
            """
            select app_id, stream from ledger.fact where app_account_token = $1 and position <= $2
            union
            select app_id, stream from ledger.fact where linked_owner = $1 and position <= $2
            """,
            [.uuid(owner.bits), .int(position)]
        )
    }

    /// The subscriptions of an app with an event that names a customer's copy of it.
    public func subscriptions(
        ofCustomer appTransactionID: String,
        app appID: Int32,
        upTo position: Int64
    ) throws(EventLogError) -> [SubscriptionKey] {
        try keys(
            """
            select app_id, stream from ledger.fact
            where app_transaction_id = $1 and transaction_id is not null and app_id = $2
                and position <= $3
            union
            select app_id, stream from ledger.fact
            where renewal_app_transaction_id = $1 and app_transaction_id is null and app_id = $2
                and position <= $3
            """,
            [.text(appTransactionID), .int(Int64(appID)), .int(position)]
        )
    }

    /// The subscriptions with an event that says they were made of another one.
    public func subscriptions(
        madeOf key: SubscriptionKey,
        upTo position: Int64
    ) throws(EventLogError) -> [SubscriptionKey] {
        try keys(
            """
            select distinct app_id, stream from ledger.fact
            where previous_original_transaction_id = $1 and app_id = $2 and position <= $3
            """,
            [.text(key.stream), .int(Int64(key.appID)), .int(position)]
        )
    }

    private func keys(
        _ sql: String,
        _ binds: [Bind]
    ) throws(EventLogError) -> [SubscriptionKey] {
        try logged("look subscriptions up") {
            let rows = try connection.query(sql, binds)
            return (0..<rows.count).map {
                SubscriptionKey(
                    appID: Int32(rows.int($0, 0) ?? 0),
                    stream: rows.text($0, 1) ?? ""
                )
            }.sorted()
        }
    }
}
