import AppStoreSimulator
import Crypto
import Testing

@Suite struct SigningTests {
    static let authority = TestCertificateAuthority(seed: 42)
    static let start: Int64 = 1_760_000_000_000

    /// The parts of a compact JWS: header and payload decoded, signature, and what it signs.
    struct Parts {
        var header: [UInt8]
        var payload: [UInt8]
        var signature: [UInt8]
        var message: ArraySlice<UInt8>

        init(_ jws: [UInt8]) throws {
            let parts = jws.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            try #require(parts.count == 3)
            header = try #require(Base64URL.decode(parts[0]))
            payload = try #require(Base64URL.decode(parts[1]))
            signature = try #require(Base64URL.decode(parts[2]))
            message = jws[..<parts[1].endIndex]
        }

        var headerText: String { String(decoding: header, as: UTF8.self) }
        var payloadText: String { String(decoding: payload, as: UTF8.self) }

        func chain() throws -> [Certificate] {
            let texts = headerText.split(separator: "\"").filter { $0.count > 200 }
            return try texts.map { try Certificate(der: #require(Base64.decode(String($0)))) }
        }
    }

    @Test func theCertificatesHaveTheShapeOfApples() throws {
        let authority = Self.authority
        let leafMarker = try #require(ObjectIdentifier(TestCertificateAuthority.leafMarkerOID))
        let middleMarker = try #require(
            ObjectIdentifier(TestCertificateAuthority.intermediateMarkerOID)
        )
        let root = try Certificate(der: authority.rootDER)
        let middle = try Certificate(der: authority.intermediateDER)
        #expect(root.publicKey.curveName == "secp384r1")
        #expect(middle.publicKey.curveName == "secp384r1")
        #expect(root.isSigned(by: root) && middle.isSigned(by: root))
        #expect(root.isAuthority && root.maySignCertificates)
        #expect(middle.isAuthority && middle.maySignCertificates && middle.pathLength == 0)
        #expect(middle.hasExtension(middleMarker) && !root.hasExtension(middleMarker))
        for leaf in authority.leaves {
            let certificate = try Certificate(der: leaf.certificate)
            #expect(certificate.publicKey.isP256)
            #expect(certificate.isSigned(by: middle) && !certificate.isSigned(by: root))
            #expect(certificate.hasExtension(leafMarker) && !certificate.hasExtension(middleMarker))
            #expect(!certificate.isAuthority && certificate.maySignData)
            #expect(!certificate.hasUnknownCriticalExtension)
        }
        #expect(try PEM.certificates(Array(authority.rootPEM.utf8)) == [authority.rootDER])
    }

    @Test func leavesRotateAndAreValidWheneverTheySign() throws {
        let authority = Self.authority
        var used: Set<[UInt8]> = []
        for day in stride(from: 0, to: 1460, by: 5) {
            let instant = Self.start + Int64(day) * 86_400_000
            let jws = try Parts(authority.signer(at: instant).sign(["signedDate": 1]))
            let chain = try jws.chain()
            #expect(chain.count == 3)
            for certificate in chain { #expect(certificate.isValid(atSeconds: instant / 1000)) }
            used.insert(chain[0].der)
        }
        #expect((5...8).contains(used.count), "four years take about six leaves")
    }

    @Test func aNotificationIsSignedInAllItsLayers() throws {
        let chain = Chain(
            originalTransactionID: "2000000000000001",
            originalPurchaseDate: 1_760_000_000_000
        )
        let notice = Notice.initialBuy(of: chain)
        let outer = try Parts(NoticeSigner(authority: Self.authority).sign(notice, of: chain))
        let texts = outer.payloadText.split(separator: "\"").filter { $0.hasPrefix("eyJ") }
        #expect(texts.count == 2)
        for part in [outer] + (try texts.map { try Parts(Array($0.utf8)) }) {
            #expect(part.headerText.hasPrefix(#"{"alg":"ES256","x5c":["MII"#))
            let leaf = try part.chain()[0]
            #expect(leaf.publicKey.isValidES256(signature: part.signature, message: part.message))
        }
        let transaction = try Parts(Array(texts[0].utf8))
        let renewal = try Parts(Array(texts[1].utf8))
        #expect(transaction.payloadText.contains(#""transactionId":"2000000000000001""#))
        #expect(transaction.payloadText.contains(#""environment":"Sandbox""#))
        #expect(renewal.payloadText.contains(#""autoRenewStatus":1"#))
        #expect((550...1200).contains(transaction.payload.count))
        #expect((15_000...24_000).contains(outer.message.count), "as large as Apple's")
    }

    @Test func equalInputGivesEqualBytes() throws {
        let chain = Chain(originalTransactionID: "1", originalPurchaseDate: Self.start)
        let notice = Notice.initialBuy(of: chain)
        let again = NoticeSigner(authority: TestCertificateAuthority(seed: 42))
        let first = NoticeSigner(authority: Self.authority).sign(notice, of: chain)
        #expect(again.sign(notice, of: chain) == first)
        let other = NoticeSigner(authority: TestCertificateAuthority(seed: 43))
        #expect(other.sign(notice, of: chain) != first)
    }

    @Test func aTestMayChangeAnyPayloadAndAnyCertificate() throws {
        let chain = Chain(originalTransactionID: "1", originalPurchaseDate: Self.start)
        let jws = NoticeSigner(authority: Self.authority).sign(
            .initialBuy(of: chain),
            of: chain,
            changingTransaction: { $0["price"] = .raw("1e400") },
            changingEnvelope: { $0["data"]?["status"] = nil }
        )
        let outer = try Parts(jws)
        #expect(!outer.payloadText.contains("\"status\""))
        let text = try #require(
            outer.payloadText.split(separator: "\"").first { $0.hasPrefix("eyJ") }
        )
        #expect(try Parts(Array(text.utf8)).payloadText.contains(#""price":1e400,"#))

        let signer = Self.authority.signer(at: Self.start, changingLeaf: { $0.markerOIDs = [] })
        let leaf = try Parts(signer.sign([:])).chain()[0]
        let marker = try #require(ObjectIdentifier(TestCertificateAuthority.leafMarkerOID))
        #expect(!leaf.hasExtension(marker))
    }

    @Test func jsonIsWrittenCompactlyAndEscaped() {
        let value: WireValue = ["a": [1, true, nil, "x\"\\\n"], "b": .raw("1.50")]
        let expected = #"{"a":[1,true,null,"x\"\\\u000a"],"b":1.50}"#
        #expect(String(decoding: value.bytes, as: UTF8.self) == expected)
    }
}
