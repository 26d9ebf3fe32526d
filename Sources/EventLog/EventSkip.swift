internal import AppStore
internal import Crypto
public import Ledger
internal import Postgres

/// That an operator has one event passed over, which this program cannot read.
///
/// It is an event itself, in the same stream: whoever reads the stream to there passes the other
/// one over, and says so to nobody but the log. What can be read is never passed over.
public struct EventSkip: Hashable, Sendable {
    /// The event that is passed over.
    public var position: Int64
    /// The app that it belongs to.
    public var app: AppKey
    /// The stream that it stands in.
    public var stream: String
    /// Who says so.
    public var `operator`: String
    /// On which ticket.
    public var ticket: String
    /// Why.
    public var why: String
    /// When it was said.
    public var skippedAt: Timestamp

    /// Says it.
    public init(
        position: Int64,
        app: AppKey,
        stream: String,
        operator: String,
        ticket: String,
        why: String,
        skippedAt: Timestamp
    ) {
        self.position = position
        self.app = app
        self.stream = stream
        self.operator = `operator`
        self.ticket = ticket
        self.why = why
        self.skippedAt = skippedAt
    }

    /// The event that says so; another one of the same position is a repeat.
    public func event() -> NewEvent {
        NewEvent(
            app: app,
            stream: stream,
            eventKey: "s:\(position)",
            kind: .eventSkipped,
            provenance: .operator,
            received: canonicalJSON(with: skippedAt),
            form: .raw,
            contentDigest: SHA256.digest(canonicalJSON(with: nil)),
            operator: `operator`,
            ticket: ticket
        )
    }

    /// What was said, with its members in order and no space between; the instant where there is
    /// one.
    private func canonicalJSON(with skippedAt: Timestamp?) -> [UInt8] {
        var members = [
            ("bundleId", OwnerLink.quoted(app.bundleID)),
            ("environment", OwnerLink.quoted(app.environment.description)),
            ("operator", OwnerLink.quoted(`operator`)),
            ("position", "\(position)"),
        ]
        if let skippedAt { members.append(("skippedAt", "\(skippedAt.milliseconds)")) }
        members += [
            ("stream", OwnerLink.quoted(stream)),
            ("ticket", OwnerLink.quoted(ticket)),
            ("why", OwnerLink.quoted(why)),
        ]
        return Array("{\(members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ","))}".utf8)
    }

    /// Reads a skip back from its evidence; nil where it names no position.
    init?(evidence: [UInt8]) throws {
        let document = try JSONDocument(evidence)
        guard let position = try document["position"]?.int64(),
            let skippedAt = try document["skippedAt"]?.int64()
        else { return nil }
        func text(_ name: String) -> String { document[name]?.text ?? "" }
        self.init(
            position: position,
            app: AppKey(
                bundleID: text("bundleId"),
                environment: Environment(text("environment"))
            ),
            stream: text("stream"),
            operator: text("operator"),
            ticket: text("ticket"),
            why: text("why"),
            skippedAt: Timestamp(milliseconds: skippedAt)
        )
    }
}

extension LogReader {
    /// The positions that operators have passed over.
    ///
    /// - Parameter key: the subscription to which they belong; nil for those of the whole log.
    /// - Returns: the positions of the events that are passed over.
    /// - Throws: `EventLogError`.
    public func skippedPositions(
        of key: SubscriptionKey? = nil
    ) throws(EventLogError) -> Set<Int64> {
        try logged("read what is passed over") {
            let whose = key == nil ? "" : "and stream = $1 and app_id = $2"
            let rows = try connection.query(
                "select position from ledger.event where kind = 'event_skipped' \(whose)"
                    + " order by position",
                key.map { [.text($0.stream), .int(Int64($0.appID))] } ?? []
            )
            var skipped: Set<Int64> = []
            for row in 0..<rows.count {
                guard let position = rows.int(row, 0),
                    let evidence = try evidence(at: position),
                    let skip = try EventSkip(evidence: evidence.received)
                else { continue }
                skipped.insert(skip.position)
            }
            return skipped
        }
    }
}

extension LogReader {
    /// Whether this program can read an event; nil where the log has none at the position.
    public func isReadable(_ position: Int64) throws(EventLogError) -> Bool? {
        do {
            guard let evidence = try evidence(at: position) else {
                return try event(at: position).map { _ in false }
            }
            _ = try source.fact(evidence)
            return true
        } catch let error as EventLogError {
            guard error.code == .unreadable else { throw error }
            return false
        } catch {
            return false
        }
    }
}
