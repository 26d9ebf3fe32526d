internal import CMicroHTTPD
internal import Dispatch
internal import Glibc
internal import Synchronization

/// An HTTP/1.1 server on libmicrohttpd.
///
/// A few threads serve all connections. A request reaches its route's handler when it is whole; a
/// handler that has to wait answers later, and its connection costs no thread until then. Whoever
/// makes a server stops it; a server that is let go is stopped without patience.
public final class HTTPServer: Sendable {
    /// How a server stopped.
    public enum StopOutcome: Hashable, Sendable {
        /// Every request was answered.
        case drained
        /// Some were answered 503, or cut, when the time was over.
        case cut
    }

    /// The port that is listened on.
    public let port: UInt16

    private let core: ServerCore
    private let state: Mutex<State>

    private enum State {
        case running(RunningServer)
        case stopped(StopOutcome)
    }

    /// Starts to serve.
    ///
    /// SIGPIPE is ignored from then on in the whole process, and the soft limit of open files
    /// raised where the connection limit needs it.
    ///
    /// - Parameters:
    ///   - configuration: where to listen, and the limits.
    ///   - router: who answers what.
    ///   - onAccess: called once for each request, when it is over, in the server's threads.
    /// - Throws: `HTTPError`.
    public convenience init(
        configuration: HTTPServerConfiguration,
        router: Router,
        onAccess: (@Sendable (AccessRecord) -> Void)? = nil
    ) throws(HTTPError) {
        try configuration.validate()
        try ListeningSocket.allowConnections(configuration.connectionLimit)
        signal(SIGPIPE, SIG_IGN)
        let socket = try ListeningSocket.open(
            address: configuration.address,
            port: configuration.port
        )
        try self.init(
            core: ServerCore(configuration: configuration, router: router, onAccess: onAccess),
            socket: socket
        )
    }

    /// Starts a server that takes another one's place with a new certificate.
    ///
    /// It takes connections at the same port from the same socket, so that nobody is turned away;
    /// both do so until the other one is stopped, which is the caller's to do. It goes on counting
    /// where the other one is.
    ///
    /// - Throws: `HTTPError`; the other one serves on as if nothing had been.
    public convenience init(
        succeeding other: HTTPServer,
        tls: TLSIdentity
    ) throws(HTTPError) {
        var configuration = other.core.configuration
        configuration.tls = tls
        let core = ServerCore(
            configuration: configuration,
            router: other.core.router,
            onAccess: other.core.onAccess,
            counters: other.core.counters
        )
        try self.init(core: core, socket: try other.duplicateSocket())
    }

    /// Takes the socket over.
    private init(core: ServerCore, socket: Int32) throws(HTTPError) {
        self.core = core
        port = ListeningSocket.port(of: socket)
        do throws(HTTPError) {
            state = Mutex(.running(try RunningServer(core: core, socket: socket)))
        } catch {
            close(socket)
            throw error
        }
    }

    private func duplicateSocket() throws(HTTPError) -> Int32 {
        let file = state.withLock { state in
            if case .running(let server) = state { server.duplicateSocket() } else { Int32(-1) }
        }
        guard file >= 0 else {
            throw HTTPError(code: .start, message: "the server to be succeeded listens no more")
        }
        return file
    }

    deinit { _ = stop(within: .zero) }

    /// What the server has done and is doing.
    public var statistics: ServerStatistics {
        var statistics = core.counters.snapshot
        statistics.connectionsOpen = core.table.count
        statistics.requestsInFlight = core.gate.inFlight
        return statistics
    }

    /// Stops: no new connection, every request answered, then every connection closed.
    ///
    /// Requests on open connections are still taken meanwhile, and their connections closed after
    /// the answer. Pending answers that name one for this case get it at once. What has no answer
    /// when the time is over gets 503, and is cut where it does not take it within five seconds.
    /// The calling thread waits; it must not be one of the server's own. Calling again changes
    /// nothing.
    ///
    /// - Parameter duration: how long requests may still take.
    /// - Returns: whether all of them were answered.
    @discardableResult
    public func stop(within duration: Duration) -> StopOutcome {
        state.withLock { state in
            switch state {
            case .stopped(let outcome):
                return outcome
            case .running(let server):
                let outcome = server.stop(core, within: duration)
                state = .stopped(outcome)
                return outcome
            }
        }
    }
}

/// A started daemon with what belongs to it.
@safe private struct RunningServer: @unchecked Sendable {
    // Safety: used under the lock of its server alone; freed once, by `stop`.
    private let daemon: OpaquePointer
    private let context: Unmanaged<ServerCore>
    private let log: UnsafeMutablePointer<shim_start_log>
    private let texts: [UnsafeMutablePointer<CChar>?]
    private let timer: any DispatchSourceTimer
    private let socket: Int32

