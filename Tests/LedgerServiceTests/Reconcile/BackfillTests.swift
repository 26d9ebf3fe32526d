import AppStore
import AppStoreSimulator
import EventLog
import Ledger
import LedgerService
import Postgres
import Schema
import Synchronization
import TestSupport
import Testing

@Suite struct BackfillTests {
    private let reconcile: ReconcileSample

    init() throws { reconcile = try ReconcileSample() }

    private func wish(_ change: (inout Backfill.Wish) -> Void = { _ in }) -> Backfill.Wish {
        var wish = Backfill.Wish()
        wish.from = reconcile.now.adding(.days(-4))
        change(&wish)
        return wish
    }

    /// D07: 45 missed notifications come on three pages, and each is there once.
    @Test func d07AllMissedNotificationsAreRecoveredOnce() throws {
        reconcile.fill(1...45)
        _ = try reconcile.sample.ingest((1...5).map { reconcile.sample.purchase($0) })
        let report = try reconcile.backfill().run(wish())
        #expect(report.listed == 45 && report.recovered == 40 && report.known == 5)
        #expect(try reconcile.notifications() == 45)
        // Everything but the last hour is settled.
        let again = try reconcile.backfill().run(wish())
        #expect(again.pages == 1 && again.recovered == 0)
        let whole = try reconcile.backfill().run(wish { $0.again = true })
        #expect(whole.listed == 45 && whole.recovered == 0 && whole.known == 45)
        let bodies = "select count(*) from ledger.event where kind = 'api_response'"
        #expect(try reconcile.count(bodies) == 4)
    }

    /// D07: a run that ends after page 2 is simply run again.
    @Test func d07ARunThatWasCutOffComesToTheSame() throws {
        reconcile.fill(1...45)
        reconcile.apple.state.withLock { $0.pages = 10 }
        var pages = 0
        let cut = try reconcile.backfill().run(
            wish(),
            shouldStop: {
                pages += 1
                return pages == 2
            }
        )
        #expect(cut.isStopped && cut.recovered < 45)
        let report = try reconcile.backfill().run(wish())
        #expect(!report.isStopped && cut.recovered + report.recovered == 45)
        #expect(try reconcile.notifications() == 45)
    }

