internal import CCurl
internal import Glibc
internal import Synchronization

/// Sends requests to other servers and waits for their answers.
///
/// `send` blocks its thread, so it is called from a thread of one's own and never from a handler of
/// `HTTPServer` or from the cooperative pool. Any number of threads may use one client at a time;
/// each request has a connection to itself meanwhile, and connections are kept and used again by
/// later requests to the same origin. It speaks HTTP/1.1.
///
/// TLS is always verified. Redirects are never followed, nor is anything taken from the
/// environment: no proxy, no `.netrc`, no cookies. Bodies are not decompressed.
public final class HTTPClient: Sendable {
    private let configuration: HTTPClientConfiguration
    private let idle: IdleHandles
    private let isStopped = Atomic<Bool>(false)

    /// Makes a client; nothing is connected yet.
    ///
    /// - Throws: `HTTPClientError` with `configuration`.
    public init(_ configuration: HTTPClientConfiguration = .init()) throws(HTTPClientError) {
        try configuration.validate()
        guard Self.libraryIsReady else {
            throw HTTPClientConfiguration.failure("libcurl cannot be initialised")
        }
        if case .file(let path) = configuration.trustAnchors {
            guard unsafe access(path, R_OK) == 0 else {
                let reason = unsafe String(cString: strerror(errno))
                throw HTTPClientConfiguration.failure(
                    "the certificates to trust, \(path), cannot be read: \(reason)"
                )
            }
        }
        self.configuration = configuration
        idle = IdleHandles(limit: configuration.idleLimit)
    }

    /// Once for the process, by whichever client is made first.
    private static let libraryIsReady: Bool = {
        // OpenSSL writes to sockets that the other end may have closed.
        signal(SIGPIPE, SIG_IGN)
        return shim_global_init() == CURLE_OK
    }()

    /// Sends a request and gives its answer, whatever the status.
    ///
    /// - Throws: `HTTPClientError` where there is no whole answer.
    public func send(
        _ request: HTTPClientRequest
    ) throws(HTTPClientError) -> HTTPClientResponse {
        try request.validate()
        let handle = try idle.take(for: request.url.origin)
        let transfer = Transfer(
            limitBytes: configuration.responseLimitBytes,
            stallTimeout: configuration.stallTimeout,
            isStopped: { [self] in isStopped.load(ordering: .relaxed) }
        )
        let answer = handle.perform(request, configuration, transfer)
        // After a failure the connection's state is not known; with the handle it goes away.
        if case .success = answer { idle.put(handle, for: request.url.origin) }
        return try answer.get()
    }

    /// Ends every request that is under way, within about a second, and refuses later ones.
    public func stop() { isStopped.store(true, ordering: .relaxed) }

    /// How many connections are kept at the moment, for tests and metrics.
    public var idleConnections: Int { idle.count }
}

/// Handles that are not in use, each with the connection of its last request.
///
/// They are taken from the end where they were put: the connection used last is the most likely
/// one to be still open, and those that are too many grow old at the other end.
private final class IdleHandles: Sendable {
    private let limit: Int
    private let state = Mutex<[(origin: String, handle: EasyHandle)]>([])

    init(limit: Int) {
        self.limit = limit
    }

    var count: Int { state.withLock { $0.count } }

    func take(for origin: String) throws(HTTPClientError) -> EasyHandle {
        let found = state.withLock { idle in
            idle.lastIndex { $0.origin == origin }.map { idle.remove(at: $0).handle }
        }
        return if let found { found } else { try EasyHandle() }
    }

    func put(_ handle: EasyHandle, for origin: String) {
        let dropped: EasyHandle? = state.withLock { idle in
            idle.append((origin, handle))
            return idle.count > limit ? idle.removeFirst().handle : nil
        }
        // Outside of the lock: closing a TLS connection writes to it.
        _ = dropped
    }
}
