internal import Dispatch
internal import Glibc
internal import Synchronization

/// What happens on Ctrl-C and on SIGTERM.
///
/// Nothing in the database is ever half-done, since all is written in transactions; so the program
/// may go at any moment. It owes its user two things only: to stop the embedded server when it is
/// the last one there, and to remove its unfinished files. A command that can stop at a good place
/// by itself says so with `cooperatively`, and gets a little time for it.
enum Interruption {
    /// How long a command that stops by itself may take.
    static let cooperationSeconds = 5

    private struct State {
        var cleanups: [Int: @Sendable () -> Void] = [:]
        var nextID = 0
        var isCooperative = false
    }

    private static let state = Mutex(State())
    private static let signalNumber = Atomic<Int32>(0)
    private static let pipeWriter = Atomic<Int32>(-1)

    /// Whether a signal asked the program to stop.
    static var isRequested: Bool { signalNumber.load(ordering: .acquiring) != 0 }

    /// What the program exits with after a signal, as shells count it.
    static var exitStatus: Int32 { 128 + signalNumber.load(ordering: .acquiring) }

    /// Takes over SIGINT and SIGTERM, and ignores SIGPIPE: a closed pipe is seen when writing.
    static func install() {
        signal(SIGPIPE, SIG_IGN)
        var ends: [Int32] = [0, 0]
        guard unsafe pipe(&ends) == 0 else { return }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        pipeWriter.store(ends[1], ordering: .releasing)
        let reader = ends[0]
        // A handler may do next to nothing, so it only wakes a thread through a pipe. Handlers,
        // unlike ignored signals, are not inherited by the programs that we start.
        for number in [SIGINT, SIGTERM] {
            signal(number) { number in
                var byte = UInt8(truncatingIfNeeded: number)
                let writer = Interruption.pipeWriter.load(ordering: .acquiring)
                _ = unsafe write(writer, &byte, 1)
            }
        }
        DispatchQueue.global(qos: .userInitiated).async {
            var byte: UInt8 = 0
            while true {
                let count = unsafe read(reader, &byte, 1)
                if count == 1 { received(Int32(byte)) }
                if count == 0 { return }
            }
        }
    }

    /// Runs `body`, which looks at `isRequested` and returns soon when it is set.
    static func cooperatively<Value>(_ body: () throws -> Value) rethrows -> Value {
        state.withLock { $0.isCooperative = true }
        defer { state.withLock { $0.isCooperative = false } }
        return try body()
    }

    /// Has `cleanup` run when a signal ends the program; the returned number takes it back.
    static func onEnd(_ cleanup: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.nextID += 1
            state.cleanups[state.nextID] = cleanup
            return state.nextID
        }
    }

    /// Takes a cleanup back.
    static func remove(_ id: Int) {
        _ = state.withLock { $0.cleanups.removeValue(forKey: id) }
    }

    /// Leaves the end of the program to the thread that a signal woke.
    static func waitForEnd() -> Never {
        while true { pause() }
    }

    private static func received(_ number: Int32) {
        let isFirst = signalNumber.exchange(number, ordering: .acquiringAndReleasing) == 0
        if isFirst, state.withLock({ $0.isCooperative }) {
            DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(cooperationSeconds)) {
                end()
            }
            return
        }
        end()
    }

    private static func end() {
        let cleanups = state.withLock { state in
            let cleanups = state.cleanups
            state.cleanups = [:]
            return cleanups
        }
        // The newest first: files before the server that they were read from.
        for id in cleanups.keys.sorted(by: >) { cleanups[id]?() }
        _exit(exitStatus)
    }
}
