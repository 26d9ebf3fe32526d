internal import Dispatch
internal import EventLog
internal import HTTP
internal import Ledger
internal import Synchronization

/// Posts notifications to one destination, those of each stream one after the other.
struct ForwardDelivery: Sendable {
    /// How many streams are delivered at the same time.
    static let lanes = 8

    let client: HTTPClient
    let url: HTTPURL
    /// Asked before each request whether there is still time for it.
    let goesOn: @Sendable () -> Bool

    /// A notification and its bytes.
    struct Item: Sendable {
        var position: Int64
        /// The body as it was received, nil for one that an operator has passed over, or why the log
        /// could not give it.
        var body: Result<[UInt8]?, EventLogError>
    }

    /// Delivers, and waits until all of it is settled.
    func deliver(_ streams: [[Item]]) -> [ForwardOutcome] {
        let next = Atomic<Int>(0)
        let isUnreachable = Atomic<Bool>(false)
        let outcomes = Mutex(
            [ForwardOutcome](
                repeating: ForwardOutcome(taken: 0, stop: .interrupted),
                count: streams.count
            )
        )
        let group = DispatchGroup()
        for lane in 0..<min(Self.lanes, streams.count) {
            // A queue of its own always gets a thread of its own.
            DispatchQueue(label: "subledger.forward.\(lane)").async(group: group) {
                while true {
                    let place = next.add(1, ordering: .relaxed).oldValue
                    guard place < streams.count else { return }
                    let outcome = deliver(streams[place], unless: isUnreachable)
                    outcomes.withLock { $0[place] = outcome }
                }
            }
        }
        group.wait()
        return outcomes.withLock { $0 }
    }

    private func deliver(
        _ items: [Item],
        unless isUnreachable: borrowing Atomic<Bool>
    ) -> ForwardOutcome {
        for (taken, item) in items.enumerated() {
            guard goesOn(), !isUnreachable.load(ordering: .relaxed) else {
                return ForwardOutcome(taken: taken, stop: .interrupted)
            }
            let stop: ForwardOutcome.Stop?
            switch item.body {
            case .failure(let error): stop = .refused("event \(item.position): \(error)")
            case .success(let body?): stop = post(body)
            case .success(nil): stop = nil
            }
            if case .unreachable = stop { isUnreachable.store(true, ordering: .relaxed) }
            if let stop { return ForwardOutcome(taken: taken, stop: stop) }
        }
        return ForwardOutcome(taken: items.count, stop: nil)
    }

    /// Posts one; nil where it was taken.
    private func post(_ body: [UInt8]) -> ForwardOutcome.Stop? {
        let request = HTTPClientRequest(
            .post,
            url,
            headers: ["Content-Type": "application/json"],
            body: body
        )
        do {
            let answer = try client.send(request)
            switch answer.status {
            case 200...299: return nil
            case 429, 503:
                let wish = answer.headers["Retry-After"].flatMap { Int64($0) }
                return .unreachable(
                    "it answers \(answer.status)",
                    retryAfter: wish.map { .seconds(min(max($0, 0), 86_400)) }
                )
            default: return .refused("it answers \(answer.status)")
            }
        } catch {
            // A notification that makes the consumer fall silent must not stop all the others.
            return error.mayHaveArrived
                ? .refused(error.message) : .unreachable(error.message, retryAfter: nil)
        }
    }
}
