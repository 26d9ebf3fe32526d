import AppStore
import AppStoreSimulator
import Crypto
import Ledger
import Testing

@Suite struct AnchorTests {
    @Test func aRootMayBeDEROrPEM() throws {
        let bare = TrustAnchors()
        #expect(bare.added.isEmpty)
        var anchors = TrustAnchors()
        try anchors.add(Sample.authority.rootDER, name: "root.cer")
        #expect(anchors.added.map(\.name) == ["root.cer"])
        try anchors.add(Array(Sample.authority.rootPEM.utf8), name: "root.pem")
        #expect(anchors.added.count == 1)
        var fromPEM = TrustAnchors()
        let windows = Sample.authority.rootPEM.replacing("\n", with: "\r\n")
        try fromPEM.add(Array(("a comment\r\n" + windows).utf8), name: "root.pem")
        let verifier = Verifier(anchors: fromPEM, apps: [Sample.app])
        #expect(verifier.verify(Sample.notification(), now: Sample.now).document != nil)
    }

    @Test(arguments: [
        "", "<!DOCTYPE html><html><body>404</body></html>", "-----BEGIN CERTIFICATE-----\nMIIB",
        "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n",
        "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "0\u{1}",
    ])
    func anythingElseIsRefusedWithTheNameOfTheFile(_ content: String) {
        var anchors = TrustAnchors()
        let error = #expect(throws: AppStoreError.self) {
            try anchors.add(Array(content.utf8), name: "roots/wrong.cer")
        }
        #expect(error?.code == .badAnchor)
        #expect(error?.message.contains("roots/wrong.cer") == true)
        #expect(anchors.added.isEmpty)
    }

    @Test func aCertificateThatIsNoAuthorityIsNoRoot() {
        var anchors = TrustAnchors()
        #expect(throws: AppStoreError.self) {
            try anchors.add(Sample.authority.leaves[0].certificate, name: "leaf.cer")
        }
        #expect(throws: AppStoreError.self) {
            try anchors.add(Sample.authority.rootDER + [0], name: "longer.cer")
        }
    }

    @Test func anExpiredRootIsAWarningAndTheOtherOneCounts() throws {
        let old = TestCertificateAuthority(
            seed: 5,
            from: 300_000_000_000,
            until: 310_000_000_000
        )
        var anchors = TrustAnchors()
        try anchors.add(old.rootDER, name: "old.cer")
        try anchors.add(Sample.authority.rootDER, name: "root.cer")
        #expect(anchors.added.count == 2)
        let warnings = anchors.warnings(now: Sample.now)
        #expect(warnings == ["old.cer: the root certificate has expired"])
        let early = anchors.warnings(now: .earliest)
        #expect(early.contains("root.cer: the root certificate is not valid yet"))
        let verifier = Verifier(anchors: anchors, apps: [Sample.app])
        #expect(verifier.verify(Sample.notification(), now: Sample.now).document != nil)
    }

    @Test func noRootAtAllTrustsNothing() {
        let verifier = Verifier(anchors: TrustAnchors(), apps: nil)
        let verdict = verifier.verify(Sample.notification(), now: Sample.now)
        #expect(verdict.rejection?.reason == .untrustedRoot)
    }

    @Test func aConfiguredRootNeverVouchesForProduction() {
        let text = Sample.notification(
            transaction: { $0["environment"] = "Production" },
            renewal: { $0["environment"] = "Production" },
            envelope: { $0["data"]?["environment"] = "Production" }
        )
        for verifier in [
            Sample.verifier(), Sample.verifier(apps: nil),
            Sample.verifier(apps: nil, environment: .production),
        ] {
            let rejection = verifier.verify(text, now: Sample.now).rejection
            #expect(rejection?.reason == .untrustedRoot)
            #expect(rejection?.belongsInQuarantine == false)
        }
        let token = Sample.envelope(
            type: "EXTERNAL_PURCHASE_TOKEN",
            form: "externalPurchaseToken",
            [
                "externalPurchaseId": "1f0b", "bundleId": .string(Sample.bundleID),
                "appAppleId": 1_234_567_890,
            ]
        )
        let verdict = Sample.verifier().verify(Sample.signed(token), now: Sample.now)
        #expect(verdict.rejection?.reason == .untrustedRoot)
    }

    @Test func thePinIsAppleRootCAG3() {
        #expect(TrustAnchors.builtIn.count == 1)
        let pin = TrustAnchors.builtIn[0].fingerprint
        #expect(pin.count == 32)
        #expect(pin.prefix(4) == [0x63, 0x34, 0x3A, 0xBF])
        #expect(pin.suffix(4) == [0x65, 0x3E, 0x91, 0x79])
    }
}
