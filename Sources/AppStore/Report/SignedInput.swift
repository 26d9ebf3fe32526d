/// One line of input that holds a signed text.
public enum SignedInput {
    /// The members that may hold it, where the line is a JSON object.
    public static let members = [
        "signedPayload", "signedTransactionInfo", "signedRenewalInfo", "signedAppTransactionInfo",
    ]

    /// Whether a line has nothing in it but space.
    public static func isBlank(_ line: some Sequence<UInt8>) -> Bool {
        line.allSatisfy { $0 <= 0x20 }
    }

    /// The signed text of a line: of `{"signedPayload":"…"}`, or the line itself.
    ///
    /// What is no JSON object is taken as the text itself, so that verifying it says what is wrong.
    public static func signedText(ofLine line: [UInt8]) -> Result<[UInt8], Rejection> {
        let content = trimmed(line)
        guard content.first == UInt8(ascii: "{") else { return .success(Array(content)) }
        let document: JSONDocument
        do { document = try JSONDocument(Array(content)) } catch {
            let reason = error.code == .duplicateKey ? Reason.duplicateKey : .badJSON
            return .failure(Rejection(reason: reason, detail: "the line: \(error)"))
        }
        for member in members {
            guard let value = document[member] else { continue }
            guard let text = value.textBytes else {
                return .failure(
                    Rejection(reason: .malformedJWS, detail: "\(member) is no text")
                )
            }
            return .success(text)
        }
        return .failure(
            Rejection(
                reason: .malformedJWS,
                detail: "the line has no \(members[0]); a line is an object with it, or a signed "
                    + "text"
            )
        )
    }

    /// The payload of a signed text that nobody has verified.
    ///
    /// It is for telling what was refused, and for nothing else; nil where it is no JSON object.
    public static func unverifiedPayload(of text: [UInt8]) -> JSONDocument? {
        (try? CompactJWS(text)).flatMap { try? JSONDocument($0.payload) }
    }

    private static func trimmed(_ line: [UInt8]) -> ArraySlice<UInt8> {
        var content = line[...]
        while let last = content.last, last <= 0x20 { content.removeLast() }
        return content.drop { $0 <= 0x20 }
    }
}
