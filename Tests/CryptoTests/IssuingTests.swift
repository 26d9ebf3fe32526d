import Crypto
import Testing

@Suite struct IssuingTests {
    @Test func equalSeedsGiveEqualKeysAndSignatures() {
        let message = Array("a message".utf8)
        let first = SigningKey(seed: [1, 2, 3])
        let second = SigningKey(seed: [1, 2, 3])
        let other = SigningKey(seed: [1, 2, 4])
        #expect(first.publicPoint == second.publicPoint)
        #expect(first.publicPoint != other.publicPoint)
        #expect(first.signES256(message) == second.signES256(message))
        #expect(first.signES256(message) != first.signES256(message + [0]))
        #expect(first.signES256(message).count == 64)
    }

    @Test func aGeneratedKeySignsWithFreshNonces() {
        let key = SigningKey.generateP256()
        #expect(key.signES256([1]) != key.signES256([1]))
        #expect(key.publicPoint != SigningKey.generateP256().publicPoint)
    }

    @Test func aKeySurvivesPEM() throws {
        for key in [SigningKey.generateP256(), .generateP384(), SigningKey(seed: [9])] {
            let copy = try #require(SigningKey(pem: key.pem))
            #expect(copy.publicPoint == key.publicPoint)
            #expect(copy.pem == key.pem)
        }
        #expect(SigningKey(pem: "not a key") == nil)
        #expect(SigningKey(pem: "") == nil)
    }

    @Test func equalTemplatesAndSeedsGiveEqualCertificates() {
        let key = SigningKey(seed: [7], curve: .p384)
        let name = CertificateName(commonName: "Test Root", country: "US")
        let template = CertificateTemplate(
            subject: name,
            serial: [1],
            notBefore: 0,
            notAfter: 2_000_000_000,
            isAuthority: true,
            keyUsage: [.certificateSign, .revocationListSign]
        )
        let issuer = CertificateIssuer(name: name, key: key)
        #expect(issuer.issue(template, for: key) == issuer.issue(template, for: key))
        var later = template
        later.notAfter += 1
        #expect(issuer.issue(later, for: key) != issuer.issue(template, for: key))
    }

    @Test(arguments: [SigningKey.generateP256(), SigningKey(seed: [5])])
    func aSignatureIsValidForItsKeyAndMessageAlone(_ key: SigningKey) throws {
        let root = SigningKey(seed: [8], curve: .p384)
        let name = CertificateName(commonName: "Test Root", organization: "Nobody", country: "US")
        let issuer = CertificateIssuer(name: name, key: root)
        var template = CertificateTemplate(
            subject: name,
            serial: [0x80, 1],
            notBefore: 1_700_000_000,
            notAfter: 2_600_000_000,
            isAuthority: true,
            pathLength: 1,
            keyUsage: [.certificateSign, .revocationListSign]
        )
        let authority = try Certificate(der: issuer.issue(template, for: root))
        template.subject.commonName = "Leaf"
        template.isAuthority = false
        template.pathLength = nil
        template.keyUsage = .digitalSignature
        template.markerOIDs = ["1.2.840.113635.100.6.11.1"]
        let leaf = try Certificate(der: issuer.issue(template, for: key))

        #expect(authority.isSigned(by: authority))
        #expect(leaf.isSigned(by: authority))
        #expect(!authority.isSigned(by: leaf))
        #expect(authority.isAuthority && authority.pathLength == 1)
        #expect(authority.maySignCertificates && !leaf.maySignCertificates)
        #expect(leaf.maySignData && !leaf.isAuthority && leaf.pathLength == nil)
        #expect(leaf.notBeforeSeconds == 1_700_000_000)
        #expect(leaf.notAfterSeconds == 2_600_000_000, "a date past 2049 is a GeneralizedTime")
        let marker = try #require(ObjectIdentifier("1.2.840.113635.100.6.11.1"))
        #expect(leaf.hasExtension(marker) && !authority.hasExtension(marker))

        for length in [0, 1, 55, 64, 10_000] {
            let message = [UInt8](repeating: 7, count: length)
            var signature = key.signES256(message)
            #expect(leaf.publicKey.isValidES256(signature: signature, message: message[...]))
            #expect(!leaf.publicKey.isValidES256(signature: signature, message: [0] + message))
            signature[40] ^= 1
            #expect(!leaf.publicKey.isValidES256(signature: signature, message: message[...]))
        }
    }
}
