internal import AppStoreSimulator
internal import Ledger

/// How fast events are folded, on one core and without a database.
public enum FoldBenchmark {
    /// How many simulated lives are folded over and over.
    private static let lives = 500
    /// How many events the long stream has.
    private static let longStreamEvents = 10_000

    /// Measures the fold for about so many seconds each.
    public static func run(seconds: Double = 1) -> [BenchmarkLine] {
        let options = Simulation.Options(subscriptions: lives)
        let streams = (0..<lives).map { number in
            let life = Life(number: number, seed: 1, from: options.from, until: options.until)
            return life.notices.compactMap { Fact($0, of: life.chain) }
                .enumerated()
                .map { Event(position: Int64($0.offset + 1), fact: $0.element) }
        }
        let events = streams.reduce(0) { $0 + $1.count }
        var fold = SubscriptionFold(rules: AppRules(environment: .sandbox))
        var intervals = 0
        let rate = BenchmarkClock.rate(seconds: seconds) {
            for stream in streams { intervals += fold.history(of: stream).timeline.count }
        }
        let long = longStream()
        let longRate = BenchmarkClock.rate(seconds: seconds / 2) {
            intervals += fold.history(of: long).timeline.count
        }
        precondition(intervals > 0, "the fold made no timeline")
        return [
            BenchmarkLine(
                "folding \(events) events of \(lives) subscriptions",
                rate * Double(events) / 1e6,
                "M events per second and core"
            ),
            BenchmarkLine("one stream of \(longStreamEvents) events", 1000 / longRate, "ms"),
        ]
    }

    /// Renewals, and a change of mind within each period.
    private static func longStream() -> [Event] {
        (0..<longStreamEvents).map { number in
            let period = Int64(number / 2)
            let start = Timestamp(milliseconds: 1_000_000_000_000 + period * 86_400_000)
            let at = number % 2 == 0 ? start : start.adding(.hours(1))
            var fact = Fact(kind: .notification, provenance: .jws, factAt: at)
            fact.signedAt = at
            fact.notificationType = number % 2 == 0 ? .didRenew : .didChangeRenewalStatus
            var transaction = TransactionFact(
                transactionID: AppleID(UInt64(period + 1)),
                signedDate: at,
                digest: UInt64(period)
            )
            transaction.productType = .autoRenewable
            transaction.purchaseDate = start
            transaction.expiresDate = start.adding(.days(1))
            transaction.reason = .renewal
            fact.transaction = transaction
            var renewal = RenewalFact(signedDate: at, digest: UInt64(number))
            renewal.autoRenewStatus = Int32(number % 2)
            fact.renewal = renewal
            return Event(position: Int64(number + 1), fact: fact)
        }
    }
}
