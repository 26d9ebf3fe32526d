internal import AppStore
internal import AppStoreSimulator
internal import EventLog
internal import Glibc
internal import HTTP
internal import Ledger
internal import LedgerService
public import Postgres

/// How fast deliveries are verified, committed and answered, against verifying the same ones alone.
///
/// Server, client and database share the machine. Nothing can be faster than verification on the
/// cores that there are, so the ratio says what receiving, committing and answering cost beside it.
public struct WebhookBenchmark {
    /// What was measured for one number of connections.
    public struct Result: Hashable, Sendable {
        /// How many connections delivered at once.
        public var connections: Int
        /// Deliveries answered in a second.
        public var perSecond: Double
        /// The time that half of the answers took at most, in ms.
        public var medianMs: Double
        /// The time that 99 of 100 answers took at most, in ms.
        public var p99Ms: Double
        /// How many were not answered with 200.
        public var failures: Int
        /// Processor time of a delivery in the service, in µs.
        public var serviceMicroseconds: Double
        /// The same of the sender.
        public var senderMicroseconds: Double
        /// The same of PostgreSQL.
        public var serverMicroseconds: Double

        /// What that comes to in a second on so many cores that have nothing else to do.
        public func perSecond(onCores cores: Int) -> Double {
            Double(cores) * 1e6
                / (serviceMicroseconds + senderMicroseconds + serverMicroseconds)
        }
    }

    /// How soon the read models show what was acknowledged.
    public struct Visibility: Hashable, Sendable {
        /// Deliveries tried in a second.
        public var perSecond: Int
        /// From the acknowledgement on, in ms: the half, and 99 of 100, take no longer.
        public var medianMs: Double
        /// See `medianMs`.
        public var p99Ms: Double
        /// From due to acknowledged, in ms: 99 of 100 take no longer.
        public var deliveryP99Ms: Double
    }

    private let connect: @Sendable () throws -> Connection

    /// Prepares a benchmark in a database of its own, which has the schema and no events.
    public init(connect: @escaping @Sendable () throws -> Connection) { self.connect = connect }

    /// Delivers so many notifications for each number of connections, new ones each time.
    ///
    /// - Parameters:
    ///   - deliveries: how many.
    ///   - connections: the numbers of connections, one run for each.
    ///   - visibleSeconds: how long it is measured what becomes visible when.
    ///   - progress: told what is done next.
    /// - Returns: a line for verification alone, the results, and how soon it was visible.
    /// - Throws: what the database refuses, or `HTTPError`.
    public func run(
        deliveries: Int,
        connections: [Int],
        visibleSeconds: Int,
        progress: (String) -> Void = { _ in }
    ) throws -> (verified: Double, commits: Double, results: [Result], visibility: Visibility?) {
        let runs = connections.count + 1
        progress("signing \(deliveries * runs) notifications")
        // Sandbox would give way to whatever looks like Production.
        var options = Simulation.Options(subscriptions: deliveries * runs / 4 + 1)
        options.environment = "Production"
        let simulation = Simulation(options)
        var bodies: [[UInt8]] = []
        let mark = Array("{\"signedPayload\"".utf8)
        _ = simulation.run(
            truth: { _ in },
            delivery: { line in
                if bodies.count < deliveries * runs, line.starts(with: mark) {
                    bodies.append(Array(line))
                }
            }
        )
        var anchors = TrustAnchors()
        try anchors.addVouchingForAll(simulation.authority.rootDER, name: "test root")
        let later = ChaosSource.authority(seed: 2, until: ChaosSource.now())
        try anchors.addVouchingForAll(later.rootDER, name: "second test root")
        let chain = simulation.life(0).chain
        let app = AcceptedApp(
            bundleID: chain.bundleID,
            appAppleID: chain.appAppleID,
            environments: [.production]
        )
        let verifier = Verifier(anchors: anchors, apps: [app])
        let share = bodies.count / runs

        progress("verifying alone")
        let now: @Sendable () -> Timestamp = { Timestamp(milliseconds: ChaosSource.now()) }
        let verified = Self.verify(Array(bodies[..<share]), verifier, now())

        progress("committing one row after the other")
        let commits = try Self.commits(connect())

        let connect = connect
        let service = try Service(
            options: Service.Options(http: Self.configuration),
            verifier: verifier,
            sessions: Service.Sessions(
                appender: connect,
                projector: connect,
                reader: connect,
                auditor: connect
            ),
            log: ServiceLog(descriptor: 2, now: now),
            now: now
        )
        defer { service.stop(within: .seconds(5)) }
        var results: [Result] = []
        for (number, count) in connections.enumerated() {
            progress("delivering over \(count) connections")
            let part = bodies[((number + 1) * share)..<((number + 2) * share)]
            let messages = part.map { Self.message($0) }
            let before = try ProcessorTime(connect())
            let senderBefore = BenchmarkClock.threadSeconds
            let outcome = LoadClient(port: service.port, connections: count).run(messages)
            let sender = BenchmarkClock.threadSeconds - senderBefore
            let after = try ProcessorTime(connect())
            let microseconds = 1e6 / Double(max(1, outcome.latencies.count))
            results.append(
                Result(
                    connections: count,
                    perSecond: Double(outcome.latencies.count) / outcome.seconds,
                    medianMs: outcome.quantile(0.5) * 1000,
                    p99Ms: outcome.quantile(0.99) * 1000,
                    failures: outcome.refused + outcome.lost,
                    serviceMicroseconds: (after.own - before.own - sender) * microseconds,
                    senderMicroseconds: sender * microseconds,
                    serverMicroseconds: (after.server - before.server) * microseconds
                )
            )
        }
        progress("looking when it is visible")
        let visibility =
            visibleSeconds > 0
            ? visibility(of: later, seconds: visibleSeconds, port: service.port) : nil
        return (verified, commits, results, visibility)
    }

