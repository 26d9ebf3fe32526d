import AppStore
import AppStoreSimulator
import Crypto
import Ledger
import Testing

/// One sample for each reason of the closed list.
@Suite struct ReasonTests {
    private static let day: Int64 = 86_400_000

    static func sample(of reason: Reason) throws -> [UInt8] {
        switch reason {
        case .tooLarge: return [UInt8](repeating: 65, count: CompactJWS.sizeMaxBytes + 1)
        case .malformedJWS: return Array("a.b.c.d".utf8)
        case .badBase64URL: return Array("!!.e30.".utf8) + [UInt8](repeating: 65, count: 86)
        case .badHeader: return text(header: "[1]")
        case .algorithm:
            return PayloadSigner(key: Sample.signer.key, header: ["alg": "none", "x5c": []])
                .sign(Sample.testData)
        case .chainLength:
            return PayloadSigner(key: Sample.signer.key, chain: [Sample.authority.rootDER])
                .sign(Sample.testData)
        case .badCertificate:
            return PayloadSigner(key: Sample.signer.key, chain: [[1], [2], [3]])
                .sign(Sample.testData)
        case .untrustedRoot:
            let stranger = TestCertificateAuthority(
                seed: 12,
                from: Sample.start - day,
                until: Sample.start + day
            )
            return NoticeSigner(authority: stranger).sign(Sample.notice, of: Sample.chain)
        case .brokenChain: return try brokenChain()
        case .certificateDates:
            return Sample.notification(envelope: {
                $0["signedDate"] = .integer(Sample.start - 3650 * day)
            })
        case .markerOID:
            return Sample.authority.signer(
                at: Sample.start,
                changingLeaf: { $0.markerOIDs = [] }
            ).sign(Sample.testData)
        case .badSignature:
            let other = PayloadSigner(
                key: SigningKey(seed: [9]),
                chain: [
                    Sample.authority.leaves[0].certificate, Sample.authority.intermediateDER,
                    Sample.authority.rootDER,
                ]
            )
            return other.sign(Sample.testData)
        case .badJSON: return Sample.signed(bytes: Array("{\"a\":1,}".utf8))
        case .duplicateKey:
            return Sample.notification(envelope: {
                guard case .object(let members) = $0 else { return }
                $0 = .object(members + [WireMember("version", "2.0")])
            })
        case .signedDateMissing:
            return Sample.notification(envelope: { $0["signedDate"] = nil })
        case .signedDateFuture:
            return Sample.notification(envelope: {
                $0["signedDate"] = .integer(Sample.now.milliseconds + day)
            })
        case .bundleID:
            return Sample.notification(envelope: { $0["data"]?["bundleId"] = "com.example.other" })
        case .appAppleID:
            return Sample.notification(envelope: {
                $0["data"]?["environment"] = "Production"
                $0["data"]?["appAppleId"] = 1
            })
        case .environment:
            return Sample.notification(envelope: { $0["data"]?["environment"] = "Staging" })
        case .localTestData: return try Sample.transaction { $0["environment"] = "Xcode" }
        case .nested:
            return Sample.notification(transaction: { $0["bundleId"] = "com.example.other" })
        case .chainLimit: return Sample.notification()
        case .revoked, .revocationUnknown: return Sample.notification()
        }
    }

    /// A text with any bytes as header and sixty-four zero bytes as signature.
    static func text(header: String, payload: String = "{}") -> [UInt8] {
        let parts = [Array(header.utf8), Array(payload.utf8), [UInt8](repeating: 0, count: 64)]
        return Array(parts.map { Base64URL.encode($0) }.joined(separator: ".").utf8)
    }

