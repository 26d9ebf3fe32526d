package import EventLog
package import Ledger
package import Postgres

/// The subscriptions that could not be folded, and trying them again.
package struct ParkedStreams {
    /// One of them.
    package struct Stream: Hashable, Sendable {
        /// Which one.
        package var key: SubscriptionKey
        /// Its app; nil where the log does not know it any more, which cannot be.
        package var app: AppKey?
        /// The highest of its positions when it was parked; 0 while it is to be tried again.
        package var position: Int64
        /// When it was parked.
        package var parkedAt: Timestamp
        /// Why.
        package var error: String
    }

    private let connection: Connection

    /// Looks through a session that may read everything; to retry it must write the read models.
    package init(_ connection: Connection) { self.connection = connection }

    /// All of them, in the order of their names.
    package func all() throws(ReadModelError) -> [Stream] {
        try readModels("list the parked subscriptions") {
            let apps = try LogReader(connection).apps()
            let rows = try connection.query(
                """
                select stream, app_id, position, parked_at, error from read_model.parked
                order by stream, app_id
                """
            )
            return (0..<rows.count).map { row in
                let appID = Int32(rows.int(row, 1) ?? 0)
                return Stream(
                    key: SubscriptionKey(appID: appID, stream: rows.text(row, 0) ?? ""),
                    app: apps[appID],
                    position: rows.int(row, 2) ?? 0,
                    parkedAt: rows.timestamp(row, 3) ?? .earliest,
                    error: rows.text(row, 4) ?? ""
                )
            }
        }
    }

    /// Has parked subscriptions tried again by whichever projector comes next.
    ///
    /// They keep their marks while they are parked, so nothing else is to be done.
    ///
    /// - Parameter stream: the one to try; nil for all.
    /// - Returns: those that are tried.
    /// - Throws: `ReadModelError` when the database cannot be written.
    package func retry(stream: String?) throws(ReadModelError) -> [SubscriptionKey] {
        try readModels("retry parked subscriptions") {
            let rows = try connection.query(
                """
                update read_model.parked set position = 0
                where $1::text is null or stream = $1::text
                returning stream, app_id
                """,
                [.text(stream)]
            )
            return (0..<rows.count).map { row in
                SubscriptionKey(
                    appID: Int32(rows.int(row, 1) ?? 0),
                    stream: rows.text(row, 0) ?? ""
                )
            }
        }
    }

    /// Folds what is marked, and waits for another projector that is at one of the subscriptions.
    ///
    /// - Parameters:
    ///   - keys: the subscriptions that `retry` named.
    ///   - patience: how long another projector is waited for.
    /// - Returns: those of them that are parked still.
    /// - Throws: `ReadModelError` as `Projector` does.
    package func settle(
        _ keys: [SubscriptionKey],
        patience: Duration = .seconds(10)
    ) throws(ReadModelError) -> [Stream] {
        let wanted = Set(keys)
        let end = ContinuousClock.now + patience
        while true {
            _ = try Projector(connection).project()
            let parked = try all().filter { wanted.contains($0.key) }
            guard parked.contains(where: { $0.position == 0 }), ContinuousClock.now < end else {
                return parked
            }
            Sleep.milliseconds(100)
        }
    }
}
