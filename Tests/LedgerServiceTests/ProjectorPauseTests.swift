import Dispatch
import EventLog
import Ledger
import Postgres
import Synchronization
import Testing

@testable import LedgerService

/// Projectors that are stopped in the middle, while the log goes on.
@Suite struct ProjectorPauseTests {
    private let log: LogFixture

    init() throws {
        log = try LogFixture()
        // Whoever waits for a lock of a frozen one fails, instead of waiting for ever.
        try log.connection.execute("set lock_timeout = '2s'")
    }

    /// A further renewal of a stream, signed that many days after its purchase.
    private func news(of stream: String, day: Double) -> NewEvent {
        let id = (UInt64(stream) ?? 0) * 1000 + UInt64(day)
        return log.event(
            stream,
            "\(stream)-news-\(day)",
            .didRenew,
            at: LogFixture.day(day),
            LogFixture.month(id, day)
        )
    }

    /// What is shown now is what a rebuild of the whole log makes.
    private func expectRight(_ comment: Comment? = nil) throws {
        #expect(try log.count("ledger.mark") == 0, comment)
        let live = try log.liveDigests()
        #expect(try log.digests(foldingUpTo: log.head()) == live, comment)
    }

    // MARK: An append in the middle

    @Test(arguments: ProjectorStep.allCases)
    func whatIsAppendedInTheMiddleIsShownByThisRunOrMarkedForTheNext(
        _ step: ProjectorStep
    ) throws {
        try log.appendLives(3)
        let before = try log.head()
        let late = news(of: "700002", day: 400)
        let projector = Projector(log.connection)
        var isAppended = false
        projector.step = { [log] reached in
            guard reached == step, !isAppended else { return }
            isAppended = true
            try log.append([late])
        }
        // One transaction, in which the append falls.
        let report = try projector.project(shouldStop: { isAppended })
        #expect(report.streams == 3)
        #expect(try log.head() == before + 1)
        let shown = try log.connection.query(
            "select known_to_position from read_model.subscription where stream = '700002'"
        ).int(0, 0)
        let marks = try log.connection.query("select stream, position from ledger.mark")
        if step == .claimed {
            // The claim comes before the events are read.
            #expect(shown == before + 1)
            #expect(marks.count == 0)
        } else {
            #expect((shown ?? .max) <= before)
            #expect(marks.count == 1)
            #expect(marks.text(0, 0) == "700002")
            #expect(marks.int(0, 1) == before + 1)
            #expect(try Staleness(log.connection).staleStreams == 1)
        }
        let next = try Projector(log.connection).project()
        #expect(next.streams == (step == .claimed ? 0 : 1))
        let then = try log.connection.query(
            "select known_to_position from read_model.subscription where stream = '700002'"
        ).int(0, 0)
        #expect(then == before + 1)
        try expectRight()
    }

    @Test(arguments: ProjectorStep.allCases)
    func whatFailsInTheMiddleLeavesEverythingForTheNext(_ step: ProjectorStep) throws {
        try log.appendLives(5)
        let projector = Projector(log.connection)
        projector.step = { reached in
            guard reached == step else { return }
            throw ReadModelError(.stopped, "stopped at \(step)")
        }
        #expect(throws: ReadModelError.self) { try projector.project() }
        #expect(try log.allRows() == [])
        #expect(try Staleness(log.connection).staleStreams == 5)
        #expect(try Projector(log.connection).project().streams == 5)
        try expectRight()
    }

    // MARK: Two at one stream

    @Test(arguments: ProjectorStep.allCases)
    func ofTwoAtOneStreamTheSecondPassesOverIt(_ step: ProjectorStep) throws {
        try log.appendLives(1)
        let first = FrozenProjector(at: step, log.connect)
        // It does not wait either: the first one goes on only after this.
        let second = try Projector(log.connection).project()
        #expect(second == Projector.Report())
        #expect(try log.allRows() == [], "nothing is shown before the first one commits")
        let report = try first.finish()
        #expect(report.streams == 1)
        #expect(report.rowsWritten > 0)
        #expect(try Projector(log.connection).project() == Projector.Report())
        try expectRight()
    }

