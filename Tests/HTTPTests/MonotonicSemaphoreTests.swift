import HTTP
import TestSupport
import Testing

@Suite struct MonotonicSemaphoreTests {
    @Test func aWaitWithoutASignalEndsWhenItsTimeIsOver() {
        let semaphore = MonotonicSemaphore()
        let start = ContinuousClock.now
        #expect(!semaphore.wait(within: .milliseconds(50)))
        let elapsed = ContinuousClock.now - start
        #expect(elapsed >= .milliseconds(50))
        #expect(elapsed < .seconds(60))
        #expect(!semaphore.wait(within: .zero))
        #expect(!semaphore.wait(within: .seconds(-5)))
    }

    @Test func signalsAreCountedAndEachLetsOneWaitGoOn() {
        let semaphore = MonotonicSemaphore()
        for _ in 0..<3 { semaphore.signal() }
        for _ in 0..<3 { #expect(semaphore.wait(within: .zero)) }
        #expect(!semaphore.wait(within: .zero))
    }

    @Test func aSignalOfAnotherThreadEndsALongWait() {
        let semaphore = MonotonicSemaphore()
        let answer = MonotonicSemaphore()
        onThreads(2) { number in
            if number == 0 {
                #expect(semaphore.wait(within: .seconds(100_000_000_000)))
                answer.signal()
            } else {
                semaphore.signal()
                #expect(answer.wait(within: .seconds(60)))
            }
        }
    }
}
