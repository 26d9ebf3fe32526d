import AppStore
import AppStoreSimulator
import Crypto
import Ledger
import Testing

/// One changed bit anywhere makes a text worthless.
@Suite struct FlippedBitTests {
    private static let seed: UInt64 = 20_250_101

    /// The reasons that a flipped bit may have: nothing about content or identity is ever reached.
    private static let expected: Set<Reason> = [
        .malformedJWS, .badBase64URL, .badHeader, .algorithm, .chainLength, .badCertificate,
        .untrustedRoot, .brokenChain, .markerOID, .badSignature,
    ]

    @Test func everyStretchOfATransactionCounts() throws {
        let verifier = Sample.verifier()
        let text = try Sample.transaction()
        #expect(verifier.verify(text, now: Sample.now).document != nil)
        var random = TestRandom(state: Self.seed)
        for place in stride(from: Int(random.next() % 3), to: text.count, by: 3) {
            let bit = UInt8(1 << (random.next() % 8))
            try expectRejected(text, place, bit, verifier)
        }
        #expect(verifier.rememberedChains.refused <= 256)
    }

    @Test func randomBitsOfANotificationCount() throws {
        let verifier = Sample.verifier()
        let text = Sample.notification()
        var random = TestRandom(state: Self.seed)
        for _ in 0..<1000 {
            let place = Int(random.next() % UInt64(text.count))
            try expectRejected(text, place, UInt8(1 << (random.next() % 8)), verifier)
        }
    }

    @Test func truncatedAndExtendedTextsAreRejected() throws {
        let verifier = Sample.verifier()
        let text = Sample.notification()
        for length in stride(from: 0, to: text.count, by: 97) {
            #expect(verifier.verify(Array(text.prefix(length)), now: Sample.now).document == nil)
        }
        for tail in ["A", "=", ".", "\n", " ", "\0"] {
            #expect(verifier.verify(text + Array(tail.utf8), now: Sample.now).document == nil)
        }
    }

    private func expectRejected(
        _ text: [UInt8],
        _ place: Int,
        _ bit: UInt8,
        _ verifier: Verifier
    ) throws {
        var changed = text
        changed[place] ^= bit
        let verdict = verifier.verify(changed, now: Sample.now)
        let rejection = try #require(
            verdict.rejection,
            "byte \(place), bit \(bit), seed \(Self.seed) was trusted"
        )
        #expect(!verdict.isUndecided)
        #expect(!rejection.isSignatureValid)
        #expect(
            Self.expected.contains(rejection.reason),
            "byte \(place), bit \(bit), seed \(Self.seed): \(rejection)"
        )
    }
}
