internal import Ledger
internal import Postgres

/// The steps of an append, for tests that stop the program between two of them.
enum AppendStep: CaseIterable {
    case referencesWritten
    case keysForeseen
    case headLocked
    case keysLookedUp
    case eventsInserted
    case evidenceInserted
    case factsInserted
    case marksInserted
    case conflictsInserted
    case batchInserted
    case headUpdated
    case committed
}

/// One append transaction: all of a batch, or nothing.
struct AppendTransaction {
    /// An insert gave back fewer rows than were new: somebody wrote past the head's lock.
    struct ShortReturning: Error {}

    /// What is already there under a key.
    struct Kept {
        var position: Int64
        var contentDigest: [UInt8]
    }

    /// What was there under a batch's keys when the head stood at a position.
    struct Foresight {
        var position: Int64
        var kept: [PreparedEvent.Identity: Kept]
    }

    /// From how many events on the keys are looked up before the head is locked as well.
    static let foresightMin = 50

    /// How many rows one statement inserts; a statement may have 65,535 binds.
    private static let rowsPerStatement = 500

    /// Up to how many rows a statement is planned once: planning takes as long as inserting one.
    private static let preparedRowsMax = 4

    let connection: Connection
    let apps: [Int32: AppKey]
    let step: (AppendStep) throws -> Void
    /// The last positions that some subscriptions must still have.
    var expected: [SubscriptionKey: Int64] = [:]
    /// What must not have been appended.
    var quiet: Appender.Quiet?

    /// Writes a batch between BEGIN and COMMIT, which are the caller's.
    ///
    /// - Returns: what becomes of each event once COMMIT returns.
    func write(
        _ events: [PreparedEvent],
        _ foresight: Foresight? = nil
    ) throws -> [AppendOutcome] {
        // The head row is the lock: whoever holds it appends, so position order is commit order.
        let rows = try connection.query(
            prepared: """
                select position, link,
                    greatest(recorded_at, date_trunc('milliseconds', clock_timestamp()))
                from ledger.head for update
                """,
            []
        )
        guard
            rows.count == 1, let last = rows.int(0, 0), let link = rows.bytes(0, 1),
            let now = rows.instant(0, 2)
        else { throw EventLogError(.corrupt, "ledger.head has \(rows.count) rows, not one") }
        try step(.headLocked)
        try checkExpected()
        var kept: [PreparedEvent.Identity: Kept]
        if let foresight, foresight.position == last {
            // Nobody appended since, so what was seen then still holds.
            kept = foresight.kept
        } else {
            kept = try lookUp(events)
        }
        try step(.keysLookedUp)

        var outcomes: [AppendOutcome] = []
        var fresh: [(position: Int64, event: PreparedEvent)] = []
        var conflicts: [(kept: Int64, event: PreparedEvent)] = []
        for event in events {
            if let known = kept[event.identity] {
                if known.contentDigest == event.source.contentDigest {
                    outcomes.append(.duplicate(position: known.position))
                } else {
                    outcomes.append(.conflict(position: known.position))
                    conflicts.append((known.position, event))
                }
            } else {
                let position = last + Int64(fresh.count) + 1
                outcomes.append(.appended(position: position))
                fresh.append((position, event))
                kept[event.identity] = Kept(
                    position: position,
                    contentDigest: event.source.contentDigest
                )
            }
        }
        if !fresh.isEmpty {
            try insert(fresh, after: link, at: Timestamp(milliseconds: now))
        }
        try insert(conflicts)
        return outcomes
    }

    /// Refuses to write where somebody appended to a subscription since it was read.
    private func checkExpected() throws {
        if let quiet {
            let rows = try connection.query(
                "select from ledger.event where position > $1 and app_id = $2 and kind = $3 limit 1",
                [
                    .int(quiet.after), .int(Int64(quiet.appID)), .text(quiet.kind.description),
                ]
            )
            guard rows.count == 0 else {
                throw EventLogError(.stale, "there are more of \(quiet.kind) since they were read")
            }
        }
        for (key, position) in expected {
            let rows = try connection.query(
                "select coalesce(max(position), 0) from ledger.event"
                    + " where stream = $1 and app_id = $2",
                [.text(key.stream), .int(Int64(key.appID))]
            )
            guard rows.int(0, 0) == position else {
                throw EventLogError(.stale, "\(key) has news since it was read")
            }
        }
    }

