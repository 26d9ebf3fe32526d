import EventLog
import Ledger
import LedgerService
import Postgres
import Synchronization
import Testing

/// The read models are a function of the set of events: neither the order in which they arrive,
/// nor repeats, nor batches, nor when they are projected or rebuilt leaves a trace.
@Suite struct InterleavingTests {
    private static let subscriptions = 30

    @Test(arguments: Seeds.first(3))
    func anyOrderAndInterleavingGivesTheRowsOfOneRebuildInSigningOrder(seed: UInt64) throws {
        let log = try LogFixture()
        let events = log.simulatedEvents(Self.subscriptions, seed: seed)
        var story = Story(log, seed: seed)
        try story.tell(events)
        let told = try log.contents()
        #expect(try log.count("ledger.event") == Int64(events.count), "\(story)")
        #expect(try log.count("ledger.mark") == 0, "\(story)")
        #expect(try log.count("read_model.parked") == 0, "\(story)")

        let once = try LogFixture()
        try once.append(events)
        _ = try Rebuild(connect: once.connect).run()
        let rebuilt = try once.contents()
        #expect(told.keys.sorted() == rebuilt.keys.sorted())
        for (table, rows) in rebuilt {
            // An empty table would prove nothing.
            #expect(!rows.isEmpty, "no row in \(table), \(story)")
            let found = told[table, default: []]
            let missing = Set(rows).subtracting(found)
            let surplus = Set(found).subtracting(rows)
            #expect(
                found == rows,
                """
                \(table), \(story): \(missing.count) missing, as \(missing.sorted().prefix(2)); \
                \(surplus.count) too many, as \(surplus.sorted().prefix(2))
                """
            )
        }

        // Whatever came later, the prefix of the log gives what was shown when it was the log.
        for known in story.known {
            #expect(
                try log.digests(foldingUpTo: known.position) == known.digests,
                "what was known at \(known.position), \(story)"
            )
        }
        // It could fail: no two of them agree.
        #expect(story.known.count >= 2, "\(story)")
        #expect(Set(story.known.map(\.digests)).count == story.known.count, "\(story)")
    }

    /// Two of the steps in between can be told apart: a row that is not right is seen.
    @Test func aWrongRowIsFound() throws {
        let log = try LogFixture()
        try log.append(log.simulatedEvents(12, seed: 1))
        _ = try Rebuild(connect: log.connect).run()
        let right = (try log.contents(), try log.liveDigests())
        for change in [
            "entitlement_interval set positions = positions[2:]",
            "subscription set known_to_position = known_to_position - 1",
        ] {
            try log.connection.execute(
                """
                begin; update read_model.\(change)
                where stream = (select max(stream) from read_model.entitlement_interval
                    where cardinality(positions) > 0)
                """
            )
            #expect(try log.contents() != right.0, "\(change)")
            #expect(try log.liveDigests() != right.1, "\(change)")
            try log.connection.execute("rollback")
        }
        #expect(try log.digests(foldingUpTo: log.head()) == right.1)
        #expect(try log.digests(foldingUpTo: log.head() / 2) != right.1)
    }
}

/// How one log came to hold its events; drawn from a seed.
private struct Story: CustomStringConvertible {
    /// What the read models showed when the log ended at a position.
    struct Known {
        var position: Int64
        var digests: [Digest]
    }

    private let log: LogFixture
    private let seed: UInt64
    private var random: SeededNumbers
    private var batches = 0
    private var runs = 0
    private var rebuilds = 0
    private(set) var known: [Known] = []

    init(_ log: LogFixture, seed: UInt64) {
        self.log = log
        self.seed = seed
        random = SeededNumbers(seed: seed)
    }

    var description: String {
        "seed \(seed) (SUBLEDGER_SEED=\(seed) tries it alone): \(batches) batches,"
            + " \(runs) runs of the projector, \(rebuilds) rebuilds"
    }

    /// Appends the events in any order, some of them again and again, and projects now and then.
    mutating func tell(_ events: [NewEvent]) throws {
        var arriving = events
        for event in events where Int.random(in: 0..<4, using: &random) == 0 {
            arriving += Array(repeating: event, count: Int.random(in: 1...2, using: &random))
        }
        arriving.shuffle(using: &random)
        var rest = arriving[...]
        // A rebuild is by far the dearest step; each story has two, at places of their own.
        let size = arriving.count
        var rebuildsAt = (0..<2).map { _ in Int.random(in: 1..<size, using: &random) }.sorted()
        while !rest.isEmpty {
            let batch = next(&rest)
            if let place = rebuildsAt.first, size - rest.count >= place {
                rebuildsAt.removeFirst()
                try rebuild(whileAppending: batch)
                try note()
            } else {
                try log.append(batch)
                guard Int.random(in: 0..<3, using: &random) == 0 else { continue }
                try project()
                if Bool.random(using: &random) { try note() }
            }
        }
        try project()
    }

    private mutating func next(_ rest: inout ArraySlice<NewEvent>) -> [NewEvent] {
        let size = Int.random(in: 1...80, using: &random)
        defer { rest = rest.dropFirst(size) }
        batches += 1
        return Array(rest.prefix(size))
    }

    private mutating func project() throws {
        try Projector(log.connection).project()
        runs += 1
    }

    /// Rebuilds all, while a batch is appended that the fold of the log has missed.
    private mutating func rebuild(whileAppending batch: [NewEvent]) throws {
        let failure = Mutex<String?>(nil)
        let isAppended = Atomic<Bool>(false)
        let connect = log.connect
        _ = try Rebuild(connect: connect).run(progress: { progress in
            guard progress.phase == .keys, !isAppended.exchange(true, ordering: .relaxed) else {
                return
            }
            do { _ = try Appender(connect(), limit: .bulk).append(batch) } catch {
                failure.withLock { $0 = "\(error)" }
            }
        })
        #expect(failure.withLock { $0 } == nil, "\(self)")
        let isTold = isAppended.load(ordering: .relaxed)
        #expect(isTold, "\(self)")
        rebuilds += 1
        // What is marked was folded by the rebuild already; folding it again changes nothing.
        let rebuilt = try log.liveDigests()
        try project()
        #expect(try log.liveDigests() == rebuilt, "\(self)")
    }

    /// Notes what is shown; nothing of the log is left to project now.
    private mutating func note() throws {
        let position = try log.head()
        guard known.last?.position != position else { return }
        known.append(Known(position: position, digests: try log.liveDigests()))
    }
}
