import Crypto
import Testing

@Suite struct CertificateTests {
    private let rootKey = SigningKey(seed: [1], curve: .p384)
    private let name = CertificateName(commonName: "Test Root", country: "US")

    private func root(_ change: (inout CertificateTemplate) -> Void = { _ in }) -> [UInt8] {
        var template = CertificateTemplate(
            subject: name,
            serial: [1],
            notBefore: 1_000_000_000,
            notAfter: 4_000_000_000,
            isAuthority: true,
            pathLength: 2,
            keyUsage: [.certificateSign]
        )
        change(&template)
        return CertificateIssuer(name: name, key: rootKey).issue(template, for: rootKey)
    }

    @Test func whatWasIssuedIsRead() throws {
        let der = root { $0.markerOIDs = ["1.2.840.113635.100.6.2.1"] }
        let certificate = try Certificate(der: der)
        #expect(certificate.der == der)
        #expect(certificate.fingerprint == SHA256.digest(der))
        #expect(certificate.notBeforeSeconds == 1_000_000_000)
        #expect(certificate.notAfterSeconds == 4_000_000_000)
        #expect(certificate.subject == certificate.issuer)
        #expect(!certificate.subject.isEmpty)
        #expect(certificate.subjectText.contains("Test Root"))
        #expect(certificate.isAuthority)
        #expect(certificate.pathLength == 2)
        #expect(certificate.maySignCertificates)
        #expect(!certificate.maySignData)
        #expect(certificate.publicKey.curveName == "secp384r1")
        #expect(!certificate.publicKey.isP256)
        let marker = try #require(ObjectIdentifier("1.2.840.113635.100.6.2.1"))
        let other = try #require(ObjectIdentifier("1.2.840.113635.100.6.2.2"))
        #expect(certificate.hasExtension(marker))
        #expect(!certificate.hasExtension(other))
        #expect(ObjectIdentifier("no number") == nil)
        #expect(certificate.isSigned(by: certificate))
    }

    @Test func datesBeyond2050AreRead() throws {
        let certificate = try Certificate(der: root { $0.notAfter = 253_402_300_799 })
        #expect(certificate.notAfterSeconds == 253_402_300_799)
        #expect(certificate.isValid(atSeconds: 1_000_000_000))
        #expect(!certificate.isValid(atSeconds: 999_999_999))
        #expect(certificate.isValid(atSeconds: 253_402_300_799))
        #expect(!certificate.isValid(atSeconds: 253_402_300_800))
    }

    @Test func whatIsAbsentIsNotClaimed() throws {
        let plain = try Certificate(
            der: root {
                $0.isAuthority = nil
                $0.pathLength = nil
            }
        )
        #expect(!plain.isAuthority)
        #expect(plain.pathLength == nil)
        let said = try Certificate(
            der: root {
                $0.isAuthority = false
                $0.pathLength = nil
            }
        )
        #expect(!said.isAuthority)
    }

    @Test func anotherKeysSignatureIsNotTheIssuers() throws {
        let stranger = SigningKey(seed: [2], curve: .p384)
        let template = CertificateTemplate(
            subject: name,
            serial: [1],
            notBefore: 0,
            notAfter: 4_000_000_000,
            isAuthority: true
        )
        let theirs = try Certificate(
            der: CertificateIssuer(name: name, key: stranger).issue(template, for: stranger)
        )
        let ours = try Certificate(der: root())
        #expect(theirs.subject == ours.subject)
        #expect(!theirs.isSigned(by: ours))
        #expect(!ours.isSigned(by: theirs))
    }

    @Test func changedBytesNeitherTrapNorPass() throws {
        let der = root()
        let issuer = try Certificate(der: der)
        var read = 0
        for place in stride(from: 0, to: der.count, by: 3) {
            for bit in 0..<8 {
                var changed = der
                changed[place] ^= 1 << bit
                guard let certificate = try? Certificate(der: changed) else { continue }
                read += 1
                #expect(certificate.fingerprint != issuer.fingerprint)
                // What decides about the chain is covered by the signature, now broken; checking
                // each would take long, so only every eighth is.
                if read % 8 == 0 { #expect(!certificate.isSigned(by: issuer), "byte \(place)") }
            }
        }
        #expect(read > 100)
        for length in stride(from: 0, to: der.count, by: 7) {
            #expect(throws: CryptoError.self) { try Certificate(der: Array(der.prefix(length))) }
        }
        #expect(throws: CryptoError.self) { try Certificate(der: der + [0]) }
    }

    @Test func aPEMTextMayHoldSeveralCertificates() throws {
        let first = root()
        let second = root { $0.serial = [2] }
        let text = "comment\n" + PEM.certificate(first) + "\n" + PEM.certificate(second)
        #expect(PEM.isText(Array(text.utf8)))
        #expect(!PEM.isText(first))
        #expect(try PEM.certificates(Array(text.utf8)) == [first, second])
        let indented = text.replacing("\n", with: "\r\n  ")
        #expect(try PEM.certificates(Array(indented.utf8)) == [first, second])
        for broken in ["", "comment", String(text.dropLast(30)), text.replacing("MI", with: "M*")] {
            let error = #expect(throws: CryptoError.self) {
                try PEM.certificates(Array(broken.utf8))
            }
            #expect(error?.code == .badPEM)
        }
    }
}
