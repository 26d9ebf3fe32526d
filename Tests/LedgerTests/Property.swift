internal import Glibc
internal import Ledger
import Testing

/// A statement about every stream, tried on thousands that are drawn from seeds.
struct Property {
    /// What holds; gets a source of its own for what it chooses, the same for the same seed.
    let holds: (RandomStream, inout SeededGenerator) -> Bool

    /// The seed to which `SUBLEDGER_SEED` limits every property, to look at one failure again.
    static let onlySeed: UInt64? = unsafe getenv("SUBLEDGER_SEED")
        .flatMap { unsafe UInt64(String(cString: $0)) }

    /// The seeds of so many cases.
    static func seeds(_ count: Int) -> [UInt64] {
        onlySeed.map { [$0] } ?? (0..<count).map { UInt64($0) }
    }

    /// Tries it on so many streams; the first for which it fails is shrunk and recorded.
    static func check(
        cases: Int,
        sourceLocation: SourceLocation = #_sourceLocation,
        _ holds: @escaping (RandomStream, inout SeededGenerator) -> Bool
    ) {
        let property = Property(holds: holds)
        for seed in seeds(cases) {
            if let report = property.failure(RandomStream(seed: seed), seed: seed) {
                Issue.record("\(report)", sourceLocation: sourceLocation)
                return
            }
        }
    }

    /// A report with the smallest stream for which it fails, nil where it holds.
    func failure(_ stream: RandomStream, seed: UInt64) -> String? {
        guard fails(stream, seed) else { return nil }
        let smallest = Shrinker.shrink(stream) { fails($0, seed) }
        return """
            fails for seed \(seed) (SUBLEDGER_SEED=\(seed) tries it alone): \
            \(stream.events.count) events, shrunk to \(smallest.events.count):
            \(smallest.swiftText)
            """
    }

    private func fails(_ stream: RandomStream, _ seed: UInt64) -> Bool {
        var random = SeededGenerator(seed: seed ^ 0x5EED)
        return !holds(stream, &random)
    }
}
