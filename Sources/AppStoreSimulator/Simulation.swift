internal import Dispatch
internal import Synchronization

/// A company's subscribers over some years, delivered to us as badly as it is asked for.
///
/// Equal options give equal bytes. Memory does not grow with what is written: lives are drawn
/// again when their notices are due, and only 24 bytes are kept for each delivery.
public struct Simulation: Sendable {
    /// What to simulate.
    public struct Options: Hashable, Sendable {
        /// How many subscriptions.
        public var subscriptions: Int
        /// Equal seeds give equal simulations.
        public var seed: UInt64
        /// The end of the simulated time, ms since 1970; nothing is signed at or after it.
        public var until: Int64
        /// How many years of 365 days before it the first purchases spread over.
        public var years: Int
        /// How badly notifications are delivered.
        public var faults: DeliveryFaults
        /// How much more often than by nature rare things happen: families, seats, commitments,
        /// quirks, notifications about other things than subscriptions.
        public var rareFactor = 1.0
        /// The grace period that the app is configured with, where that is known: it stands in for
        /// a grace date that was not sent.
        public var configuredGraceDays: Int?
        /// Apple's `environment` of every subscription.
        public var environment = "Sandbox"
        /// How many cores to use.
        public var cores: Int

        /// Makes options; without more they are two years up to 2026-01-01, delivered badly.
        public init(
            subscriptions: Int,
            seed: UInt64 = 1,
            until: Int64 = 1_767_225_600_000,
            years: Int = 2,
            faults: DeliveryFaults = .bad,
            cores: Int = 2
        ) {
            precondition(subscriptions >= 0 && years > 0 && cores > 0)
            self.subscriptions = subscriptions
            self.seed = seed
            self.until = until
            self.years = years
            self.faults = faults
            self.cores = cores
        }

        /// The beginning of the simulated time, ms since 1970.
        public var from: Int64 { until - Int64(years) * 365 * Span.day }
    }

    /// Up to so many lives are kept in memory (some 7 kB each) and not drawn again.
    private static let keptLivesMax = 5_000

    /// What is simulated.
    public let options: Options
    /// The authority that signs; its root is what a reader has to trust.
    public let authority: TestCertificateAuthority

    /// What drawing one subscription gave.
    private struct Drawn {
        var life: Life
        var row: TruthRow
        var deliveries: [Delivery] = []
        var lost = 0
        var inFlight = 0
        var events: [LifeEvent]
    }

    /// Prepares a simulation; nothing is drawn yet.
    public init(_ options: Options) {
        self.options = options
        authority = TestCertificateAuthority(
            seed: options.seed,
            from: options.from - 30 * Span.day,
            until: options.until
        )
    }

    /// The life of one subscription.
    public func life(_ number: Int) -> Life {
        var life = Life(
            number: number,
            seed: options.seed,
            from: options.from,
            until: options.until,
            rareFactor: options.rareFactor
        )
        life.move(to: options.environment)
        return life
    }

    /// Runs the simulation: first the truth of every subscription, then every delivery in order
    /// of arrival.
    ///
    /// - Parameters:
    ///   - truth: takes one row for each subscription.
    ///   - delivery: takes one line `{"signedPayload":"…"}` without its line end.
    ///   - progress: is told now and then how many lines of how many are written.
    /// - Returns: what happened.
    /// - Throws: what the sinks throw.
    public func run<Failure: Error>(
        truth: (TruthRow) throws(Failure) -> Void,
        delivery: ([UInt8]) throws(Failure) -> Void,
        progress: (_ written: Int, _ total: Int) -> Void = { _, _ in }
    ) throws(Failure) -> SimulationStatistics {
        var statistics = SimulationStatistics()
        var deliveries: [Delivery] = []
        let keepsLives = options.subscriptions <= Self.keptLivesMax
        var kept: [Life] = []
        for start in stride(from: 0, to: options.subscriptions, by: 512) {
            let end = min(start + 512, options.subscriptions)
            for drawn in inParallel(start..<end, { draw($0) }) {
                deliveries += drawn.deliveries
                if keepsLives { kept.append(drawn.life) }
                statistics.add(drawn.row, at: options.until)
                statistics.lost += drawn.lost
                statistics.inFlight += drawn.inFlight
                for event in drawn.events { statistics.events[event, default: 0] += 1 }
                try truth(drawn.row)
            }
        }
        deliveries.sort {
            ($0.arrival, $0.subscription, $0.notice, $0.repetition)
                < ($1.arrival, $1.subscription, $1.notice, $1.repetition)
        }
        statistics.deliveries = deliveries.count
        statistics.count(deliveries)

        let signer = NoticeSigner(authority: authority)
        for start in stride(from: 0, to: deliveries.count, by: 256) {
            let batch = deliveries[start..<min(start + 256, deliveries.count)]
            let lines = inParallel(batch) { [kept] due in
                let number = Int(due.subscription)
                let life = keepsLives ? kept[number] : life(number)
                return signer.line(life.notices[Int(due.notice)], of: life.chain)
            }
            for line in lines { try delivery(line) }
            progress(start + lines.count, deliveries.count)
        }
        return statistics
    }

