internal import Crypto

/// The body that a notification was posted in, where it is not the usual one.
///
/// Apple posts `{"signedPayload":"<signed text>"}`; that needs no keeping, since it can be made
/// again from the text. Any other body is kept as what stood around the text, or whole where the
/// text is not in it as it stands (JSON can write each letter as an escape). It is no evidence:
/// nobody has signed what is around the text.
public struct PostedBody: Hashable, Sendable {
    /// What is stored: what stood before and after the text, or the whole body alone.
    let parts: [[UInt8]]

    /// The body that a signed text was taken from, or nil for the usual one.
    public init?(_ body: [UInt8], around text: [UInt8]) {
        let usual = Self.usual(text)
        guard !ByteScan.areEqual(body[...], usual[...]) else { return nil }
        guard !text.isEmpty, let place = ByteScan.first(text, in: body) else {
            parts = [body]
            return
        }
        parts = [Array(body[..<place]), Array(body[(place + text.count)...])]
    }

    /// A body as it was stored, or nil for parts that are none.
    init?(parts: [[UInt8]]) {
        guard (1...2).contains(parts.count) else { return nil }
        self.parts = parts
    }

    /// The body, byte for byte.
    func body(around text: [UInt8]) -> [UInt8] {
        parts.count == 1 ? parts[0] : parts[0] + text + parts[1]
    }

    /// The body that Apple posts: one member, no blanks.
    static func usual(_ text: [UInt8]) -> [UInt8] {
        Array("{\"signedPayload\":\"".utf8) + text + Array("\"}".utf8)
    }
}
