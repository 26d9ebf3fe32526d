internal import Synchronization

/// A number that only grows.
package final class Counter: Sendable {
    private let number = Atomic<Int>(0)

    /// Starts at 0.
    package init() {}

    /// Adds to it.
    package func add(_ count: Int) { number.add(count, ordering: .relaxed) }

    /// What it has come to.
    package var value: Int { number.load(ordering: .relaxed) }
}

/// Counts of observed values by upper bound, as Prometheus has them.
package final class Histogram: Sendable {
    /// What was observed up to a moment.
    package struct Snapshot: Sendable {
        /// How many observations were at most each bound, in the order of the bounds.
        package var cumulative: [Int]
        /// How many observations there were.
        package var count: Int
        /// Their sum.
        package var sum: Double

        /// The bound under which a share of all observations lies; nil above the last bound.
        package func quantile(_ share: Double, bounds: [Double]) -> Double? {
            let wanted = Double(count) * share
            return zip(bounds, cumulative).first { Double($0.1) >= wanted }?.0
        }
    }

    private struct State {
        var counts: [Int]
        var sum = 0.0
    }

    /// The upper bounds, in order.
    package let bounds: [Double]
    private let state: Mutex<State>

    /// Makes a histogram; what is above the last bound is counted too.
    package init(bounds: [Double]) {
        self.bounds = bounds
        state = Mutex(State(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    /// Counts a value.
    package func observe(_ value: Double) {
        let place = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { state in
            state.counts[place] += 1
            state.sum += value
        }
    }

    /// What was observed so far.
    package var snapshot: Snapshot {
        state.withLock { state in
            var cumulative: [Int] = []
            var total = 0
            for count in state.counts {
                total += count
                cumulative.append(total)
            }
            return Snapshot(cumulative: cumulative.dropLast(), count: total, sum: state.sum)
        }
    }
}
