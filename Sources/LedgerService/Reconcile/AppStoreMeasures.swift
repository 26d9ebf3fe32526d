package import AppStore
internal import Ledger
internal import Synchronization

/// How asking Apple goes, for `/metrics`.
package final class AppStoreMeasures: Sendable {
    private struct Key: Hashable, Comparable {
        var environment: String
        var endpoint: String
        var outcome: String

        static func < (left: Key, right: Key) -> Bool {
            (left.environment, left.endpoint, left.outcome)
                < (right.environment, right.endpoint, right.outcome)
        }
    }

    private let counters = Mutex<[Key: Int]>([:])
    /// From the request to the end of the answer, in seconds.
    let seconds = Histogram(bounds: [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60])

    /// Starts at nothing.
    package init() {}

    /// Counts a request that was sent.
    package func count(_ attempt: AppStoreClient.Attempt) {
        let key = Key(
            environment: "\(attempt.environment)",
            endpoint: attempt.endpoint,
            outcome: attempt.outcome
        )
        counters.withLock { $0[key, default: 0] += 1 }
        seconds.observe(Double(attempt.duration.rawValue) / 1000)
    }

    /// Adds what was counted to a page.
    func add(to page: inout MetricsPage) {
        let name = "subledger_app_store_requests_total"
        page.family(
            name,
            "counter",
            "Requests to Apple's Server API by how they ended: an HTTP status, Apple's number, or a "
                + "word for what happened on the way."
        )
        for (key, count) in counters.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
            page.sample(
                name,
                [
                    ("environment", key.environment), ("endpoint", key.endpoint),
                    ("outcome", key.outcome),
                ],
                Double(count)
            )
        }
        page.histogram(
            "subledger_app_store_seconds",
            "From a request to Apple to the end of its answer.",
            seconds
        )
    }
}
