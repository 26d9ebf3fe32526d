import AppStore
import AppStoreSimulator
import Crypto
import Glibc
import Ledger
import Synchronization
import TestSupport
import Testing

/// Asking issuers whether they took a certificate back, with `openssl ocsp` at the other end.
@Suite struct RevocationTests {
    /// Answers as a test wants it, and counts.
    final class Line: RevocationTransport {
        typealias Answer = @Sendable (OCSPAuthority.Issuer, [UInt8]) throws -> [UInt8]?

        let authority: OCSPAuthority
        private let state: Mutex<(asked: [OCSPAuthority.Issuer], answer: Answer)>

        init(_ answer: Answer? = nil) throws {
            let authority = try OCSPAuthority(
                url: "http://ocsp.example.com",
                leafMarker: TestCertificateAuthority.leafMarkerOID,
                intermediateMarker: TestCertificateAuthority.intermediateMarkerOID
            )
            self.authority = authority
            state = Mutex(([], answer ?? { try authority.answer($1, by: $0) }))
        }

        var asked: [OCSPAuthority.Issuer] { state.withLock { $0.asked } }

        func answers(_ answer: @escaping Answer) { state.withLock { $0.answer = answer } }

        func post(_ question: [UInt8], to url: String) throws(RevocationUnreachable) -> [UInt8] {
            let issuer = OCSPAuthority.Issuer.allCases.first { url.hasSuffix("/\($0.rawValue)") }
            guard let issuer else { throw RevocationUnreachable("nobody is at \(url)") }
            let answer = state.withLock { state in
                state.asked.append(issuer)
                return state.answer
            }
            guard let bytes = try? answer(issuer, question) else {
                throw RevocationUnreachable("no answer came in time")
            }
            return bytes
        }

        /// A verifier that trusts the authority.
        func verifier(asks: Bool = true) throws -> Verifier {
            var anchors = TrustAnchors()
            try anchors.add(authority.chain[2], name: "ocsp test root")
            return Verifier(
                anchors: anchors,
                apps: [Sample.app],
                revocation: asks ? self : nil
            )
        }

        /// A signed first purchase.
        func notification() -> [UInt8] {
            let signer = PayloadSigner(key: authority.key, chain: authority.chain)
            return signer.sign([
                "notificationType": "TEST",
                "notificationUUID": "4c5cd8e2-6a05-4c0c-b3f1-0d5f4c1e7a11",
                "version": "2.0", "signedDate": .integer(RevocationTests.now.milliseconds),
                "data": ["bundleId": .string(Sample.bundleID), "environment": "Sandbox"],
            ])
        }
    }

    static let now = Timestamp(milliseconds: Int64(time(nil)) * 1000)
    private static let day: Int64 = 86_400_000

    @Test func aChainIsAskedAboutOnceAndAgainWhenTheAnswerHasRunOut() throws {
        let line = try Line()
        let verifier = try line.verifier()
        let text = line.notification()
        for _ in 0..<3 { #expect(verifier.verify(text, now: Self.now).rejection == nil) }
        #expect(line.asked == [.intermediate, .root])
        let later = Timestamp(milliseconds: Self.now.milliseconds + Self.day + 120_000)
        line.answers { _, _ in nil }
        #expect(verifier.verify(text, now: later).rejection?.reason == .revocationUnknown)
        #expect(line.asked.count == 3)
        // It has not become a stranger for good.
        #expect(verifier.verify(text, now: Self.now).rejection == nil)
    }

    /// An answer ends a day after it was given: nobody is asked before, and somebody is then.
    ///
    /// One that runs out at once counts for five minutes all the same.
    @Test func anAnswerCountsUntilItRunsOutAndForFiveMinutesAtLeast() throws {
        let hour: Int64 = 3_600_000
        // When it is asked for, until when it counts, and when it does not any more.
        for (first, good, over) in [
            (0, 20 * hour, 26 * hour), (12 * hour, 20 * hour, 30 * hour),
            (24 * hour - 60_000, 24 * hour + 180_000, 25 * hour),
            (24 * hour - 60_000, 24 * hour + 239_000, 24 * hour + 240_000),
        ] as [(Int64, Int64, Int64)] {
            let line = try Line()
            let verifier = try line.verifier()
            func reason(_ after: Int64) -> Reason? {
                let now = Timestamp(milliseconds: Self.now.milliseconds + after)
                return verifier.verify(line.notification(), now: now).rejection?.reason
            }
            #expect(reason(first) == nil)
            line.answers { _, _ in nil }
            #expect(reason(good) == nil)
            #expect(line.asked.count == 2)
            #expect(reason(over) == .revocationUnknown)
            #expect(line.asked.count == 3)
        }
    }

    @Test func nobodyIsAskedUnlessThatIsWanted() throws {
        let line = try Line { _, _ in nil }
        #expect(
            try line.verifier(asks: false).verify(line.notification(), now: Self.now).rejection
                == nil
        )
        #expect(line.asked.isEmpty)
    }

