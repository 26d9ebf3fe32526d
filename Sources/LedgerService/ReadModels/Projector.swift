internal import EventLog
internal import Ledger
public import Postgres
internal import Projections

/// The steps of a projector's transaction, for tests that stop the program at one of them.
enum ProjectorStep: CaseIterable {
    case claimed
    case folded
    case rowsWritten
    case marksEnded
}

/// Brings the live read models up to date with the log, stream by stream.
///
/// Every stream that has a mark is folded whole and its rows replaced in all read models, in one
/// transaction with the end of its marks: a projector that is killed at any moment has either done
/// a stream or not touched it. Any number of projectors may run; a claim is a locked row.
public final class Projector {
    /// What a run did.
    public struct Report: Hashable, Sendable {
        /// How many streams were folded.
        public var streams = 0
        /// How many events they have.
        public var events = 0
        /// How many rows were written, those of changed rows included.
        public var rowsWritten: Int64 = 0
        /// How many rows went, those of changed rows included.
        public var rowsDeleted: Int64 = 0
        /// The streams that could not be folded by this run, with the reasons.
        public var parked: [Staleness.Parked] = []
    }

    /// The longest stream that is folded; a longer one is parked.
    public static let streamEventsMax = 100_000

    /// How many streams a transaction folds at most.
    static let batchSize = 500

    /// How long may pass between two looks at all marks, as a multiple of what one takes.
    static let sweepShare = 20.0

    let connection: Connection
    var report = Report()
    /// The highest mark that was seen; what is appended later is marked beyond it.
    private var newestSeen: Int64 = 0
    private var sweptAt: ContinuousClock.Instant?
    private var sweepTime = Duration.zero

    /// Called at each step of a transaction that holds a stream; tests stop the program there.
    var step: (ProjectorStep) throws -> Void = { _ in }

    /// Makes a projector over a session that may write the read models.
    public init(_ connection: Connection) { self.connection = connection }

    /// Folds every stream that has a mark and that no other projector holds.
    ///
    /// - Parameters:
    ///   - shouldStop: asked before each transaction.
    ///   - progress: told after each transaction.
    /// - Returns: what was done.
    /// - Throws: `.outOfDate` when the rows were made by another version of this program;
    ///   `.unavailable` when the server is gone or refuses for now. What was done stays done.
    @discardableResult
    public func project(
        shouldStop: () -> Bool = { false },
        progress: (Report) -> Void = { _ in }
    ) throws(ReadModelError) -> Report {
        report = Report()
        try readModels("fold the marked streams") {
            try adoptEmptyGenerations()
            while !shouldStop(), try sweep(shouldStop, progress) {}
        }
        try dropRetired()
        return report
    }

    /// Folds what was marked since the last time, and now and then, as `project` does, all.
    ///
    /// It is for whoever projects again and again. While an old snapshot is open, the entries of
    /// marks long gone stay in the indexes: going over them all at each append would take ever
    /// longer. Marks of appends lie beyond those seen before; any other (a policy that changed, a
    /// projector that died) is found by going over them all, which gets a small share of the time.
    ///
    /// - Parameter shouldStop: asked before each transaction.
    /// - Returns: what was done.
    /// - Throws: as `project`.
    func projectNews(shouldStop: () -> Bool) throws(ReadModelError) -> Report {
        report = Report()
        try readModels("fold the marked streams") {
            try adoptEmptyGenerations()
            while !shouldStop() {
                let page = try candidates(Self.news, [.int(newestSeen)])
                guard page.rows > 0 else { break }
                newestSeen = max(newestSeen, page.newest)
                if !page.found.isEmpty { try fold(page.found) }
                // What came meanwhile waits for the next run, so that it comes in one batch.
                if page.rows < Self.batchSize { break }
            }
            let pause = max(.milliseconds(150), sweepTime * Self.sweepShare)
            if sweptAt.map({ ContinuousClock.now - $0 >= pause }) ?? true {
                while !shouldStop(), try sweep(shouldStop, { _ in }) {}
            }
        }
        try dropRetired()
        return report
    }

    /// Removes what a rebuild could not, since it was still read.
    private func dropRetired() throws(ReadModelError) {
        if report.streams > 0 { try? Retirement.dropRetired(connection) }
    }

    /// Marks every subscription of an app, for when its rules or access policy have changed.
    ///
    /// Call it in the transaction that stores the new version. It waits for projectors at work,
    /// who know the old one, and those that come later see the new one.
    public static func markAll(
        ofApp appID: Int32,
        _ connection: Connection
    ) throws(ReadModelError) {
        try readModels("mark the subscriptions of an app") {
            _ = try Current.read(connection, lock: "for update")
            try connection.query(
                """
                insert into ledger.mark (stream, app_id, position)
                select stream, app_id, max(position) from ledger.fact
                where app_id = $1 group by stream, app_id
                on conflict do nothing
                """,
                [.int(Int64(appID))]
            )
        }
    }

    // MARK: - Looking at the marks

    struct Candidate {
        var key: SubscriptionKey
        /// The highest marked position that was seen.
        var position: Int64
    }

