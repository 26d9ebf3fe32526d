import Dispatch
import EventLog
import Glibc
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

@Suite struct CommitterTests {
    private let fixture: LogFixture

    init() throws { fixture = try LogFixture() }

    /// What the completions said, by key.
    private final class Heard: Sendable {
        private let entries = Mutex<[(key: String, reception: Committer.Reception)]>([])
        private let arrived = DispatchSemaphore(value: 0)

        func hear(_ key: String) -> @Sendable (Committer.Reception) -> Void {
            { [self] reception in
                entries.withLock { $0.append((key, reception)) }
                arrived.signal()
            }
        }

        func wait(for count: Int) {
            for _ in 0..<count { arrived.wait() }
        }

        var keys: [String] { entries.withLock { $0.map(\.key) } }

        var outcomes: [AppendOutcome] {
            entries.withLock { entries in
                entries.compactMap {
                    if case .kept(let outcome) = $0.reception { outcome } else { nil }
                }
            }
        }

        var failures: [EventLogError] {
            entries.withLock { entries in
                entries.compactMap {
                    if case .failed(let error) = $0.reception { error } else { nil }
                }
            }
        }
    }

    private func admission(_ key: String, in environment: Environment = .production) -> Admission {
        var event = fixture.event(
            "70\(key.hashValue.magnitude % 100)",
            key,
            .didChangeRenewalStatus,
            at: LogFixture.day(1),
            nil
        )
        event.app.environment = environment
        return .event(event, isUnrecognised: false)
    }

    /// Every second one comes from all threads, as a delivery that is repeated at once.
    private static func key(_ thread: Int, _ number: Int) -> String {
        number % 2 == 0 ? "shared-\(number)" : "own-\(thread)-\(number)"
    }

