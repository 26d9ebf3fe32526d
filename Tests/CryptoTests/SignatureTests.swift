import Testing

@testable import Crypto

/// Checking signatures at the edges of what r and s may be.
@Suite struct SignatureTests {
    /// The order of P-256.
    private static let order: [UInt8] = [
        0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xFF, 0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63,
        0x25, 0x51,
    ]

    private let key = SigningKey(seed: [42])
    private let publicKey: PublicKey
    private let message = Array("header.payload".utf8)

    init() throws {
        let name = CertificateName(commonName: "Test")
        let template = CertificateTemplate(
            subject: name,
            serial: [1],
            notBefore: 0,
            notAfter: 2_000_000_000
        )
        let der = CertificateIssuer(name: name, key: key).issue(template, for: key)
        publicKey = try Certificate(der: der).publicKey
    }

    @Test func aGoodSignatureIsValidAndAChangedOneIsNot() {
        let signature = key.signES256(message)
        #expect(publicKey.isValidES256(signature: signature, message: message[...]))
        for place in 0..<64 {
            var changed = signature
            changed[place] ^= 1
            #expect(!publicKey.isValidES256(signature: changed, message: message[...]))
        }
        #expect(!publicKey.isValidES256(signature: signature, message: message[1...]))
        #expect(
            !publicKey.isValidES256(signature: Array(signature.prefix(63)), message: message[...])
        )
        #expect(!publicKey.isValidES256(signature: signature + [0], message: message[...]))
        #expect(!publicKey.isValidES256(signature: key.signDER(message), message: message[...]))
        #expect(!publicKey.isValidES256(signature: [], message: message[...]))
    }

    @Test func numbersOutOfRangeAreNoSignature() {
        let signature = key.signES256(message)
        let r = Array(signature.prefix(32))
        let s = Array(signature.suffix(32))
        let zero = [UInt8](repeating: 0, count: 32)
        let all = [UInt8](repeating: 0xFF, count: 32)
        var one = zero
        one[31] = 1
        for wrong in [zero, one, Self.order, all] {
            #expect(!publicKey.isValidES256(signature: wrong + s, message: message[...]))
            #expect(!publicKey.isValidES256(signature: r + wrong, message: message[...]))
            #expect(!publicKey.isValidES256(signature: wrong + wrong, message: message[...]))
        }
        // A key that was asked nonsense still knows a good signature.
        #expect(publicKey.isValidES256(signature: signature, message: message[...]))
    }

    @Test func signaturesWithLeadingZerosAndHighBitsAreValid() {
        var shapes: Set<[Bool]> = []
        for number in 0..<600 {
            let message = Array("message \(number)".utf8)
            let signature = key.signES256(message)
            shapes.insert([
                signature[0] == 0, signature[0] >= 0x80, signature[32] == 0, signature[32] >= 0x80,
            ])
            #expect(publicKey.isValidES256(signature: signature, message: message[...]))
        }
        // Otherwise the sample would not have been worth much.
        #expect(shapes.count >= 6)
    }

    @Test func nothingIsLeftInTheErrorQueue() {
        let all = [UInt8](repeating: 0xFF, count: 64)
        #expect(!publicKey.isValidES256(signature: all, message: message[...]))
        #expect(ErrorQueue.isEmpty)
        #expect((try? Certificate(der: [0x30, 0x03, 0x02, 0x01])) == nil)
        #expect(ErrorQueue.isEmpty)
        #expect(ObjectIdentifier("no number") == nil)
        #expect(ErrorQueue.isEmpty)
    }

    @Test func manyThreadsShareOneKey() async {
        let signature = key.signES256(message)
        var wrong = signature
        wrong[5] ^= 4
        let (publicKey, message) = (publicKey, message)
        let forged = wrong
        let isRight = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    (0..<60).allSatisfy { _ in
                        publicKey.isValidES256(signature: signature, message: message[...])
                            && !publicKey.isValidES256(signature: forged, message: message[...])
                    }
                }
            }
            return await group.reduce(true) { $0 && $1 }
        }
        #expect(isRight)
    }
}