    @Test func manyAtOneStreamThatGrowsNeverHoldItTogether() throws {
        try log.appendLives(1)
        let holders = Atomic<Int>(0)
        let holds = Atomic<Int>(0)
        let trouble = Mutex<[String]>([])
        let isOver = Atomic<Bool>(false)
        let connect = log.connect
        let projectors = DispatchGroup()
        for _ in 0..<3 {
            // A queue of its own gets a thread of its own.
            DispatchQueue(label: "projector").async(group: projectors) {
                do {
                    let projector = Projector(try connect())
                    projector.step = { step in
                        if step == .claimed {
                            holds.add(1, ordering: .relaxed)
                            let others = holders.add(1, ordering: .relaxed).oldValue
                            if others > 0 { trouble.withLock { $0.append("held by two") } }
                        }
                        // The claim is let go by the COMMIT that follows.
                        if step == .marksEnded { holders.subtract(1, ordering: .relaxed) }
                    }
                    while !isOver.load(ordering: .relaxed) { try projector.project() }
                } catch {
                    trouble.withLock { $0.append("\(error)") }
                }
            }
        }
        // As many as it takes until they have met, where the machine is busy.
        var number = 0
        while number < 40 || holds.load(ordering: .relaxed) < 2 && number < 3000 {
            try log.append([news(of: "700001", day: 400 + Double(number))])
            number += 1
        }
        isOver.store(true, ordering: .relaxed)
        projectors.wait()
        #expect(trouble.withLock { $0 } == [])
        let held = holds.load(ordering: .relaxed)
        #expect(held > 1)
        try Projector(log.connection).project()
        try expectRight()
    }

    // MARK: One that is frozen

    @Test(arguments: ProjectorStep.allCases)
    func aFrozenProjectorHoldsUpNothingButItsOwnStreams(_ step: ProjectorStep) throws {
        try log.appendLives(4)
        let frozen = FrozenProjector(at: step, log.connect)
        let before = try log.head()
        for round in 0..<3 {
            for number in 1...4 {
                let day = 400 + Double(round) * 30
                try log.append([news(of: "70000\(number)", day: day)])
                try log.append([news(of: "71000\(number)", day: day)])
            }
        }
        #expect(try log.head() == before + 24, "appends do not wait")

        let other = try Projector(log.connection).project()
        #expect(other.streams == 4)
        #expect(other.events == 12)
        let shown = try log.connection.query(
            "select stream from read_model.subscription order by 1"
        )
        #expect((0..<shown.count).compactMap { shown.text($0, 0) } == (1...4).map { "71000\($0)" })
        #expect(try Staleness(log.connection).staleStreams == 4)

        let report = try frozen.finish()
        // Its first transaction, and what came meanwhile in another one.
        #expect(report.streams == 4 + (step == .claimed ? 0 : 4))
        try expectRight()
        #expect(try log.rows("subscription").count == 8)
    }
}

/// A projector on a thread of its own that stands still at a step until it is let go.
private final class FrozenProjector: Sendable {
    private let hasStopped = DispatchSemaphore(value: 0)
    private let mayGoOn = DispatchSemaphore(value: 0)
    private let hasEnded = DispatchSemaphore(value: 0)
    private let outcome = Mutex<Result<Projector.Report, ReadModelError>?>(nil)

    /// Returns when it stands.
    init(at step: ProjectorStep, _ connect: @escaping @Sendable () throws -> Connection) {
        DispatchQueue(label: "frozen projector").async { [self] in
            let result = Result { () throws(ReadModelError) in try run(at: step, connect) }
            outcome.withLock { $0 = result }
            // Where it failed before the step nobody shall wait for it.
            hasStopped.signal()
            hasEnded.signal()
        }
        hasStopped.wait()
    }

    /// Lets it go, and says what it did.
    func finish() throws -> Projector.Report {
        mayGoOn.signal()
        hasEnded.wait()
        return try outcome.withLock { $0 }?.get() ?? Projector.Report()
    }

    private func run(
        at step: ProjectorStep,
        _ connect: () throws -> Connection
    ) throws(ReadModelError) -> Projector.Report {
        let connection: Connection
        do { connection = try connect() } catch {
            throw ReadModelError(.unavailable, "\(error)")
        }
        let projector = Projector(connection)
        var hasStoodStill = false
        projector.step = { [self] reached in
            guard reached == step, !hasStoodStill else { return }
            hasStoodStill = true
            hasStopped.signal()
            mayGoOn.wait()
        }
        return try projector.project()
    }
}
