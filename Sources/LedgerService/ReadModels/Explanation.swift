public import EventLog
public import Ledger
public import Postgres

/// A subscription's timeline with the events that decided each stretch of it.
public struct Explanation: Hashable, Sendable {
    /// The stretches in order of time.
    public var timeline: [EntitlementAnswer]
    /// The subscription's events by position, and what else decided something.
    public var events: [StoredEvent]
    /// The owners in order of time.
    public var owners: [Owner]
    /// What was odd, by name.
    public var anomalies: [String]
    /// The refund that the customer wished for last, if Apple asked about one.
    public var refund: Refund?
    /// The instant that was asked about, if one was.
    public var at: Timestamp?
    /// The prefix of the log that it is about, where it was asked what was known.
    public var known: LogPrefix?
    /// Whether events wait that the timeline does not hold yet.
    public var isStale: Bool
    /// Why the subscription cannot be folded, if so.
    public var parked: String?

    /// A wish for a refund that Apple asked about.
    public struct Refund: Hashable, Sendable {
        /// When Apple first asked.
        public var requestedAt: Timestamp
        /// Until when an answer to the last request is of use.
        public var answerBy: Timestamp
        /// What became of it: `declined` or `refunded`; nil while nothing is known.
        public var decision: String?
        /// Why the customer wishes for it, in Apple's words, if Apple says so.
        public var reason: String?

        init?(
            _ requestedAt: Timestamp?,
            _ answerBy: Timestamp?,
            _ decision: String?,
            _ reason: String?
        ) {
            guard let requestedAt, let answerBy else { return nil }
            self.requestedAt = requestedAt
            self.answerBy = answerBy
            self.decision = decision
            self.reason = reason
        }
    }

    /// Who owned it from when to when.
    public struct Owner: Hashable, Sendable {
        /// The account token.
        public var token: UniqueID
        /// The first instant.
        public var from: Timestamp
        /// The first instant after it; nil for the present owner.
        public var until: Timestamp?
        /// The event that says so.
        public var position: Int64
        /// Whether an operator linked it.
        public var isLinked: Bool
    }

    /// The app and the environment.
    public var app: AppKey
    /// The stream's name.
    public var stream: String

    /// The answer at the instant that was asked about.
    public var answer: EntitlementAnswer? {
        guard let at else { return nil }
        return timeline.first { $0.contains(at) }
    }

    /// Explains a stream in every app that has it; empty where the log does not know it.
    ///
    /// - Parameters:
    ///   - stream: the stream's name.
    ///   - instant: the instant that is asked about; nil for the timeline alone.
    ///   - knowledge: explains what was known then, out of the events up to there; nil explains the
    ///     rows of the read models.
    ///   - connection: a session of the auditor's role without an open transaction.
    /// - Returns: one explanation for each app.
    /// - Throws: `ReadModelError`; `.notKnown` for a position that the log has not come to.
    public static func explanations(
        of stream: String,
        at instant: Timestamp? = nil,
        known knowledge: Knowledge? = nil,
        _ connection: Connection
    ) throws(ReadModelError) -> [Explanation] {
        try readModels("explain \(stream)") {
            try connection.transaction("begin isolation level repeatable read read only") {
                connection in
                let prefix = try knowledge.map { try LogPrefix($0, connection) }
                var fold = try prefix.map { try PrefixFold($0, connection) }
                let streams = try EventQuery(stream: stream).streams(connection)
                return try streams.compactMap { found in
                    guard let key = found.events.first?.key else { return nil }
                    var explanation = Explanation(found, key, at: instant)
                    if let prefix {
                        explanation.known = prefix
                        explanation.events.removeAll { $0.position > prefix.position }
                        if explanation.events.isEmpty { return nil }
                        if let folded = try fold?.fold(key) { explanation.show(folded) }
                    } else {
                        try explanation.readRows(of: key, connection)
                    }
                    try explanation.addEventsElsewhere(connection)
                    return explanation
                }
            }
        }
    }

    private init(_ found: EventQuery.Stream, _ key: SubscriptionKey, at instant: Timestamp?) {
        app = found.app
        stream = key.stream
        events = found.events
        at = instant
        timeline = []
        owners = []
        anomalies = []
        isStale = false
    }

    private mutating func show(_ folded: PrefixFold.Folded) {
        timeline = folded.timeline
        owners = folded.owners
        let subscription = folded.subscription
        anomalies = subscription.textArray("anomalies")
        refund = Refund(
            subscription.timestamp("refund_requested_at"),
            subscription.timestamp("refund_answer_by"),
            subscription.text("refund_decision"),
            subscription.text("refund_request_reason")
        )
    }

    private mutating func readRows(of key: SubscriptionKey, _ connection: Connection) throws {
        let binds: [Bind] = [.text(key.stream), .int(Int64(key.appID))]
        let rows = try connection.query(
            """
            select \(EntitlementAnswer.columns) from read_model.entitlement_all
            where original_transaction_id = $1 and app_id = $2 order by valid_from
            """,
            binds
        )
        timeline = (0..<rows.count).map { EntitlementAnswer(rows, $0) }
        owners = try Self.owners(binds, connection)
        let more = try connection.query(
            """
            select s.anomalies,
                exists (select from ledger.mark m where m.stream = $1 and m.app_id = $2),
                (select p.error from read_model.parked p where p.stream = $1 and p.app_id = $2),
                s.refund_requested_at, s.refund_answer_by, s.refund_decision,
                s.refund_request_reason
            from (values (true)) as one
            left join read_model.subscription s
                on s.stream = $1 and s.app_id = $2 and s.generation = (
                    select generation from read_model.current where projection = 'entitlement')
            """,
            binds
        )
        refund = Refund(
            more.timestamp(0, 3),
            more.timestamp(0, 4),
            more.text(0, 5),
            more.text(0, 6)
        )
        anomalies = more.textArray(0, 0) ?? []
        isStale = more.bool(0, 1) ?? false
        parked = more.text(0, 2)
    }

    /// A guardian's withdrawn consent stands in another stream.
    private mutating func addEventsElsewhere(_ connection: Connection) throws {
        let elsewhere = Set(timeline.flatMap(\.positions)).subtracting(events.map(\.position))
        for position in elsewhere.sorted() {
            if let event = try LogReader(connection).event(at: position) { events.append(event) }
        }
        events.sort { $0.position < $1.position }
    }

    private static func owners(
        _ binds: [Bind],
        _ connection: Connection
    ) throws(PostgresError) -> [Owner] {
        let rows = try connection.query(
            """
            select app_account_token, valid_from, valid_until, position, is_linked
            from read_model.subscription_owner
            where stream = $1 and app_id = $2 and generation = (
                select generation from read_model.current where projection = 'entitlement')
            order by valid_from
            """,
            binds
        )
        return (0..<rows.count).map { row in
            Owner(
                token: UniqueID(bits: rows.uuid(row, 0) ?? 0),
                from: rows.timestamp(row, 1) ?? .earliest,
                until: rows.timestamp(row, 2),
                position: rows.int(row, 3) ?? 0,
                isLinked: rows.bool(row, 4) ?? false
            )
        }
    }
}

extension EntitlementAnswer {
    /// Whether the instant lies in the stretch.
    public func contains(_ instant: Timestamp) -> Bool {
        validFrom <= instant && validUntil.map { instant < $0 } ?? true
    }
}