    /// Looks a long batch's keys up without holding the head; nil for a short one.
    ///
    /// The position is read first: if it is the same under the lock, nothing came between.
    func foresee(_ events: [PreparedEvent]) throws -> Foresight? {
        guard events.count >= Self.foresightMin else { return nil }
        let rows = try connection.query("select position from ledger.head")
        guard rows.count == 1, let position = rows.int(0, 0) else { return nil }
        let kept = try lookUp(events)
        try step(.keysForeseen)
        return Foresight(position: position, kept: kept)
    }

    private func insert(
        _ fresh: [(position: Int64, event: PreparedEvent)],
        after link: [UInt8],
        at now: Timestamp
    ) throws {
        let stored = fresh.map { $0.event.stored(position: $0.position, recordedAt: now) }
        for start in stride(from: 0, to: stored.count, by: Self.rowsPerStatement) {
            let end = min(start + Self.rowsPerStatement, stored.count)
            try insert(stored[start..<end])
        }
        try step(.eventsInserted)
        try connection.copyIn(
            "copy ledger.evidence (position, app_id, codec, stream, salt, headers, cuts,"
                + " payloads, signatures, posted) from stdin (format binary)"
        ) { writer in
            for (position, event) in fresh {
                event.writeEvidence(position: position, to: &writer.rows)
                try writer.flushIfFull()
            }
        }
        try step(.evidenceInserted)
        try connection.copyIn(
            "copy ledger.fact (\(FactColumns.written)) from stdin (format binary)"
        ) { writer in
            for (position, event) in fresh {
                event.writeFact(position: position, to: &writer.rows)
                try writer.flushIfFull()
            }
        }
        try step(.factsInserted)
        for (position, event) in fresh {
            try event.source.note?.insert(
                position: position,
                appID: event.key.appID,
                connection
            )
        }
        try insertMarks(fresh)
        try step(.marksInserted)

        let leaves = stored.map { event in
            Chain.leaf(event, app: apps[event.key.appID] ?? AppKey.none)
        }
        let batch = Batch(
            firstPosition: stored[0].position,
            lastPosition: stored[stored.count - 1].position,
            recordedAt: now,
            root: Chain.root(leaves),
            previous: link
        )
        _ = try connection.query(
            prepared:
                "insert into ledger.batch (first_position, last_position, recorded_at, root, previous)"
                + " values ($1, $2, $3, $4, $5)",
            [
                .int(batch.firstPosition), .int(batch.lastPosition),
                .instant(milliseconds: now.milliseconds), .bytes(batch.root),
                .bytes(batch.previous),
            ]
        )
        try step(.batchInserted)
        _ = try connection.query(
            prepared: "update ledger.head set position = $1, recorded_at = $2, link = $3",
            [
                .int(batch.lastPosition), .instant(milliseconds: now.milliseconds),
                .bytes(Chain.link(batch)),
            ]
        )
        try step(.headUpdated)
    }

    private func insert(_ events: ArraySlice<StoredEvent>) throws {
        var binds: [Bind] = []
        binds.reserveCapacity(events.count * 15)
        for event in events {
            binds += [
                .int(event.position), .instant(milliseconds: event.signedAt?.milliseconds),
                .instant(milliseconds: event.recordedAt.milliseconds),
                .int(Int64(event.key.appID)), .text(event.key.stream), .text(event.eventKey),
                .text(event.kind.description), .text(event.notificationType),
                .text(event.subtype), .text(event.provenance.text), .text(event.correlation),
                .bytes(event.contentDigest), .bytes(event.sealedDigest), .text(event.operator),
                .text(event.ticket),
            ]
        }
        let rows = try query(
            rows: events.count,
            """
            insert into ledger.event (position, signed_at, recorded_at, app_id, stream, event_key,
                kind, notification_type, subtype, provenance, correlation, content_digest,
                sealed_digest, operator, ticket)
            values \(Self.tuples(events.count, columns: 15))
            on conflict (stream, app_id, event_key) do nothing
            returning position
            """,
            binds
        )
        // The command's tag is not to be trusted on every engine; the rows are.
        guard rows.count == events.count else { throw ShortReturning() }
    }

    /// Runs a statement about so many rows; those about a few, of which there are few, are prepared.
    private func query(rows: Int, _ statement: String, _ binds: [Bind]) throws -> Rows {
        rows <= Self.preparedRowsMax
            ? try connection.query(prepared: statement, binds)
            : try connection.query(statement, binds)
    }

