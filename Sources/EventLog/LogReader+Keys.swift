internal import Ledger
internal import Postgres

/// A fact of the log with what names its event.
struct KeyedFact {
    var app: AppKey
    var stream: String
    var eventKey: String
    var fact: Fact
}

extension LogReader {
    /// The facts of some streams with the keys of their events.
    func keyedFacts(ofStreams streams: [String]) throws(EventLogError) -> [KeyedFact] {
        try logged("read the keys of \(streams.count) streams") {
            let names = streams.map(Self.literal).joined(separator: ", ")
            let rows = try connection.query(
                """
                select position, event_key, app_id, stream from ledger.event
                where stream in (\(names)) and kind <> 'api_response'
                """
            )
            guard rows.count > 0 else { return [] }
            var eventKeys: [Int64: String] = [:]
            var subscriptions: Set<SubscriptionKey> = []
            for row in 0..<rows.count {
                eventKeys[rows.int(row, 0) ?? 0] = rows.text(row, 1) ?? ""
                subscriptions.insert(
                    SubscriptionKey(
                        appID: Int32(rows.int(row, 2) ?? 0),
                        stream: rows.text(row, 3) ?? ""
                    )
                )
            }
            let apps = try apps()
            var result: [KeyedFact] = []
            try forEachStream(among: subscriptions.sorted()) { key, events in
                guard let app = apps[key.appID] else { return }
                for event in events {
                    // One that came between the two questions is as if it came after both.
                    guard let eventKey = eventKeys[event.position] else { continue }
                    result.append(
                        KeyedFact(
                            app: app,
                            stream: key.stream,
                            eventKey: eventKey,
                            fact: event.fact
                        )
                    )
                }
            }
            return result
        }
    }
}
