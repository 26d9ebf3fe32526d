public import AppStore
internal import Crypto
internal import Ledger

/// What a receipt tells of one transaction or renewal, as an event of the subscription's stream.
///
/// It is unsigned: whoever had the bytes could have made them. So its provenance is `receipt`, and
/// it never outranks what is signed. The response that it stood in is kept whole as an event of its
/// own; the evidence here is the object's own text with what it takes to read it again.
public struct ReceiptReading: Sendable {
    /// The app that the response names.
    public var app: AppKey
    /// What was read.
    public var element: ReceiptElement

    /// Says it.
    public init(app: AppKey, element: ReceiptElement) {
        self.app = app
        self.element = element
    }

    /// It as an event, keyed by its content alone.
    ///
    /// ``ReadingKeys`` gives it the key that also says what it follows.
    public func event(correlation: String?) -> NewEvent {
        NewEvent(
            app: app,
            stream: element.originalTransactionID,
            eventKey: "r:" + Base64URL.encode(element.contentDigest),
            kind: .receipt,
            provenance: .receipt,
            correlation: correlation,
            received: evidence,
            form: .raw,
            contentDigest: element.contentDigest,
            fact: element.fact,
            decodeAnomalies: element.anomalies
        )
    }

    /// The members in order, no space between; the object as it was received.
    private var evidence: [UInt8] {
        var text = "{\"asOf\":\(element.asOf.milliseconds)"
        text += ",\"bundleId\":\(OwnerLink.quoted(app.bundleID))"
        text += ",\"environment\":\(OwnerLink.quoted(app.environment.description))"
        text += ",\"originalTransactionId\":\(OwnerLink.quoted(element.originalTransactionID))"
        text += ",\"source\":\(OwnerLink.quoted(element.source.rawValue)),\"element\":"
        return Array(text.utf8) + element.bytes + [UInt8(ascii: "}")]
    }

    /// Reads it back from the evidence; nil where something is missing.
    ///
    /// - Throws: `AppStoreError` for what is no JSON.
    public init?(evidence: [UInt8]) throws {
        let document = try JSONDocument(evidence)
        guard let asOf = try document["asOf"]?.int64(),
            let bundleID = document["bundleId"]?.text,
            let environment = document["environment"]?.text,
            let id = document["originalTransactionId"]?.text,
            let source = document["source"]?.text.flatMap(ReceiptElement.Source.init(rawValue:)),
            let object = document["element"],
            let element = try ReceiptElement(
                Array(object.raw),
                source: source,
                originalTransactionID: id,
                asOf: Timestamp(milliseconds: asOf)
            )
        else { return nil }
        app = AppKey(bundleID: bundleID, environment: Environment(environment))
        self.element = element
    }
}
