internal import Dispatch
internal import Glibc
internal import Synchronization

/// What happens when the program is told to end: Ctrl-C, SIGTERM, a closed terminal.
///
/// The signals are blocked everywhere and waited for on a queue of their own, so that what has to
/// be done, such as stopping the private server, is ordinary code and not a signal handler.
public enum Termination {
    private static let suspensions = Atomic<Int>(0)

    /// Lets go of all private servers on Ctrl-C, SIGTERM and SIGHUP, then ends by that signal.
    ///
    /// To be called once, first thing in `main`, before there are other threads. A write to a
    /// closed pipe is then an error of that write and ends nothing, since it would skip the stop.
    ///
    /// - Parameter first: what to do before, such as ending a progress line.
    public static func install(_ first: @escaping @Sendable (Int32) -> Void = { _ in }) {
        signal(SIGPIPE, SIG_IGN)
        // A signal ignored by whoever started us (nohup) stays ignored.
        let awaited = [SIGINT, SIGTERM, SIGHUP].filter { !isIgnored($0) }
        guard !awaited.isEmpty else { return }
        var set = signalSet(awaited)
        unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
        DispatchQueue(label: "subledger.termination").async {
            while true {
                let number = wait(for: awaited)
                if number == SIGINT, suspensions.load(ordering: .acquiring) > 0 { continue }
                first(number)
                OpenServers.closeAll()
                end(by: number)
            }
        }
    }

    /// Runs `body` while Ctrl-C is left to a program in the foreground.
    static func whileSuspended<Value, Failure: Error>(
        _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        suspensions.add(1, ordering: .acquiringAndReleasing)
        defer { suspensions.subtract(1, ordering: .acquiringAndReleasing) }
        return try body()
    }

    private static func signalSet(_ numbers: [Int32]) -> sigset_t {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        for number in numbers { unsafe sigaddset(&set, number) }
        return set
    }

    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        unsafe sigaction(number, nil, &action)
        return unsafe action.__sigaction_handler.sa_handler.map {
            unsafe unsafeBitCast($0, to: Int.self)
        } == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    private static func wait(for numbers: [Int32]) -> Int32 {
        var set = signalSet(numbers)
        var number: Int32 = 0
        while unsafe sigwait(&set, &number) != 0 {}
        return number
    }

    /// Ends the process the way the signal would have, so that the shell sees what it was.
    private static func end(by number: Int32) -> Never {
        signal(number, SIG_DFL)
        var set = signalSet([number])
        unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil)
        raise(number)
        _exit(128 + number)
    }
}
