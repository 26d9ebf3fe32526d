internal import AppStore
internal import Crypto
public import Ledger

/// What Apple says of a subscription beside the signed texts of a status answer: a number.
///
/// It is unsigned, read over TLS, and so it never outranks what is signed. The body that it stood
/// in is kept whole as an event of its own; this is the number with what it belongs to.
public struct StatusReading: Hashable, Sendable {
    /// The app that was asked for.
    public var app: AppKey
    /// Apple's `originalTransactionId`.
    public var originalTransactionID: String
    /// 1 active, 2 expired, 3 billing retry, 4 billing grace period, 5 revoked.
    public var status: Int32
    /// As of when: Apple's own instant of the signed texts beside it, or when it was received.
    public var readAt: Timestamp

    /// Says it.
    public init(
        app: AppKey,
        originalTransactionID: String,
        status: Int32,
        readAt: Timestamp
    ) {
        self.app = app
        self.originalTransactionID = originalTransactionID
        self.status = status
        self.readAt = readAt
    }

    /// The reading as an event of the subscription's stream, keyed by its content alone.
    ///
    /// ``ReadingKeys`` gives it the key that also says what it follows.
    public func event(correlation: String?) -> NewEvent {
        let digest = SHA256.digest(json(with: nil))
        var fact = Fact(kind: .subscriptionStatus, provenance: .tls, factAt: readAt)
        fact.status = status
        return NewEvent(
            app: app,
            stream: originalTransactionID,
            eventKey: "s:" + Base64URL.encode(digest),
            kind: .subscriptionStatus,
            provenance: .tls,
            correlation: correlation,
            received: json(with: readAt),
            form: .raw,
            contentDigest: digest,
            fact: fact
        )
    }

    /// Reads status and instant back from the evidence; nil where one of them is missing.
    static func fact(in evidence: [UInt8]) throws -> Fact? {
        let document = try JSONDocument(evidence)
        guard let readAt = try document["readAt"]?.int64(),
            let status = try document["status"].flatMap({ Int32(exactly: try $0.int64()) })
        else { return nil }
        var fact = Fact(
            kind: .subscriptionStatus,
            provenance: .tls,
            factAt: Timestamp(milliseconds: readAt)
        )
        fact.status = status
        return fact
    }

    /// Its members in order, no space between; the instant where there is one.
    private func json(with readAt: Timestamp?) -> [UInt8] {
        var text = "{\"bundleId\":\(OwnerLink.quoted(app.bundleID))"
        text += ",\"environment\":\(OwnerLink.quoted(app.environment.description))"
        text += ",\"originalTransactionId\":\(OwnerLink.quoted(originalTransactionID))"
        if let readAt { text += ",\"readAt\":\(readAt.milliseconds)" }
        return Array((text + ",\"status\":\(status)}").utf8)
    }
}
