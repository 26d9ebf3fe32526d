public import AppStoreSimulator
internal import Dispatch
internal import Glibc
public import HTTP
internal import Synchronization

/// A fake App Store that answers over HTTPS and posts its notifications.
///
/// Apple's API stands under `/inApps`, what whoever runs it can see and do under `/simulator/v1`.
/// Whoever makes one stops it.
public final class FakeAppStoreServer: Sendable {
    /// Where a server listens and where it posts.
    public struct Configuration: Sendable {
        /// Where to listen; without `tls` it speaks plain HTTP.
        public var http: HTTPServerConfiguration
        /// The simulated time.
        public var clock: SimulatedClock
        /// Posts a notification; nil where there is no webhook.
        public var deliver: (@Sendable ([UInt8]) -> SendAttemptResult)?
        /// How many notifications are posted at a time; with one they arrive in their order.
        public var deliveryWorkers = 1

        /// Makes a configuration on this machine and a port that is free.
        public init(
            http: HTTPServerConfiguration = HTTPServerConfiguration(),
            clock: SimulatedClock
        ) {
            self.http = http
            self.clock = clock
        }
    }

    /// The port that is listened on.
    public var port: UInt16 { server.port }

    private let server: HTTPServer
    private let core: Core

    /// Starts to answer and to post.
    ///
    /// - Parameters:
    ///   - store: what is served; it is moved to the clock's time.
    ///   - configuration: where.
    /// - Throws: `HTTPError`.
    public init(_ store: FakeAppStore, _ configuration: Configuration) throws(HTTPError) {
        var store = store
        store.hasReceiver = configuration.deliver != nil
        let core = Core(store, configuration)
        self.core = core
        server = try HTTPServer(
            configuration: configuration.http,
            router: Router(Self.routes(core))
        )
        core.startDelivering()
    }

    /// Works on the store, at the simulated time of now; nobody else does meanwhile.
    public func withStore<Result: Sendable>(
        _ body: (inout FakeAppStore) -> Result
    ) -> Result {
        core.withStore(body)
    }

    /// Sets the simulated clock forward; what is due meanwhile comes to pass.
    public func advance(byMilliseconds length: Int64) {
        core.clock.advance(byMilliseconds: length)
        core.withStore { _ in }
    }

    /// How many notifications are being posted at the moment.
    public var deliveriesUnderWay: Int { core.underWay.load(ordering: .acquiring) }

    /// Waits until nothing is due any more, at most so long; false where it still is then.
    public func settle(within duration: Duration) -> Bool {
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end {
            if core.isIdle { return true }
            usleep(5_000)
        }
        return core.isIdle
    }

    /// Stops to post and to answer; waits for what is under way.
    public func stop() {
        core.stopDelivering()
        server.stop(within: .seconds(2))
    }

    // MARK: - Routes

    private static func routes(_ core: Core) -> [Route] {
        var routes = StoreEndpoint.routes.map { method, path in
            Route(HTTPMethod(rawValue: method), template(path), bodyLimitBytes: 64 * 1024) {
                core.answer($0)
            }
        }
        routes += FakeAppStore.controlRoutes.map { method, path in
            Route(
                HTTPMethod(rawValue: method),
                template(FakeAppStore.controlPath + path),
                bodyLimitBytes: 1024 * 1024
            ) { .answer(core.control($0)) }
        }
        routes.append(
            Route(.post, template(FakeAppStore.receiptPath), bodyLimitBytes: 1024 * 1024) {
                core.answer($0)
            }
        )
        let clock = template(FakeAppStore.controlPath + ["clock"])
        routes.append(Route(.get, clock) { _ in .answer(core.clockAnswer) })
        routes.append(
            Route(.post, clock, bodyLimitBytes: 1024) { .answer(core.setClock($0)) }
        )
        routes.append(
            Route(.get, template(FakeAppStore.controlPath + ["root.pem"])) { _ in
                let pem = core.withStore { $0.authority.rootPEM }
                return .answer(
                    HTTPResponse(
                        status: 200,
                        contentType: "application/x-pem-file",
                        body: Array(pem.utf8)
                    )
                )
            }
        )
        return routes
    }

    private static func template(_ path: [String]) -> String {
        path.enumerated().map { $1 == "*" ? "/{part\($0)}" : "/\($1)" }.joined()
    }
}

/// The store under its lock, and the threads that post.
private final class Core: Sendable {
    let clock: SimulatedClock
    let underWay = Atomic<Int>(0)
    private let store: Mutex<FakeAppStore>
    private let deliver: (@Sendable ([UInt8]) -> SendAttemptResult)?
    private let workers: Int
    private let isStopping = Atomic<Bool>(false)
    private let group = DispatchGroup()

