internal import Postgres

extension LogReader {
    /// Which of some events the log has already, by their keys.
    ///
    /// Only a look ahead: whether an event is new is decided when it is appended.
    ///
    /// - Parameter events: some tens.
    /// - Returns: their places in the list.
    /// - Throws: `EventLogError`.
    public func existing(_ events: [NewEvent]) throws(EventLogError) -> Set<Int> {
        guard !events.isEmpty else { return [] }
        return try logged("look keys up") {
            let streams = Set(events.map(\.stream)).sorted().map(Self.literal)
            let keys = Set(events.map(\.eventKey)).sorted().map(Self.literal)
            let rows = try connection.query(
                """
                select stream, event_key, bundle_id, environment
                from ledger.event join ledger.app using (app_id)
                where stream in (\(streams.joined(separator: ", ")))
                    and event_key in (\(keys.joined(separator: ", ")))
                """
            )
            var known: Set<[String]> = []
            for row in 0..<rows.count {
                known.insert((0..<4).map { rows.text(row, $0) ?? "" })
            }
            return Set(
                events.indices.filter { index in
                    let event = events[index]
                    return known.contains([
                        event.stream, event.eventKey, event.app.bundleID,
                        "\(event.app.environment)",
                    ])
                }
            )
        }
    }
}
