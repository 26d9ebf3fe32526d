internal import Ledger
public import Postgres

/// Checks the whole log against its own hashes.
///
/// Every immutable column of every event is hashed again, the evidence included, and the batches
/// are chained anew. So a changed column, a missing or an added row and a cut tail show, whoever
/// made them: triggers and privileges prevent, this detects.
public struct LogAudit {
    /// The first thing found that is not as it was written.
    public struct Difference: Hashable, Sendable, CustomStringConvertible {
        /// Where it is.
        public var position: Int64
        /// What is wrong, in words.
        public var description: String

        /// Names what is wrong.
        public init(position: Int64, description: String) {
            self.position = position
            self.description = description
        }
    }

    /// What an audit found.
    public struct Report: Hashable, Sendable {
        /// The end of the log as it stands.
        public var head: AuditHead
        /// How many events were checked.
        public var events: Int64
        /// The first difference, nil for a log that is whole.
        public var difference: Difference?
    }

    /// How many positions are read at once.
    private static let windowCount: Int64 = 2000

    private let connection: Connection
    private let reader: LogReader

    /// Makes an audit over a session that may read everything.
    public init(_ connection: Connection) {
        self.connection = connection
        reader = LogReader(connection)
    }

    /// Checks the log from its first event to its head.
    ///
    /// - Parameters:
    ///   - kept: a head that was kept elsewhere; the log must still contain it.
    ///   - progress: called with the last position checked, now and then.
    /// - Returns: what was found.
    /// - Throws: `EventLogError` when the log could not be read; what is wrong with it is in the
    ///   report.
    public func run(
        keeping kept: AuditHead? = nil,
        progress: (Int64) -> Void = { _ in }
    ) throws(EventLogError) -> Report {
        do {
            // One snapshot, so that appends meanwhile do not look like differences.
            return try connection.transaction("begin isolation level repeatable read read only") {
                _ in try runInside(kept, progress)
            }
        } catch {
            throw EventLogError.made(from: error, doing: "audit the log")
        }
    }

    /// Checks the last batches of the log and that the head is theirs: a quick look, which finds
    /// what was cut off or put behind the end, and changes near it.
    ///
    /// - Parameter count: how many batches to hash again.
    /// - Returns: what was found; `events` counts those that were hashed.
    /// - Throws: `EventLogError` when the log could not be read.
    public func runTail(batches count: Int64) throws(EventLogError) -> Report {
        do {
            return try connection.transaction("begin isolation level repeatable read read only") {
                _ in
                let rows = try connection.query(
                    """
                    select first_position, previous from ledger.batch
                    order by first_position desc limit $1
                    """,
                    [.int(count)]
                )
                guard rows.count > 0 else { return try runInside(nil) { _ in } }
                let start = Start(
                    position: (rows.int(rows.count - 1, 0) ?? 1) - 1,
                    link: rows.bytes(rows.count - 1, 1) ?? []
                )
                var report = try runInside(nil, from: start) { _ in }
                report.events = max(0, report.events - start.position)
                return report
            }
        } catch {
            throw EventLogError.made(from: error, doing: "audit the end of the log")
        }
    }

    /// Where an audit begins.
    private struct Start {
        /// The last position before it.
        var position: Int64
        /// The link up to there.
        var link: [UInt8]
    }

    /// Checks the log as the session's own transaction sees it.
    func runInside(_ kept: AuditHead?, _ progress: (Int64) -> Void) throws -> Report {
        try runInside(kept, from: Start(position: 0, link: Chain.genesis), progress)
    }

    private func runInside(
        _ kept: AuditHead?,
        from start: Start,
        _ progress: (Int64) -> Void
    ) throws -> Report {
        let head = try reader.head()
        let apps = try reader.apps()
        var headers = HeaderCache(connection)
        var link = start.link
        var position = start.position
        var isKept = kept == nil || kept?.position == 0
        func report(_ at: Int64, _ what: String) -> Report {
            Report(
                head: head,
                events: position,
                difference: Difference(position: at, description: what)
            )
        }
        let pipeline = OrderedPipeline<Window, Checked>(depth: Self.depth) { $0.checked() }
        var readTo = position
        var isRead = false
        while true {
            // The database reads ahead while other threads hash.
            while !isRead, !pipeline.isFull {
                let batches = try batches(after: readTo)
                guard let last = batches.last else {
                    isRead = true
                    break
                }
                guard last.lastPosition > readTo else {
                    // What is wrong with it is told when its turn comes.
                    pipeline.give(Window(batches: batches, leaves: [:]))
                    isRead = true
                    break
                }
                let leaves = try leaves(readTo + 1...last.lastPosition, apps, &headers)
                pipeline.give(Window(batches: batches, leaves: leaves))
                readTo = last.lastPosition
            }
            guard let window = pipeline.take() else { break }
            for (batch, root) in zip(window.batches, window.roots) {
                guard batch.lastPosition >= batch.firstPosition, batch.lastPosition > position
                else { return report(batch.firstPosition, "the batch has no events") }
                guard batch.firstPosition == position + 1 else {
                    return report(position + 1, "no batch begins at \(position + 1)")
                }
                guard batch.previous == link else {
                    return report(batch.firstPosition, "the batch does not follow the one before")
                }
                switch root {
                case .broken(let place, let what): return report(place, what)
                case .hash(let root):
                    guard root == batch.root else {
                        return report(
                            batch.firstPosition,
                            "an event from \(batch.firstPosition) to \(batch.lastPosition) was "
                                + "changed"
                        )
                    }
                }
                link = Chain.link(batch)
                position = batch.lastPosition
                if let kept, kept.position == position { isKept = kept.root == link }
            }
            progress(position)
        }
        if let stray = try firstEvent(after: position) {
            return report(stray, "event \(stray) is in no batch")
        }
        if position != head.position || link != head.root {
            return report(position, "the head says \(head.position), the batches \(position)")
        }
        if let kept, !isKept {
            return report(
                kept.position,
                kept.position > position
                    ? "the log ends before \(kept.position), whose head was kept"
                    : "the log is not the one whose head was kept at \(kept.position)"
            )
        }
        return Report(head: head, events: position, difference: nil)
    }

