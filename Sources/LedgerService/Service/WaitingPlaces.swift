internal import Synchronization

/// How many requests may wait at a time for the read models to come so far.
///
/// Each holds a connection; without a limit those who ask could keep Apple's deliveries out.
final class WaitingPlaces: Sendable {
    /// One request's place, which is free again when nothing refers to it any more.
    final class Place: Sendable {
        private let places: WaitingPlaces

        fileprivate init(_ places: WaitingPlaces) { self.places = places }

        deinit { places.taken.subtract(1, ordering: .relaxed) }
    }

    private let max: Int
    private let taken = Atomic<Int>(0)

    init(max: Int) { self.max = max }

    /// A place, or nil where all are taken.
    func place() -> Place? {
        guard taken.add(1, ordering: .relaxed).newValue <= max else {
            taken.subtract(1, ordering: .relaxed)
            return nil
        }
        return Place(self)
    }
}
