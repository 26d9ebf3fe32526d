internal import AppStore
internal import Crypto
public import Ledger

/// What an operator said of a subscription that carries no account token: whose it is.
///
/// It is kept as an event like Apple's facts, with the text of what was said as its evidence.
public struct OwnerLink: Hashable, Sendable {
    /// The app that the subscription belongs to.
    public var app: AppKey
    /// Apple's `originalTransactionId`.
    public var originalTransactionID: String
    /// The account.
    public var owner: UniqueID
    /// Who says so.
    public var `operator`: String
    /// On which ticket.
    public var ticket: String
    /// When it was said.
    public var linkedAt: Timestamp

    /// Says whose a subscription is.
    public init(
        app: AppKey,
        originalTransactionID: String,
        owner: UniqueID,
        operator: String,
        ticket: String,
        linkedAt: Timestamp
    ) {
        self.app = app
        self.originalTransactionID = originalTransactionID
        self.owner = owner
        self.operator = `operator`
        self.ticket = ticket
        self.linkedAt = linkedAt
    }

    /// The link as an event of the subscription's stream.
    ///
    /// Its key is made of its content, without the instant, and of the link that it follows: the
    /// same said again is a duplicate, and a link that goes back to an earlier owner is none.
    ///
    /// - Parameter events: what the stream holds.
    /// - Returns: the event to append.
    public func event(among events: [StoredEvent]) -> NewEvent {
        let digest = SHA256.digest(canonicalJSON(with: nil))
        let links = events.filter { $0.kind == .ownerLinked }.sorted { $0.position < $1.position }
        let key: String
        if let last = links.last, last.contentDigest == digest {
            key = last.eventKey
        } else {
            let before = links.last?.eventKey ?? ""
            key = "o:" + Base64URL.encode(SHA256.digest(digest + Array(before.utf8)))
        }
        var fact = Fact(kind: .ownerLinked, provenance: .operator, factAt: linkedAt)
        fact.linkedOwner = owner
        return NewEvent(
            app: app,
            stream: originalTransactionID,
            eventKey: key,
            kind: .ownerLinked,
            provenance: .operator,
            received: canonicalJSON(with: linkedAt),
            form: .raw,
            contentDigest: digest,
            operator: `operator`,
            ticket: ticket,
            fact: fact
        )
    }

    /// Reads the owner and the instant back from the evidence; nil where it says neither.
    static func fact(in evidence: [UInt8]) throws -> Fact? {
        let document = try JSONDocument(evidence)
        guard let owner = document["appAccountToken"]?.text.flatMap({ UniqueID($0) }),
            let linkedAt = try document["linkedAt"]?.int64()
        else { return nil }
        var fact = Fact(
            kind: .ownerLinked,
            provenance: .operator,
            factAt: Timestamp(milliseconds: linkedAt)
        )
        fact.linkedOwner = owner
        return fact
    }

    /// What was said, with its members in order and no space between; the instant where there is
    /// one.
    private func canonicalJSON(with linkedAt: Timestamp?) -> [UInt8] {
        var members = [
            ("appAccountToken", Self.quoted(owner.description)),
            ("bundleId", Self.quoted(app.bundleID)),
            ("environment", Self.quoted(app.environment.description)),
        ]
        if let linkedAt { members.append(("linkedAt", "\(linkedAt.milliseconds)")) }
        members += [
            ("operator", Self.quoted(`operator`)),
            ("originalTransactionId", Self.quoted(originalTransactionID)),
            ("ticket", Self.quoted(ticket)),
        ]
        return Array("{\(members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ","))}".utf8)
    }

    static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\u{0}"..<"\u{20}":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
