internal import Glibc

/// The processor time that this thread has used.
///
/// Other work on the same machine hardly disturbs it, which a clock on the wall cannot say.
enum BenchmarkClock {
    static var threadSeconds: Double {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// How often `body` runs in a second of processor time, measured for about so many seconds.
    static func rate(seconds: Double, _ body: () -> Void) -> Double {
        let start = threadSeconds
        var elapsed = 0.0
        var count = 0
        repeat {
            for _ in 0..<16 { body() }
            count += 16
            elapsed = threadSeconds - start
        } while elapsed < seconds
        return Double(count) / elapsed
    }
}