    @Test func whatManyThreadsHandOverIsKeptOnceAndEachIsTold() throws {
        let wakes = Atomic<Int>(0)
        let committer = Committer(connect: fixture.connect) {
            wakes.add(1, ordering: .relaxed)
        }
        let heard = Heard()
        // Made here, since the fixture belongs to one thread.
        var admissions: [String: Admission] = [:]
        for thread in 0..<8 {
            for number in 0..<60 {
                let key = Self.key(thread, number)
                admissions[key] = admissions[key] ?? admission(key)
            }
        }
        let all = admissions
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for number in 0..<60 {
                let key = Self.key(thread, number)
                guard let admission = all[key] else { continue }
                let isTaken = committer.submit(admission, completion: heard.hear(key))
                if !isTaken { heard.hear("refused")(.failed(EventLogError(.invalid, "refused"))) }
            }
        }
        heard.wait(for: 480)
        committer.stop()
        #expect(heard.failures.isEmpty)
        let appended = heard.outcomes.compactMap { outcome in
            if case .appended(let position) = outcome { position } else { nil }
        }
        #expect(appended.sorted() == (1...Int64(30 + 8 * 30)).map(\.self))
        #expect(heard.outcomes.count - appended.count == 7 * 30, "the rest were duplicates")
        let stored = try fixture.connection.query("select count(*) from ledger.event").int(0, 0)
        #expect(stored == 270)
        #expect(wakes.load(ordering: .relaxed) > 0)
        #expect(committer.measures.batchSize.snapshot.count < 480, "they were gathered")
    }

    /// With a step this long all of it would be in a transaction each, if none waited.
    @Test(arguments: [1, Int.max])
    func wherePeopleComeInNumbersTheNextBatchIsGivenTimeToGrow(from gatherFrom: Int) throws {
        var limits = Committer.Limits()
        limits.gatherFrom = gatherFrom
        limits.gatherStep = .seconds(2)
        let committer = Committer(limits: limits, connect: fixture.connect) {}
        defer { committer.stop() }
        let heard = Heard()
        _ = committer.submit(admission("first"), completion: heard.hear("first"))
        heard.wait(for: 1)
        for number in 0..<5 {
            let key = "later-\(number)"
            _ = committer.submit(admission(key), completion: heard.hear(key))
            // Without a wait each is answered before the next one comes.
            if gatherFrom == Int.max { heard.wait(for: 1) } else { usleep(20_000) }
        }
        if gatherFrom == 1 { heard.wait(for: 5) }
        #expect(heard.outcomes.count == 6)
        let batches = committer.measures.batchSize.snapshot.count
        #expect(batches == (gatherFrom == 1 ? 2 : 6))
    }

    @Test func productionGoesFirstAndSandboxIsNotForgotten() throws {
        // The session opens only when all have been handed over.
        let gate = DispatchSemaphore(value: 0)
        let connect = fixture.connect
        var limits = Committer.Limits()
        limits.batchMax = 10
        limits.sandboxShare = 2
        let committer = Committer(limits: limits) {
            gate.wait()
            gate.signal()
            return try connect()
        }
        let heard = Heard()
        // The first batch may be taken before the others are there.
        _ = committer.submit(admission("first"), completion: heard.hear("first"))
        while committer.waiting > 0 { usleep(1000) }
        for number in 0..<30 {
            let sandbox = admission("s\(number)", in: .sandbox)
            _ = committer.submit(sandbox, completion: heard.hear("s"))
        }
        for number in 0..<30 {
            _ = committer.submit(admission("p\(number)"), completion: heard.hear("p"))
        }
        gate.signal()
        heard.wait(for: 61)
        committer.stop()
        let batch = heard.keys.dropFirst().prefix(10)
        #expect(batch.filter { $0 == "p" }.count == 8)
        #expect(batch.filter { $0 == "s" }.count == 2)
        let productionEnd = heard.keys.lastIndex(of: "p") ?? 0
        #expect(heard.keys[..<productionEnd].filter { $0 == "s" }.count < 10)
        #expect(heard.outcomes.count == 61)
    }

    @Test func aFloodOfSandboxNeitherFillsABatchNorTurnsProductionAway() throws {
        let gate = DispatchSemaphore(value: 0)
        let connect = fixture.connect
        var limits = Committer.Limits()
        limits.batchMax = 30
        limits.sandboxMax = 5
        limits.waitingMax = 25
        let committer = Committer(limits: limits) {
            gate.wait()
            gate.signal()
            return try connect()
        }
        let heard = Heard()
        _ = committer.submit(admission("first"), completion: heard.hear("first"))
        while committer.waiting > 0 { usleep(1000) }
        var taken = 0
        for number in 0..<40 {
            let sandbox = admission("s\(number)", in: .sandbox)
            if committer.submit(sandbox, completion: heard.hear("s")) { taken += 1 }
        }
        #expect(taken == 25, "so many may wait")
        #expect(committer.submit(admission("p"), completion: heard.hear("p")))
        gate.signal()
        heard.wait(for: 27)
        committer.stop()
        #expect(heard.keys.dropFirst().prefix(6).sorted() == ["p", "s", "s", "s", "s", "s"])
        // Production came just now: the next may come any moment, and does not wait for many.
        #expect(committer.measures.batchSize.snapshot.count >= 6)
        #expect(heard.outcomes.count == 27)
    }

    @Test func whileTheDatabaseIsAwayTheSenderIsToldAndLaterAllIsWell() throws {
        let isAway = Atomic<Bool>(true)
        let connect = fixture.connect
        var limits = Committer.Limits()
        limits.patience = .milliseconds(50)
        let committer = Committer(limits: limits) {
            if isAway.load(ordering: .relaxed) {
                throw PostgresError(code: .connection, message: "no server here")
            }
            return try connect()
        }
        let heard = Heard()
        _ = committer.submit(admission("a"), completion: heard.hear("a"))
        heard.wait(for: 1)
        #expect(heard.failures.map(\.code) == [.unavailable])
        #expect(committer.isAway)
        isAway.store(false, ordering: .relaxed)
        _ = committer.submit(admission("a"), completion: heard.hear("a"))
        heard.wait(for: 1)
        #expect(heard.outcomes == [.appended(position: 1)])
        #expect(!committer.isAway)
        committer.stop()
    }

    @Test func aLostSessionInTheMiddleIsNotNoticedByTheSender() throws {
        let committer = Committer(connect: fixture.connect)
        let heard = Heard()
        _ = committer.submit(admission("a"), completion: heard.hear("a"))
        heard.wait(for: 1)
        try fixture.connection.query(
            """
            select pg_terminate_backend(pid, 5000) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()
            """
        )
        _ = committer.submit(admission("b"), completion: heard.hear("b"))
        heard.wait(for: 1)
        #expect(heard.outcomes == [.appended(position: 1), .appended(position: 2)])
        committer.stop()
    }

    @Test func whatWaitsIsSettledBeforeItStopsAndNothingIsTakenAfterwards() throws {
        let gate = DispatchSemaphore(value: 0)
        let connect = fixture.connect
        var limits = Committer.Limits()
        limits.waitingMax = 20
        let committer = Committer(limits: limits) {
            gate.wait()
            return try connect()
        }
        let heard = Heard()
        _ = committer.submit(admission("first"), completion: heard.hear("first"))
        while committer.waiting > 0 { usleep(1000) }
        var taken = 0
        for number in 0..<30 {
            let key = "k\(number)"
            if committer.submit(admission(key), completion: heard.hear(key)) { taken += 1 }
        }
        #expect(taken == 20, "more are not taken")
        gate.signal()
        committer.stop()
        #expect(heard.outcomes.count == 21)
        #expect(!committer.submit(admission("late"), completion: heard.hear("late")))
    }

    @Test func aProjectionThatIsWokenShowsWhatWasCommitted() throws {
        let projection = LiveProjection(connect: fixture.connect)
        let committer = Committer(connect: fixture.connect) { projection.wake() }
        let heard = Heard()
        for number in 0..<20 {
            let key = "k\(number)"
            _ = committer.submit(admission(key), completion: heard.hear(key))
        }
        heard.wait(for: 20)
        var tries = 0
        let marks = "select count(*) from ledger.mark"
        while tries < 1000 {
            let isFolded = try fixture.connection.query(marks).int(0, 0) == 0
            // The rows are there a moment before the projection counts them.
            if isFolded, projection.condition.streams > 0 { break }
            usleep(10_000)
            tries += 1
        }
        #expect(try fixture.connection.query(marks).int(0, 0) == 0)
        #expect(projection.condition.streams > 0)
        #expect(projection.condition.failure == nil)
        committer.stop()
        projection.stop()
    }
}
