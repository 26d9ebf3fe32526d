import Ledger
import Testing

@testable import EventLog
@testable import LedgerService

/// What is delivered next, decided without a database and a network.
@Suite struct ForwardPlanTests {
    private static func event(_ position: Int64, _ stream: String) -> StoredEvent {
        StoredEvent(
            position: position,
            key: SubscriptionKey(appID: 1, stream: stream),
            eventKey: "n:\(position)",
            kind: .notification,
            notificationType: "DID_RENEW",
            subtype: nil,
            provenance: .jws,
            signedAt: nil,
            recordedAt: Timestamp(milliseconds: position),
            correlation: nil,
            contentDigest: [],
            sealedDigest: [],
            operator: nil,
            ticket: nil
        )
    }

    /// A consumer, and the rows as the database has them.
    private struct Run {
        var log: [StoredEvent] = []
        var position: Int64 = 0
        var attempts = 0
        var held: [SubscriptionKey: HeldStream] = [:]
        var taken: [SubscriptionKey: [Int64]] = [:]
        var repeats = 0

        mutating func note(_ result: ForwardResult) {
            position = result.position
            attempts = result.attempts
            for (key, change) in result.changes {
                switch change {
                case .held(let stream, _): held[key] = stream
                case .released: held[key] = nil
                }
            }
        }

        mutating func take(_ events: some Collection<StoredEvent>) {
            for event in events {
                // What came before comes again in its order; what is new comes after all of it.
                if taken[event.key]?.contains(event.position) == true {
                    repeats += 1
                } else {
                    #expect(taken[event.key]?.last ?? 0 < event.position)
                    taken[event.key, default: []].append(event.position)
                }
            }
        }

