public import Ledger
internal import Postgres

extension LogReader {
    /// The foldable events of one subscription by position.
    ///
    /// - Throws: `.unreadable`, naming position and stream, where an event cannot be read.
    public func facts(
        of key: SubscriptionKey,
        upTo position: Int64? = nil
    ) throws(EventLogError) -> [Event] {
        try logged("read the facts of \(key)") {
            var reader = FactReader()
            var events: [Event] = []
            var isOurs = true
            // COPY takes no binds; it is what the rebuild reads with, so there is one decoder.
            let sql = """
                copy (
                    select \(FactColumns.read) from ledger.fact
                    where stream = \(Self.literal(key.stream)) and app_id = \(key.appID)
                        and position <= \(position ?? .max)
                    order by position
                ) to stdout (format binary)
                """
            try connection.copyOut(sql) { row in
                let read = reader.row(&row, decoder: source.version)
                guard read.decoder == source.version else {
                    isOurs = false
                    return
                }
                if let fact = read.fact {
                    events.append(Event(position: read.position, fact: fact))
                }
            }
            return isOurs ? events : try decoded(key, upTo: position)
        }
    }

    /// Hands over each subscription of a slice with its foldable events by position.
    ///
    /// Subscriptions come in the order of stream and app; those of which a row was filled by
    /// another decoder come last, decoded from their evidence. Streams without foldable events
    /// are left out. One subscription is in memory at a time. The session must not be used by
    /// `body`.
    ///
    /// - Parameters:
    ///   - slice: a part of `ledger.fact`.
    ///   - position: reads what was known when this was the last position.
    ///   - countMax: how many events of a longer subscription are handed over; memory holds no more.
    ///   - body: what to do with each subscription.
    /// - Throws: `.unreadable`, naming position and stream, at the first event that cannot be
    ///   read; and whatever `body` throws.
    public func forEachStream(
        in slice: Slice,
        upTo position: Int64? = nil,
        atMost countMax: Int = .max,
        _ body: (SubscriptionKey, [Event]) throws -> Void
    ) throws {
        try forEachStream(
            from: slice.source(upTo: position),
            upTo: position,
            atMost: countMax,
            body
        )
    }

    /// Hands over some subscriptions with their foldable events by position, read in one go.
    ///
    /// They come in the same order and under the same conditions as those of a slice.
    ///
    /// - Parameters:
    ///   - keys: the subscriptions, some hundreds.
    ///   - countMax: how many events of a longer subscription are handed over; memory holds no more.
    ///   - body: what to do with each subscription.
    /// - Throws: `.unreadable`, naming position and stream, at the first event that cannot be
    ///   read; and whatever `body` throws.
    public func forEachStream(
        among keys: [SubscriptionKey],
        atMost countMax: Int = .max,
        _ body: (SubscriptionKey, [Event]) throws -> Void
    ) throws {
        guard !keys.isEmpty else { return }
        let wanted = Set(keys)
        let streams = Set(keys.map(\.stream)).sorted()
        var streamRows = StreamRows(decoder: source.version, countMax: countMax)
        // Another app may have a stream of the same name.
        func hand(_ key: SubscriptionKey, _ events: [Event]) throws {
            if wanted.contains(key) { try body(key, events) }
        }
        try connection.forEachRow(prepared: Self.factsAmong, [.textArray(streams)]) { row in
            try streamRows.add(&row, hand)
        }
        try streamRows.finish(hand)
        try handOver(streamRows.others, upTo: nil, atMost: countMax, hand)
    }

    /// The facts of some streams.
    ///
    /// One stream after the other is looked up in the one part that it is in: a list of streams would
    /// be looked up in every part, whole.
    private static let factsAmong = """
        select \(FactColumns.read) from unnest($1::text[]) as wanted (name)
        cross join lateral (
            select * from ledger.fact where fact.stream = wanted.name offset 0
        ) fact
        order by stream, app_id, position
        """

