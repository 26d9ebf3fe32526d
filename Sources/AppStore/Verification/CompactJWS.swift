internal import Crypto
internal import Glibc

/// A signed text taken apart: `header.payload.signature`, each in base64url.
public struct CompactJWS: Sendable {
    /// The longest text that is looked at; Apple's are about 20 kB.
    public static let sizeMaxBytes = 256 * 1024

    /// The text as it was given.
    public let text: [UInt8]
    /// The header in base64url: what certificate chains are remembered by.
    public var header: ArraySlice<UInt8> { text[..<headerEnd] }
    /// Header and payload in base64url: what is signed.
    public var signingInput: ArraySlice<UInt8> { text[..<payloadEnd] }
    /// The decoded payload.
    public let payload: [UInt8]
    /// r and s, 64 bytes.
    public let signature: [UInt8]

    private let headerEnd: Int
    private let payloadEnd: Int

    /// Takes a text apart; size, number of parts, then base64url are checked.
    public init(_ text: [UInt8]) throws(Rejection) {
        guard text.count <= Self.sizeMaxBytes else {
            throw Rejection(
                reason: .tooLarge,
                detail: "\(text.count) bytes, at most \(Self.sizeMaxBytes) are read"
            )
        }
        let dots = Self.dots(in: text)
        guard dots.count == 2 else {
            throw Rejection(
                reason: .malformedJWS,
                detail: "a signed text has three parts with dots between; send it unchanged"
            )
        }
        self.text = text
        headerEnd = dots[0]
        payloadEnd = dots[1]
        guard let payload = Base64URL.decode(text[(dots[0] + 1)..<dots[1]]) else {
            throw Self.badPart("payload")
        }
        guard let signature = Base64URL.decode(text[(dots[1] + 1)...]) else {
            throw Self.badPart("signature")
        }
        self.payload = payload
        self.signature = signature
        guard signature.count == PublicKey.signatureLengthBytes else {
            throw Rejection(
                reason: .malformedJWS,
                detail: "the signature has \(signature.count) bytes, ES256 has 64"
            )
        }
    }

    /// What stands where a text's signature stands; nil where that is none.
    static func signature(of text: [UInt8]) -> [UInt8]? {
        text.lastIndex(of: UInt8(ascii: ".")).flatMap { Base64URL.decode(text[($0 + 1)...]) }
    }

    static func badPart(_ name: String) -> Rejection {
        Rejection(
            reason: .badBase64URL,
            detail: "the \(name) is not base64url without padding; send the text unchanged"
        )
    }

    /// Where the dots are; three are enough to know that there are too many.
    private static func dots(in text: [UInt8]) -> [Int] {
        unsafe text.withUnsafeBytes { buffer in
            var dots: [Int] = []
            guard let base = buffer.baseAddress else { return dots }
            var start = 0
            while start < buffer.count, dots.count < 3,
                let found = unsafe memchr(base + start, 0x2E, buffer.count - start)
            {
                let place = unsafe UnsafeRawPointer(found) - base
                dots.append(place)
                start = place + 1
            }
            return dots
        }
    }
}
