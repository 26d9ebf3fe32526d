/// What the fold of one stream works on and leaves behind.
struct Workspace: ~Copyable {
    var registers = Registers()
    var owners = OwnershipBuilder()
    var transitions = Slots(
        like: Transition(from: nil, to: .active, effectiveAt: .earliest, position: 0)
    )
    var timeline = TimelineBuilder()
    var charges = Slots(like: Charge.sample)
    /// The places of the events in the total order, where they do not stand in it.
    var order = Pool<Int>()
    /// Whether any event is about an extension; most subscriptions have none.
    var hasExtensions = false
    /// Whether Apple asked about a refund in any event.
    var hasRefundCases = false
}

/// Keeps the memory of a fold from one stream to the next.
///
/// Copies of a fold share it, which nothing can tell: every fold begins by emptying it.
@safe final class FoldMemory {
    // Safety: made in `init`, unmade in `deinit`. A class without `Sendable` stays where it is, and
    // the fold runs no foreign code, so no two folds are in it at once.
    private let workspace: UnsafeMutablePointer<Workspace>

    init() {
        unsafe workspace = .allocate(capacity: 1)
        unsafe workspace.initialize(to: Workspace())
    }

    deinit {
        unsafe workspace.deinitialize(count: 1)
        unsafe workspace.deallocate()
    }

    /// Lends the workspace.
    @inline(__always) func withWorkspace(_ body: (inout Workspace) -> Void) {
        unsafe body(&workspace.pointee)
    }
}
