internal import AppStoreSimulator
internal import Ledger

/// Compares the fold with the simulator's own evaluator, which was written from the documents
/// and evaluates instant by instant.
public struct FoldComparison: Sendable {
    /// How many subscriptions were compared.
    public private(set) var subscriptions = 0
    /// How many notifications they got.
    public private(set) var events = 0
    /// How many intervals the truth has, by state.
    public private(set) var intervals: [String: Int] = [:]
    /// How many intervals it has of each kind of subscription: kind, slash, state.
    ///
    /// Kinds are Apple's ownerships, and `COMMITMENT`, `SEATS`, `MIGRATED` beside them.
    public private(set) var intervalsOfKind: [String: Int] = [:]
    /// How often each thing happened in the lives.
    public private(set) var lifeEvents: [String: Int] = [:]
    /// How many subscriptions had their notifications folded in another order than they were sent.
    public private(set) var disordered = 0
    /// How many notifications were lost.
    public private(set) var lost = 0
    /// What differs, a line each; at most `differencesMax`.
    public private(set) var differences: [String] = []
    /// How many subscriptions differ.
    public private(set) var differing = 0

    /// How many differences are spelled out.
    static let differencesMax = 20

    /// Folds the simulated lives, each with some notifications lost and the rest shuffled.
    ///
    /// - Parameters:
    ///   - subscriptions: How many lives to draw.
    ///   - seed: Equal seeds compare the same.
    ///   - rareFactor: How much more often than by nature rare things happen.
    public init(subscriptions: Int, seed: UInt64, rareFactor: Double = 4) {
        let options = Simulation.Options(subscriptions: subscriptions, seed: seed)
        var random = SplitMix(state: seed)
        // Half of the lives belong to an app whose grace period is configured.
        var folds = [nil, 16].map { days in
            SubscriptionFold(rules: AppRules(environment: .sandbox, gracePeriodDays: days))
        }
        for number in 0..<subscriptions {
            let life = Life(
                number: number,
                seed: seed,
                from: options.from,
                until: options.until,
                rareFactor: rareFactor
            )
            let isConfigured = random.next() % 2 == 0
            for event in life.events { lifeEvents[event.rawValue, default: 0] += 1 }
            var arrived = life.notices.filter { _ in random.next() % 100 >= 6 }
            lost += life.notices.count - arrived.count
            let sent = arrived.map(\.uuid)
            random.shuffle(&arrived)
            if arrived.map(\.uuid) != sent { disordered += 1 }
            // Some come twice, under a position of their own.
            let delivered = arrived + arrived.filter { _ in random.next() % 10 == 0 }
            let facts = delivered.enumerated().compactMap { place, notice in
                Fact(notice, of: life.chain).map { Event(position: Int64(place + 1), fact: $0) }
            }
            let truth = DeliveredTruth(arrived, configuredGraceDays: isConfigured ? 16 : nil)
            add(
                life,
                truth: truth.intervals(),
                history: folds[isConfigured ? 1 : 0].history(of: facts),
                count: arrived.count
            )
        }
    }

    /// What kinds of subscription a life is.
    private static func kinds(_ life: Life) -> [String] {
        var kinds = [life.chain.ownership]
        if life.chain.previousOriginalTransactionID != nil { kinds.append("MIGRATED") }
        if life.notices.contains(where: { $0.transaction?.commitment != nil }) {
            kinds.append("COMMITMENT")
        }
        if life.notices.contains(where: { $0.transaction?.seats != nil }) { kinds.append("SEATS") }
        return kinds
    }

    private mutating func add(
        _ life: Life,
        truth: [TruthInterval],
        history: History,
        count: Int
    ) {
        subscriptions += 1
        events += count
        let kinds = Self.kinds(life)
        for interval in truth {
            let state = interval.condition.state.rawValue
            intervals[state, default: 0] += 1
            for kind in kinds { intervalsOfKind["\(kind)/\(state)", default: 0] += 1 }
        }
        let expected = truth.map {
            Stretch(
                from: $0.from,
                state: $0.condition.state.rawValue,
                cause: $0.condition.cause,
                product: $0.productID,
                isEntitledByApple: $0.condition.isEntitledByApple
            )
        }
        let found = Stretch.joined(history.timeline)
        guard found != expected else { return }
        differing += 1
        if differences.count < Self.differencesMax {
            let place = zip(found, expected).enumerated().first { $1.0 != $1.1 }?.offset
            let at = place ?? min(found.count, expected.count)
            differences.append(
                "\(life.chain.originalTransactionID), interval \(at): folded \(Self.text(found, at)),"
                    + " right \(Self.text(expected, at))"
            )
        }
    }

    private static func text(_ stretches: [Stretch], _ place: Int) -> String {
        place < stretches.count ? "\(stretches[place])" : "none"
    }

    /// What is compared of an interval; the end is the next one's beginning.
    private struct Stretch: Equatable, CustomStringConvertible {
        var from: Int64
        var state: String
        var cause: String?
        var product: String
        var isEntitledByApple: Bool

        var description: String {
            "\(Timestamp(milliseconds: from)) \(state)/\(cause ?? "-") \(product)"
        }

        static func joined(_ timeline: ArraySlice<Interval>) -> [Stretch] {
            var result: [Stretch] = []
            for interval in timeline {
                var next = Stretch(
                    from: interval.from.milliseconds,
                    state: interval.state.name,
                    cause: interval.state.cause,
                    product: interval.productID?.text ?? "",
                    isEntitledByApple: interval.entitledApple
                )
                if let last = result.last {
                    next.from = last.from
                    if next == last { continue }
                    next.from = interval.from.milliseconds
                }
                result.append(next)
            }
            return result
        }
    }
}

/// A source of numbers that gives the same ones for the same seed.
struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    mutating func shuffle<Element>(_ array: inout [Element]) {
        guard array.count > 1 else { return }
        for place in 1..<array.count {
            array.swapAt(place, Int(next() % UInt64(place + 1)))
        }
    }
}
