import Crypto
import Ledger

@testable import AppStore

/// What every input must hold for each thing that reads what strangers send.
///
/// A crash is a failure, and so is a broken promise: each target says what must be true of whatever
/// it accepts, and traps where it is not.
enum FuzzTarget: String, CaseIterable {
    case json
    case jws
    case base64
    case der
    case receipt

    /// Hands an input over.
    func run(_ bytes: [UInt8]) {
        switch self {
        case .json: Self.json(bytes)
        case .jws: Self.jws(bytes)
        case .base64: Self.base64(bytes)
        case .der: Self.der(bytes)
        case .receipt: Self.receipt(bytes)
        }
    }

    private static func json(_ bytes: [UInt8]) {
        guard let document = try? JSONDocument(bytes) else { return }
        let count = walk(document.root)
        precondition(count == document.nodes.count, "every node is reached once")
        let again = try? JSONDocument(Array(document.root.raw))
        precondition(again != nil, "the text of a value is a document")
        let compact = JSONCompactText(document, replacing: []).bytes
        let second = try? JSONDocument(compact)
        precondition(second != nil, "what is written can be read")
        precondition(
            second.map { CanonicalContent($0).digest } == CanonicalContent(document).digest,
            "space between tokens changes nothing"
        )
    }

    /// Reads everything of a value in every way; how many nodes that were, keys included.
    private static func walk(_ value: JSONValue) -> Int {
        _ = value.text
        _ = value.textBytes
        _ = value.numberText
        _ = try? value.int64()
        _ = Lenient.text(value)
        _ = Lenient.integer(value)
        _ = Lenient.bool(value)
        var count = 1
        for member in value.members {
            precondition(
                value[member.name] != nil || member.name.unicodeScalars.contains("\u{FFFD}"),
                "a member is found by its name"
            )
            count += 1 + walk(member.value)
        }
        for element in value.elements { count += walk(element) }
        return count
    }

    private static let verifier = Verifier(anchors: TrustAnchors(), apps: nil)

    private static func jws(_ bytes: [UInt8]) {
        if let parts = try? CompactJWS(bytes) { _ = try? JSONDocument(parts.payload) }
        if case .trusted = verifier.verify(bytes, now: .latest) {
            preconditionFailure("nobody here can sign for Apple")
        }
        if case .success(let text) = SignedInput.signedText(ofLine: bytes) {
            _ = SignedInput.unverifiedPayload(of: text)
        }
    }

    private static func base64(_ bytes: [UInt8]) {
        let text = Base64URL.encodeBytes(bytes)
        precondition(Base64URL.decode(text) == bytes, "what is encoded is decoded")
        precondition(Base64.decode(Base64.encode(bytes)) == bytes, "what is encoded is decoded")
        // Strict: one text for each content, so that no two texts are the same signature.
        if let content = Base64URL.decode(bytes) {
            precondition(Base64URL.encodeBytes(content) == bytes, "only one text is taken")
        }
        if let content = Base64.decode(bytes) {
            precondition(Array(Base64.encode(content).utf8) == bytes, "only one text is taken")
        }
    }

    private static func der(_ bytes: [UInt8]) {
        var anchors = TrustAnchors()
        try? anchors.add(bytes, name: "fuzz")
        _ = anchors.warnings(now: Timestamp(milliseconds: 1_760_000_000_000))
        _ = PublicKey(publicKeyInfo: bytes)
        _ = PublicKey(publicKeyInfo: bytes)?.isValidES256(
            signature: [UInt8](repeating: 1, count: 64),
            message: bytes[...]
        )
    }

    private static func receipt(_ bytes: [UInt8]) {
        _ = ReceiptClient.receipt(ofLine: bytes)
        guard let body = try? ReceiptBody(bytes) else { return }
        let asOf = body.requestDate ?? body.lastInstant ?? Timestamp(milliseconds: 0)
        for element in body.content(asOf: asOf).elements {
            precondition(
                element.originalTransactionID.utf8.allSatisfy { 0x30...0x39 ~= $0 },
                "a stream is named by digits alone"
            )
            let again = try? ReceiptElement(
                element.bytes,
                source: element.source,
                originalTransactionID: element.originalTransactionID,
                asOf: element.asOf
            )
            precondition(again == element, "evidence is read again as it was read")
            precondition(element.fact.provenance == .receipt, "nobody signed it")
            var fold = SubscriptionFold(rules: AppRules(environment: .production))
            _ = fold.history(of: [Event(position: 1, fact: element.fact)])
        }
    }
}
