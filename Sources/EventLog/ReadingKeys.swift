internal import Crypto
internal import Ledger

/// Gives the facts that Apple signs anew for every answer their keys.
///
/// A notification has a UUID. An answer of the Server API has nothing of the kind: reading the same
/// transaction twice gives two texts with other signatures. So the key of such a fact is made of
/// what it says, without `signedDate`, and of the fact that it follows: the newest one about the
/// same thing (transaction, renewal info or status) that was signed no later. What a receipt tells
/// is a thing of its own.
///
/// - Says it the same as what it follows, it is an unchanged re-reading, and no event.
/// - A, B and A again are three events, since the second A follows another fact than the first.
/// - What follows nothing is keyed by its content alone.
///
/// What somebody else appends meanwhile does no harm: a key is a function of content and
/// predecessor, so two programs that read the same come to the same key.
public struct ReadingKeys {
    /// What a reading is.
    public enum Placement: Hashable, Sendable {
        /// It tells something that the log has not; its key.
        case new(eventKey: String)
        /// It says what the fact before it says, whose key this is.
        case unchanged(eventKey: String)
    }

    /// What a fact is about.
    private enum Register: Hashable {
        case transaction(AppleID)
        case renewal
        case status
        /// Apple answered to an extension: a later reading is news also where it says the same.
        case answer
    }

    private struct Place: Hashable {
        var app: AppKey
        var stream: String
        var register: Register
        /// What receipts tell follows what receipts told, whatever Apple signed meanwhile.
        var isReceipt: Bool

        init(_ app: AppKey, _ stream: String, _ register: Register, isReceipt: Bool) {
            self.app = app
            self.stream = stream
            self.register = register
            self.isReceipt = isReceipt
        }
    }

    /// A fact of a register.
    private struct Entry {
        var at: Timestamp
        var content: UInt64
        var eventKey: String
    }

    private var entries: [Place: [Entry]] = [:]
    private var loaded: Set<String> = []

    /// Knows of no stream yet.
    public init() {}

    /// Learns what the log has of some streams, once each.
    public mutating func load(
        _ streams: Set<String>,
        from reader: LogReader
    ) throws(EventLogError) {
        let wanted = streams.subtracting(loaded).sorted()
        guard !wanted.isEmpty else { return }
        let found = try reader.keyedFacts(ofStreams: wanted)
        for fact in found { add(fact.fact, fact.app, fact.stream, fact.eventKey) }
        loaded.formUnion(wanted)
    }

    /// Finds the place of a reading among what is known of its stream, and takes it in.
    ///
    /// The stream must have been loaded. A reading without a fact keeps the key that it has.
    public mutating func place(_ event: NewEvent) -> Placement {
        guard let fact = event.fact, let reading = Self.parts(of: fact).first else {
            return .new(eventKey: event.eventKey)
        }
        let isReceipt = fact.provenance == .receipt
        let place = Place(event.app, event.stream, reading.register, isReceipt: isReceipt)
        // The very same was read before, whatever else was of that instant.
        let same = entries[place]?.first { $0.at == reading.at && $0.content == reading.content }
        if let same { return .unchanged(eventKey: same.eventKey) }
        var before = newest(of: place, notAfter: reading.at)
        if case .transaction = reading.register, !isReceipt {
            let answers = Place(event.app, event.stream, .answer, isReceipt: false)
            if let answer = newest(of: answers, notAfter: reading.at),
                before.map({ $0.at < answer.at }) ?? true
            {
                before = Entry(at: answer.at, content: 0, eventKey: answer.eventKey)
                return .new(eventKey: take(event, fact, after: answer.eventKey))
            }
        }
        if let before, before.content == reading.content {
            return .unchanged(eventKey: before.eventKey)
        }
        return .new(eventKey: take(event, fact, after: before?.eventKey))
    }

    /// Takes in what a notification says that is appended with readings, before what follows it.
    ///
    /// What a reading is then told to be does not depend on which of both a batch holds.
    public mutating func note(_ event: NewEvent) {
        guard let fact = event.fact, loaded.contains(event.stream) else { return }
        add(fact, event.app, event.stream, event.eventKey)
    }

    private mutating func take(_ event: NewEvent, _ fact: Fact, after key: String?) -> String {
        var eventKey = event.eventKey
        if let key {
            let prefix = event.eventKey.prefix { $0 != ":" }
            let digest = SHA256.digest(event.contentDigest + Array(key.utf8))
            eventKey = "\(prefix):" + Base64URL.encode(digest)
        }
        add(fact, event.app, event.stream, eventKey)
        return eventKey
    }

    private func newest(of place: Place, notAfter instant: Timestamp) -> Entry? {
        (entries[place] ?? []).filter { $0.at <= instant }.max {
            ($0.at, $0.eventKey) < ($1.at, $1.eventKey)
        }
    }

    private mutating func add(
        _ fact: Fact,
        _ app: AppKey,
        _ stream: String,
        _ eventKey: String
    ) {
        for part in Self.parts(of: fact) {
            let isReceipt = fact.provenance == .receipt
            let place = Place(app, stream, part.register, isReceipt: isReceipt)
            entries[place, default: []].append(
                Entry(at: part.at, content: part.content, eventKey: eventKey)
            )
        }
    }

    /// What a fact says about which things, and as of when.
    private static func parts(
        of fact: Fact
    ) -> [(register: Register, at: Timestamp, content: UInt64)] {
        var parts: [(register: Register, at: Timestamp, content: UInt64)] = []
        if let transaction = fact.transaction {
            parts.append(
                (
                    .transaction(transaction.transactionID), transaction.signedDate,
                    transaction.digest
                )
            )
        }
        if let renewal = fact.renewal {
            parts.append((.renewal, renewal.signedDate, renewal.digest))
        }
        if let status = fact.status {
            let at = fact.kind == .notification ? fact.signedAt ?? fact.factAt : fact.factAt
            parts.append((.status, at, UInt64(bitPattern: Int64(status))))
        }
        if fact.extensionAnswer != nil { parts.append((.answer, fact.factAt, 0)) }
        return parts
    }
}
