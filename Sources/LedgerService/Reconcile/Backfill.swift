package import AppStore
internal import EventLog
package import Ledger
internal import Postgres

/// Gets the notifications that Apple sent and that did not arrive.
///
/// Apple's notification history is read in pieces of at most a day, oldest first; a notification
/// that is in the log already is known by its UUID. A piece that was read to its end is noted, so
/// a run that was stopped goes on where it was; but not a piece of which something was not taken:
/// that may be our fault (an anchor that is missing, a clock that is wrong), and it is read again.
package final class Backfill {
    /// How long a piece is.
    static let pieceLongest = Milliseconds.days(1)

    /// What a run came to.
    package struct Report: Hashable, Sendable {
        /// Notifications that Apple listed.
        package var listed = 0
        /// Those that were missing here, and are events now.
        package var recovered = 0
        /// Those that were here.
        package var known = 0
        /// Those that say something else than the event under their UUID.
        package var conflict = 0
        /// Those that are kept in quarantine.
        package var quarantined = 0
        /// Those of which nothing is kept.
        package var rejected: [Rejection] = []
        /// Pages that were read.
        package var pages = 0
        /// What was to be read.
        package var span: TimeSpan?
        /// Where Apple's memory begins, if more than that was asked for.
        package var clampedTo: Timestamp?
        /// Whether it was stopped before its end.
        package var isStopped = false
        /// The streams that got something new.
        package var changedStreams: Set<String> = []

        /// Makes the report of nothing.
        package init() {}

        mutating func add(_ page: RecordedResponse, listed count: Int) {
            pages += 1
            listed += count
            recovered += page.appended
            known += page.unchanged
            conflict += page.conflict
            quarantined += page.quarantined
            rejected += page.rejected
            changedStreams.formUnion(page.changedStreams)
        }
    }

    /// What is to be read.
    package struct Wish: Hashable, Sendable {
        /// From where; nil goes on from what was read before, or from where Apple's memory begins.
        package var from: Timestamp?
        /// Up to where; nil for now.
        package var to: Timestamp?
        /// Only what did not reach our server.
        package var onlyFailures = false
        /// Reads also what was read before.
        package var again = false

        /// Wishes for everything that is not there yet.
        package init() {}
    }

    private let account: AppStoreClients.Account
    private let recorder: ResponseRecorder
    private let now: () -> Timestamp

    /// Makes a backfill of one app in one environment.
    ///
    /// - Parameters:
    ///   - account: the app and its client.
    ///   - recorder: writes what Apple answers.
    ///   - now: our clock.
    package init(
        _ account: AppStoreClients.Account,
        _ recorder: ResponseRecorder,
        now: @escaping () -> Timestamp
    ) {
        self.account = account
        self.recorder = recorder
        self.now = now
    }

    /// Reads what is wished for.
    ///
    /// - Parameters:
    ///   - wish: what is to be read.
    ///   - shouldStop: asked after each page.
    ///   - progress: told after each page which part is done.
    /// - Returns: what it came to.
    /// - Throws: `AppStoreAPIError`, and `EventLogError` or `PostgresError`; what was recorded
    ///   before stays.
    package func run(
        _ wish: Wish = Wish(),
        shouldStop: () -> Bool = { false },
        progress: (Report, Double) -> Void = { _, _ in }
    ) throws -> Report {
        var report = Report()
        let start = now()
        let pieces = try plan(wish, start, &report)
        let total = max(1, pieces.reduce(0) { $0 + $1.length })
        var done: Int64 = 0
        for piece in pieces {
            var query = NotificationHistoryQuery(from: piece.from, to: piece.to)
            query.onlyFailures = wish.onlyFailures
            let completedAt = now()
            let rejectedBefore = report.rejected.count
            do {
                try account.client.notificationHistory(query) { response in
                    let page = try recorder.record(response, about: stream)
                    report.add(page, listed: response.answer?.items.count ?? 0)
                    progress(report, Double(done) / Double(total))
                    if shouldStop() { throw Stopped() }
                }
            } catch is Stopped {
                report.isStopped = true
                return report
            } catch let error as AppStoreAPIError where error.kind != .stopped {
                try note(error)
                throw error
            }
            done += piece.length
            guard report.rejected.count == rejectedBefore else {
                progress(report, Double(done) / Double(total))
                continue
            }
            try recorder.withSession { connection, _ in
                try WindowBook(connection).complete(
                    piece,
                    of: account.app,
                    onlyFailures: wish.onlyFailures,
                    at: completedAt
                )
            }
            progress(report, Double(done) / Double(total))
        }
        return report
    }

    private struct Stopped: Error {}

    /// Notes that Apple could not be asked, for `doctor`; not of an app that was never released, which
    /// Production cannot know.
    private func note(_ error: AppStoreAPIError) throws {
        let isExpected =
            error.kind == .unauthorized && account.isUnreleased
            && account.app.environment == .production
        guard !isExpected else { return }
        try recorder.note(error, about: stream, of: account.app, now: now())
    }

    private var stream: String { "app:\(account.app.bundleID)" }

    /// The pieces that are to be read, oldest first.
    private func plan(
        _ wish: Wish,
        _ now: Timestamp,
        _ report: inout Report
    ) throws -> [TimeSpan] {
        let earliest = NotificationHistoryQuery.earliestStart(in: account.app.environment, now: now)
        let to = min(wish.to ?? now, now)
        var from = wish.from ?? earliest
        if from < earliest {
            report.clampedTo = earliest
            from = earliest
        }
        let span = TimeSpan(from: from, to: to)
        report.span = span
        guard !span.isEmpty else { return [] }
        let settled =
            wish.again
            ? []
            : try recorder.withSession { connection, _ in
                try WindowBook(connection).settled(
                    of: account.app,
                    onlyFailures: wish.onlyFailures
                )
            }
        return span.pieces(without: settled, longest: Self.pieceLongest)
    }
}
