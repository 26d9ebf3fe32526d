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
}
