/// What can be made of an event's evidence without the database.
///
/// It is the larger part of an append's own work, so whoever verifies documents on many threads makes
/// it there; the one that commits only looks whether the headers are vouched for.
struct EvidencePreparation: Sendable {
    var parts: EvidenceParts
    var salt: [UInt8]
    var sealedDigest: [UInt8]
    /// What it was made of.
    private var source: Source

    private struct Source: Equatable, Sendable {
        var received: [UInt8]
        var form: ReceivedForm
        var posted: PostedBody?
        var `operator`: String?
        var ticket: String?

        init(_ event: NewEvent) {
            received = event.received
            form = event.form
            posted = event.posted
            `operator` = event.operator
            ticket = event.ticket
        }
    }

    /// Takes an event's document apart; a header is stored on its own where `isKnown` says so.
    init(_ event: NewEvent, isKnown: (ArraySlice<UInt8>) -> Bool) {
        source = Source(event)
        parts = EvidenceParts(event.received, form: event.form, isKnown: isKnown)
        salt = Self.randomSalt()
        sealedDigest = Chain.sealed(
            salt: salt,
            operator: event.operator,
            ticket: event.ticket,
            received: event.received,
            posted: event.posted
        )
    }

    /// Whether it was made of this event as it is now, and somebody vouches for each header.
    func holds(for event: NewEvent, isKnown: (ArraySlice<UInt8>) -> Bool) -> Bool {
        source == Source(event) && parts.headers.allSatisfy(isKnown)
    }

    private static func randomSalt() -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).flatMap { _ in
            let word = generator.next()
            return (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) }
        }
    }
}

extension NewEvent {
    /// Makes what of the event's row needs no database, on the caller's thread.
    ///
    /// It changes nothing that is stored. What is set afterwards makes it count for nothing.
    package mutating func prepareEvidence() {
        // Who vouches for the headers is looked at when the event is appended.
        preparation = EvidencePreparation(self) { _ in true }
    }
}
