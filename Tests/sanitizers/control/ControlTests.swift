import TestSupport
import Testing
import WatchedLocks

/// What the thread sanitizer must report, and what it must not, to be believed about anything else.
@Suite struct ControlTests {
    @safe private final class Counter: @unchecked Sendable {
        var count = 0
        let lock = Mutex(())
    }

    @Test func aRaceWithoutALock() {
        let counter = Counter()
        onThreads(4) { _ in for _ in 0..<1_000 { counter.count += 1 } }
    }

    @Test func noRaceUnderALock() {
        let counter = Counter()
        onThreads(4) { _ in
            for _ in 0..<1_000 { counter.lock.withLock { _ in counter.count += 1 } }
        }
        #expect(counter.count == 4_000)
    }
}
