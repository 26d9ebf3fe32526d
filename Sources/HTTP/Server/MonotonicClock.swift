internal import Glibc

/// The clock of deadlines, which no one can set.
enum MonotonicClock {
    /// Nanoseconds since some moment before the process.
    static var now: UInt64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

extension Duration {
    /// The duration in nanoseconds, at least 0.
    var nanoseconds: UInt64 {
        let parts = components
        guard parts.seconds >= 0, parts.attoseconds >= 0 else { return 0 }
        let (whole, overflow) = UInt64(parts.seconds).multipliedReportingOverflow(
            by: 1_000_000_000
        )
        return overflow
            ? .max / 4 : min(.max / 4, whole) + UInt64(parts.attoseconds) / 1_000_000_000
    }
}
