import Testing

@testable import Crypto

/// Verifying with a table of a key's multiples, compared with OpenSSL's own ES256.
@Suite struct KeyMultiplesTests {
    private static func publicKey(x: String, y: String) throws -> PublicKey {
        let point = [0x04] + bytes(x) + bytes(y)
        let info = DER.sequence(
            DER.sequence(
                DER.objectIdentifier("1.2.840.10045.2.1"),
                DER.objectIdentifier("1.2.840.10045.3.1.7")
            ),
            DER.bitString(point)
        )
        return try #require(PublicKey(publicKeyInfo: info))
    }

    private static func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex.utf8)
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(String(decoding: digits[$0..<($0 + 2)], as: UTF8.self), radix: 16) ?? 0
        }
    }

    /// A case with its answer, all calculated apart from OpenSSL.
    struct Edge: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var x = "f9ebe464147cc102d92324d099d927c1a50e42d57a08a116ffec0a29819d8c65"
        var y = "70baf7d12888902a6a0c1d67add103123c859ab69bf8e9431c9384930d4b7eee"
        var digest: String
        var r = "91f0d89d4a15ae1898cab356d2953780f7517ffd8e59939d811325ffa6d3e573"
        var s: String
        var isValid = true

        init(_ description: String, digest: String, s: String) {
            testDescription = description
            self.digest = digest
            self.s = s
        }

        func with(_ change: (inout Self) -> Void) -> Self {
            var copy = self
            change(&copy)
            return copy
        }
    }

    private static let zero = String(repeating: "0", count: 64)
    private static let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"
    private static let generatorX =
        "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"

    static let edges = [
        Edge(
            "a digest of zero",
            digest: zero,
            s: "9321dbc8c6f2315909fd4d9fe2e52409bb96475e8cb4d59e5845cba4a19327b8"
        ),
        Edge(
            "a digest that is the order",
            digest: order,
            s: "9321dbc8c6f2315909fd4d9fe2e52409bb96475e8cb4d59e5845cba4a19327b8"
        ),
        Edge(
            "a digest beyond the order",
            digest: String(repeating: "f", count: 64),
            s: "5d53e18edd68b35b623a1adb554495b53ba8d81984fc0ef7d71655f8ab7c9c81"
        ),
        Edge(
            "two equal points that are added",
            digest: "07fd44084c4c23cb618315d945ae2ab6fc734956e5d3b4ef1ee56a227b8c6363",
            s: "2643b7928de462b113fa9b3fc5ca4813ba45940f72520cb7bcd1cc8646c32a1f"
        ),
        Edge(
            "two opposite points that are added",
            digest: "f802bbf6b3b3dc359e7cea26ba51d548c073b156c143e995d4d460a080d6c1ee",
            s: String(repeating: "0", count: 60) + "3039"
        ).with { $0.isValid = false },
        Edge(
            "a point whose x is beyond the order",
            digest: "4b137fd8cb3deaa176a6083df4d039e6a5d500a3a274c534e49fce1274334228",
            s: "d8faffe758da7f0311d6906bfd0eae9b79886ae9fee5881809d995741dc6f933"
        ).with {
            $0.x = "d19e925041d171a15f65e076614bcf04791324d993bd9020ca5989d4be182c1c"
            $0.y = "c42f409f8562d7b1ad908345144f19c0bc6049c0f8fc3923dddf9cb6e843b7c9"
            $0.r = String(repeating: "0", count: 63) + "3"
        },
        Edge(
            "a factor of one",
            digest: "f155e04ae7313ae9b94be37378c1d2d9a582116e53abfe0867164f04b01bd334",
            s: "91f0d89d4a15ae1898cab356d2953780f7517ffd8e59939d811325ffa6d3e573"
        ),
        Edge(
            "the generator for a key",
            digest: String(repeating: "0", count: 63) + "7",
            s: "1c625fc48fab3a6c094d70c8dfeafe95e85d5c1515bbb434430a80a8453b86a9"
        ).with {
            $0.x = generatorX
            $0.y = "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
        },
        Edge(
            "the generator's opposite for a key",
            digest: String(repeating: "0", count: 63) + "7",
            s: "e32be6433183df35e203912837c76df9d5ef3d1d6ca334cccc4914a37427fcc4"
        ).with {
            $0.x = generatorX
            $0.y = "b01cbd1c01e58065711814b583f061e9d431cca994cea1313449bf97c840ae0a"
        },
    ]

    @Test(arguments: edges)
    func theEdgesOfTheArithmeticAreJudgedRightly(edge: Edge) throws {
        let key = try Self.publicKey(x: edge.x, y: edge.y)
        let multiplier = Multiplier(try #require(KeyMultiples(of: key)))
        let digest = Self.bytes(edge.digest)
        let (r, s) = (Self.bytes(edge.r), Self.bytes(edge.s))
        #expect(multiplier.isValid(signature: r + s, digest: digest) == edge.isValid)
        #expect(key.isValidByEVP(signature: r + s, digest: digest) == edge.isValid)
        // The numbers of before leave nothing behind, and a signature's halves are not the same.
        #expect(r == s || !multiplier.isValid(signature: s + r, digest: digest))
        #expect(multiplier.isValid(signature: r + s, digest: digest) == edge.isValid)
    }

    @Test func numbersOutOfRangeAreNoSignature() throws {
        let edge = Self.edges[0]
        let key = try Self.publicKey(x: edge.x, y: edge.y)
        let multiplier = Multiplier(try #require(KeyMultiples(of: key)))
        let digest = Self.bytes(edge.digest)
        let (r, s) = (Self.bytes(edge.r), Self.bytes(edge.s))
        let order = Self.bytes(Self.order)
        // 3 + n is less than 2^256, so r could be written twice if nobody looked.
        let far = Self.edges[5]
        let farKey = try Self.publicKey(x: far.x, y: far.y)
        let farMultiplier = Multiplier(try #require(KeyMultiples(of: farKey)))
        var beyond = order
        beyond[31] += 3
        #expect(
            !farMultiplier.isValid(
                signature: beyond + Self.bytes(far.s),
                digest: Self.bytes(far.digest)
            )
        )
        let all = [UInt8](repeating: 0xFF, count: 32)
        for wrong in [[UInt8](repeating: 0, count: 32), order, beyond, all] {
            for signature in [wrong + s, r + wrong, wrong + wrong] {
                #expect(!multiplier.isValid(signature: signature, digest: digest))
                #expect(!key.isValidByEVP(signature: signature, digest: digest))
            }
        }
        #expect(multiplier.isValid(signature: r + s, digest: digest))
        #expect(ErrorQueue.isEmpty)
    }

    @Test(arguments: UInt8(0)..<6)
    func theTableAgreesWithOpenSSLOnManySignatures(seed: UInt8) throws {
        let signer = SigningKey(seed: [seed, 77])
        let key = try #require(PublicKey(publicKeyInfo: signer.publicKeyInfo))
        let multiplier = Multiplier(try #require(KeyMultiples(of: key)))
        for number in 0..<150 {
            let message = Array("message \(number)".utf8)
            let digest = SHA256.digest(message)
            let signature = signer.signES256(message)
            #expect(multiplier.isValid(signature: signature, digest: digest))
            var changed = signature
            changed[number % 64] ^= 1 << (number / 64)
            #expect(!multiplier.isValid(signature: changed, digest: digest))
            #expect(!key.isValidByEVP(signature: changed, digest: digest))
            var other = digest
            other[number % 32] ^= 0x80
            #expect(!multiplier.isValid(signature: signature, digest: other))
        }
    }

    @Test func anotherKeysSignatureIsNotValid() throws {
        let (ours, theirs) = (SigningKey(seed: [1]), SigningKey(seed: [2]))
        let key = try #require(PublicKey(publicKeyInfo: ours.publicKeyInfo))
        let message = Array("header.payload".utf8)
        let digest = SHA256.digest(message)
        let multiplier = Multiplier(try #require(KeyMultiples(of: key)))
        #expect(!multiplier.isValid(signature: theirs.signES256(message), digest: digest))
        #expect(multiplier.isValid(signature: ours.signES256(message), digest: digest))
    }

    @Test func aTableIsMadeOnlyOfManyValidSignatures() throws {
        let signer = SigningKey(seed: [3])
        let key = try #require(PublicKey(publicKeyInfo: signer.publicKeyInfo))
        let message = Array("header.payload".utf8)
        let signature = signer.signES256(message)
        var forged = signature
        forged[63] ^= 1
        for number in 1...PublicKey.usesBeforeTable {
            #expect(!key.isValidES256(signature: forged, message: message[...]))
            #expect(!key.hasTable, "before the use \(number)")
            #expect(key.isValidES256(signature: signature, message: message[...]))
        }
        #expect(key.hasTable)
        #expect(key.isValidES256(signature: signature, message: message[...]))
        for place in 0..<64 {
            var changed = signature
            changed[place] ^= 1
            #expect(!key.isValidES256(signature: changed, message: message[...]))
        }
        // What it refuses is refused by OpenSSL as well, so it is still there.
        #expect(key.hasTable)
    }

    @Test func aTableThatIsWrongAboutItsFirstSignatureIsNotUsed() throws {
        let signer = SigningKey(seed: [4])
        let key = try #require(PublicKey(publicKeyInfo: signer.publicKeyInfo))
        let message = Array("header.payload".utf8)
        let digest = SHA256.digest(message)
        let signature = signer.signES256(message)
        #expect(KeyMultiples(of: key, agreeingOn: signature, digest: digest) != nil)
        let wrong = SHA256.digest("another")
        #expect(KeyMultiples(of: key, agreeingOn: signature, digest: wrong) == nil)
    }

    @Test func aTableThatRefusesAGoodSignatureIsNotAskedAgain() throws {
        let (ours, theirs) = (SigningKey(seed: [7]), SigningKey(seed: [8]))
        let key = try #require(PublicKey(publicKeyInfo: ours.publicKeyInfo))
        let other = try #require(PublicKey(publicKeyInfo: theirs.publicKeyInfo))
        key.use(KeyMultiples(of: other))
        let message = Array("header.payload".utf8)
        let signature = ours.signES256(message)
        var forged = signature
        forged[40] ^= 1
        #expect(!key.isValidES256(signature: forged, message: message[...]))
        #expect(key.hasTable)
        #expect(key.isValidES256(signature: signature, message: message[...]))
        #expect(!key.hasTable)
        #expect(key.isValidES256(signature: signature, message: message[...]))
    }

    @Test func aKeyOfAnotherCurveGetsNoTable() throws {
        let signer = SigningKey(seed: [5], curve: .p384)
        let key = try #require(PublicKey(publicKeyInfo: signer.publicKeyInfo))
        #expect(KeyMultiples(of: key) == nil)
        #expect(ErrorQueue.isEmpty)
    }

    @Test func manyThreadsShareOneTable() async throws {
        let signer = SigningKey(seed: [6])
        let key = try #require(PublicKey(publicKeyInfo: signer.publicKeyInfo))
        let message = Array("header.payload".utf8)
        let signature = signer.signES256(message)
        var changed = signature
        changed[5] ^= 4
        let forged = changed
        // The table is made while others verify, and used by all of them afterwards.
        let isRight = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    (0..<150).allSatisfy { _ in
                        key.isValidES256(signature: signature, message: message[...])
                            && !key.isValidES256(signature: forged, message: message[...])
                    }
                }
            }
            return await group.reduce(true) { $0 && $1 }
        }
        #expect(isRight)
        #expect(key.hasTable)
    }
}