    /// Delivers a thousand a second and sees when the read models show it.
    private func visibility(
        of authority: TestCertificateAuthority,
        seconds: Int,
        port: UInt16
    ) -> Visibility? {
        let perSecond = 1000
        let connect = connect
        let probe = ChaosProbe { try connect() }
        let load = ChaosLoad(
            book: ChaosBook(),
            seed: 2,
            portCount: 1,
            ports: { _ in port },
            acknowledged: { stream, position in probe.add(stream, at: position) }
        )
        let isOver = Flag()
        let source = ChaosSource(seed: 2, authority: authority, environment: "Production")
        source.prepare(perSecond * (seconds + 3))
        load.send(by: 64)
        load.produce(source, perSecond: perSecond) { isOver.isSet }
        Clock.sleep(milliseconds: 2000)
        for times in [load.times, probe.times] { times.setPhase("measured") }
        Clock.sleep(milliseconds: seconds * 1000)
        for times in [load.times, probe.times] { times.setPhase(nil) }
        isOver.set()
        _ = load.wait(seconds: 60)
        probe.stop()
        func milliseconds(_ share: Double, _ times: ChaosTimes) -> Double? {
            times.milliseconds(share, of: "measured")
        }
        guard let median = milliseconds(0.5, probe.times),
            let p99 = milliseconds(0.99, probe.times),
            let delivery = milliseconds(0.99, load.times)
        else { return nil }
        return Visibility(
            perSecond: perSecond,
            medianMs: median,
            p99Ms: p99,
            deliveryP99Ms: delivery
        )
    }

    private static var configuration: HTTPServerConfiguration {
        var configuration = HTTPServerConfiguration()
        configuration.addressConnectionLimit = 2000
        return configuration
    }

    private static func message(_ body: [UInt8]) -> [UInt8] {
        let head = """
            POST /v1/notifications HTTP/1.1\r
            Host: localhost\r
            Content-Type: application/json\r
            Content-Length: \(body.count)\r
            \r

            """
        return Array(head.utf8) + body
    }

    /// Rows committed in a second, each in a transaction of its own: whoever waits for the answer
    /// before the next delivery gets no more.
    private static func commits(_ connection: Connection) throws -> Double {
        let count = 200
        try connection.execute("create table public.one_by_one (n bigint)")
        defer { try? connection.execute("drop table public.one_by_one") }
        let time = try ContinuousClock().measure {
            for number in 0..<count {
                _ = try connection.query(
                    prepared: "insert into public.one_by_one values ($1)",
                    [.int(Int64(number))]
                )
            }
        }
        return Double(count) / (time / .seconds(1))
    }

    /// Notifications verified in a second, on all cores.
    private static func verify(
        _ bodies: [[UInt8]],
        _ verifier: Verifier,
        _ now: Timestamp
    ) -> Double {
        let time = ContinuousClock().measure {
            let pipeline = OrderedPipeline<[[UInt8]], Void>(depth: 24) { bodies in
                for body in bodies {
                    guard case .success(let text) = SignedInput.signedText(ofLine: body) else {
                        continue
                    }
                    _ = verifier.verify(text, now: now)
                }
            }
            for start in stride(from: 0, to: bodies.count, by: 64) {
                if pipeline.isFull { pipeline.take() }
                pipeline.give(Array(bodies[start..<min(start + 64, bodies.count)]))
            }
            while !pipeline.isEmpty { pipeline.take() }
        }
        return Double(bodies.count) / (time / .seconds(1))
    }
}
