import AppStore
import AppStoreSimulator
import Crypto
import EventLog
import Glibc
import Ledger
import LedgerService
import Postgres
import Synchronization
import TestSupport
import Testing

@Suite struct WorkerTests {
    private let reconcile: ReconcileSample

    init() throws { reconcile = try ReconcileSample() }

    private func worker(
        _ environments: Set<Ledger.Environment> = [.sandbox],
        _ change: (inout ReconcileWorker.Options) -> Void = { _ in }
    ) throws -> ReconcileWorker {
        var options = ReconcileWorker.Options()
        options.restMilliseconds = 50
        options.troubleRest = .milliseconds(200)
        change(&options)
        let database = reconcile.sample.database
        let now = reconcile.now
        let clients = try reconcile.clients(environments)
        return ReconcileWorker(
            options: options,
            verifier: try reconcile.sample.verifier(),
            clients: { _ in clients },
            connect: { try database.connect() },
            read: { try database.connect() },
            changed: {},
            log: ServiceLog(descriptor: -1, now: { now }),
            now: { now }
        )
    }

    /// Waits until something holds, a minute at most.
    private func wait(_ condition: () throws -> Bool) throws -> Bool {
        for _ in 0..<600 {
            if try condition() { return true }
            usleep(100_000)
        }
        return false
    }

    @Test func aLostNotificationIsRecoveredWhileItServes() throws {
        reconcile.fill(1...25)
        _ = try reconcile.sample.ingest((2...25).map { reconcile.sample.purchase($0) })
        let worker = try worker { $0.syncs = false }
        defer { worker.stop() }
        #expect(try wait { worker.condition.backfilledAt != nil })
        #expect(worker.condition.recovered == 1)
        #expect(try reconcile.notifications() == 25)
    }

    @Test func ofTwoProgramsOneDoesIt() throws {
        reconcile.fill(1...5)
        let one = try worker { $0.syncs = false }
        #expect(try wait { one.condition.backfilledAt != nil })
        let other = try worker { $0.syncs = false }
        usleep(500_000)
        #expect(other.condition.backfilledAt == nil)
        // The first goes and leaves its turn: the other takes it at once.
        one.stop()
        #expect(try wait { other.condition.backfilledAt != nil })
        other.stop()
    }

    @Test func aTurnIsTakenOverWhenItsTimeIsOver() throws {
        let connection = try reconcile.sample.database.connect()
        let (one, other) = (Turn(work: "w", holder: "1"), Turn(work: "w", holder: "2"))
        #expect(try one.take(connection) && one.take(connection))
        #expect(try !other.take(connection))
        try connection.query("update ledger.turn set until = now() - interval '1 second'")
        #expect(try other.take(connection) && !one.take(connection))
    }

    @Test func whatIsOverdueIsAskedAbout() throws {
        _ = try reconcile.sample.ingest([reconcile.sample.purchase(1)])
        // The purchase is of thirty days; a day's plan is overdue now.
        let short = reconcile.sample.chain(2)
        let notice = Notice.initialBuy(of: short, days: 1, uuid: reconcile.sample.uuid(2))
        _ = try reconcile.sample.ingest([reconcile.sample.signer.sign(notice, of: short)])
        try Projector(reconcile.sample.database.connect()).project()
        let worker = try worker { $0.backfillMinutes = 0 }
        defer { worker.stop() }
        #expect(try wait { worker.condition.synced > 0 })
        let asked = reconcile.apple.requests.map(\.url)
        #expect(asked.contains { $0.hasSuffix(short.originalTransactionID) })
        let first = reconcile.sample.chain(1).originalTransactionID
        #expect(!asked.contains { $0.hasSuffix(first) })
    }

    @Test func anOutageIsToldAndTheWorkerStops() throws {
        reconcile.apple.state.withLock { state in
            for number in 1...100 { state.faults[number] = (503, "<html>") }
        }
        let worker = try worker()
        #expect(try wait { worker.condition.failure != nil })
        #expect(worker.condition.failure?.contains("503") == true)
        worker.stop()
    }

    /// A key that one app's Production refuses, or an outage of one environment, is no reason to
    /// leave the others alone.
    @Test(arguments: [401, 503]) func whatIsWrongWithOneAppKeepsNothingFromOthers(
        _ status: Int
    ) throws {
        reconcile.fill(1...5)
        _ = try reconcile.sample.ingest([reconcile.sample.purchase(6)])
        let short = reconcile.sample.chain(7)
        let notice = Notice.initialBuy(of: short, days: 1, uuid: reconcile.sample.uuid(7))
        _ = try reconcile.sample.ingest([reconcile.sample.signer.sign(notice, of: short)])
        try Projector(reconcile.sample.database.connect()).project()
        let host = "api.storekit.apple.com"
        reconcile.apple.state.withLock { $0.hostFaults[host] = status }
        let worker = try worker([.production, .sandbox])
        defer { worker.stop() }
        #expect(try wait { worker.condition.recovered == 5 && worker.condition.synced > 0 })
        #expect(worker.condition.backfilledAt == nil, "Production was not read")
        #expect(worker.condition.failure?.contains("\(status)") == true)
        #expect(worker.condition.troubles.keys.allSatisfy { $0.contains(" Production ") })
        // It is asked again by and by, and then nothing is wrong.
        reconcile.apple.state.withLock { state in
            // What the double would list is Sandbox's.
            state.notifications = []
            state.hostFaults = [:]
        }
        #expect(try wait { worker.condition.backfilledAt != nil })
        #expect(worker.condition.failure == nil)
    }

    @Test func aTestNotificationTellsWhetherItArrived() throws {
        let token = "abc_1"
        let uuid = reconcile.sample.uuid(1)
        let text = String(decoding: reconcile.sample.purchase(1), as: UTF8.self)
        reconcile.apple.state.withLock {
            $0.bodies["/inApps/v1/notifications/test"] = #"{"testNotificationToken":"\#(token)"}"#
            $0.bodies["/inApps/v1/notifications/test/\(token)"] =
                #"{"signedPayload":"\#(text)","sendAttempts":[{"attemptDate":1700000000000,"#
                + #""sendAttemptResult":"SUCCESS"}]}"#
            // The first question is too early.
            $0.faults[2] = (404, #"{"errorCode":4040008}"#)
        }
        let account = try reconcile.clients().accounts[0]
        let test = TestNotification(account, try reconcile.recorder(), sleep: { _ in true })
        let lost = try test.run()
        #expect(lost.notificationUUID == uuid && lost.attempts.map(\.result) == ["SUCCESS"])
        #expect(!lost.hasArrived)
        #expect(try test.run().hasArrived)
    }
}
