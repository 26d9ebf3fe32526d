internal import CPostgres
internal import Dispatch
internal import Glibc
internal import Synchronization

/// What happens when the program is told to end: Ctrl-C, SIGTERM, a closed terminal.
///
/// The signal handler only writes to a pipe; a queue of its own reads from it, so that what has to
/// be done, such as stopping the private server, is ordinary code.
public enum Termination {
    /// The writing end of the pipe, for the handler.
    private static let pipe = Atomic<Int32>(-1)

    private static let suspensions = Atomic<Int>(0)
    private static let underWay = Atomic<Bool>(false)

    /// Whether the program was told to end: errors from then on are its consequence.
    public static var isUnderWay: Bool { underWay.load(ordering: .acquiring) }

    /// Lets go of all private servers on Ctrl-C, SIGTERM and SIGHUP, then ends by that signal.
    ///
    /// To be called once, early in `main`. A write to a closed pipe is from then on an error of
    /// that write and ends nothing, since such an end would skip the stop.
    ///
    /// - Parameter first: what to do before, such as ending a progress line; meanwhile the program
    ///   may still end by itself.
    public static func install(_ first: @escaping @Sendable (Int32) -> Void = { _ in }) {
        signal(SIGPIPE, SIG_IGN)
        var ends: [Int32] = [-1, -1]
        guard unsafe shim_pipe2(&ends, O_CLOEXEC) == 0 else { return }
        let reader = ends[0]
        pipe.store(ends[1], ordering: .releasing)
        for number in [SIGINT, SIGTERM, SIGHUP] { listen(to: number) }
        DispatchQueue(label: "subledger.termination").async {
            while true {
                var byte: UInt8 = 0
                guard unsafe read(reader, &byte, 1) == 1 else { continue }
                let number = Int32(byte)
                if number == SIGINT, suspensions.load(ordering: .acquiring) > 0 { continue }
                first(number)
                // Not earlier: while `first` waits, the command may still end in its own way.
                underWay.store(true, ordering: .releasing)
                OpenServers.closeAll()
                end(by: number)
            }
        }
    }

    /// Holds up a thread that is about to end the process until the signal has ended it.
    ///
    /// The thread whose query the stop has broken off would otherwise win the race, and the
    /// shell would see an ordinary failure.
    static func giveWay() {
        while isUnderWay { sleep(1) }
    }

    /// Runs `body` while Ctrl-C is left to a program in the foreground.
    static func whileSuspended<Value, Failure: Error>(
        _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        suspensions.add(1, ordering: .acquiringAndReleasing)
        defer { suspensions.subtract(1, ordering: .acquiringAndReleasing) }
        return try body()
    }

    /// Has a signal written to the pipe, unless whoever started us had it ignored (`nohup`).
    private static func listen(to number: Int32) {
        let handler: @convention(c) (Int32) -> Void = { number in
            var byte = UInt8(truncatingIfNeeded: number)
            let before = errno
            _ = unsafe write(Termination.pipe.load(ordering: .relaxed), &byte, 1)
            errno = before
        }
        let earlier = signal(number, handler)
        let wasIgnored =
            unsafe unsafeBitCast(earlier, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
        if wasIgnored { signal(number, SIG_IGN) }
        // A program keeps the signals that its parent's thread had blocked, and would never end.
        unblock(number)
    }

    private static func unblock(_ number: Int32) {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        unsafe sigaddset(&set, number)
        unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil)
    }

    /// Ends the process the way the signal would have, so that the shell sees what it was.
    private static func end(by number: Int32) -> Never {
        signal(number, SIG_DFL)
        // Dispatch blocks the signals on its threads.
        unblock(number)
        raise(number)
        _exit(128 + number)
    }
}