        func isWanted(_ event: StoredEvent) -> Bool { event.position % 7 != 0 }
    }

    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64])
    func whateverFailsEachIsTakenAndInOrder(_ seed: UInt64) {
        var random = SplitMix(seed: seed)
        var run = Run()
        for position in 1...400 as ClosedRange<Int64> {
            run.log.append(Self.event(position, "s\(random.next() % 25)"))
        }
        var plan = ForwardPlan(position: 0, attempts: 0, held: [:])
        var now = ContinuousClock.now
        var rounds = 0
        while run.position < 400 || !run.held.isEmpty {
            rounds += 1
            if rounds > 5_000 { break }
            // A process ends, and another one begins with what the rows say.
            if random.next() % 10 == 0 {
                plan = ForwardPlan(
                    position: run.position,
                    attempts: run.attempts,
                    held: run.held
                )
            }
            let page = run.log.filter { $0.position > plan.position }.prefix(90)
            var (work, end) = plan.work(on: Array(page), isWanted: run.isWanted)
            for key in plan.due(at: now, upTo: end) {
                let stream = plan.held[key]?.position ?? 0
                let all = run.log.filter {
                    $0.key == key && $0.position >= stream && $0.position <= end && run.isWanted($0)
                }
                work.append(
                    ForwardWork(key: key, events: Array(all.prefix(3)), hasMore: all.count > 3)
                )
            }
            // In the end everything is taken.
            let isCalm = rounds > 200
            var outcomes: [ForwardOutcome] = []
            for piece in work {
                var taken = 0
                var stop: ForwardOutcome.Stop?
                while taken < piece.events.count, stop == nil {
                    switch isCalm ? 9 : random.next() % 10 {
                    case 0: stop = .refused("no")
                    case 1: stop = .unreachable("away", retryAfter: nil)
                    case 2: stop = .interrupted
                    default: taken += 1
                    }
                }
                run.take(piece.events.prefix(taken))
                outcomes.append(ForwardOutcome(taken: taken, stop: stop))
            }
            let result = plan.settle(work, outcomes, upTo: end, at: now) { 0.5 }
            #expect(result.position >= run.position, "seed \(seed)")
            // Sometimes the process ends before it can write that.
            if random.next() % 12 == 0 {
                plan = ForwardPlan(position: run.position, attempts: 0, held: run.held)
            } else {
                run.note(result)
                #expect(plan.held == run.held, "seed \(seed)")
            }
            now += .seconds(400)
        }
        let wanted = Dictionary(grouping: run.log.filter(run.isWanted), by: \.key)
            .mapValues { $0.map(\.position) }
        #expect(run.taken == wanted, "seed \(seed)")
        #expect(rounds < 5_000, "seed \(seed)")
    }

    @Test func aStreamThatIsNotTakenWaitsAndTheOthersGoOn() {
        var plan = ForwardPlan(position: 0, attempts: 0, held: [:])
        let now = ContinuousClock.now
        let log = [Self.event(1, "a"), Self.event(2, "b"), Self.event(3, "a"), Self.event(4, "b")]
        let (work, end) = plan.work(on: log) { _ in true }
        #expect(work.map(\.key.stream) == ["a", "b"] && end == 4)
        let result = plan.settle(
            work,
            [ForwardOutcome(taken: 0, stop: .refused("no")), ForwardOutcome(taken: 2, stop: nil)],
            upTo: end,
            at: now
        ) { 0 }
        #expect(result.position == 4 && result.pause == nil && result.deliveredCount == 2)
        #expect(plan.held.values.map(\.position) == [1])
        // What is new of it waits behind.
        let later = log + [Self.event(5, "a"), Self.event(6, "b")]
        let next = plan.work(on: Array(later.dropFirst(4))) { _ in true }
        #expect(next.work.map(\.key.stream) == ["b"] && next.end == 6)
        #expect(plan.due(at: now, upTo: 6).isEmpty)
        #expect(plan.due(at: now + .seconds(2), upTo: 6).map(\.stream) == ["a"])
    }

    @Test func aDestinationThatIsAwayIsLeftAloneAndNothingIsHeld() {
        var plan = ForwardPlan(position: 0, attempts: 0, held: [:])
        let log = (1...6).map { Self.event(Int64($0), "s\($0)") }
        var pauses: [Duration] = []
        for _ in 1...12 {
            let (work, end) = plan.work(on: log) { _ in true }
            #expect(work.count == (pauses.isEmpty ? 6 : 4))
            var outcomes = work.map { _ in ForwardOutcome(taken: 0, stop: .interrupted) }
            // The second and third were taken, before the first failed.
            if pauses.isEmpty {
                outcomes[1] = ForwardOutcome(taken: 1, stop: nil)
                outcomes[2] = ForwardOutcome(taken: 1, stop: nil)
            }
            outcomes[0].stop = .unreachable("away", retryAfter: nil)
            let result = plan.settle(work, outcomes, upTo: end, at: .now) { 1 }
            #expect(result.position == 0 && result.changes.isEmpty)
            pauses.append(result.pause ?? .zero)
        }
        #expect(pauses.prefix(4) == [.seconds(1), .seconds(2), .seconds(4), .seconds(8)])
        #expect(pauses.max() == .seconds(60))
        let asked = plan.settle(
            [ForwardWork(key: log[0].key, events: [log[0]])],
            [ForwardOutcome(taken: 0, stop: .unreachable("503", retryAfter: .seconds(5_000)))],
            upTo: 6,
            at: .now
        ) { 0 }
        #expect(asked.pause == .seconds(600))
    }

    @Test func onlySoManyStreamsWaitBeforeAllDo() {
        var plan = ForwardPlan(position: 0, attempts: 0, held: [:])
        let log = (1...2_000).map { Self.event(Int64($0), "s\($0)") }
        while !plan.isFull {
            let (work, end) = plan.work(on: Array(log[Int(plan.position)...])) { _ in true }
            let none = work.map { _ in ForwardOutcome(taken: 0, stop: .refused("no")) }
            _ = plan.settle(work, none, upTo: end, at: .now) { 0 }
        }
        #expect(plan.held.count < ForwardPlan.heldMax + ForwardPlan.roundMax)
        #expect(plan.position < 1_100)
    }
}

/// Numbers that a seed names.
private struct SplitMix {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }
}