    /// Runs the simulation into byte sinks: files, pipes or memory.
    ///
    /// This is all that `subledger simulate` needs. Lines end with a newline.
    ///
    /// - Parameters:
    ///   - deliveries: takes the NDJSON of the deliveries, in pieces.
    ///   - truth: takes the NDJSON of the truth, in pieces.
    ///   - progress: is told now and then how many lines of how many are written.
    /// - Returns: what happened.
    /// - Throws: what the sinks throw.
    public func write<Failure: Error>(
        deliveries: ([UInt8]) throws(Failure) -> Void,
        truth: ([UInt8]) throws(Failure) -> Void,
        progress: (_ written: Int, _ total: Int) -> Void = { _, _ in }
    ) throws(Failure) -> SimulationStatistics {
        try run(
            truth: { (row) throws(Failure) in try truth(row.wireValue.bytes + [0x0a]) },
            delivery: { (line) throws(Failure) in try deliveries(line + [0x0a]) },
            progress: progress
        )
    }

    private func draw(_ number: Int) -> Drawn {
        let life = life(number)
        // A stream of its own: the faults never change the lives.
        var random = SeededRandom(seed: ~options.seed, stream: UInt64(number))
        var deliveries: [Delivery] = []
        var arrived: [Notice] = []
        var lost = 0
        var inFlight = 0
        for (index, notice) in life.notices.enumerated() {
            // What we asked Apple for arrives when we asked.
            let faults = notice.form == .answer ? DeliveryFaults.none : options.faults
            let all = faults.arrivals(signedDate: notice.signedDate, random: &random)
            let inTime = all.filter { $0 < options.until }
            if all.isEmpty { lost += 1 } else if inTime.isEmpty { inFlight += 1 }
            if !inTime.isEmpty { arrived.append(notice) }
            for (repetition, arrival) in inTime.enumerated() {
                deliveries.append(
                    Delivery(
                        arrival: arrival,
                        signedDate: notice.signedDate,
                        subscription: UInt32(number),
                        notice: UInt16(index),
                        repetition: UInt16(repetition)
                    )
                )
            }
        }
        let row = TruthRow(
            originalTransactionID: life.chain.originalTransactionID,
            bundleID: life.chain.bundleID,
            environment: life.chain.environment,
            appleEvents: life.notices.count,
            appleStatus: life.notices.last { $0.status != nil }?.status ?? 0,
            apple: life.intervals,
            deliveredEvents: arrived.count,
            delivered: DeliveredTruth(
                arrived,
                configuredGraceDays: options.configuredGraceDays
            ).intervals()
        )
        return Drawn(
            life: life,
            row: row,
            deliveries: deliveries,
            lost: lost,
            inFlight: inFlight,
            events: life.events
        )
    }

    /// Maps on all cores; the results come in the order of the input.
    private func inParallel<Input: RandomAccessCollection & Sendable, Output: Sendable>(
        _ input: Input,
        _ body: @Sendable (Input.Element) -> Output
    ) -> [Output] where Input.Element: Sendable {
        let parts = Mutex<[Int: [Output]]>([:])
        let size = (input.count + options.cores - 1) / max(options.cores, 1)
        DispatchQueue.concurrentPerform(iterations: options.cores) { core in
            let part = input.dropFirst(core * size).prefix(size).map(body)
            parts.withLock { $0[core] = part }
        }
        return parts.withLock { parts in
            (0..<options.cores).flatMap { parts[$0] ?? [] }
        }
    }
}

extension SimulationStatistics {
    fileprivate mutating func add(_ row: TruthRow, at instant: Int64) {
        subscriptions += 1
        notices += row.appleEvents
        let known = row.appleAt(instant)
        let delivered = row.at(instant)
        if let known { appleStates[known.state, default: 0] += 1 }
        if let delivered { deliveredStates[delivered.state, default: 0] += 1 }
        if row.deliveredEvents == 0 { unheardOf += 1 }
        if known?.state != delivered?.state { differingStates += 1 }
    }

    /// Counts repeats and disorder of deliveries in order of arrival.
    fileprivate mutating func count(_ deliveries: [Delivery]) {
        var last: [UInt32: Int64] = [:]
        var before: Int64 = .min
        for delivery in deliveries {
            if delivery.repetition > 0 { duplicates += 1 }
            if delivery.signedDate < before { disorderedNeighbours += 1 }
            before = delivery.signedDate
            if let last = last[delivery.subscription], delivery.signedDate < last {
                disorderedWithinSubscription += 1
            }
            last[delivery.subscription] = delivery.signedDate
        }
    }
}

/// One line of the output: which notification of which subscription, and when it arrives.
private struct Delivery {
    var arrival: Int64
    var signedDate: Int64
    var subscription: UInt32
    var notice: UInt16
    /// 0 for the first time, more for the same bytes once more.
    var repetition: UInt16
}
