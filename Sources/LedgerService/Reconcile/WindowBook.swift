package import EventLog
package import Ledger
package import Postgres

/// Which spans of time were read to their end from Apple's notification history.
package struct WindowBook {
    /// What Apple lists of an instant is settled so long after it: a notification that is being
    /// sent just now may not be in the list yet.
    static let settles = Milliseconds.hours(1)

    /// One row.
    struct Window: Hashable, Sendable {
        var span: TimeSpan
        var completedAt: Timestamp

        /// What of it need not be read again.
        var settled: TimeSpan {
            let limit = completedAt.adding(Milliseconds(rawValue: -settles.rawValue))
            return TimeSpan(from: span.from, to: min(span.to, limit))
        }
    }

    private let connection: Connection

    /// Works over a session that may write it.
    package init(_ connection: Connection) { self.connection = connection }

    /// What need not be read again, in order.
    ///
    /// - Parameters:
    ///   - app: the app.
    ///   - onlyFailures: for a reading of failures alone; one of everything serves it too.
    /// - Returns: spans that may touch each other.
    /// - Throws: `PostgresError`.
    package func settled(
        of app: AppKey,
        onlyFailures: Bool = false
    ) throws(PostgresError) -> [TimeSpan] {
        try windows(of: app).filter { onlyFailures || !$0.isOfFailures }
            .map(\.window.settled).filter { !$0.isEmpty }.sorted { $0.from < $1.from }
    }

    /// Up to where everything was read, nil where nothing was.
    ///
    /// - Throws: `PostgresError`.
    package func end(of app: AppKey) throws(PostgresError) -> Timestamp? {
        try windows(of: app).filter { !$0.isOfFailures }.map(\.window.span.to).max()
    }

    /// What was not read, between what was.
    ///
    /// - Parameters:
    ///   - app: the app.
    ///   - earliest: what lies before it does not count: Apple has forgotten it.
    /// - Returns: the spans, in order.
    /// - Throws: `PostgresError`.
    package func holes(
        of app: AppKey,
        since earliest: Timestamp
    ) throws(PostgresError) -> [TimeSpan] {
        let spans = try windows(of: app).filter { !$0.isOfFailures }.map(\.window.span)
        guard let first = spans.map(\.from).min(), let end = spans.map(\.to).max() else {
            return []
        }
        return TimeSpan(from: max(first, earliest), to: end)
            .pieces(without: spans, longest: .days(10_000))
    }

    /// Notes that a span was read to its end, and joins it with what it touches.
    ///
    /// - Throws: `PostgresError`.
    package func complete(
        _ span: TimeSpan,
        of app: AppKey,
        onlyFailures: Bool,
        at now: Timestamp
    ) throws {
        guard !span.isEmpty else { return }
        try connection.transaction { connection in
            let apps = try connection.query(
                "select app_id from ledger.app where bundle_id = $1 and environment = $2",
                [.text(app.bundleID), .text("\(app.environment)")]
            )
            guard let appID = apps.count == 1 ? apps.int(0, 0) : nil else { return }
            // Another program may be at it too: what it has joined is waited for.
            try connection.query(
                "select window_from from ledger.history_window where app_id = $1 for update",
                [.int(appID)]
            )
            var joined = Window(span: span, completedAt: now)
            var others = try windows(of: app).filter { $0.isOfFailures == onlyFailures }
                .map(\.window)
            while let index = others.firstIndex(where: { Self.joined(joined, $0) != nil }) {
                let known = others.remove(at: index)
                joined = Self.joined(joined, known) ?? joined
                try connection.query(
                    """
                    delete from ledger.history_window
                    where app_id = $1 and only_failures = $2 and window_from = $3
                    """,
                    [
                        .int(appID), .bool(onlyFailures),
                        .instant(milliseconds: known.span.from.milliseconds),
                    ]
                )
            }
            try connection.query(
                """
                insert into ledger.history_window (app_id, only_failures, window_from, window_to,
                    completed_at)
                values ($1, $2, $3, $4, $5)
                on conflict (app_id, only_failures, window_from) do update set
                    window_to = greatest(history_window.window_to, excluded.window_to),
                    completed_at = case
                        when excluded.window_to >= history_window.window_to
                        then excluded.completed_at else history_window.completed_at end
                """,
                [
                    .int(appID), .bool(onlyFailures),
                    .instant(milliseconds: joined.span.from.milliseconds),
                    .instant(milliseconds: joined.span.to.milliseconds),
                    .instant(milliseconds: joined.completedAt.milliseconds),
                ]
            )
        }
    }

    /// Both as one, of which as much is settled as of both.
    ///
    /// - Returns: the one; nil where they do not touch, or where the end of the earlier one was not
    ///   settled yet and the later one does not begin before it: as one it would count as settled.
    static func joined(_ one: Window, _ other: Window) -> Window? {
        let isFirst = (one.span.to, one.completedAt) < (other.span.to, other.completedAt)
        let (earlier, later) = isFirst ? (one, other) : (other, one)
        if later.span.from <= earlier.span.from { return later }
        guard later.span.from <= earlier.settled.to else { return nil }
        return Window(
            span: TimeSpan(from: earlier.span.from, to: later.span.to),
            completedAt: later.completedAt
        )
    }

    private func windows(
        of app: AppKey
    ) throws(PostgresError) -> [(window: Window, isOfFailures: Bool)] {
        let rows = try connection.query(
            """
            select window_from, window_to, completed_at, only_failures
            from ledger.history_window join ledger.app using (app_id)
            where bundle_id = $1 and environment = $2
            """,
            [.text(app.bundleID), .text("\(app.environment)")]
        )
        return (0..<rows.count).map { row in
            let span = TimeSpan(
                from: rows.timestamp(row, 0) ?? .earliest,
                to: rows.timestamp(row, 1) ?? .earliest
            )
            let completedAt = rows.timestamp(row, 2) ?? .earliest
            return (Window(span: span, completedAt: completedAt), rows.bool(row, 3) ?? false)
        }
    }
}
