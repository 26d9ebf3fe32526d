import AppStoreSimulator
import Crypto
import Ledger
import Testing

@testable import AppStore

/// What is refused in a chain although every signature in it is good, and what is not.
@Suite struct ChainPolicyTests {
    /// Root, intermediate and leaf, each of which can be changed before it is issued.
    private struct House {
        var root = template("House Root", isAuthority: true)
        var middle = template("House Intermediate", isAuthority: true)
        var leaf = template("House Leaf", isAuthority: false)
        var leafIssuer = CertificateName(commonName: "House Intermediate")
        var leafCurve = SigningKey.Curve.p256

        private static let rootKey = SigningKey(seed: [1], curve: .p384)
        private static let middleKey = SigningKey(seed: [2], curve: .p384)

        init() {
            middle.markerOIDs = [TestCertificateAuthority.intermediateMarkerOID]
            leaf.markerOIDs = [TestCertificateAuthority.leafMarkerOID]
        }

        private static func template(_ name: String, isAuthority: Bool) -> CertificateTemplate {
            CertificateTemplate(
                subject: CertificateName(commonName: name),
                serial: [7],
                notBefore: Sample.start / 1000 - 86_400,
                notAfter: Sample.start / 1000 + 86_400,
                isAuthority: isAuthority,
                keyUsage: isAuthority ? .certificateSign : .digitalSignature
            )
        }

        /// The root certificate, signed by its own key or another one.
        func rootDER(_ key: SigningKey = rootKey) -> [UInt8] {
            CertificateIssuer(name: root.subject, key: key).issue(root, for: key)
        }

        /// A test notification with this chain.
        func text(rootKey: SigningKey = rootKey, third: [UInt8]? = nil) -> [UInt8] {
            let key = SigningKey(seed: [3], curve: leafCurve)
            let chain = [
                CertificateIssuer(name: leafIssuer, key: Self.middleKey).issue(leaf, for: key),
                CertificateIssuer(name: root.subject, key: rootKey)
                    .issue(middle, for: Self.middleKey),
                third ?? rootDER(rootKey),
            ]
            // ES256 has 64 bytes, so another key signs where the leaf's has longer ones.
            let signing = leafCurve == .p256 ? key : SigningKey(seed: [3])
            return PayloadSigner(key: signing, chain: chain).sign(
                Sample.envelope(type: "TEST", form: "data", Sample.testData)
            )
        }

        /// Why a text is refused by who trusts the root; nil where it is not.
        func refusal(_ text: [UInt8]? = nil) throws -> Rejection? {
            var anchors = TrustAnchors()
            try anchors.add(rootDER(), name: "house root")
            let verifier = Verifier(anchors: anchors, apps: nil)
            return verifier.verify(text ?? self.text(), now: Sample.now).rejection
        }
    }

    @Test(arguments: [(nil, nil), (0, .brokenChain), (1, nil), (2, nil)] as [(Int?, Reason?)])
    func aRootMayForbidAuthoritiesBelowIt(_ pathLength: Int?, _ reason: Reason?) throws {
        var house = House()
        house.root.pathLength = pathLength
        #expect(try house.refusal()?.reason == reason)
    }

    @Test func aLeafWithAKeyOnAnotherCurveIsRefused() throws {
        var house = House()
        house.leafCurve = .p384
        #expect(try house.refusal()?.reason == .badCertificate)
    }

    @Test func aCriticalExtensionOfTheIntermediateThatNobodyKnowsIsRefused() throws {
        var house = House()
        house.middle.extensions = [
            CertificateExtension(oid: "1.2.3.4.5", isCritical: true, value: [5, 0])
        ]
        #expect(try house.refusal()?.reason == .badCertificate)
        house.middle.extensions[0].isCritical = false
        #expect(try house.refusal() == nil)
    }

    @Test func aLeafThatNamesAnotherIssuerIsRefusedWhoeverSignedIt() throws {
        var house = House()
        house.leafIssuer = CertificateName(commonName: "Another Intermediate")
        #expect(try house.refusal()?.reason == .brokenChain)
    }

    @Test func anotherRootOfTheSameNameIsNoneOfOurs() throws {
        let house = House()
        let stranger = SigningKey(seed: [9], curve: .p384)
        let theirs = house.text(rootKey: stranger)
        #expect(try house.refusal(theirs)?.reason == .untrustedRoot)
        // With our root at the end it is our root that did not issue the intermediate.
        let claimed = house.text(rootKey: stranger, third: house.rootDER())
        let rejection = try house.refusal(claimed)
        #expect(rejection?.reason == .brokenChain)
        #expect(rejection?.detail.contains("not issued by the root") == true)
    }

