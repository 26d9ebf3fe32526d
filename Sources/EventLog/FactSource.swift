public import Ledger

/// Where facts come from: the version of the decoder, and the decoder itself.
///
/// A row of `ledger.fact` is read only if its decoder is this one's version; any other event is
/// decoded from its evidence anew.
public struct FactSource: Sendable {
    /// The decoder's version, as rows name it.
    public var version: Int16

    /// Decodes the fact of an event from what was received; nil for what is never folded.
    public var fact: @Sendable (StoredEvidence) throws -> Fact?

    /// Makes a source.
    public init(version: Int16, fact: @escaping @Sendable (StoredEvidence) throws -> Fact?) {
        self.version = version
        self.fact = fact
    }

    /// The decoder of this program.
    public static let current = FactSource(version: 1) { evidence in
        throw EventLogError(
            .unreadable,
            "event \(evidence.event.position) of \(evidence.event.key) was decoded by another"
                + " version",
            position: evidence.event.position
        )
    }
}