    /// A leaf that another intermediate of the same name has issued.
    private static func brokenChain() throws -> [UInt8] {
        let changed = Sample.authority.signer(
            at: Sample.start,
            changingLeaf: { $0.serial = [1, 2, 3] }
        )
        let jws = try CompactJWS(changed.sign(Sample.testData))
        let header = try JSONDocument(try #require(Base64URL.decode(jws.header)))
        let leaf = try #require(Base64.decode(header["x5c"]?.elements.first?.text ?? ""))
        let chain = [leaf, Sample.authority.intermediateDER, Sample.authority.rootDER]
        return PayloadSigner(key: changed.key, chain: chain).sign(Sample.testData)
    }

    // Those of OCSP need a responder: RevocationTests.
    @Test(arguments: Reason.allCases.filter { $0 != .revoked && $0 != .revocationUnknown })
    func everyReasonIsReached(_ reason: Reason) throws {
        func verifier() -> Verifier {
            let none = ChainRate(burst: 0, perSecond: 0)
            return Sample.verifier(unknownChains: reason == .chainLimit ? none : nil)
        }
        let verdict = verifier().verify(try Self.sample(of: reason), now: Sample.now)
        let rejection = try #require(verdict.rejection, "it was trusted")
        #expect(rejection.reason == reason, "\(rejection)")
        #expect(verdict.isUndecided == [.signedDateFuture, .chainLimit].contains(reason))
        #expect(!rejection.detail.isEmpty)
        // A second time the memory of chains answers, and must say the same.
        let lasting = verifier()
        let first = lasting.verify(try Self.sample(of: reason), now: Sample.now).rejection
        let second = lasting.verify(try Self.sample(of: reason), now: Sample.now).rejection
        #expect(first == second)
    }

    @Test func aFloodOfUnknownChainsDoesNotShutOutTheOneThatIsKnown() throws {
        let verifier = Sample.verifier(unknownChains: ChainRate(burst: 3, perSecond: 0))
        let genuine = Sample.notification()
        #expect(verifier.verify(genuine, now: Sample.now).rejection == nil)
        var reasons: [Reason?] = []
        for serial in UInt8(1)...5 {
            // Each carries Apple's marks and ends in our root, but its leaf is another one.
            let forged = Sample.authority.signer(
                at: Sample.start,
                changingLeaf: { $0.serial = [serial, 9, 9] }
            )
            let text = forged.sign(Sample.testData)
            reasons.append(verifier.verify(text, now: Sample.now).rejection?.reason)
        }
        #expect(reasons.suffix(3) == [.chainLimit, .chainLimit, .chainLimit])
        #expect(verifier.verify(genuine, now: Sample.now).rejection == nil)
    }

    @Test func theNamesAreThoseThatWerePublished() {
        let names = """
            too_large malformed_jws bad_base64url bad_header algorithm chain_length \
            bad_certificate untrusted_root broken_chain certificate_dates marker_oid \
            bad_signature bad_json duplicate_key signed_date_missing signed_date_future bundle_id \
            app_apple_id environment local_test_data nested chain_limit revoked \
            revocation_unknown
            """
        #expect(Reason.allCases.map(\.rawValue).joined(separator: " ") == names)
    }

    @Test(arguments: [
        ("", Reason.malformedJWS), ("a.b", .malformedJWS), ("a.b.c.d", .malformedJWS),
        ("garbage", .malformedJWS), ("..", .malformedJWS), ("e30.e30.AA", .malformedJWS),
        ("e30.e30=.AA", .badBase64URL), ("e30.e31.AA", .badBase64URL),
        ("e30.e30.A A", .badBase64URL),
    ])
    func aBrokenFormIsNamed(_ text: String, _ reason: Reason) {
        let verdict = Sample.verifier().verify(Array(text.utf8), now: Sample.now)
        #expect(verdict.rejection?.reason == reason, "\(String(describing: verdict.rejection))")
    }

    @Test(arguments: [
        ("not json", Reason.badHeader), ("[]", .badHeader), (#"{"alg":"ES256"}"#, .badHeader),
        (#"{"alg":"ES256","alg":"ES256","x5c":[]}"#, .badHeader),
        (#"{"alg":"ES256","x5c":"text"}"#, .badHeader),
        (#"{"alg":"ES256","x5c":[1,2,3]}"#, .badHeader),
        (#"{"alg":"ES256","crit":["exp"],"x5c":["","",""]}"#, .badHeader),
        (#"{"alg":"ES256","x5c":[]}"#, .chainLength),
        (#"{"alg":"ES256","x5c":["","","",""]}"#, .chainLength),
        (#"{"alg":"ES256","x5c":["","",""]}"#, .badCertificate),
        (#"{"alg":"ES256","x5c":["MII=","AAAA","AAAA"]}"#, .badCertificate),
        (#"{"alg":"ES256","x5c":["A A=","AAAA","AAAA"]}"#, .badCertificate),
        (#"{"alg":"HS256","x5c":["","",""]}"#, .algorithm), (#"{"x5c":["","",""]}"#, .algorithm),
        (#"{"alg":"es256","x5c":["","",""]}"#, .algorithm),
    ])
    func aBrokenHeaderIsNamed(_ header: String, _ reason: Reason) {
        let verdict = Sample.verifier().verify(Self.text(header: header), now: Sample.now)
        #expect(verdict.rejection?.reason == reason, "\(String(describing: verdict.rejection))")
        #expect(verdict.rejection?.isSignatureValid == false)
    }

    @Test func localTestDataIsNamedAsSuchWhateverElseIsWrong() throws {
        for environment in ["Xcode", "LocalTesting"] {
            let payload = #"{"transactionId":"0","environment":"\#(environment)"}"#
            let texts = [
                // One certificate, as Xcode sends it.
                Self.text(header: #"{"alg":"ES256","x5c":["MIIB"]}"#, payload: payload),
                Self.text(header: "{}", payload: payload),
                try Sample.transaction { $0["environment"] = .string(environment) },
                Sample.notification(envelope: {
                    $0["data"]?["environment"] = .string(environment)
                }),
                Sample.notification(transaction: { $0["environment"] = .string(environment) }),
                Sample.signed(["receiptType": .string(environment)]),
            ]
            for text in texts {
                for apps in [nil, [Sample.app]] {
                    let verdict = Sample.verifier(apps: apps).verify(text, now: Sample.now)
                    #expect(verdict.rejection?.reason == .localTestData)
                    #expect(verdict.rejection?.detail.contains("local test data") == true)
                    #expect(verdict.rejection?.belongsInQuarantine == false)
                }
            }
        }
    }
}
