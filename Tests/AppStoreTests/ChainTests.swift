import AppStore
import AppStoreSimulator
import Crypto
import Ledger
import Testing

@Suite struct ChainTests {
    private static let day: Int64 = 86_400_000

    private func reason(_ text: [UInt8], _ verifier: Verifier = Sample.verifier()) -> Reason? {
        verifier.verify(text, now: Sample.now).rejection?.reason
    }

    @Test func bothMarkersAreNeeded() {
        let noLeafMarker = Sample.authority.signer(
            at: Sample.start,
            changingLeaf: { $0.markerOIDs = ["1.2.840.113635.100.6.11.2"] }
        )
        let noMarker = Sample.authority.signer(
            at: Sample.start,
            changingIntermediate: { $0.markerOIDs = [] }
        )
        #expect(reason(noLeafMarker.sign(Sample.testData)) == .markerOID)
        #expect(reason(noMarker.sign(Sample.testData)) == .markerOID)
    }

    @Test func theIntermediateMustBeAnAuthority() {
        let plain = Sample.authority.signer(
            at: Sample.start,
            changingIntermediate: { $0.isAuthority = false }
        )
        let silent = Sample.authority.signer(
            at: Sample.start,
            changingIntermediate: { $0.isAuthority = nil }
        )
        let other = Sample.authority.signer(
            at: Sample.start,
            changingIntermediate: { $0.keyUsage = [.digitalSignature] }
        )
        for signer in [plain, silent, other] {
            #expect(reason(signer.sign(Sample.testData)) == .brokenChain)
        }
    }

    @Test func aLeafThatMayNotSignDataIsRefused() {
        let signer = Sample.authority.signer(
            at: Sample.start,
            changingLeaf: { $0.keyUsage = [.certificateSign] }
        )
        #expect(reason(signer.sign(Sample.testData)) == .badCertificate)
    }

    @Test func aCriticalExtensionThatNobodyKnowsIsRefused() {
        let signer = Sample.authority.signer(
            at: Sample.start,
            changingLeaf: {
                $0.extensions.append(
                    CertificateExtension(oid: "1.2.3.4.5", isCritical: true, value: [5, 0])
                )
            }
        )
        #expect(reason(signer.sign(Sample.testData)) == .badCertificate)
    }

    @Test func everyCertificateMustBeValidWhenThePayloadWasSigned() throws {
        let text = try Sample.transaction()
        let signedSeconds = Sample.start / 1000 + 1
        let early = Sample.authority.signer(
            at: Sample.start,
            changingLeaf: { $0.notAfter = signedSeconds - 3600 }
        )
        let late = Sample.authority.signer(
            at: Sample.start,
            changingLeaf: { $0.notBefore = signedSeconds + 3600 }
        )
        let middle = Sample.authority.signer(
            at: Sample.start,
            changingIntermediate: { $0.notAfter = signedSeconds - 3600 }
        )
        let payload = Sample.chain.payload(try #require(Sample.notice.transaction))
        for signer in [early, late, middle] {
            let verifier = Sample.verifier()
            // The second time the chain comes out of memory, and its dates are asked again.
            for _ in 0..<2 { #expect(reason(signer.sign(payload), verifier) == .certificateDates) }
        }
        // What was signed in time stays good for ever, whatever our clock says.
        #expect(Sample.verifier().verify(text, now: .latest).document != nil)
    }

    @Test func theSameChainIsGoodForOneDateAndNotForAnother() throws {
        let verifier = Sample.verifier(apps: nil)
        let signer = Sample.authority.signer(
            at: Sample.start,
            changingLeaf: { $0.notAfter = Sample.start / 1000 + 10 }
        )
        var payload = Sample.chain.payload(try #require(Sample.notice.transaction))
        payload["signedDate"] = .integer(Sample.start + 10_999)
        #expect(verifier.verify(signer.sign(payload), now: Sample.now).document != nil)
        payload["signedDate"] = .integer(Sample.start + 11_000)
        #expect(reason(signer.sign(payload), verifier) == .certificateDates)
        payload["signedDate"] = .integer(Sample.start)
        #expect(verifier.verify(signer.sign(payload), now: Sample.now).document != nil)
    }

    @Test func theThirdCertificateNeedNotBeTheAnchor() throws {
        let key = Sample.authority.leaves[0].signer.key
        let leaf = Sample.authority.leaves[0].certificate
        let other = TestCertificateAuthority(
            seed: 77,
            from: Sample.start,
            until: Sample.start + Self.day
        )
        let signer = PayloadSigner(
            key: key,
            chain: [leaf, Sample.authority.intermediateDER, other.rootDER]
        )
        let payload = Sample.chain.payload(try #require(Sample.notice.transaction))
        let verdict = Sample.verifier().verify(signer.sign(payload), now: Sample.now)
        #expect(verdict.document?.layers.first?.anchorDER == Sample.authority.rootDER)
        // Without that root configured, sending it along buys nothing.
        let bare = Verifier(anchors: TrustAnchors(), apps: nil)
        #expect(reason(signer.sign(payload), bare) == .untrustedRoot)
        #expect(reason(try Sample.transaction(), bare) == .untrustedRoot)
    }

    @Test func theMemoryOfChainsIsBoundedForGoodAndForRefusedOnes() throws {
        let verifier = Sample.verifier(apps: nil)
        let payload = Sample.chain.payload(try #require(Sample.notice.transaction))
        for number in 0..<70 {
            let header: WireValue = [
                "alg": "ES256", "number": .integer(Int64(number)),
                "x5c": .array(
                    [
                        Sample.authority.leaves[0].certificate, Sample.authority.intermediateDER,
                        Sample.authority.rootDER,
                    ].map { .string(Base64.encode($0)) }
                ),
            ]
            let signer = PayloadSigner(key: Sample.signer.key, header: header)
            #expect(verifier.verify(signer.sign(payload), now: Sample.now).document != nil)
        }
        for number in 0..<300 {
            let text = ReasonTests.text(header: #"{"alg":"none","number":\#(number)}"#)
            #expect(reason(text, verifier) == .algorithm)
        }
        #expect(verifier.rememberedChains.good == 64)
        #expect(verifier.rememberedChains.refused == 256)
        #expect(verifier.verify(try Sample.transaction(), now: Sample.now).document != nil)
    }
}