    /// How many windows may be under way at once: for each core one in work and one waiting.
    private static let depth = 8

    /// What a leaf is made of, or why it cannot be made.
    private enum Leaf: Sendable {
        case parts(StoredParts, app: AppKey)
        case broken(String)

        /// The leaf's hash, or what is wrong with it.
        func hash() -> Result<[UInt8], EventLogError> {
            switch self {
            case .broken(let what): return .failure(EventLogError(.unreadable, what))
            case .parts(let parts, let app):
                do throws(EventLogError) {
                    let event = parts.event
                    let evidence = try parts.evidence()
                    let sealed = Chain.sealed(
                        salt: evidence.salt,
                        operator: event.operator,
                        ticket: event.ticket,
                        received: evidence.received,
                        posted: evidence.posted
                    )
                    guard sealed == event.sealedDigest else {
                        throw EventLogError(
                            .unreadable,
                            "the evidence, operator or ticket of event \(event.position) was changed"
                        )
                    }
                    return .success(Chain.leaf(event, app: app))
                } catch {
                    return .failure(error)
                }
            }
        }
    }

    /// Some batches and what their leaves are made of.
    private struct Window: Sendable {
        var batches: [Batch]
        var leaves: [Int64: Leaf]

        /// Hashes it; of each batch the first thing that is wrong is told.
        func checked() -> Checked {
            Checked(
                batches: batches,
                roots: batches.map { batch in
                    guard batch.lastPosition >= batch.firstPosition else { return .hash([]) }
                    var hashes: [[UInt8]] = []
                    for place in batch.firstPosition...batch.lastPosition {
                        guard let leaf = leaves[place] else {
                            return .broken(place, "event \(place) is missing")
                        }
                        switch leaf.hash() {
                        case .success(let hash): hashes.append(hash)
                        case .failure(let error): return .broken(place, error.message)
                        }
                    }
                    return .hash(Chain.root(hashes))
                }
            )
        }
    }

    /// Some batches and their roots.
    private struct Checked: Sendable {
        enum Root: Sendable {
            case hash([UInt8])
            case broken(Int64, String)
        }

        var batches: [Batch]
        var roots: [Root]
    }

    /// The batches that begin after a position, up to a window's worth of events.
    private func batches(after position: Int64) throws -> [Batch] {
        let rows = try connection.query(
            """
            select \(Batch.columns) from ledger.batch
            where first_position > $1
            order by first_position limit 500
            """,
            [.int(position)]
        )
        var result: [Batch] = []
        for row in 0..<rows.count {
            let batch = Batch(rows, row)
            if row > 0, batch.lastPosition > position + Self.windowCount { break }
            result.append(batch)
        }
        return result
    }

    private func leaves(
        _ range: ClosedRange<Int64>,
        _ apps: [Int32: AppKey],
        _ headers: inout HeaderCache
    ) throws -> [Int64: Leaf] {
        let rows = try connection.lookingUp {
            try connection.query(
                """
                select \(StoredEvent.columns), \(StoredParts.columns)
                from ledger.event
                left join ledger.evidence
                    on evidence.stream = event.stream and evidence.app_id = event.app_id
                    and evidence.position = event.position
                where event.position between $1 and $2
                order by event.position
                """,
                [.int(range.lowerBound), .int(range.upperBound)]
            )
        }
        var result: [Int64: Leaf] = [:]
        for row in 0..<rows.count {
            let event: StoredEvent
            do throws(EventLogError) { event = try StoredEvent(rows, row) } catch {
                // A column that holds no word of its kind is told when its turn comes.
                guard let position = error.position else { throw error }
                result[position] = .broken(error.message)
                continue
            }
            if result[event.position] != nil {
                result[event.position] = .broken("position \(event.position) is there twice")
                continue
            }
            result[event.position] = try leaf(event, rows, row, apps, &headers)
        }
        return result
    }

    private func leaf(
        _ event: StoredEvent,
        _ rows: Rows,
        _ row: Int,
        _ apps: [Int32: AppKey],
        _ headers: inout HeaderCache
    ) throws -> Leaf {
        guard let app = apps[event.key.appID] else {
            return .broken("event \(event.position) is of an app without a row")
        }
        guard !rows.isNull(row, 15) else {
            return .broken("the evidence of event \(event.position) is missing")
        }
        do {
            return .parts(
                try reader.parts(of: event, rows, row, column: 15, &headers),
                app: app
            )
        } catch let error as EventLogError where error.code == .unreadable {
            return .broken(error.message)
        }
    }

    private func firstEvent(after position: Int64) throws -> Int64? {
        let rows = try connection.query(
            "select min(position) from ledger.event where position > $1",
            [.int(position)]
        )
        return rows.int(0, 0)
    }
}
