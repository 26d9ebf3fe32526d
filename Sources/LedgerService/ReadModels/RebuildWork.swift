internal import Dispatch
internal import EventLog
internal import Ledger
internal import Postgres
internal import Projections
internal import Synchronization

/// What the threads of one rebuild share.
final class Build: Sendable {
    private struct State {
        var phase = Rebuild.Progress.Phase.fold
        var events: Int64 = 0
        var streams: Int64 = 0
        var digests: [Digest]
        var tooLong: Set<SubscriptionKey> = []
        var times = Rebuild.Times()
        var failure: ReadModelError?
        var lastReport: ContinuousClock.Instant?
    }

    let generations: [Generation]
    let registry: AppRegistry
    /// The last position that is read; nil for all of the log.
    let position: Int64?

    private let eventsTotal: Int64
    private let start: ContinuousClock.Instant
    private let shouldStop: @Sendable () -> Bool
    private let progress: @Sendable (Rebuild.Progress) -> Void
    private let state: Mutex<State>

    init(
        generations: [Generation],
        registry: AppRegistry,
        upTo position: Int64? = nil,
        eventsTotal: Int64,
        start: ContinuousClock.Instant,
        shouldStop: @escaping @Sendable () -> Bool,
        progress: @escaping @Sendable (Rebuild.Progress) -> Void
    ) {
        self.generations = generations
        self.registry = registry
        self.position = position
        self.eventsTotal = eventsTotal
        self.start = start
        self.shouldStop = shouldStop
        self.progress = progress
        state = Mutex(State(digests: generations.map { _ in Digest() }))
    }

    /// Begins a phase and says so.
    ///
    /// - Throws: `.stopped` when the caller wants an end.
    func enter(_ phase: Rebuild.Progress.Phase) throws(ReadModelError) {
        state.withLock {
            $0.phase = phase
            report(&$0, isDue: true)
        }
        try add(events: 0, streams: 0)
    }

    /// Adds what was read and written, and says so now and then.
    ///
    /// - Throws: `.stopped` when the caller wants an end, or what another thread failed with.
    func add(events: Int64, streams: Int64) throws(ReadModelError) {
        let failure: ReadModelError? = state.withLock {
            $0.events += events
            $0.streams += streams
            report(&$0, isDue: false)
            return $0.failure
        }
        if let failure { throw failure }
        if shouldStop() { throw ReadModelError(.stopped, "the rebuild was stopped") }
    }

    /// Adds rows that were written to the generation of that index, and takes out rows that went.
    func add(_ written: Digest, removed: Digest = Digest(), generation: Int) {
        state.withLock {
            $0.digests[generation].add(written)
            $0.digests[generation].subtract(removed)
        }
    }

    /// Adds what some part of the work took.
    func add(_ times: Rebuild.Times) {
        state.withLock { $0.times.add(times) }
    }

    /// Notes that a subscription has more events than are folded.
    func leaveOut(_ key: SubscriptionKey) {
        _ = state.withLock { $0.tooLong.insert(key) }
    }

    /// What was done.
    func report(seconds: Double) -> Rebuild.Report {
        state.withLock { state in
            Rebuild.Report(
                events: state.events,
                streams: state.streams,
                seconds: seconds,
                readModels: zip(generations, state.digests).map {
                    .init(name: $0.projection, generation: $0.number, digest: $1)
                },
                tooLong: state.tooLong.sorted(),
                times: state.times
            )
        }
    }

    /// Runs `work` on some threads, which share the jobs 0..<count; throws the first failure.
    func onThreads(
        _ threads: Int,
        jobs count: Int,
        _ work: @Sendable (_ next: () -> Int?) throws -> Void
    ) throws(ReadModelError) {
        let next = Atomic(0)
        DispatchQueue.concurrentPerform(iterations: threads) { _ in
            do {
                try work {
                    let job = next.add(1, ordering: .relaxed).oldValue
                    return job < count ? job : nil
                }
            } catch {
                let failure = ReadModelError(error, doing: "rebuild")
                state.withLock { $0.failure = $0.failure ?? failure }
            }
        }
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    private func report(_ state: inout State, isDue: Bool) {
        let now = ContinuousClock.now
        if !isDue, let last = state.lastReport, now - last < .milliseconds(100) { return }
        state.lastReport = now
        progress(
            Rebuild.Progress(
                phase: state.phase,
                events: state.events,
                eventsTotal: eventsTotal,
                seconds: (now - start).seconds
            )
        )
    }
}

extension Rebuild {
    /// Reads, folds and writes the whole log, some slices at a time.
    func fold(_ build: Build, _ connection: Connection) throws {
        try build.enter(.fold)
        // What is withdrawn later has its mark, and is found by its position when catching up.
        let withdrawals = try Withdrawals(upTo: build.position ?? .max, connection)
        let slices = try LogReader(connection).stretches()
        let start = ContinuousClock.now
        try build.onThreads(min(workerCount, slices.count), jobs: slices.count) { next in
            let source = try LogReader(self.connect())
            let sink = try self.connect()
            var folder = StreamFolder(build.generations, build.registry, withdrawals)
            var events: Int64 = 0
            var streams: Int64 = 0
            var watch = PartsWatch()
            while let job = next() {
                try source.forEachStream(
                    in: slices[job],
                    upTo: build.position,
                    atMost: Projector.streamEventsMax + 1
                ) { key, read in
                    watch.end(\.read)
                    events += Int64(read.count)
                    streams += 1
                    if read.count > Projector.streamEventsMax {
                        build.leaveOut(key)
                    } else {
                        folder.add(read, of: key)
                    }
                    watch.end(\.fold)
                    if folder.byteCount >= self.flushBytes {
                        try Self.write(&folder, to: sink, build)
                        watch.end(\.write)
                    }
                    guard streams % 256 == 0 else { return }
                    try build.add(events: events, streams: streams)
                    (events, streams) = (0, 0)
                }
            }
            watch.end(\.read)
            try build.add(events: events, streams: streams)
            try Self.write(&folder, to: sink, build)
            watch.end(\.write)
            build.add(watch.times)
        }
        build.add(Times(load: (ContinuousClock.now - start).seconds))
    }

    /// Which part of a worker's time goes into what.
    private struct PartsWatch {
        private(set) var times = Times()
        private var since = ContinuousClock.now

        /// Counts what has passed since the last end to a part.
        mutating func end(_ part: WritableKeyPath<Times, Double>) {
            let now = ContinuousClock.now
            times[keyPath: part] += (now - since).seconds
            since = now
        }
    }

    private static func write(
        _ folder: inout StreamFolder,
        to sink: Connection,
        _ build: Build
    ) throws {
        for (index, generation) in folder.generations.enumerated() {
            var digest = Digest()
            for (place, table) in generation.tables.enumerated() {
                let rows = folder.rows[index].tables[place]
                guard !rows.starts.isEmpty else { continue }
                try sink.copyIn(generation.copyIn(table)) { try $0.write(rows.buffer) }
                for row in rows.starts.indices {
                    digest.add(rows.buffer.bytes[rows.range(row)], table: place)
                }
            }
            build.add(digest, generation: index)
        }
        folder.removeAll()
    }
}
