public import Ledger

/// What `subledger verify` says about one line of input, as one line of JSON.
///
/// The members are `line`, `kind`, `verdict` (`trusted`, `rejected`, `undecided`), `reason` (null
/// for a trusted line), `detail`, `identity` (`checked` or `skipped`) and `payload`: the decoded
/// payload with the nested signed texts decoded in their places. Numbers and texts keep the
/// spelling that was signed. `payload` is null for a line that is not trusted, since nobody
/// vouches for what it says.
public struct VerifyReport: Sendable {
    /// One line of the output.
    public struct Line: Hashable, Sendable {
        /// The JSON, without an end of line.
        public var json: [UInt8]
        /// Whether the line was trusted.
        public var isTrusted: Bool

        /// The JSON as text.
        public var text: String { String(decoding: json, as: UTF8.self) }
    }

    private let verifier: Verifier

    /// Makes a report of what a verifier says.
    public init(verifier: Verifier) { self.verifier = verifier }

    /// Verifies the signed text of a line: `{"signedPayload":"…"}`, a signed text, or garbage.
    public func line(_ number: Int, input: [UInt8], now: Timestamp) -> Line {
        switch SignedInput.signedText(ofLine: input) {
        case .failure(let rejection): line(number, refusing: rejection)
        case .success(let text): line(number, text: text, now: now)
        }
    }

    /// The report of a line that could not be read at all, such as one that is too long.
    public func line(_ number: Int, refusing rejection: Rejection) -> Line {
        let verdict = rejection.reason.isTemporary ? "undecided" : "rejected"
        return line(number, kind: nil, verdict: verdict, rejection: rejection, payload: nil)
    }

    private func line(_ number: Int, text: [UInt8], now: Timestamp) -> Line {
        switch verifier.verify(text, now: now) {
        case .trusted(let document):
            line(
                number,
                kind: document.kind,
                verdict: "trusted",
                rejection: nil,
                payload: document.decodedPayload
            )
        case .rejected(let rejection):
            line(
                number,
                kind: Self.claimedKind(text),
                verdict: "rejected",
                rejection: rejection,
                payload: nil
            )
        case .undecided(let rejection):
            line(
                number,
                kind: Self.claimedKind(text),
                verdict: "undecided",
                rejection: rejection,
                payload: nil
            )
        }
    }

    private func line(
        _ number: Int,
        kind: DocumentKind?,
        verdict: String,
        rejection: Rejection?,
        payload: [UInt8]?
    ) -> Line {
        var json = "{\"line\":\(number),\"kind\":\(JSONQuoting.quoted(kind?.rawValue))"
        json += ",\"verdict\":\"\(verdict)\""
        json += ",\"reason\":\(JSONQuoting.quoted(rejection?.reason.rawValue))"
        json += ",\"detail\":\(JSONQuoting.quoted(rejection?.detail))"
        json += ",\"identity\":\"\(verifier.checksIdentity ? "checked" : "skipped")\",\"payload\":"
        let bytes = Array(json.utf8) + (payload ?? Array("null".utf8)) + [UInt8(ascii: "}")]
        return Line(json: bytes, isTrusted: verdict == "trusted")
    }

    /// What kind of text it says that it is; nil where it cannot be read.
    private static func claimedKind(_ text: [UInt8]) -> DocumentKind? {
        guard let jws = try? CompactJWS(text), let payload = try? JSONDocument(jws.payload),
            payload.root.kind == .object
        else { return nil }
        return DocumentKind(of: payload)
    }
}

/// Writing texts into JSON.
enum JSONQuoting {
    /// A text as JSON, `null` for nil.
    static func quoted(_ text: String?) -> String {
        guard let text else { return "null" }
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\u{0}"..<"\u{20}":
                let code = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - code.count) + code
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}

extension VerifiedDocument {
    /// The payload on one line, with the payloads of the nested signed texts in their places.
    ///
    /// Everything else keeps the spelling that was signed.
    public var decodedPayload: [UInt8] {
        JSONCompactText(payload, replacing: nested.map { ($0.node, $0.payload) }).bytes
    }
}
