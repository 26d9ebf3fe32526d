import Testing

@testable import Crypto

/// Inverses that are calculated together.
@Suite struct SignatureInversesTests {
    private let signer = SigningKey(seed: [21])
    private let multiplier: Multiplier
    private let message = Array("header.payload".utf8)

    init() throws {
        let key = try #require(PublicKey(publicKeyInfo: signer.publicKeyInfo))
        multiplier = Multiplier(try #require(KeyMultiples(of: key)))
    }

    private func signatures(_ count: Int) -> [(signature: [UInt8], digest: [UInt8])] {
        (0..<count).map { number in
            let message = Array("message \(number)".utf8)
            return (signer.signES256(message), SHA256.digest(message))
        }
    }

    @Test(arguments: 2...6)
    func eachSignatureIsValidWithItsOwnInverse(count: Int) throws {
        let signed = signatures(count)
        let inverses = SignatureInverses(of: signed.map(\.signature))
        for (index, (signature, digest)) in signed.enumerated() {
            let inverse = try #require(inverses.inverse(of: signature))
            #expect(inverse.count == 32)
            #expect(multiplier.isValid(signature: signature, digest: digest, inverse: inverse))
            // Otherwise it would not have been looked at.
            let others = signed[(index + 1) % count].signature
            let wrong = try #require(inverses.inverse(of: others))
            #expect(!multiplier.isValid(signature: signature, digest: digest, inverse: wrong))
        }
        #expect(inverses.inverse(of: signer.signES256(message)) == nil)
        #expect(ErrorQueue.isEmpty)
    }

    @Test func equalSignaturesHaveEqualInverses() throws {
        let (signature, digest) = signatures(1)[0]
        let inverses = SignatureInverses(of: [signature, signature, signature])
        let inverse = try #require(inverses.inverse(of: signature))
        #expect(multiplier.isValid(signature: signature, digest: digest, inverse: inverse))
    }

    @Test func theInverseOfTwoIsHalfOfTheOrderAndOne() throws {
        var (two, one) = ([UInt8](repeating: 0, count: 64), [UInt8](repeating: 0, count: 64))
        two[63] = 2
        one[63] = 1
        let inverses = SignatureInverses(of: [two, one])
        // (n + 1) / 2, n being the order.
        let half: [UInt8] = [
            0x7F, 0xFF, 0xFF, 0xFF, 0x80, 0x00, 0x00, 0x00, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
            0xFF, 0xFF, 0xDE, 0x73, 0x7D, 0x56, 0xD3, 0x8B, 0xCF, 0x42, 0x79, 0xDC, 0xE5, 0x61,
            0x7E, 0x31, 0x92, 0xA9,
        ]
        #expect(inverses.inverse(of: two) == half)
        #expect(inverses.inverse(of: one) == Array(one[32...]))
    }

    @Test func whereOneCannotBeASignatureNoneIsCalculated() {
        let good = signatures(2).map(\.signature)
        let zero = [UInt8](repeating: 0, count: 64)
        let all = [UInt8](repeating: 0xFF, count: 64)
        for wrong in [zero, all, Array(good[0].prefix(63)), good[0] + [0], []] {
            for signatures in [[wrong] + good, good + [wrong], [good[0], wrong, good[1]]] {
                let inverses = SignatureInverses(of: signatures)
                #expect(signatures.allSatisfy { inverses.inverse(of: $0) == nil })
            }
        }
        // One alone is calculated where it is verified.
        #expect(SignatureInverses(of: [good[0]]).inverse(of: good[0]) == nil)
        #expect(ErrorQueue.isEmpty)
    }

    @Test func aKeyWithATableIsAskedWithInversesAndWithout() throws {
        let key = try #require(PublicKey(publicKeyInfo: signer.publicKeyInfo))
        key.use(KeyMultiples(of: key))
        let signed = signatures(3)
        let inverses = SignatureInverses(of: signed.map(\.signature))
        for (signature, digest) in signed {
            #expect(key.isValidES256(signature: signature, digest: digest, inverses: inverses))
            #expect(key.isValidES256(signature: signature, digest: digest))
            var other = digest
            other[3] ^= 1
            #expect(!key.isValidES256(signature: signature, digest: other, inverses: inverses))
        }
        #expect(key.hasTable)
    }
}