    /// Starts the daemon; `socket` is closed where that goes well, and the caller's where it does
    /// not.
    init(core: ServerCore, socket: Int32) throws(HTTPError) {
        let configuration = core.configuration
        // The library closes its socket after some failures and not after others. It gets a number
        // of its own, so that nobody closes one that meanwhile belongs to another thread.
        let own = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard own >= 0 else {
            throw HTTPError(code: .openFiles, message: "no further file can be opened")
        }
        let threads = configuration.threadCount ?? max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        unsafe context = Unmanaged.passRetained(core)
        unsafe log = UnsafeMutablePointer.allocate(capacity: 1)
        unsafe log.initialize(to: shim_start_log())
        unsafe texts =
            configuration.tls.map {
                unsafe [
                    strdup($0.keyPEM), strdup($0.certificatePEM), strdup(TLSIdentity.priorities),
                ]
            } ?? [nil, nil, nil]
        var settings = unsafe shim_server_settings(
            listen_socket: own,
            thread_count: UInt32(threads),
            // Divided among the threads, which take connections unevenly; the table counts.
            connection_limit: UInt32((configuration.connectionLimit + 64) * threads),
            idle_timeout_seconds: UInt32(configuration.idleTimeoutSeconds),
            // Beside the headers there must be room for those of the answer.
            connection_memory_bytes: configuration.headerLimitBytes + 8 * 1024,
            tls_key: texts[0].map { unsafe UnsafePointer($0) },
            tls_certificate: texts[1].map { unsafe UnsafePointer($0) },
            tls_priorities: texts[2].map { unsafe UnsafePointer($0) },
            context: context.toOpaque(),
            accept: ServerCallbacks.accept,
            handle: ServerCallbacks.handle,
            completed: ServerCallbacks.completed,
            connection: ServerCallbacks.connection,
            target: ServerCallbacks.target,
            log: log
        )
        guard let daemon = unsafe shim_start(&settings) else {
            let reason = unsafe withUnsafeBytes(of: &log.pointee.text) { text in
                unsafe String(decoding: text.prefix { $0 >= 0x20 }, as: UTF8.self)
            }
            unsafe Self.free(context, log, texts)
            throw HTTPError(
                code: configuration.tls == nil ? .start : .certificate,
                message: configuration.tls == nil
                    ? "the HTTP server cannot start: \(reason)"
                    : "the TLS certificate and key cannot be used (\(reason)): the key must be "
                        + "the certificate's, in PEM and without a passphrase"
            )
        }
        unsafe self.daemon = daemon
        self.socket = own
        close(socket)
        timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "http.deadlines"))
        let shortest = min(
            configuration.requestDeadline,
            configuration.answerDeadline,
            configuration.sendDeadline
        )
        let interval = max(10_000_000, min(500_000_000, shortest.nanoseconds / 4))
        timer.schedule(deadline: .now(), repeating: .nanoseconds(Int(interval)))
        timer.setEventHandler { core.enforceDeadlines() }
        timer.resume()
    }

    /// The listening socket under a number of its own; negative where there is none to be had.
    func duplicateSocket() -> Int32 { fcntl(socket, F_DUPFD_CLOEXEC, 0) }

    func stop(_ core: ServerCore, within duration: Duration) -> HTTPServer.StopOutcome {
        ListeningSocket.deafen(socket)
        core.gate.drain()
        core.releaseWaiting()
        let outcome: HTTPServer.StopOutcome
        if core.gate.shut(within: duration) {
            outcome = .drained
        } else {
            outcome = .cut
            core.releaseAll()
            if !core.gate.shut(within: duration == .zero ? .zero : .seconds(5)) {
                core.gate.slam()
                core.table.cutAll()
                // A request that was let in before the gate shut may have begun to wait since.
                repeat { core.releaseAll() } while !core.gate.shut(within: .milliseconds(20))
            }
        }
        timer.cancel()
        // It aborts the process where a connection is still suspended; there is none.
        unsafe MHD_stop_daemon(daemon)
        unsafe Self.free(context, log, texts)
        return outcome
    }

    @unsafe private static func free(
        _ context: Unmanaged<ServerCore>,
        _ log: UnsafeMutablePointer<shim_start_log>,
        _ texts: [UnsafeMutablePointer<CChar>?]
    ) {
        unsafe context.release()
        unsafe log.deallocate()
        for index in unsafe texts.indices { unsafe Glibc.free(texts[index]) }
    }
}
