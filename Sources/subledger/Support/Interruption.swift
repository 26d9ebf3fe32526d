internal import Postgres
internal import Synchronization

/// What happens on Ctrl-C and on SIGTERM.
///
/// Nothing in the database is ever half-done, since all is written in transactions; so the program
/// may go at any moment. It owes its user two things only: to stop the embedded server when it is
/// the last one there (`Termination` does that), and to remove its unfinished files. A command that
/// can stop at a good place by itself says so with `cooperatively`, and gets a little time for it.
enum Interruption {
    /// How long a command that stops by itself may take, unless it says otherwise.
    static let cooperationMilliseconds = 5000

    private struct State {
        var cleanups: [Int: @Sendable () -> Void] = [:]
        var nextID = 0
        /// How long the command that stops by itself may take; nil for any other command.
        var cooperationMilliseconds: Int?
    }

    private static let state = Mutex(State())
    private static let signalNumber = Atomic<Int32>(0)

    /// Whether a signal asked the program to stop.
    static var isRequested: Bool { signalNumber.load(ordering: .acquiring) != 0 }

    private static let settled = Atomic<Bool>(false)

    /// Says that the command has done all that the signal asked for: its exit code counts, not the
    /// signal's.
    static func settle() { settled.store(true, ordering: .releasing) }

    /// Whether the signal's own exit status is what the program ends with.
    static var decidesExit: Bool { isRequested && !settled.load(ordering: .acquiring) }

    /// What the program exits with after a signal, as shells count it.
    static var exitStatus: Int32 { 128 + signalNumber.load(ordering: .acquiring) }

    /// Takes over the signals that end a program; to be called first thing in `main`.
    static func install() {
        Termination.install { number in
            signalNumber.store(number, ordering: .releasing)
            // A command that stops by itself ends the process before this time is over.
            if let time = state.withLock({ $0.cooperationMilliseconds }) {
                sleep(milliseconds: time)
            }
            let cleanups = state.withLock { $0.cleanups }
            for cleanup in cleanups.values { cleanup() }
        }
    }

    /// Whether the command ends by itself when it is asked to stop.
    static var isCooperative: Bool { state.withLock { $0.cooperationMilliseconds != nil } }

    /// Runs `body`, which looks at `isRequested` and returns soon when it is set; what follows does
    /// so too.
    static func cooperatively<Value>(
        within milliseconds: Int = cooperationMilliseconds,
        _ body: () throws -> Value
    ) rethrows -> Value {
        state.withLock { $0.cooperationMilliseconds = milliseconds }
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

    /// Leaves the end of the program to the thread that the signal woke.
    static func waitForEnd() -> Never {
        while true { sleep(milliseconds: 1000) }
    }
}
