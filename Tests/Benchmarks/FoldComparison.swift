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
    public init(subscriptions: Int, seed: UInt64) {
        let options = Simulation.Options(subscriptions: subscriptions, seed: seed)
        var random = SplitMix(state: seed)
        var fold = SubscriptionFold(rules: AppRules(environment: .sandbox))
        for number in 0..<subscriptions {
            let life = Life(
                number: number,
                seed: seed,
                from: options.from,
                until: options.until
            )
            var arrived = life.notices.filter { _ in random.next() % 100 >= 6 }
            lost += life.notices.count - arrived.count
            let sent = arrived.map(\.uuid)
            random.shuffle(&arrived)
            if arrived.map(\.uuid) != sent { disordered += 1 }
            // Some come twice, under a position of their own.
            let delivered = arrived + arrived.filter { _ in random.next() % 10 == 0 }
            let facts = delivered.enumerated().map { place, notice in
                Event(position: Int64(place + 1), fact: Fact(notice))
            }
            add(
                life.chain.originalTransactionID,
                truth: DeliveredTruth(arrived).intervals(),
                history: fold.history(of: facts),
                count: arrived.count
            )
        }
    }

    private mutating func add(
        _ id: String,
        truth: [TruthInterval],
        history: History,
        count: Int
    ) {
        subscriptions += 1
        events += count
        for interval in truth { intervals[interval.condition.state.rawValue, default: 0] += 1 }
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
                "\(id), interval \(at): folded \(Self.text(found, at)),"
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

        static func joined(_ timeline: [Interval]) -> [Stretch] {
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
