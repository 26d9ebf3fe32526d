public import EventLog
internal import Ledger
public import Postgres

/// The question "what does the log hold of this subscription".
public struct EventQuery: Hashable, Sendable {
    /// The events of one stream in one app.
    public struct Stream: Hashable, Sendable {
        /// The app and the environment.
        public var app: AppKey
        /// The events by position.
        public var events: [StoredEvent]
    }

    /// The stream's name, an `originalTransactionId`.
    public var stream: String

    /// Asks about a stream.
    public init(stream: String) { self.stream = stream }

    /// The events, one entry for each app that has a stream of this name; empty where none has.
    public func streams(_ connection: Connection) throws(ReadModelError) -> [Stream] {
        try readModels("read the events of \(stream)") {
            let reader = LogReader(connection)
            let apps = try reader.apps()
            return try reader.keys(ofStream: stream).map { key in
                let unknown = AppKey(bundleID: "", environment: .unknown(""))
                return Stream(app: apps[key.appID] ?? unknown, events: try reader.events(of: key))
            }
        }
    }

    /// What was received for the event at a position, or nil where there is none.
    public static func evidence(
        at position: Int64,
        _ connection: Connection
    ) throws(ReadModelError) -> StoredEvidence? {
        try readModels("read the evidence of event \(position)") {
            try LogReader(connection).evidence(at: position)
        }
    }
}

extension EventQuery.Stream {
    /// Writes the events as `subledger events --json` shows them, one object each.
    public func write(to json: inout JSONWriter) {
        for event in events {
            json.beginObject()
            json.member("environment", app.environment.description)
            json.member("bundle_id", app.bundleID)
            event.writeMembers(to: &json)
            json.endObject()
        }
    }
}

extension StoredEvent {
    /// Writes the members that lists of events have.
    func writeMembers(to json: inout JSONWriter) {
        json.member("position", position)
        json.member("stream", key.stream)
        json.member("kind", kind.description)
        json.member("notification_type", notificationType)
        json.member("subtype", subtype)
        json.member("provenance", provenance.text)
        json.member("signed_at", signedAt)
        json.member("recorded_at", recordedAt)
        json.member("event_key", eventKey)
        json.member("correlation", correlation)
        json.member("operator", `operator`)
        json.member("ticket", ticket)
    }

    /// The event in a few words, as lists for people have it.
    public var title: String {
        guard let notificationType else { return kind.description }
        return subtype.map { "\(notificationType) / \($0)" } ?? notificationType
    }
}
