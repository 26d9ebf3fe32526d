internal import Dispatch
internal import Synchronization

/// Does work on all cores and hands the results out in the order in which the work was given.
///
/// At most `depth` pieces are under way or waiting to be taken, so memory stays flat however fast
/// the giver is. One thread gives and takes; the work runs on others. Nothing of it runs any more once
/// the pipeline is gone: a program that ends in the middle must not pull the libraries away from
/// under it.
package final class OrderedPipeline<Input: Sendable, Output: Sendable> {
    /// A piece of work and, later, its result.
    private final class Piece: Sendable {
        let isDone = DispatchSemaphore(value: 0)
        let output = Mutex<Output?>(nil)
    }

    /// Whether nobody waits for results any more.
    private final class Abandonment: Sendable {
        let isAbandoned = Atomic<Bool>(false)
    }

    private let depth: Int
    private let work: @Sendable (Input) -> Output
    private let abandonment = Abandonment()
    private let queue = DispatchQueue(label: "subledger.pipeline", attributes: .concurrent)
    private var pieces: [Piece] = []
    private var first = 0

    /// Makes a pipeline.
    ///
    /// - Parameters:
    ///   - depth: how many pieces may be under way or waiting.
    ///   - work: what is done with each; it runs on several threads at once.
    package init(depth: Int, work: @escaping @Sendable (Input) -> Output) {
        self.depth = depth
        self.work = work
    }

    deinit {
        abandonment.isAbandoned.store(true, ordering: .releasing)
        for piece in pieces[first...] { piece.isDone.wait() }
    }

    /// Whether a result must be taken before more work is given.
    package var isFull: Bool { pieces.count - first >= depth }

    /// Whether no result is left to be taken.
    package var isEmpty: Bool { pieces.count == first }

    /// Gives a piece of work; only while the pipeline is not full.
    package func give(_ input: Input) {
        precondition(!isFull, "a full pipeline takes no more work")
        let piece = Piece()
        pieces.append(piece)
        let (work, abandonment) = (work, abandonment)
        queue.async {
            defer { piece.isDone.signal() }
            guard !abandonment.isAbandoned.load(ordering: .acquiring) else { return }
            let output = work(input)
            piece.output.withLock { $0 = output }
        }
    }

    /// Takes the result of the oldest piece, waiting for it; nil when there is none.
    package func take() -> Output? {
        guard first < pieces.count else { return nil }
        let piece = pieces[first]
        first += 1
        if first == pieces.count || first > 64 {
            pieces.removeFirst(first)
            first = 0
        }
        piece.isDone.wait()
        return piece.output.withLock { $0.take() }
    }
}