    /// D07: where Apple forgets a page's token, the window is begun again.
    @Test func d07AnExpiredTokenBeginsTheWindowAgain() throws {
        reconcile.fill(1...45)
        reconcile.apple.state.withLock {
            $0.pages = 10
            $0.faults = [2: (400, #"{"errorCode":4000017}"#)]
        }
        let report = try reconcile.backfill().run(wish())
        #expect(report.recovered == 45 && report.known == 10)
        #expect(try reconcile.notifications() == 45)
    }

    /// D06: an outage that is over soon leaves no trace, one that stays names status and page.
    @Test func d06AnOutageKeepsWhatWasRead() throws {
        reconcile.fill(1...45)
        reconcile.apple.state.withLock {
            $0.pages = 10
            $0.faults = [2: (503, "<html>"), 3: (500, "")]
            for number in 5...30 { $0.faults[number] = (503, "<html>") }
        }
        let error = #expect(throws: AppStoreAPIError.self) {
            _ = try reconcile.backfill().run(wish())
        }
        #expect(error?.status == 503 && error?.page != nil)
        func outcome() throws -> String? {
            try PollBook(reconcile.sample.database.connect()).entry(
                "app:\(reconcile.app.bundleID)",
                of: reconcile.app,
                source: "notification_history"
            )?.outcome
        }
        #expect(try outcome() == "503", "doctor tells it")
        reconcile.apple.state.withLock { $0.faults = [:] }
        _ = try reconcile.backfill().run(wish())
        #expect(try reconcile.notifications() == 45)
        #expect(try outcome() == "ok")
    }

    /// D08: a window that begins before Apple's memory is cut, and that is said.
    @Test func d08AWindowBeyondApplesMemoryIsCut() throws {
        reconcile.fill(1...3)
        let report = try reconcile.backfill().run(
            wish { $0.from = reconcile.now.adding(.days(-31)) }
        )
        #expect(report.clampedTo != nil && report.recovered == 3)
        let first = try JSONDocument(try #require(reconcile.apple.requests.first?.body))
        let start = try #require(try first["startDate"]?.int64())
        #expect(start > reconcile.now.milliseconds - 30 * 86_400_000)
        #expect(try reconcile.count("select count(*) from ledger.history_window") == 1)
        let end = "select (extract(epoch from window_to) * 1000)::bigint from ledger.history_window"
        #expect(try reconcile.count(end) == reconcile.now.milliseconds)
    }

    /// What could not be taken, since an anchor was missing, is read again once it is there.
    @Test func aDayOfWhichSomethingWasRefusedIsReadAgain() throws {
        reconcile.fill(1...45)
        let blind = try reconcile.backfill(hasAnchor: false).run(wish())
        #expect(blind.listed == 45 && blind.recovered == 0 && blind.rejected.count == 45)
        let connection = try reconcile.sample.database.connect()
        let book = WindowBook(connection)
        let first = reconcile.now.adding(.days(-4))
        #expect(try book.holes(of: reconcile.app, since: first).count <= 1)
        let report = try reconcile.backfill().run(wish())
        #expect(report.recovered == 45 && report.rejected.isEmpty)
        #expect(try reconcile.notifications() == 45)
        #expect(try book.holes(of: reconcile.app, since: first).isEmpty)
    }

    /// A day in the middle that was not taken whole is a hole, which `doctor` tells.
    @Test func whatWasNotReadBetweenWhatWasIsAHole() throws {
        let book = WindowBook(try reconcile.sample.database.connect())
        func day(_ number: Int64) -> Timestamp { reconcile.now.adding(.days(number)) }
        for number: Int64 in [-9, -8, -6, -4] {
            try book.complete(
                TimeSpan(from: day(number), to: day(number + 1)),
                of: reconcile.app,
                onlyFailures: false,
                at: reconcile.now
            )
        }
        let holes = try book.holes(of: reconcile.app, since: day(-30))
        #expect(
            holes == [
                TimeSpan(from: day(-7), to: day(-6)), TimeSpan(from: day(-5), to: day(-4)),
            ]
        )
        let late = try book.holes(of: reconcile.app, since: day(-5))
        #expect(late == [TimeSpan(from: day(-5), to: day(-4))], "Apple has forgotten the other")
    }

    /// Whoever goes on exactly where a run ended does not make its last hour settled.
    @Test func aSpanThatBeginsAtTheEndOfAnotherSettlesNothingOfIt() throws {
        reconcile.fill(1...3)
        #expect(try reconcile.backfill().run(wish()).recovered == 3)
        // Apple lists it only after that run, with an instant before its end.
        let late = AppleDouble.Sent(
            at: reconcile.now.adding(.minutes(-30)).milliseconds,
            payload: reconcile.sample.purchase(4),
            attempts: []
        )
        reconcile.apple.state.withLock { $0.notifications.append(late) }
        let end = reconcile.now
        func later(_ hours: Int64, _ wish: Backfill.Wish) throws -> Backfill.Report {
            let account = try reconcile.clients().accounts[0]
            let now = end.adding(.hours(hours))
            return try Backfill(account, try reconcile.recorder(), now: { now }).run(wish)
        }
        #expect(try later(2, wish { $0.from = end }).recovered == 0)
        let report = try later(3, wish())
        #expect(report.recovered == 1 && report.pages == 2, "the hour before, and the last one")
        #expect(try later(4, wish()).pages == 1)
        let windows = try reconcile.count("select count(*) from ledger.history_window")
        #expect(windows == 1, "what touches is one again")
    }

    @Test func failuresAloneSettleOnlyFailures() throws {
        reconcile.fill(1...3)
        reconcile.fill(4...6, result: "SUCCESS")
        let failed = try reconcile.backfill().run(wish { $0.onlyFailures = true })
        #expect(failed.recovered == 3)
        let all = try reconcile.backfill().run(wish())
        #expect(all.recovered == 3 && all.known == 3)
    }

    @Test func whatAppleSaysOfSendingIsKeptOnce() throws {
        reconcile.fill(1...3)
        reconcile.fill(4...4, result: "SUCCESS")
        for _ in 1...2 { _ = try reconcile.backfill().run(wish { $0.again = true }) }
        let connection = try reconcile.sample.database.connect()
        let all = try SendAttempts(connection).latest(10, onlyFailed: false)
        #expect(all.count == 4 && all.allSatisfy { $0.isRecorded && $0.attempts.count == 1 })
        #expect(all.first?.isDelivered == true && all.first?.notificationType == "SUBSCRIBED")
        let failed = try SendAttempts(connection).latest(10, onlyFailed: true)
        #expect(failed.count == 3 && failed.allSatisfy { $0.attempts[0].result == "TIMED_OUT" })
        let results = try SendAttempts(connection).results(since: .earliest)
        #expect(results.map(\.count) == [3, 1])
    }

    @Test func everyRoleMayDoItsPart() throws {
        reconcile.fill(1...3)
        let database = reconcile.sample.database
        let verifier = try reconcile.sample.verifier()
        let recorder = ResponseRecorder(run: "r", verifier: verifier) {
            let connection = try database.connect()
            // The roles are those of the template that the database was copied from.
            let roles = try connection.query(
                """
                select rolname::text from pg_roles
                where rolname like '%appender' and not rolsuper
                    and has_table_privilege(oid, 'ledger.event', 'insert')
                """
            )
            try connection.execute("set role \(Roles.quoted(roles.text(0, 0) ?? ""))")
            return connection
        }
        let account = try reconcile.clients().accounts[0]
        let now = reconcile.now
        let backfill = Backfill(account, recorder, now: { now })
        #expect(try backfill.run(wish()).recovered == 3)
        let turn = Turn(work: "reconcile", holder: "one")
        #expect(try recorder.withSession { connection, _ in try turn.take(connection) })
    }

    @Test func spansAreCutAroundWhatIsThere() {
        func at(_ hour: Int64) -> Timestamp { Timestamp(milliseconds: hour * 3_600_000) }
        func span(_ from: Int64, _ to: Int64) -> TimeSpan { TimeSpan(from: at(from), to: at(to)) }
        let pieces = span(0, 60).pieces(
            without: [span(50, 55), span(10, 20), span(15, 22), span(-5, 1)],
            longest: .hours(24)
        )
        #expect(pieces == [span(1, 10), span(22, 46), span(46, 50), span(55, 60)])
        #expect(span(0, 5).pieces(without: [span(0, 9)], longest: .hours(1)) == [])
    }
}
