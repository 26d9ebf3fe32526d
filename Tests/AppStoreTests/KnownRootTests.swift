import AppStoreSimulator
import Crypto
import Ledger
import Testing

@testable import AppStore

/// A root that is known by its fingerprint alone, as Apple's is: it comes with each signed text.
@Suite struct KnownRootTests {
    private static let rootKey = SigningKey(seed: [51], curve: .p384)
    private static let middleKey = SigningKey(seed: [52], curve: .p384)
    private static let leafKey = SigningKey(seed: [53])
    private static let rootName = CertificateName(commonName: "Known Root")

    private func template(
        _ name: CertificateName,
        isAuthority: Bool,
        marker: String? = nil
    ) -> CertificateTemplate {
        var template = CertificateTemplate(
            subject: name,
            serial: [7],
            notBefore: Sample.start / 1000 - 86_400,
            notAfter: Sample.start / 1000 + 86_400,
            isAuthority: isAuthority,
            keyUsage: isAuthority ? .certificateSign : .digitalSignature
        )
        template.markerOIDs = marker.map { [$0] } ?? []
        return template
    }

    /// The root's certificate under a name.
    private func root(_ name: CertificateName = rootName) -> [UInt8] {
        CertificateIssuer(name: name, key: Self.rootKey)
            .issue(template(name, isAuthority: true), for: Self.rootKey)
    }

    /// A test notification whose intermediate names an issuer, with a root at the end.
    private func text(
        issuer: CertificateName = rootName,
        root: [UInt8],
        environment: WireValue = "Production"
    ) -> [UInt8] {
        let middleName = CertificateName(commonName: "Known Intermediate")
        let middle = CertificateIssuer(name: issuer, key: Self.rootKey).issue(
            template(
                middleName,
                isAuthority: true,
                marker: TestCertificateAuthority.intermediateMarkerOID
            ),
            for: Self.middleKey
        )
        let leaf = CertificateIssuer(name: middleName, key: Self.middleKey).issue(
            template(
                CertificateName(commonName: "Known Leaf"),
                isAuthority: false,
                marker: TestCertificateAuthority.leafMarkerOID
            ),
            for: Self.leafKey
        )
        var data = Sample.testData
        data["environment"] = environment
        data["appAppleId"] = 1_234_567_890
        return PayloadSigner(key: Self.leafKey, chain: [leaf, middle, root])
            .sign(Sample.envelope(type: "TEST", form: "data", data))
    }

    private func verdict(
        _ text: [UInt8],
        knowing root: [UInt8],
        adding added: [UInt8]? = nil
    ) throws -> Verdict<VerifiedDocument> {
        let fingerprint = try Certificate(der: root).fingerprint
        var anchors = TrustAnchors(known: [(fingerprint, "the known root")])
        if let added { try anchors.add(added, name: "an added root") }
        return Verifier(anchors: anchors, apps: [Sample.app]).verify(text, now: Sample.now)
    }

    @Test func itVouchesForProductionWithoutAnyFile() throws {
        let root = root()
        for environment in ["Production", "Sandbox"] as [WireValue] {
            let text = text(root: root, environment: environment)
            #expect(try verdict(text, knowing: root).document != nil)
        }
        let document = try #require(try verdict(text(root: root), knowing: root).document)
        #expect(document.environment == .production)
    }

    @Test func theSameRootAddedByAFileVouchesForSandboxOnly() throws {
        let (root, other) = (root(), root(CertificateName(commonName: "Other")))
        let production = text(root: root)
        #expect(
            try verdict(production, knowing: other, adding: root).rejection?.reason
                == .untrustedRoot
        )
        let sandbox = text(root: root, environment: "Sandbox")
        #expect(try verdict(sandbox, knowing: other, adding: root).document != nil)
    }

    @Test func aRootThatIsKnownIsNotAddedOnceMore() throws {
        let root = root()
        // Otherwise it would stand before itself as one for Sandbox only.
        #expect(try verdict(text(root: root), knowing: root, adding: root).document != nil)
        let fingerprint = try Certificate(der: root).fingerprint
        var anchors = TrustAnchors(known: [(fingerprint, "the known root")])
        try anchors.add(root, name: "root.pem")
        #expect(anchors.added.isEmpty)
    }

    @Test func anIntermediateMustNameTheRootThatSignedIt() throws {
        let root = root()
        let text = text(issuer: CertificateName(commonName: "Another Root"), root: root)
        #expect(try verdict(text, knowing: root).rejection?.reason == .brokenChain)
    }

    @Test func anUnknownRootAtTheEndVouchesForNothing() throws {
        let (root, other) = (root(), root(CertificateName(commonName: "Other")))
        #expect(
            try verdict(text(root: root), knowing: other).rejection?.reason == .untrustedRoot
        )
        // The known one at the end of a chain that it has not issued: it is the chain that is broken.
        let foreign = SigningKey(seed: [54], curve: .p384)
        let wrong = CertificateIssuer(name: Self.rootName, key: foreign)
            .issue(template(Self.rootName, isAuthority: true), for: foreign)
        #expect(try verdict(text(root: wrong), knowing: wrong).rejection?.reason == .brokenChain)
    }

    @Test func withoutMoreAppleIsTheOnlyOneKnown() {
        #expect(TrustAnchors.builtIn.map(\.name) == ["Apple Root CA - G3"])
        let digits = TrustAnchors.builtIn[0].fingerprint.map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        let published = "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179"
        #expect(digits.joined() == published)
        #expect(TrustAnchors().candidates(of: root()) == 0)
    }
}

extension TrustAnchors {
    /// How many anchors a certificate is, as the third of a chain that it ends.
    fileprivate func candidates(of root: [UInt8]) -> Int {
        guard let certificate = try? Certificate(der: root) else { return -1 }
        return candidates(issuerOf: certificate, third: certificate).count
    }
}