    private func forEachStream(
        from relation: String,
        upTo position: Int64?,
        atMost countMax: Int,
        _ body: (SubscriptionKey, [Event]) throws -> Void
    ) throws {
        let sql = """
            copy (
                select \(FactColumns.read) from \(relation)
                order by stream, app_id, position
            ) to stdout (format binary)
            """
        var streamRows = StreamRows(decoder: source.version, countMax: countMax)
        try connection.copyOut(sql) { row in try streamRows.add(&row, body) }
        try streamRows.finish(body)
        try handOver(streamRows.others, upTo: position, atMost: countMax, body)
    }

    /// Hands over subscriptions of which another decoder has filled a row.
    private func handOver(
        _ keys: [SubscriptionKey],
        upTo position: Int64?,
        atMost countMax: Int,
        _ body: (SubscriptionKey, [Event]) throws -> Void
    ) throws {
        for key in keys {
            let events = try Array(decoded(key, upTo: position).prefix(countMax))
            if !events.isEmpty { try body(key, events) }
        }
    }

    /// The foldable events of a subscription, decoded from evidence.
    func decoded(_ key: SubscriptionKey, upTo position: Int64?) throws -> [Event] {
        var headers = HeaderCache(connection)
        let rows = try connection.query(
            """
            select \(StoredEvent.columns), \(StoredParts.columns)
            from ledger.event
            left join ledger.evidence
                on evidence.stream = event.stream and evidence.app_id = event.app_id
                and evidence.position = event.position
            where event.stream = $1 and event.app_id = $2 and event.position <= $3
            order by event.position
            """,
            [.text(key.stream), .int(Int64(key.appID)), .int(position ?? .max)]
        )
        var result: [Event] = []
        var unreadable: [EventLogError] = []
        var skipped: Set<Int64> = []
        for row in 0..<rows.count {
            let event = try StoredEvent(rows, row)
            do {
                let evidence = try evidence(of: event, rows, row, column: 15, &headers)
                if event.kind == .eventSkipped {
                    if let skip = try EventSkip(evidence: evidence.received) {
                        skipped.insert(skip.position)
                    }
                } else if let fact = try source.fact(evidence) {
                    result.append(Event(position: event.position, fact: fact))
                }
            } catch let error as PostgresError {
                throw error
            } catch let error as EventLogError {
                guard error.code == .unreadable else { throw error }
                unreadable.append(error)
            } catch {
                unreadable.append(
                    EventLogError(
                        .unreadable,
                        "event \(event.position) of \(key) cannot be decoded: \(error)",
                        position: event.position
                    )
                )
            }
        }
        // What an operator has passed over is found later in the stream.
        if let error = unreadable.first(where: { !skipped.contains($0.position ?? 0) }) {
            throw error
        }
        return result
    }

    /// A text as an SQL literal that means the same under every setting.
    static func literal(_ text: String) -> String {
        var result = "E'"
        for scalar in text.unicodeScalars where scalar != "\0" {
            if scalar == "'" || scalar == "\\" { result.unicodeScalars.append("\\") }
            result.unicodeScalars.append(scalar)
        }
        return result + "'"
    }
}

/// Rows of `ledger.fact` that come stream by stream.
private struct StreamRows {
    private let decoder: Int16
    private let countMax: Int
    private var reader = FactReader()
    private var current: SubscriptionKey?
    private var events: [Event] = []
    private var isOurs = true
    /// The subscriptions of which a row was filled by another decoder.
    private(set) var others: [SubscriptionKey] = []

    init(decoder: Int16, countMax: Int) {
        self.decoder = decoder
        self.countMax = countMax
    }

    /// Takes a row, and hands a subscription over where it is the first of the next one.
    mutating func add(
        _ row: inout BinaryRow,
        _ body: (SubscriptionKey, [Event]) throws -> Void
    ) throws {
        let read = reader.row(&row, decoder: decoder)
        if read.key != current {
            try finish(body)
            current = read.key
        }
        if read.decoder != decoder { isOurs = false }
        if let fact = read.fact, events.count < countMax {
            events.append(Event(position: read.position, fact: fact))
        }
    }

    /// Hands the last subscription over.
    mutating func finish(_ body: (SubscriptionKey, [Event]) throws -> Void) throws {
        guard let key = current else { return }
        if !isOurs {
            others.append(key)
        } else if !events.isEmpty {
            try body(key, events)
        }
        events.removeAll(keepingCapacity: true)
        isOurs = true
    }
}
