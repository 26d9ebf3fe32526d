#if canImport(Glibc)
internal import Glibc
#endif

/// Waiting between two tries.
enum Pause {
    /// Sleeps for a random time that grows with the attempt: up to 10 ms, 20 ms, 40 ms … 640 ms.
    ///
    /// Random, so that two writers that met once do not meet again.
    static func jittered(attempt: Int) {
        let limit: UInt32 = 10_000 << UInt32(min(attempt, 6))
        usleep(UInt32.random(in: 1000...limit))
    }
}
