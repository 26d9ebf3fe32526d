internal import AppStoreSimulator
internal import Ledger

/// How fast events are folded, on one core and without a database.
///
/// A fold begins with the facts of one subscription in any order and ends with its whole history,
/// which projections read before the next one takes its place.
public enum FoldBenchmark {
    /// How many simulated lives are folded over and over.
    private static let lives = 500
    /// How many events the long streams have.
    private static let longStreamEvents = 10_000

    /// Measures the fold for about so many seconds each.
    public static func run(seconds: Double = 1) -> [BenchmarkLine] {
        let sorted = streams()
        var random = SplitMix(state: 1)
        let shuffled = sorted.map { stream in
            var stream = stream
            random.shuffle(&stream)
            return stream
        }
        let events = sorted.reduce(0) { $0 + $1.count }
        let name = "folding \(events) events of \(lives) subscriptions"
        let reading = readingRate(of: sorted, seconds: seconds / 2)
        func line(_ order: String, _ streams: [[Event]]) -> BenchmarkLine {
            let folding = rate(of: streams, seconds: seconds)
            return BenchmarkLine(
                "\(name), \(order)",
                folding * Double(events) / 1e6,
                "M events per second and core",
                ratio: folding / reading,
                of: "reading the same bytes"
            )
        }
        return [
            line("shuffled", shuffled),
            line("in order", sorted),
            BenchmarkLine(
                "reading the \(MemoryLayout<Event>.stride) bytes of each of these events",
                reading * Double(events) / 1e6,
                "M events per second and core"
            ),
            BenchmarkLine(
                "one stream of \(longStreamEvents) events",
                1000 / rate(of: [longStream()], seconds: seconds / 2),
                "ms"
            ),
            BenchmarkLine(
                "\(longStreamEvents) transactions of one period",
                1000 / rate(of: [overlappingStream()], seconds: seconds / 2),
                "ms"
            ),
        ]
    }

    /// Simulated lives in the order in which Apple signed what it told of them.
    private static func streams() -> [[Event]] {
        let options = Simulation.Options(subscriptions: lives)
        return (0..<lives).map { number in
            let life = Life(number: number, seed: 1, from: options.from, until: options.until)
            return life.notices.compactMap { Fact($0, of: life.chain) }
                .enumerated()
                .map { Event(position: Int64($0.offset + 1), fact: $0.element) }
        }
    }

    /// How often all streams are folded in a second.
    private static func rate(of streams: [[Event]], seconds: Double) -> Double {
        var fold = SubscriptionFold(rules: AppRules(environment: .sandbox))
        var history = History()
        var intervals = 0
        let rate = BenchmarkClock.rate(seconds: seconds) {
            for stream in streams {
                fold.fold(stream, into: &history)
                intervals += history.timeline.count
            }
        }
        precondition(intervals > 0, "the fold made no timeline")
        return rate
    }

    /// How often all bytes of the streams are read in a second: no fold can be faster.
    private static func readingRate(of streams: [[Event]], seconds: Double) -> Double {
        var sum: UInt64 = 0
        let rate = BenchmarkClock.rate(seconds: seconds) {
            for stream in streams {
                unsafe stream.withUnsafeBytes { bytes in
                    for offset in Swift.stride(from: 0, to: bytes.count - 7, by: 8) {
                        unsafe sum &+= bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                    }
                }
            }
        }
        precondition(sum != 0, "the events are empty")
        return rate
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
            fact.transaction = transaction(period, from: start, days: 1, signed: at)
            var renewal = RenewalFact(signedDate: at, digest: UInt64(number))
            renewal.autoRenewStatus = Int32(number % 2)
            fact.renewal = renewal
            return Event(position: Int64(number + 1), fact: fact)
        }
    }

    /// Seats added one by one, all in one period of a year.
    private static func overlappingStream() -> [Event] {
        (0..<longStreamEvents).map { number in
            let start = Timestamp(milliseconds: 1_000_000_000_000 + Int64(number) * 60_000)
            var fact = Fact(kind: .notification, provenance: .jws, factAt: start)
            fact.signedAt = start
            fact.notificationType = .subscribed
            fact.transaction = transaction(Int64(number), from: start, days: 365, signed: start)
            if number > 0 { fact.transaction?.additionalReason = "SEAT_ADDITION" }
            return Event(position: Int64(number + 1), fact: fact)
        }
    }

    private static func transaction(
        _ number: Int64,
        from start: Timestamp,
        days: Int64,
        signed: Timestamp
    ) -> TransactionFact {
        var transaction = TransactionFact(
            transactionID: AppleID(UInt64(number + 1)),
            signedDate: signed,
            digest: UInt64(number)
        )
        transaction.productType = .autoRenewable
        transaction.purchaseDate = start
        transaction.expiresDate = start.adding(.days(days))
        transaction.reason = number == 0 ? .purchase : .renewal
        return transaction
    }
}