    @Test func anAnchorMustBeAnAuthorityThatMaySignCertificates() throws {
        for change: (inout CertificateTemplate) -> Void in [
            { $0.isAuthority = false }, { $0.keyUsage = .digitalSignature },
        ] {
            var house = House()
            change(&house.root)
            var anchors = TrustAnchors()
            #expect(throws: AppStoreError.self) { try anchors.add(house.rootDER(), name: "x") }
            #expect(anchors.added.isEmpty)
        }
    }

    @Test func aRootIsValidInItsFirstAndItsLastSecond() throws {
        let house = House()
        var anchors = TrustAnchors()
        try anchors.add(house.rootDER(), name: "root")
        func warnings(_ seconds: Int64) -> [String] {
            anchors.warnings(now: Timestamp(milliseconds: seconds * 1000))
        }
        #expect(warnings(house.root.notBefore - 1).count == 1)
        #expect(warnings(house.root.notBefore).isEmpty)
        #expect(warnings(house.root.notAfter).isEmpty)
        #expect(warnings(house.root.notAfter + 1).count == 1)
    }

    @Test func aHeaderIsReadUpToThirtyTwoKilobytes() {
        func reason(_ bytes: Int) -> Reason? {
            let header = String(repeating: " ", count: bytes / 4 * 3)
            return Sample.verifier().verify(ReasonTests.text(header: header), now: Sample.now)
                .rejection?.reason
        }
        #expect(reason(32 * 1024) == .badHeader)
        #expect(reason(32 * 1024 + 4) == .tooLarge)
    }

    /// 64 are remembered; the one that was longest unused makes room.
    @Test func theChainThatIsUsedStaysAndTheOneThatIsNotIsBuiltAgain() throws {
        let verifier = Sample.verifier(unknownChains: ChainRate(burst: 66, perSecond: 0))
        let payload = Sample.envelope(type: "TEST", form: "data", Sample.testData)
        let certificates = [
            Sample.authority.leaves[0].certificate, Sample.authority.intermediateDER,
            Sample.authority.rootDER,
        ].map { WireValue.string(Base64.encode($0)) }
        func refusal(_ number: Int) -> Reason? {
            let header: WireValue = [
                "alg": "ES256", "x5c": .array(certificates), "number": .integer(Int64(number)),
            ]
            let signer = PayloadSigner(key: Sample.signer.key, header: header)
            return verifier.verify(signer.sign(payload), now: Sample.now).rejection?.reason
        }
        for number in 0..<64 { #expect(refusal(number) == nil) }
        #expect(refusal(0) == nil)
        // The 65th takes the place of number 1, and number 1 then that of number 2.
        #expect(refusal(64) == nil)
        #expect(refusal(1) == nil)
        #expect(refusal(2) == .chainLimit)
        for number in [0, 1, 3, 63, 64] { #expect(refusal(number) == nil) }
        #expect(verifier.rememberedChains.good == 64)
    }

    /// 256 are remembered; the oldest makes room.
    @Test func aRefusedChainIsRememberedUntilSoManyOthersCame() throws {
        let verifier = Sample.verifier(unknownChains: ChainRate(burst: 1, perSecond: 0))
        let broken = try ReasonTests.sample(of: .brokenChain)
        func refusal(_ text: [UInt8]) -> Reason? {
            verifier.verify(text, now: Sample.now).rejection?.reason
        }
        for _ in 0..<2 { #expect(refusal(broken) == .brokenChain) }
        for number in 0..<255 {
            let text = ReasonTests.text(header: #"{"alg":"none","number":\#(number)}"#)
            for _ in 0..<2 { #expect(refusal(text) == .algorithm) }
        }
        #expect(refusal(broken) == .brokenChain)
        #expect(refusal(ReasonTests.text(header: #"{"alg":"none"}"#)) == .algorithm)
        // Now it would have to be built again, which is no longer paid for.
        #expect(refusal(broken) == .chainLimit)
    }

    @Test func whatOnlyCameAtABadTimeIsNotRemembered() {
        let verifier = Sample.verifier(unknownChains: ChainRate(burst: 0, perSecond: 0))
        #expect(verifier.verify(Sample.notification(), now: Sample.now).isUndecided)
        #expect(verifier.rememberedChains.refused == 0)
        #expect(verifier.rememberedChains.good == 0)
    }

    @Test func chainsAreAllowedAgainAfterAWhileButNeverMoreThanAtOnce() {
        let quick = ChainRate(burst: 2, perSecond: 1e9)
        for _ in 0..<100 { #expect(quick.take()) }
        let none = ChainRate(burst: 2, perSecond: 0)
        #expect([none.take(), none.take(), none.take()] == [true, true, false])
        // So little comes back in a second that the third has to wait for hours.
        let slow = ChainRate(burst: 2, perSecond: 1e-6)
        #expect([slow.take(), slow.take(), slow.take()] == [true, true, false])
    }
}
