import AppStore
import AppStoreSimulator
import EventLog
import Glibc
import Ledger
import LedgerService
import Postgres
import Schema
import Synchronization
import TestSupport
import Testing

@Suite struct SyncTests {
    private let reconcile: ReconcileSample
    private let id: String

    init() throws {
        reconcile = try ReconcileSample()
        id = reconcile.sample.chain(1).originalTransactionID
    }

    private func sync(_ clients: AppStoreClients) throws -> Sync {
        let now = reconcile.now
        return Sync(clients, try reconcile.recorder(), now: { now })
    }

    private var target: SyncSelection.Target {
        SyncSelection.Target(app: reconcile.app, id: id, reason: .named)
    }

    /// One subscription with a status and a history of one transaction.
    private func haveAppleKnowIt() {
        let at: Int64 = 1_700_100_000_000
        reconcile.apple.state.withLock {
            $0.bodies["/inApps/v1/subscriptions/\(id)"] = reconcile.statuses(1, at: at)
            $0.bodies["/inApps/v2/history/\(id)"] = reconcile.history(
                [reconcile.transaction(1, at: at)],
                revision: "first"
            )
        }
    }

    @Test func statusesAndHistoryAreReadAndTheRevisionIsGoneOnFrom() throws {
        haveAppleKnowIt()
        let clients = try reconcile.clients()
        let first = try sync(clients).run(target)
        #expect(first.failure == nil && first.recorded.appended == 3)
        #expect(first.recorded.unchanged == 1)
        _ = try sync(clients).run(target)
        let urls = reconcile.apple.requests.map(\.url).filter { $0.contains("/history/") }
        #expect(urls.count == 2 && !urls[0].contains("revision"))
        #expect(urls[1].hasSuffix("revision=first"))
    }

    /// What could not be taken, since an anchor was missing, is asked for again.
    @Test func aHistoryOfWhichSomethingWasRefusedIsReadAgain() throws {
        haveAppleKnowIt()
        let clients = try reconcile.clients()
        let now = reconcile.now
        let blind = Sync(clients, try reconcile.recorder(hasAnchor: false), now: { now })
        let refused = try blind.run(target)
        #expect(refused.isIncomplete && refused.recorded.rejected.count == 3)
        let taken = try sync(clients).run(target)
        #expect(!taken.isIncomplete && taken.recorded.appended == 3)
        let urls = reconcile.apple.requests.map(\.url).filter { $0.contains("/history/") }
        #expect(urls.count == 2 && urls.allSatisfy { !$0.contains("revision") })
        // What was read may be read again from the beginning.
        _ = try Sync(clients, try reconcile.recorder(), again: true, now: { now }).run(target)
        #expect(reconcile.apple.requests.last?.url.contains("revision") == false)
    }

    /// An answer that told nothing new is not kept; news that come after it and are older would
    /// count for more than they should.
    @Test func newsThatComeLateHaveAppleAskedAgain() throws {
        let sample = reconcile.sample
        let bench = try DeliveryBench(sample: sample)
        #expect(bench.deliver(sample.purchase(1))?.status == 200)
        let connection = try sample.database.connect()
        let selection = SyncSelection(connection)
        func now() throws -> Timestamp {
            let sql = "select floor(extract(epoch from clock_timestamp()) * 1000)::bigint"
            return Timestamp(milliseconds: try connection.query(sql).int(0, 0) ?? 0)
        }
        func overtaken(later: Milliseconds = .hours(0)) throws -> [SyncSelection.Target] {
            try selection.overtaken(of: [reconcile.app], now: now().adding(later))
        }
        func note(_ outcome: String) throws {
            usleep(5000)
            try PollBook(connection).note(
                id,
                of: reconcile.app,
                source: "subscription_statuses",
                outcome: outcome,
                now: now()
            )
            usleep(5000)
        }
        #expect(try overtaken().isEmpty, "Apple was never asked")
        try note("ok")
        #expect(try overtaken().isEmpty)
        let late = sample.signer.sign(
            .initialBuy(of: sample.chain(1), uuid: sample.uuid(77)),
            of: sample.chain(1)
        )
        #expect(bench.deliver(late)?.status == 200)
        #expect(try overtaken().map(\.id) == [id])
        #expect(try overtaken().map(\.reason) == [.overtaken])
        // An answer that never came settles nothing; it is asked for again after an hour.
        try note("unreachable")
        #expect(try overtaken().isEmpty)
        #expect(try overtaken(later: .hours(2)).map(\.id) == [id])
        try note("ok")
        #expect(try overtaken(later: .hours(2)).isEmpty)
    }