    @Test(arguments: OCSPAuthority.Issuer.allCases)
    func whatAnIssuerTookBackIsRefusedForGood(_ revoked: OCSPAuthority.Issuer) throws {
        let line = try Line()
        let authority = line.authority
        line.answers { try authority.answer($1, by: $0, isRevoked: $0 == revoked) }
        let verifier = try line.verifier()
        for _ in 0..<2 {
            let verdict = verifier.verify(line.notification(), now: Self.now)
            #expect(verdict.rejection?.reason == .revoked && !verdict.isUndecided)
        }
        // The second time it was known.
        #expect(
            line.asked == (revoked == .intermediate ? [.intermediate] : [.intermediate, .root])
        )
    }

    @Test func aResponderThatHangsIsLeftAloneForAWhileAndNothingIsCalledForged() throws {
        let line = try Line { _, _ in nil }
        let verifier = try line.verifier()
        for _ in 0..<5 {
            let verdict = verifier.verify(line.notification(), now: Self.now)
            #expect(verdict.isUndecided && verdict.rejection?.reason == .revocationUnknown)
        }
        #expect(line.asked == [.intermediate])
    }

    /// The issuer and whom it certified to answer may sign; nobody else may.
    @Test func onlyTheIssuerAndItsDelegateAreBelieved() throws {
        for (signer, isBelieved) in [
            (OCSPAuthority.Signer.issuer, true), (.delegate, true), (.other, false),
        ] {
            let line = try Line()
            let authority = line.authority
            line.answers { try authority.answer($1, by: $0, signedBy: signer) }
            let verdict = try line.verifier().verify(line.notification(), now: Self.now)
            #expect((verdict.rejection == nil) == isBelieved, "\(signer)")
            #expect(verdict.isUndecided == !isBelieved)
        }
    }

    @Test func whatTellsNothingIsTemporary() throws {
        let line = try Line()
        let authority = line.authority
        let answers: [(String, Line.Answer)] = [
            ("know", { try authority.answer($1, by: $0, knows: false) }),
            ("no answer", { _, _ in [] }),
            ("no answer", { _, _ in Array("<html>".utf8) }),
            ("cannot answer", { _, _ in [0x30, 3, 0x0a, 1, 3] }),
            ("no answer", { try authority.answer($1, by: $0) + [0] }),
            (
                "sign",
                {
                    var bytes = try authority.answer($1, by: $0)
                    bytes[bytes.count - 700] ^= 1
                    return bytes
                }
            ),
            // The answer to another question: the root's, for the leaf.
            (
                "sign",
                { _, question in
                    try authority.answer(question, by: .root)
                }
            ),
        ]
        for (word, answer) in answers {
            line.answers(answer)
            let verdict = try line.verifier().verify(line.notification(), now: Self.now)
            #expect(verdict.isUndecided)
            #expect(verdict.rejection?.reason == .revocationUnknown)
            let detail = verdict.rejection?.detail ?? ""
            #expect(detail.contains("leaf") && !detail.isEmpty, "\(word): \(detail)")
        }
    }

    @Test func anAnswerOfAnotherTimeIsNone() throws {
        let line = try Line()
        for days: Int64 in [-1, 3] {
            let then = Timestamp(milliseconds: Self.now.milliseconds + days * Self.day)
            let leaf = try Certificate(der: line.authority.chain[0])
            let issuer = try Certificate(der: line.authority.chain[1])
            let question = try #require(RevocationQuestion(of: leaf, issuer: issuer))
            let answer = try line.authority.answer(question.request, by: .intermediate)
            let now = question.answer(answer, nowSeconds: Self.now.milliseconds / 1000)
            guard case .good(let until) = now else {
                Issue.record("\(now)")
                continue
            }
            #expect((until ?? 0) > Self.now.milliseconds / 1000)
            if case .good = question.answer(answer, nowSeconds: then.milliseconds / 1000) {
                Issue.record("an answer of today counts \(days) days away")
            }
        }
    }
}
