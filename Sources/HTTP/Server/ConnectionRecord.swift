internal import Synchronization

/// What the server knows of one connection: above all, until when it may take for what it does.
///
/// libmicrohttpd's own time-out starts anew with every byte, so a client that sends one byte now
/// and then keeps a connection for ever. These deadlines do not move.
final class ConnectionRecord: Sendable {
    enum Phase: Sendable {
        /// A request is awaited or arriving.
        case receiving
        /// A handler is at work, or its later answer is awaited.
        case answering(AnswerSlot?)
        /// The answer is on its way.
        case sending(BodyPipe?)
    }

    private struct State: Sendable {
        var phase = Phase.receiving
        var deadline: UInt64
    }

    let socket: Int32
    let address: IPAddress
    private let state: Mutex<State>

    init(socket: Int32, address: IPAddress, deadline: UInt64) {
        self.socket = socket
        self.address = address
        state = Mutex(State(deadline: deadline))
    }

    func enter(_ phase: Phase, until deadline: UInt64) {
        state.withLock { $0 = State(phase: phase, deadline: deadline) }
    }

    func extend(until deadline: UInt64) {
        state.withLock { $0.deadline = deadline }
    }

    var phase: Phase { state.withLock { $0.phase } }

    /// The phase whose deadline is over; it is said once.
    func overdue(at now: UInt64) -> Phase? {
        state.withLock { state in
            guard state.deadline <= now else { return nil }
            state.deadline = .max
            return state.phase
        }
    }
}
