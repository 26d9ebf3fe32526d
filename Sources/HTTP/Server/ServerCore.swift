internal import CMicroHTTPD
internal import Glibc
internal import Synchronization

/// What all threads of a server share.
final class ServerCore: Sendable {
    let configuration: HTTPServerConfiguration
    let router: Router
    let onAccess: (@Sendable (AccessRecord) -> Void)?
    let counters: ServerCounters
    let gate = RequestGate()
    let table: ConnectionTable
    private let nextRequest = Atomic<UInt64>(1)
    private let idPrefix: String

    init(
        configuration: HTTPServerConfiguration,
        router: Router,
        onAccess: (@Sendable (AccessRecord) -> Void)?,
        counters: ServerCounters = ServerCounters()
    ) {
        self.configuration = configuration
        self.router = router
        self.onAccess = onAccess
        self.counters = counters
        table = ConnectionTable(
            limit: configuration.connectionLimit,
            addressLimit: configuration.addressConnectionLimit,
            exemptions: configuration.addressLimitExemptions
        )
        idPrefix = String(UInt32.random(in: 0x1000_0000...UInt32.max), radix: 16)
    }

    func makeRequestID() -> String {
        let number = nextRequest.wrappingAdd(1, ordering: .relaxed).oldValue
        return "\(idPrefix)-\(String(number, radix: 16))"
    }

    /// Whether a connection is taken.
    @unsafe func accepts(_ address: UnsafePointer<sockaddr>?) -> Bool {
        let peer = unsafe address.flatMap { unsafe IPAddress($0) } ?? .loopback
        guard let refusal = table.admit(peer) else { return true }
        counters.count(refusal)
        return false
    }

    /// A connection has started; what is returned comes back at its end.
    @unsafe func connectionStarted(_ connection: OpaquePointer) -> ConnectionRecord {
        let address = unsafe shim_connection_address(connection)
        let record = ConnectionRecord(
            socket: unsafe shim_connection_socket(connection),
            address: unsafe address.flatMap { unsafe IPAddress($0) } ?? .loopback,
            deadline: MonotonicClock.now + configuration.requestDeadline.nanoseconds
        )
        table.insert(record)
        counters.countConnection()
        return record
    }

    /// What the deadlines demand; called now and then.
    func enforceDeadlines() {
        for phase in table.cutOverdue(at: MonotonicClock.now) {
            switch phase {
            case .receiving:
                counters.count(.requestTooSlow)
            case .sending(let pipe):
                counters.count(.answerTooSlow)
                pipe?.abandon()
            case .answering(let slot):
                if slot?.complete(Refusal.answerOverdue.response()) == true {
                    counters.count(.answerOverdue)
                }
            }
        }
    }

    /// Answers the requests that only wait for news.
    func releaseWaiting() {
        for case .answering(.some(let slot)) in table.phases {
            if let response = slot.whenStopping { _ = slot.complete(response) }
        }
    }

    /// Answers all that waits and ends all streams.
    func releaseAll() {
        for phase in table.phases {
            switch phase {
            case .receiving: break
            case .answering(let slot):
                if slot?.complete(Refusal.stopping.response()) == true { counters.count(.stopping) }
            case .sending(let pipe): pipe?.abandon()
            }
        }
    }
}
