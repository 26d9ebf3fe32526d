internal import EventLog
public import Ledger
public import Postgres

/// Has an event passed over that this program cannot read, so that one of them does not stop a
/// rebuild for ever.
///
/// That is an event itself: the log says who did it and why, and what is folded from a prefix of the
/// log without it stops as before.
public struct EventSkipping {
    /// What became of it.
    public enum Outcome: Hashable, Sendable {
        /// It was recorded.
        case skipped(position: Int64)
        /// It was said before.
        case repeated(position: Int64)
    }

    /// Why nothing was recorded.
    public enum Refusal: Error, Hashable, Sendable, CustomStringConvertible {
        /// The log has no such event.
        case unknownEvent(Int64)
        /// It can be read, so nothing is to be passed over.
        case readable(Int64)

        /// The reason in words.
        public var description: String {
            switch self {
            case .unknownEvent(let position): "the ledger has no event \(position)"
            case .readable(let position):
                "event \(position) can be read; only what cannot is passed over"
            }
        }
    }

    private let connection: Connection
    private let source: FactSource

    /// Works over a session of the appender's role, which nothing else uses meanwhile.
    public init(_ connection: Connection) { self.init(connection, source: .current) }

    init(_ connection: Connection, source: FactSource) {
        self.connection = connection
        self.source = source
    }

    /// Records that an event is passed over; its stream is then marked to be folded again.
    ///
    /// - Parameters:
    ///   - position: the event.
    ///   - operator: who says so.
    ///   - ticket: on which ticket.
    ///   - why: the reason.
    ///   - now: when it is said.
    /// - Returns: what became of it.
    /// - Throws: `Refusal`, `OwnerLinking.Refusal` for an unusable text, `EventLogError`.
    public func skip(
        _ position: Int64,
        operator: String,
        ticket: String,
        why: String,
        now: Timestamp
    ) throws -> Outcome {
        for (text, field) in [(`operator`, "--operator"), (ticket, "--ticket"), (why, "--why")] {
            try OwnerLinking.check(text, field)
        }
        let reader = LogReader(connection, source: source)
        guard let event = try reader.event(at: position),
            let app = try reader.apps()[event.key.appID]
        else { throw Refusal.unknownEvent(position) }
        guard try reader.isReadable(position) == false else { throw Refusal.readable(position) }
        let skip = EventSkip(
            position: position,
            app: app,
            stream: event.key.stream,
            operator: `operator`,
            ticket: ticket,
            why: why,
            skippedAt: now
        )
        switch try Appender(connection).append([skip.event()]).first {
        case .appended(let position): return .skipped(position: position)
        // The reason that was given first stays.
        case .duplicate(let position), .conflict(let position):
            return .repeated(position: position)
        case .quarantined(let reason):
            throw EventLogError(.invalid, "the database cannot hold it: \(reason)")
        case nil: throw EventLogError(.corrupt, "the append had no outcome")
        }
    }
}