    /// One mark for each subscription of the batch, for which the newest position is enough (an event
    /// that is skipped makes another one of it, too), and one for each withdrawn consent, whose customer's subscriptions are found by it.
    private func insertMarks(_ fresh: [(position: Int64, event: PreparedEvent)]) throws {
        var newest: [SubscriptionKey: Int64] = [:]
        for (position, event) in fresh
        where event.source.fact != nil || event.source.kind == .eventSkipped {
            newest[event.key] = position
        }
        var marks = newest.sorted { $0.key < $1.key }
        for (position, event) in fresh
        where event.source.rescindsConsentOf != nil && newest[event.key] != position {
            marks.append((event.key, position))
        }
        for start in stride(from: 0, to: marks.count, by: Self.rowsPerStatement) {
            let part = marks[start..<min(start + Self.rowsPerStatement, marks.count)]
            _ = try query(
                rows: part.count,
                "insert into ledger.mark (stream, app_id, position)"
                    + " values \(Self.tuples(part.count, columns: 3))",
                part.flatMap { key, position -> [Bind] in
                    [.text(key.stream), .int(Int64(key.appID)), .int(position)]
                }
            )
        }
    }

    private func insert(_ conflicts: [(kept: Int64, event: PreparedEvent)]) throws {
        for (kept, event) in conflicts {
            try connection.query(
                """
                insert into ledger.conflict (stream, app_id, event_key, digest, kept_position,
                    content_digest, received)
                values ($1, $2, $3, sha256($4), $5, $6, $4)
                on conflict (stream, app_id, event_key, digest) do nothing
                """,
                [
                    .text(event.key.stream), .int(Int64(event.key.appID)),
                    .text(event.source.eventKey), .bytes(event.source.received), .int(kept),
                    .bytes(event.source.contentDigest),
                ]
            )
        }
        try step(.conflictsInserted)
    }

    /// What the log has under the keys of a batch.
    private func lookUp(_ events: [PreparedEvent]) throws -> [PreparedEvent.Identity: Kept] {
        var result: [PreparedEvent.Identity: Kept] = [:]
        for start in stride(from: 0, to: events.count, by: Self.rowsPerStatement) {
            let part = events[start..<min(start + Self.rowsPerStatement, events.count)]
            var binds = part.flatMap { event -> [Bind] in
                [
                    .text(event.key.stream), .int(Int64(event.key.appID)),
                    .text(event.source.eventKey),
                ]
            }
            // Some sizes only, so that their statements stay prepared: the last key is repeated.
            let size = Self.lookUpSizes.first { $0 >= part.count } ?? part.count
            let last = binds.suffix(3)
            for _ in part.count..<size { binds += last }
            let rows = try connection.query(prepared: Self.lookUpStatement(size), binds)
            for row in 0..<rows.count {
                let identity = PreparedEvent.Identity(
                    key: SubscriptionKey(
                        appID: Int32(rows.int(row, 1) ?? 0),
                        stream: rows.text(row, 0) ?? ""
                    ),
                    eventKey: rows.text(row, 2) ?? ""
                )
                result[identity] = Kept(
                    position: rows.int(row, 3) ?? 0,
                    contentDigest: rows.bytes(row, 4) ?? []
                )
            }
        }
        return result
    }

    /// How many keys a statement looks up.
    private static let lookUpSizes = [1, 4, 16, 64, 200, rowsPerStatement]

    /// Few keys are spelled out, so that the planner sees which partitions they are in; planning
    /// a join with all 32 takes longer than the look-up of one key.
    private static func lookUpStatement(_ count: Int) -> String {
        let columns = "event.stream, event.app_id, event.event_key, position, content_digest"
        if count <= 4 {
            let terms = (0..<count).map { index in
                "(stream = $\(index * 3 + 1) and app_id = $\(index * 3 + 2)::integer"
                    + " and event_key = $\(index * 3 + 3))"
            }
            return "select \(columns) from ledger.event where "
                + terms.joined(separator: " or ")
        }
        return """
            select \(columns) from ledger.event
            join (values \(tuples(count, columns: 3, casts: ["text", "integer", "text"])))
                as wanted (stream, app_id, event_key)
            on event.stream = wanted.stream and event.app_id = wanted.app_id
                and event.event_key = wanted.event_key
            """
    }

    /// `($1, $2), ($3, $4)` for so many rows.
    private static func tuples(_ rows: Int, columns: Int, casts: [String] = []) -> String {
        var result = ""
        var number = 1
        for row in 0..<rows {
            result += row == 0 ? "(" : ", ("
            for column in 0..<columns {
                if column > 0 { result += ", " }
                result += "$\(number)"
                if !casts.isEmpty { result += "::\(casts[column])" }
                number += 1
            }
            result += ")"
        }
        return result
    }
}