    init(_ store: FakeAppStore, _ configuration: FakeAppStoreServer.Configuration) {
        clock = configuration.clock
        self.store = Mutex(store)
        deliver = configuration.deliver
        workers = configuration.deliver == nil ? 0 : max(1, configuration.deliveryWorkers)
    }

    func withStore<Result: Sendable>(_ body: (inout FakeAppStore) -> Result) -> Result {
        store.withLock { store in
            store.move(to: clock.now)
            // Requests move the store's time by a little, and a clock that stands still must not
            // fall behind; one that goes would drift.
            defer { if clock.speed == 0 { clock.reach(store.now) } }
            return body(&store)
        }
    }

    // MARK: - Requests

    func answer(_ request: HTTPRequest) -> Answer {
        let asked = StoreRequest(
            method: request.method.rawValue,
            path: request.target.path,
            query: request.target.query.map { ($0.name, $0.value) },
            authorization: request.headers["Authorization"],
            body: request.body
        )
        let wall = Self.wallMilliseconds
        let given = withStore { $0.answer(asked, at: wall) }
        guard given.delayMilliseconds > 0 else { return .answer(Self.response(given)) }
        let pending = PendingResponse()
        DispatchQueue.global().asyncAfter(
            deadline: .now() + .milliseconds(Int(given.delayMilliseconds))
        ) { pending.complete(Self.response(given)) }
        return .later(pending)
    }

    func control(_ request: HTTPRequest) -> HTTPResponse {
        let asked = StoreRequest(
            method: request.method.rawValue,
            path: Array(request.target.path.dropFirst(FakeAppStore.controlPath.count)),
            query: request.target.query.map { ($0.name, $0.value) },
            body: request.body
        )
        return Self.response(withStore { $0.control(asked) })
    }

    private static func response(_ given: StoreResponse) -> HTTPResponse {
        if given.isLost {
            // The client is told that something follows, and then the connection breaks.
            let (body, writer) = BodyWriter.makeStream()
            defer { writer.abort() }
            return HTTPResponse(status: given.status, body: body)
        }
        var response = HTTPResponse(
            status: given.status,
            contentType: given.body == nil ? nil : given.contentType,
            body: given.bytes
        )
        if let instant = given.retryAfter { response.headers["Retry-After"] = String(instant) }
        return response
    }

    private static var wallMilliseconds: Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    // MARK: - Clock

    var clockAnswer: HTTPResponse {
        let now = withStore { $0.now }
        return .json("{\"now\":\(now),\"speed\":\(clock.speed)}")
    }

    func setClock(_ request: HTTPRequest) -> HTTPResponse {
        let body = WireValue(reading: request.body)
        guard let members = body?.members, !members.isEmpty else { return Self.badClock }
        let day: Int64 = 86_400_000
        for member in members {
            switch member.name {
            case "advanceMilliseconds":
                guard let length = member.value.number, 0...400 * day ~= length else {
                    return Self.badClock
                }
                clock.advance(byMilliseconds: length)
            case "to":
                let now = clock.now
                guard let instant = member.value.number, now...now + 400 * day ~= instant else {
                    return Self.badClock
                }
                clock.advance(byMilliseconds: instant - now)
            case "speed":
                guard let speed = member.value.decimal, 0...SimulatedClock.speedMax ~= speed else {
                    return Self.badClock
                }
                clock.speed = speed
            default: return Self.badClock
            }
        }
        return clockAnswer
    }

    private static let badClock = HTTPResponse.json(
        "{\"error\":\"the clock takes advanceMilliseconds, to (an instant that is not past, at "
            + "most 400 days ahead) or speed\"}",
        status: 400
    )

    // MARK: - Deliveries

    var isIdle: Bool {
        withStore { $0.isQuiet } && underWay.load(ordering: .acquiring) == 0
    }

    func startDelivering() {
        for number in 0..<workers {
            group.enter()
            DispatchQueue(label: "simulator.delivery.\(number)").async { [self] in
                while !isStopping.load(ordering: .acquiring) { work() }
                group.leave()
            }
        }
    }

    private func work() {
        guard let deliver else { return }
        let due = withStore { store in
            let due = store.takeDispatch()
            if due != nil { underWay.add(1, ordering: .acquiringAndReleasing) }
            return due
        }
        guard let due else {
            usleep(20_000)
            return
        }
        for dispatch in due {
            let result = deliver(dispatch.body)
            store.withLock { $0.record(result, of: dispatch) }
        }
        underWay.subtract(1, ordering: .acquiringAndReleasing)
    }

    func stopDelivering() {
        isStopping.store(true, ordering: .releasing)
        group.wait()
    }
}
