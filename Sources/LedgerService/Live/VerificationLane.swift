internal import Glibc
internal import HTTP
internal import Synchronization

/// Verifies what claims to be of the Sandbox aside, so that Production never stands in line for it.
///
/// Verifying is what a delivery costs, and the HTTP server's threads do it one after the other: a
/// flood of test purchases would make every real one wait. Where both come, Sandbox is verified by
/// threads that get only the time that nobody else wants. Where no Production comes, nothing is
/// put aside. The claim is unverified, and nothing but the order of work depends on it.
package final class VerificationLane: Sendable {
    /// How many deliveries may wait in it.
    static let waitingMax = 2000
    /// For how long after a Production delivery Sandbox is put aside.
    static let attentionNanoseconds: UInt64 = 2_000_000_000
    /// How much the threads give way (`nice`).
    private static let niceness: Int32 = 10

    private struct State {
        var waiting: [@Sendable () -> Void] = []
        var first = 0
        var isStopping = false
    }

    private let state = Mutex(State())
    private let work = MonotonicSemaphore()
    private let over = MonotonicSemaphore()
    private let threads: Int
    private let productionAt = Atomic<UInt64>(0)

    /// Starts its threads, one for each core unless said otherwise.
    init(threads: Int = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))) {
        self.threads = threads
        for _ in 0..<threads {
            Self.startThread { [self] in
                // Of this thread alone, on Linux.
                _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, Self.niceness)
                run()
                over.signal()
            }
        }
    }

    /// Notes that a Production delivery came.
    func noteProduction() { productionAt.store(Self.now(), ordering: .relaxed) }

    /// Whether Production deliveries came lately.
    var isNeeded: Bool {
        let last = productionAt.load(ordering: .relaxed)
        return last > 0 && Self.now() - last < Self.attentionNanoseconds
    }

    /// Has something done aside; false where too much waits already.
    func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
        let isTaken = state.withLock { state in
            guard !state.isStopping, state.waiting.count - state.first < Self.waitingMax else {
                return false
            }
            state.waiting.append(job)
            return true
        }
        if isTaken { work.signal() }
        return isTaken
    }

    /// Does what waits and ends the threads.
    func stop() {
        let isFirst = state.withLock { state in
            defer { state.isStopping = true }
            return !state.isStopping
        }
        guard isFirst else { return }
        for _ in 0..<threads { work.signal() }
        for _ in 0..<threads { _ = over.wait(within: .seconds(60)) }
    }

    private func run() {
        while true {
            _ = work.wait(within: .seconds(3600))
            let (job, isOver) = state.withLock { state -> ((@Sendable () -> Void)?, Bool) in
                guard state.first < state.waiting.count else { return (nil, state.isStopping) }
                let job = state.waiting[state.first]
                state.first += 1
                if state.first == state.waiting.count || state.first > 1000 {
                    state.waiting.removeFirst(state.first)
                    state.first = 0
                }
                return (job, false)
            }
            if isOver { return }
            job?()
        }
    }

    private static func now() -> UInt64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    /// A thread of its own: one of Dispatch's would give way for ever after.
    private static func startThread(_ body: @escaping @Sendable () -> Void) {
        final class Box {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }
        let box = unsafe Unmanaged.passRetained(Box(body)).toOpaque()
        var thread = pthread_t()
        let result = unsafe pthread_create(
            &thread,
            nil,
            { context in
                if let context = unsafe context {
                    unsafe Unmanaged<Box>.fromOpaque(context).takeRetainedValue().body()
                }
                return nil
            },
            box
        )
        if result == 0 {
            pthread_detach(thread)
        } else {
            unsafe Unmanaged<Box>.fromOpaque(box).release()
        }
    }
}
