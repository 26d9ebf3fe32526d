package import EventLog
package import Ledger
package import Postgres

/// What was asked of Apple, when, and how it ended: `ledger.poll`.
package struct PollBook {
    /// What is known of one stream and endpoint.
    package struct Entry: Hashable, Sendable {
        /// When it was asked last.
        package var lastAt: Timestamp
        /// How that ended.
        package var outcome: String?
        /// From where a list is to be read on.
        package var revision: String?
    }

    private let connection: Connection

    /// Works over a session that may write it.
    package init(_ connection: Connection) { self.connection = connection }

    /// Notes a question.
    ///
    /// - Parameters:
    ///   - stream: what it was about: a subscription, or `app:` and the bundle id.
    ///   - app: the app.
    ///   - source: the endpoint's stable name.
    ///   - outcome: `ok`, or what was wrong.
    ///   - unchanged: how many facts were read that the log had.
    ///   - revision: from where a list is to be read on; nil leaves what is there.
    ///   - now: when.
    /// - Throws: `PostgresError`.
    package func note(
        _ stream: String,
        of app: AppKey,
        source: String,
        outcome: String,
        unchanged: Int = 0,
        revision: String? = nil,
        now: Timestamp
    ) throws(PostgresError) {
        try connection.query(
            """
            insert into ledger.poll as known (stream, app_id, source, polls, first_at, last_at,
                unchanged, outcome, revision)
            select $1::text, app_id, $4::text, 1, $5, $5, $6::bigint, $7::text, $8::text
            from ledger.app
            where bundle_id = $2 and environment = $3
            on conflict (stream, app_id, source) do update set
                polls = known.polls + 1,
                last_at = greatest(known.last_at, excluded.last_at),
                unchanged = known.unchanged + excluded.unchanged,
                outcome = excluded.outcome,
                revision = coalesce(excluded.revision, known.revision)
            """,
            [
                .text(stream), .text(app.bundleID), .text("\(app.environment)"), .text(source),
                .instant(milliseconds: now.milliseconds), .int(Int64(unchanged)), .text(outcome),
                .text(revision),
            ]
        )
    }

    /// What is known of a stream and endpoint; nil where nobody asked yet.
    ///
    /// - Throws: `PostgresError`.
    package func entry(
        _ stream: String,
        of app: AppKey,
        source: String
    ) throws(PostgresError) -> Entry? {
        let rows = try connection.query(
            """
            select last_at, outcome, revision from ledger.poll join ledger.app using (app_id)
            where stream = $1 and bundle_id = $2 and environment = $3 and source = $4
            """,
            [.text(stream), .text(app.bundleID), .text("\(app.environment)"), .text(source)]
        )
        guard rows.count == 1 else { return nil }
        return Entry(
            lastAt: rows.timestamp(0, 0) ?? .earliest,
            outcome: rows.text(0, 1),
            revision: rows.text(0, 2)
        )
    }
}