    /// The list of what is new since the last time need not have what was overtaken.
    @Test func whatWasOvertakenIsReadFromTheBeginning() throws {
        haveAppleKnowIt()
        let clients = try reconcile.clients()
        _ = try sync(clients).run(target)
        var overtaken = target
        overtaken.reason = .overtaken
        _ = try sync(clients).run(overtaken)
        #expect(reconcile.apple.requests.last?.url.contains("revision") == false)
    }

    @Test func whatAppleDoesNotKnowIsNotedAndNamed() throws {
        let result = try sync(reconcile.clients()).run(target)
        #expect(result.failure?.code == .transactionIDNotFound)
        #expect(result.failure?.message.contains("Production") == true)
        let poll = try PollBook(reconcile.sample.database.connect()).entry(
            id,
            of: reconcile.app,
            source: "subscription_statuses"
        )
        #expect(poll?.outcome == "4040010")
    }

    /// D04: Sandbox is asked on 4040010 only; a 401 only for an app that was never released.
    @Test(arguments: [
        (404, #"{"errorCode":4040010}"#, false, true), (401, "no", false, false),
        (401, "no", true, true), (503, "<html>", false, false), (429, "", false, false),
        (404, "<html>", false, false),
    ])
    func d04SandboxIsAskedOnlyWhereProductionHasNoSuchTransaction(
        _ status: Int,
        _ body: String,
        _ isUnreleased: Bool,
        _ isFound: Bool
    ) throws {
        reconcile.apple.state.withLock {
            $0.bodies["/inApps/v1/transactions/\(id)"] =
                #"{"signedTransactionInfo":"\#(reconcile.transaction(1, at: 1_700_100_000_000))"}"#
            for number in 1...30 where status != 404 || number == 1 {
                $0.faults[number] = (status, body)
            }
            // A 401 is tried twice, then the next host answers.
            if status == 401 { for number in 3...30 { $0.faults[number] = nil } }
        }
        let clients = try reconcile.clients([.production, .sandbox], isUnreleased: isUnreleased)
        let sync = try sync(clients)
        let apps = clients.accounts.map(\.app)
        if isFound {
            #expect(try sync.find(id, in: apps)?.app.environment == .sandbox)
        } else {
            #expect(throws: AppStoreAPIError.self) { _ = try sync.find(id, in: apps) }
            let hosts = reconcile.apple.requests.map(\.url)
            #expect(hosts.allSatisfy { $0.hasPrefix("https://api.storekit.apple.com/") })
        }
    }

    @Test func anUnknownTransactionIsNowhere() throws {
        let clients = try reconcile.clients([.production, .sandbox])
        let apps = clients.accounts.map(\.app)
        #expect(try sync(clients).find(id, in: apps) == nil)
        #expect(reconcile.apple.requests.count == 2)
        // Whoever names Sandbox alone has it asked alone.
        #expect(try sync(clients).find(id, in: [reconcile.app]) == nil)
        #expect(reconcile.apple.requests.count == 3)
        #expect(reconcile.apple.requests.last?.url.contains("sandbox") == true)
    }

    @Test func onlyThoseWhoseNewsIsMissingAreSelected() throws {
        _ = try reconcile.sample.ingest((1...3).map { reconcile.sample.purchase($0) })
        try Projector(reconcile.sample.database.connect()).project()
        let selection = SyncSelection(try reconcile.sample.database.connect())
        let apps = [reconcile.app]
        let end = Timestamp(milliseconds: 1_700_000_000_000 + 30 * 86_400_000)
        let inside = end.adding(.days(-1))
        let after = end.adding(.minutes(30))
        #expect(try selection.targets([.overdue], of: apps, now: inside, notSince: nil).isEmpty)
        #expect(try selection.targets([.all], of: apps, now: inside, notSince: nil).count == 3)
        let overdue = try selection.targets([.overdue], of: apps, now: after, notSince: nil)
        #expect(overdue.count == 3 && overdue.allSatisfy { $0.reason == .overdue })
        try PollBook(reconcile.sample.database.connect()).note(
            id,
            of: reconcile.app,
            source: "subscription_statuses",
            outcome: "ok",
            now: after
        )
        let rest = try selection.targets([.overdue], of: apps, now: after, notSince: after)
        #expect(rest.count == 2 && !rest.contains { $0.id == id })
        let last = try selection.targets([.overdue], of: apps, now: after, notSince: nil).last
        #expect(last?.id == id)
        // What cannot be asked about takes no place of what can, whatever the limit.
        let other = AppKey(bundleID: reconcile.app.bundleID, environment: .production)
        #expect(try selection.targets([.all], of: [other], now: after, notSince: nil).isEmpty)
        #expect(try selection.targets([.all], of: [], now: after, notSince: nil).isEmpty)
    }
}
