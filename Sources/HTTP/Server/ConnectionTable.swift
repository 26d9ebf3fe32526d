internal import Glibc
internal import Synchronization

/// The open connections, and how many there may be.
final class ConnectionTable: Sendable {
    private struct State: Sendable {
        var records: [ObjectIdentifier: ConnectionRecord] = [:]
        var counts: [IPAddress: Int] = [:]
        /// Connections that were let in and have not started, by the thread that does it.
        ///
        /// There are failures between the two steps that are not told, and which would otherwise
        /// count a connection for ever.
        var admitted: [pthread_t: IPAddress] = [:]

        mutating func add(_ change: Int, to address: IPAddress) {
            let count = counts[address, default: 0] + change
            counts[address] = count == 0 ? nil : count
        }
    }

    private let state = Mutex(State())
    private let limit: Int
    private let addressLimit: Int
    private let exemptions: [AddressRange]

    init(limit: Int, addressLimit: Int, exemptions: [AddressRange]) {
        self.limit = limit
        self.addressLimit = addressLimit
        self.exemptions = exemptions
    }

    var count: Int { state.withLock { $0.records.count } }

    /// Whether a connection may be taken; why not otherwise.
    func admit(_ address: IPAddress) -> Refusal? {
        let group = address.limitGroup
        let thread = pthread_self()
        return state.withLock { state in
            if let stale = state.admitted.removeValue(forKey: thread) { state.add(-1, to: stale) }
            guard state.records.count + state.admitted.count < limit else {
                return .connectionLimit
            }
            guard
                state.counts[group, default: 0] < addressLimit
                    || exemptions.contains(address: address)
            else { return .addressLimit }
            state.admitted[thread] = group
            state.add(1, to: group)
            return nil
        }
    }

    /// An admitted connection has started.
    func insert(_ record: ConnectionRecord) {
        state.withLock { state in
            if state.admitted.removeValue(forKey: pthread_self()) == nil {
                state.add(1, to: record.address.limitGroup)
            }
            state.records[ObjectIdentifier(record)] = record
        }
    }

    /// A connection is about to be closed.
    func remove(_ record: ConnectionRecord) {
        state.withLock { state in
            if state.records.removeValue(forKey: ObjectIdentifier(record)) != nil {
                state.add(-1, to: record.address.limitGroup)
            }
        }
    }

    /// Cuts the connections whose client is too slow, and returns what else is overdue.
    ///
    /// A socket is shut under the lock that `remove` takes before it is closed, so its number can
    /// never be another's by then.
    func cutOverdue(at now: UInt64) -> [ConnectionRecord.Phase] {
        state.withLock { state in
            state.records.values.compactMap { record in
                guard let phase = record.overdue(at: now) else { return nil }
                if case .answering = phase { return phase }
                shutdown(record.socket, Int32(SHUT_RDWR))
                return phase
            }
        }
    }

    /// Cuts every connection.
    func cutAll() {
        state.withLock { state in
            for record in state.records.values { shutdown(record.socket, Int32(SHUT_RDWR)) }
        }
    }

    /// What each connection is at.
    var phases: [ConnectionRecord.Phase] {
        state.withLock { $0.records.values.map(\.phase) }
    }
}
