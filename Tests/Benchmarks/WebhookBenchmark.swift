internal import AppStore
internal import AppStoreSimulator
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
    }

    private let connect: @Sendable () throws -> Connection

    /// Prepares a benchmark in a database of its own, which has the schema and no events.
    public init(connect: @escaping @Sendable () throws -> Connection) { self.connect = connect }

    /// Delivers so many notifications for each number of connections, new ones each time.
    ///
    /// - Parameters:
    ///   - deliveries: how many.
    ///   - connections: the numbers of connections, one run for each.
    ///   - progress: told what is done next.
    /// - Returns: a line for verification alone, then the results.
    /// - Throws: what the database refuses, or `HTTPError`.
    public func run(
        deliveries: Int,
        connections: [Int],
        progress: (String) -> Void = { _ in }
    ) throws -> (verified: Double, results: [Result]) {
        let runs = connections.count + 1
        progress("signing \(deliveries * runs) notifications")
        let simulation = Simulation(.init(subscriptions: deliveries * runs / 4 + 1))
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
        try anchors.add(simulation.authority.rootDER, name: "test root")
        let app = AcceptedApp(
            bundleID: simulation.life(0).chain.bundleID,
            appAppleID: nil,
            environments: [.sandbox]
        )
        let verifier = Verifier(anchors: anchors, apps: [app])
        let share = bodies.count / runs

        progress("verifying alone")
        let now = Timestamp(milliseconds: simulation.options.until)
        let verified = Self.verify(Array(bodies[..<share]), verifier, now)

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
            log: ServiceLog(descriptor: 2) { now },
            now: { now }
        )
        defer { service.stop(within: .seconds(5)) }
        var results: [Result] = []
        for (number, count) in connections.enumerated() {
            progress("delivering over \(count) connections")
            let part = bodies[((number + 1) * share)..<((number + 2) * share)]
            let outcome = LoadClient(port: service.port, connections: count)
                .run(part.map { Self.message($0) })
            results.append(
                Result(
                    connections: count,
                    perSecond: Double(outcome.latencies.count) / outcome.seconds,
                    medianMs: outcome.quantile(0.5) * 1000,
                    p99Ms: outcome.quantile(0.99) * 1000,
                    failures: outcome.refused + outcome.lost
                )
            )
        }
        return (verified, results)
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