    /// Some of the marks.
    private struct Page {
        /// The subscriptions to fold.
        var found: [Candidate] = []
        /// How many subscriptions there were, parked ones included.
        var rows = 0
        /// The last of them.
        var end: SubscriptionKey?
        /// The highest position.
        var newest: Int64 = 0
    }

    /// Goes over all marks once, in the order of their key.
    ///
    /// - Returns: whether anything was folded, so that another pass may find more.
    private func sweep(_ shouldStop: () -> Bool, _ progress: (Report) -> Void) throws -> Bool {
        let before = report.streams
        let start = ContinuousClock.now
        var looking = Duration.zero
        var last = SubscriptionKey(appID: .min, stream: "")
        while !shouldStop() {
            let began = ContinuousClock.now
            let page = try candidates(
                Self.everything,
                [.text(last.stream), .int(Int64(last.appID))]
            )
            looking += ContinuousClock.now - began
            guard let end = page.end else { break }
            last = end
            if !page.found.isEmpty { try fold(page.found) }
            progress(report)
        }
        sweptAt = start
        sweepTime = looking
        return report.streams > before
    }

    /// The marks beyond a position.
    static let news = "where position > $1 order by position"
    /// The marks beyond a subscription.
    static let everything =
        "where (stream, app_id) > ($1, $2::integer) order by stream, app_id, position"

    /// The statement that reads some marks with what is known of their subscriptions.
    static func candidates(_ which: String) -> String {
        """
        select m.stream, m.app_id, max(m.position), max(p.position)
        from (
            select stream, app_id, position from ledger.mark
            \(which) limit \(Self.batchSize)
        ) m
        left join read_model.parked p on p.stream = m.stream and p.app_id = m.app_id
        group by m.stream, m.app_id
        order by m.stream, m.app_id
        """
    }

    private func candidates(_ which: String, _ binds: [Bind]) throws -> Page {
        let rows = try connection.query(prepared: Self.candidates(which), binds)
        var page = Page()
        page.rows = rows.count
        for row in 0..<rows.count {
            let key = SubscriptionKey(
                appID: Int32(rows.int(row, 1) ?? 0),
                stream: rows.text(row, 0) ?? ""
            )
            page.end = key
            let position = rows.int(row, 2) ?? 0
            page.newest = max(page.newest, position)
            // A parked stream is tried again when it has news.
            if let parkedAt = rows.int(row, 3), parkedAt >= position { continue }
            page.found.append(Candidate(key: key, position: position))
        }
        return page
    }

    /// Folds some streams in one transaction; where that fails, in halves, until the stream that
    /// cannot be folded stands alone and is parked.
    private func fold(_ candidates: [Candidate]) throws {
        do {
            try foldTogether(candidates)
        } catch {
            let failure = ReadModelError(error, doing: "fold")
            guard failure.code == .database || failure.code == .unreadableEvent else {
                throw failure
            }
            guard candidates.count > 1 else { return try park(candidates[0], failure) }
            let half = candidates.count / 2
            try fold(Array(candidates[..<half]))
            try fold(Array(candidates[half...]))
        }
    }

    private func foldTogether(_ candidates: [Candidate]) throws {
        try makeClaimable(candidates.map(\.key))
        try connection.transaction(Self.begin) { connection in
            let claimed = try claim(candidates)
            guard !claimed.isEmpty else { return }
            try step(.claimed)
            let generations = try liveGenerations()
            // Only now are rules and events read: what is committed later has a mark of its own.
            let reader = LogReader(connection)
            var folder = StreamFolder(generations, try AppRegistry(connection))
            var highest: [SubscriptionKey: Int64] = [:]
            var eventCount = 0
            var isSettled = false
            while !isSettled {
                var customers: Set<AppleID> = []
                eventCount = 0
                try reader.forEachStream(
                    among: claimed.map(\.key),
                    atMost: Self.streamEventsMax + 1
                ) { key, events in
                    guard events.count <= Self.streamEventsMax else { throw Self.tooLong }
                    folder.add(events, of: key)
                    customers.formUnion(Withdrawals.customers(of: events))
                    eventCount += events.count
                    highest[key] = events.map(\.position).max()
                }
                // Read after the events: what is withdrawn later finds these subscriptions. It is
                // rare that there is any, and then they are folded once more with it.
                let withdrawals = try Withdrawals(of: customers, connection)
                isSettled = withdrawals == folder.withdrawals
                if !isSettled {
                    folder.removeAll()
                    folder.withdrawals = withdrawals
                }
            }
            try Withdrawals.spread(from: claimed.map(\.key), connection)
            // A stream whose events are never folded ends its marks too.
            let folded = claimed.map {
                Candidate(key: $0.key, position: max($0.position, highest[$0.key] ?? 0))
            }
            try step(.folded)
            var written: Int64 = 0
            var deleted: Int64 = 0
            for (index, generation) in generations.enumerated() {
                var difference = RowDifference()
                try difference.apply(
                    folder.rows[index],
                    of: claimed.map(\.key),
                    to: generation,
                    over: connection
                )
                written += difference.insertedRows.rows
                deleted += difference.deletedRows.rows
            }
            try step(.rowsWritten)
            try finish(folded)
            try step(.marksEnded)
            report.streams += claimed.count
            report.events += eventCount
            report.rowsWritten += written
            report.rowsDeleted += deleted
        }
    }
}
