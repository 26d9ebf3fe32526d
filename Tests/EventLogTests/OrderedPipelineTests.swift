import EventLog
import Glibc
import Synchronization
import Testing

@Suite struct OrderedPipelineTests {
    @Test func resultsComeInTheOrderOfTheWork() {
        let pipeline = OrderedPipeline<Int, Int>(depth: 8) { number in
            usleep(UInt32(number % 3) * 1000)
            return number * 2
        }
        var results: [Int] = []
        for number in 0..<200 {
            if pipeline.isFull, let result = pipeline.take() { results.append(result) }
            pipeline.give(number)
        }
        while let result = pipeline.take() { results.append(result) }
        #expect(results == (0..<200).map { $0 * 2 })
    }

    /// Whoever leaves in the middle leaves no thread behind that works on: the program may end next.
    @Test func nothingRunsOnceItIsGone() {
        final class Counts: Sendable {
            let begun = Atomic<Int>(0)
            let running = Atomic<Int>(0)
        }
        for _ in 0..<20 {
            let counts = Counts()
            do {
                let pipeline = OrderedPipeline<Int, Int>(depth: 24) { number in
                    counts.begun.add(1, ordering: .sequentiallyConsistent)
                    counts.running.add(1, ordering: .sequentiallyConsistent)
                    usleep(3000)
                    counts.running.subtract(1, ordering: .sequentiallyConsistent)
                    return number
                }
                for number in 0..<24 { pipeline.give(number) }
                #expect(pipeline.take() == 0)
            }
            #expect(counts.running.load(ordering: .sequentiallyConsistent) == 0)
            let begun = counts.begun.load(ordering: .sequentiallyConsistent)
            usleep(10_000)
            #expect(counts.begun.load(ordering: .sequentiallyConsistent) == begun)
        }
    }
}
