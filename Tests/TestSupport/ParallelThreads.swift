internal import Dispatch

/// Runs `body` on so many threads that are all there at once, and waits for them.
///
/// `DispatchQueue.concurrentPerform` promises no thread beside the caller's: where the machine is
/// busy it does one thing after the other, and a test of what happens meanwhile tests nothing.
public func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let group = DispatchGroup()
    for number in 0..<count {
        // A queue of its own always gets a thread of its own.
        DispatchQueue(label: "test.\(number)").async(group: group) { body(number) }
    }
    group.wait()
}
