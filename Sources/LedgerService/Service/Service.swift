package import AppStore
internal import Dispatch
package import HTTP
package import Ledger
package import Postgres
internal import Synchronization

/// The process that Apple delivers to and other services ask: webhook, live read models, queries.
package final class Service: Sendable {
    /// How a service is set up.
    package struct Options: Sendable {
        /// Where to listen, and the limits of the server.
        package var http: HTTPServerConfiguration
        /// The networks of proxies whose `X-Forwarded-For` is believed.
        package var trustedProxies: [AddressRange] = []
        /// The networks that may deliver notifications; empty for any.
        package var deliverers: [AddressRange] = []
        /// How many questions are answered at once.
        package var readers = Int(ServiceSettings.readersDefault)
        /// How long a request may wait for `after`.
        package var waitMax = Duration.seconds(30)
        /// How many bytes may be quarantined in a day.
        package var quarantineBytesPerDay = ServiceSettings.quarantineBytesPerDayDefault
        /// Whom to forward notifications to.
        package var forward: [ForwardDestination] = []
        /// How long things take in forwarding.
        package var forwardTiming = Forwarder.Timing()
        /// For how long no notification may come.
        package var silence = Silence.Limits()
        /// What reaches Apple for extensions; nil where no key is set up.
        package var extensionGateway: (any ExtensionGateway)?
        /// How asking Apple goes; nil where no key is set up.
        package var appStoreMeasures: AppStoreMeasures?
        /// When others must approve an extension, and the like.
        package var extensions = ExtensionSettings()
        /// The program's version, for its metrics.
        package var version = ""

        /// The network from which Apple delivers.
        package static let apple = AddressRange("17.0.0.0/8")

        /// Makes options.
        package init(http: HTTPServerConfiguration) { self.http = http }
    }

    /// What opens sessions with the rights of each role.
    package struct Sessions: Sendable {
        /// Appends to the log.
        package var appender: @Sendable () throws -> Connection
        /// Writes the read models.
        package var projector: @Sendable () throws -> Connection
        /// Reads the read models.
        package var reader: @Sendable () throws -> Connection
        /// Reads everything.
        package var auditor: @Sendable () throws -> Connection

        /// Makes the set.
        package init(
            appender: @escaping @Sendable () throws -> Connection,
            projector: @escaping @Sendable () throws -> Connection,
            reader: @escaping @Sendable () throws -> Connection,
            auditor: @escaping @Sendable () throws -> Connection
        ) {
            self.appender = appender
            self.projector = projector
            self.reader = reader
            self.auditor = auditor
        }
    }

    let options: Options
    let log: ServiceLog
    let now: @Sendable () -> Timestamp
    let committer: Committer
    let projection: LiveProjection
    let lane = VerificationLane()
    let webhook: Webhook
    let refusals: RefusalBook
    let watch: DeliveryWatch
    let gatekeeper: Gatekeeper
    let readers: ReadPool
    let auditors: ReadPool
    /// Where extensions are done: its threads may wait for Apple.
    let desk: ReadPool
    let appendingSession: @Sendable () throws -> Connection
    private let alertingSession: @Sendable () throws -> Connection
    let feed: Feed
    let forwarders: [Forwarder]
    let requests = RequestMeasures()
    /// See `Feed.waitersMax`.
    let waits = WaitingPlaces(max: 100)
    /// A position up to which the read models are known to show all.
    let shownPosition = Atomic<Int64>(0)
    private let server: Mutex<HTTPServer?> = Mutex(nil)
    /// Servers with a former certificate that answer what they took.
    private let retiring: Mutex<[HTTPServer]> = Mutex([])
    private let isDraining = Atomic<Bool>(false)
    private let reconcileCondition = Mutex<(@Sendable () -> ReconcileWorker.Condition)?>(nil)
    private let alerts = Mutex<ExtensionAlerts?>(nil)

    /// The port that is listened on.
    package let port: UInt16

    /// Starts everything.
    ///
    /// - Parameters:
    ///   - options: how it is set up.
    ///   - verifier: knows the anchors and the accepted apps.
    ///   - sessions: opens sessions with the rights of each role.
    ///   - log: where it says what it does.
    ///   - now: our clock.
    /// - Throws: `HTTPError` when it cannot listen, `HTTPClientError` when it cannot forward.
    package init(
        options: Options,
        verifier: Verifier,
        sessions: Sessions,
        log: ServiceLog,
        now: @escaping @Sendable () -> Timestamp
    ) throws {
        self.options = options
        self.log = log
        self.now = now
        let projecting = TroubleLog("projection", log)
        let projection = LiveProjection(connect: sessions.projector) { projecting.note($0) }
        self.projection = projection
        let appending = TroubleLog("append", log)
        let failed: @Sendable (any Error) -> Void = { error in
            log.write(.error, "query_failed") { $0.member("error", "\(error)") }
        }
        readers = ReadPool(size: options.readers, connect: sessions.reader, failed: failed)
        auditors = ReadPool(
            size: max(1, options.readers / 2),
            connect: sessions.auditor,
            failed: failed
        )
        desk = ReadPool(size: 2, connect: sessions.auditor, failed: failed)
        appendingSession = sessions.appender
        alertingSession = sessions.auditor
        let feed = Feed(pool: auditors, connect: sessions.auditor)
        self.feed = feed
        let forwarders = try options.forward.map { destination in
            try Forwarder(
                destination,
                timing: options.forwardTiming,
                connect: sessions.appender,
                report: { Service.note($0, of: destination, log) }
            )
        }
        self.forwarders = forwarders
        var limits = Committer.Limits()
        limits.quarantineBytesPerDay = options.quarantineBytesPerDay
        // Each delivery would be one: the disk must not fill with what they say.
        let fullness = Throttle(interval: .seconds(60))
        committer = Committer(
            limits: limits,
            connect: sessions.appender,
            committed: {
                projection.wake()
                feed.wake()
                for forwarder in forwarders { forwarder.wake() }
            },
            quarantineIsFull: { sizeBytes in
                guard let heldBack = fullness.pass() else { return }
                log.write(.error, "quarantine_full") { json in
                    json.member("not_logged", heldBack)
                    json.member("limit_bytes_day", options.quarantineBytesPerDay)
                    json.member("size_bytes", sizeBytes)
                }
            },
            noted: { appending.note($0) }
        )
        watch = DeliveryWatch { standing in
            log.write(.error, "refusals_outnumber") { json in
                json.member("environment", standing.origin.rawValue)
                json.member("refused", standing.count.refused)
                json.member("accepted", standing.count.accepted)
                json.member("window_seconds", DeliveryWatch.window.components.seconds)
            }
        }
        refusals = RefusalBook(connect: sessions.appender)
        gatekeeper = Gatekeeper(connect: sessions.auditor)
        webhook = Webhook(
            verifier: verifier,
            committer: committer,
            refusals: refusals,
            watch: watch,
            lane: lane,
            now: now
        )
        // The routes need the whole service, the service the port that the server has got.
        let holder = Holder()
        let requests = requests
        let started = try HTTPServer(
            configuration: options.http,
            router: Router(Service.routes { holder.service }),
            onAccess: { record in
                requests.count(record)
                Service.note(record, log)
            }
        )
        port = started.port
        server.withLock { $0 = started }
        holder.set(self)
    }

    /// Whether it is on its way down, so that nobody should be sent here any more.
    var isStopping: Bool { isDraining.load(ordering: .acquiring) }

    /// What the HTTP server has done.
    var statistics: ServerStatistics? { server.withLock { $0?.statistics } }

    /// Has what another writer appended folded and shown at once.
    package func wake() {
        projection.wake()
        feed.wake()
    }

    /// Shows how a worker is doing in the metrics.
    package func show(_ worker: ReconcileWorker) {
        reconcileCondition.withLock { $0 = { worker.condition } }
    }

    /// How the worker that asks Apple is doing; nil where there is none.
    var reconciling: ReconcileWorker.Condition? { reconcileCondition.withLock { $0 }?() }

    /// Looks whether somebody should look at extensions, and says so in the log where it is news.
    ///
    /// - Throws: what the database throws.
    package func lookAtExtensions() throws {
        let found = try ExtensionAlerts(alertingSession(), now: now())
        let grown = alerts.withLock { known in
            let grown = found.grown(since: known)
            known = found
            return grown
        }
        for entry in grown {
            log.write(.warning, entry.name) { json in
                json.member("count", entry.count)
                json.member("detail", entry.help)
                json.member("remedy", entry.remedy)
            }
        }
    }

    /// Has the tokens read again, and new connections served with another certificate.
    ///
    /// - Parameters:
    ///   - tls: the certificate and its key; nil where the service has none of its own.
    ///   - duration: how long requests on older connections may take.
    /// - Throws: `HTTPError` where the certificate cannot be used; the service goes on with the one
    ///   that it has.
    package func reload(
        tls: TLSIdentity? = nil,
        within duration: Duration = .zero
    ) throws(HTTPError) {
        gatekeeper.forget()
        if let tls, !isStopping {
            let old = try server.withLock { server throws(HTTPError) in
                let old = server
                if let old { server = try HTTPServer(succeeding: old, tls: tls) }
                return old
            }
            if let old {
                retiring.withLock { $0.append(old) }
                // It takes as long as the last request there.
                DispatchQueue(label: "subledger.retiring").async { [self] in
                    old.stop(within: duration)
                    retiring.withLock { servers in servers.removeAll { $0 === old } }
                }
            }
        }
        log.write(.info, "reloaded") { $0.member("certificate", tls != nil) }
    }

    /// Stops: nothing new is taken, all that was accepted is answered, what was committed stays.
    ///
    /// - Parameter duration: how long requests under way may take.
    /// - Returns: whether all of them were answered.
    @discardableResult
    package func stop(within duration: Duration) -> Bool {
        isDraining.store(true, ordering: .releasing)
        feed.stop()
        let outcome = server.withLock { $0 }?.stop(within: duration)
        for server in retiring.withLock({ $0 }) { server.stop(within: duration) }
        lane.stop()
        committer.stop()
        refusals.drain()
        for forwarder in forwarders { forwarder.finish() }
        for forwarder in forwarders { forwarder.stop() }
        readers.stop()
        auditors.stop()
        desk.stop()
        projection.stop()
        return outcome == .drained
    }

    private static func note(
        _ trouble: Forwarder.Trouble,
        of destination: ForwardDestination,
        _ log: ServiceLog
    ) {
        switch trouble {
        case .unreachable(let reason):
            log.write(.warning, "forward_unreachable") { json in
                json.member("destination", destination.name)
                json.member("error", reason)
            }
        case .held(let count, let reason):
            log.write(.warning, "forward_refused") { json in
                json.member("destination", destination.name)
                json.member("waiting_streams", count)
                json.member("error", reason)
            }
        }
    }

    private static func note(_ record: AccessRecord, _ log: ServiceLog) {
        // What goes well is in the metrics; a line for each delivery would drown the rest.
        guard let status = record.status, status >= 400, record.route != nil else { return }
        log.write(status >= 500 ? .warning : .info, "request") { json in
            json.member("request_id", record.requestID)
            json.member("method", record.method.rawValue)
            json.member("route", record.route)
            json.member("status", status)
            json.member("duration_us", record.durationNanoseconds / 1000)
            json.member("bytes_received", record.bytesReceived)
            json.member("peer", record.peer.description)
        }
    }

    /// Holds the service for its routes, which are made before it.
    private final class Holder: Sendable {
        private let held: Mutex<WeakService> = Mutex(WeakService())

        var service: Service? { held.withLock { $0.service } }

        func set(_ service: Service) { held.withLock { $0.service = service } }
    }

    private struct WeakService {
        weak var service: Service?
    }
}

/// How requests went, by route.
final class RequestMeasures: Sendable {
    private let state = Mutex<[String: Counter]>([:])
    /// From the request line to the end of the answer, in seconds, deliveries apart.
    let querySeconds = Histogram(bounds: [0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30])
    /// The same for deliveries.
    let deliverySeconds = Histogram(
        bounds: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5, 30]
    )

    func count(_ record: AccessRecord) {
        let route = record.route ?? "none"
        let status = record.status.map { "\($0)" } ?? "gone"
        let counter = state.withLock { counters in
            let key = "\(record.method) \(route) \(status)"
            if let counter = counters[key] { return counter }
            let counter = Counter()
            counters[key] = counter
            return counter
        }
        counter.add(1)
        let seconds = Double(record.durationNanoseconds) / 1e9
        (route == Service.notificationsPath ? deliverySeconds : querySeconds).observe(seconds)
    }

    /// The counts, by method, route and status.
    var counts: [(method: String, route: String, status: String, count: Int)] {
        state.withLock { counters in
            counters.sorted { $0.key < $1.key }.compactMap { key, counter in
                let words = key.split(separator: " ").map(String.init)
                guard words.count == 3 else { return nil }
                return (words[0], words[1], words[2], counter.value)
            }
        }
    }
}
