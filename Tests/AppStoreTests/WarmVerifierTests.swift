import AppStoreSimulator
import Crypto
import Ledger
import Testing

@testable import AppStore

/// A verifier that verified much judges as one that never verified anything.
///
/// After some hundred signatures of a leaf it goes by a table of the key's multiples, and by inverses
/// that it calculates for all layers of a notification together.
@Suite struct WarmVerifierTests {
    private static let warm: Verifier = {
        let verifier = Sample.verifier()
        let text = Sample.notification()
        for _ in 0..<300 { _ = verifier.verify(text, now: Sample.now) }
        return verifier
    }()

    @Test func aTableIsThereAfterSomeHundredSignatures() throws {
        let memory = ChainMemory(anchors: Sample.anchors(), rate: nil)
        let text = try Sample.transaction()
        let header = try CompactJWS(text).header
        for _ in 0..<499 { _ = try SignedLayer(text, memory: memory, now: Sample.now) }
        #expect(try !memory.chain(header: header, now: Sample.now).leafKey.hasTable)
        _ = try SignedLayer(text, memory: memory, now: Sample.now)
        #expect(try memory.chain(header: header, now: Sample.now).leafKey.hasTable)
    }

    /// A notification in which the text of a nested field is changed, and the whole signed anew.
    private func changed(_ field: String, _ change: ([UInt8]) -> [UInt8]) throws -> [UInt8] {
        let payload = try CompactJWS(Sample.notification()).payload
        let text = try #require(try JSONDocument(payload)["data"]?[field]?.textBytes)
        let new = String(decoding: change(text), as: UTF8.self)
        let whole = String(decoding: payload, as: UTF8.self)
            .split(
                separator: String(decoding: text, as: UTF8.self),
                omittingEmptySubsequences: false
            )
        try #require(whole.count == 2)
        return Sample.signed(bytes: Array("\(whole[0])\(new)\(whole[1])".utf8))
    }

    /// Changes one character of a text's signature, so that it stays base64url.
    private func forged(_ text: [UInt8]) -> [UInt8] {
        var text = text
        let place = text.count - 40
        text[place] = text[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        return text
    }

    @Test func whatIsForgedInAnyLayerIsRefusedForTheSameReason() throws {
        let good = Sample.notification()
        let zero = Array(String(repeating: "A", count: 86).utf8)
        var texts: [(what: String, text: [UInt8], reason: Reason?)] = [
            ("unchanged", good, nil),
            ("the outer signature", forged(good), .badSignature),
            ("an outer signature of zeros", Array(good.dropLast(86)) + zero, .badSignature),
            ("half of the outer signature", Array(good.dropLast(42)), .malformedJWS),
        ]
        for field in ["signedTransactionInfo", "signedRenewalInfo"] {
            texts += [
                ("the signature of \(field)", try changed(field, forged), .nested),
                (
                    "zeros as signature of \(field)",
                    try changed(field) { Array($0.dropLast(86)) + zero }, .nested
                ),
                (
                    "no signature of \(field)", try changed(field) { Array($0.dropLast(86)) },
                    .nested
                ),
                ("no dot in \(field)", try changed(field) { $0.filter { $0 != 0x2E } }, .nested),
            ]
        }
        for (what, text, reason) in texts {
            let cold = Sample.verifier().verify(text, now: Sample.now)
            let warm = Self.warm.verify(text, now: Sample.now)
            #expect(cold.rejection?.reason == reason, "\(what)")
            #expect(warm.rejection?.reason == reason, "\(what)")
            #expect(cold.rejection?.detail == warm.rejection?.detail, "\(what)")
            #expect(cold.rejection?.isSignatureValid == warm.rejection?.isSignatureValid, "\(what)")
        }
    }

    @Test func nestedSignaturesThatChangedPlacesAreRefused() throws {
        var transaction: [UInt8] = []
        _ = try changed("signedTransactionInfo") {
            transaction = $0
            return $0
        }
        let other = transaction.suffix(86)
        let text = try changed("signedRenewalInfo") { Array($0.dropLast(86)) + other }
        #expect(Self.warm.verify(text, now: Sample.now).rejection?.nestedReason == .badSignature)
        #expect(
            Sample.verifier().verify(text, now: Sample.now).rejection?.nestedReason == .badSignature
        )
    }
}
