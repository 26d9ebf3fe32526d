import AppStoreSimulator
import Crypto
import Ledger
import Testing

@testable import AppStore

/// The verifier's limits, each on both of its sides.
@Suite struct VerifierBoundaryTests {
    @Test func theLongestTextIsReadAndOneByteMoreIsNot() {
        let longest = [UInt8](repeating: UInt8(ascii: "A"), count: CompactJWS.sizeMaxBytes)
        let verifier = Sample.verifier()
        #expect(verifier.verify(longest, now: Sample.now).rejection?.reason == .malformedJWS)
        #expect(verifier.verify(longest + [65], now: Sample.now).rejection?.reason == .tooLarge)
    }

    @Test func aChainIsGoodFromItsFirstSecondToItsLast() throws {
        let memory = ChainMemory(anchors: Sample.anchors(), rate: nil)
        let header = try CompactJWS(Sample.notification()).header
        let chain = try memory.chain(header: header, now: Sample.now)
        let certificates = chain.issuedCertificates
        let all = certificates.map(\.certificate) + certificates.suffix(1).map(\.issuer)
        #expect(all.count == 3)
        let first = try #require(all.map(\.notBeforeSeconds).max()) * 1000
        let last = try #require(all.map(\.notAfterSeconds).min()) * 1000 + 999
        func reason(_ milliseconds: Int64) -> Reason? {
            do throws(Rejection) {
                try chain.checkDates(at: Timestamp(milliseconds: milliseconds))
                return nil
            } catch { return error.reason }
        }
        #expect(reason(first) == nil && reason(last) == nil)
        #expect(reason(first - 1) == .certificateDates)
        #expect(reason(last + 1) == .certificateDates)
    }

    @Test func secondsAreRoundedDownOnBothSidesOf1970() {
        for (milliseconds, seconds) in [
            (0, 0), (999, 0), (1000, 1), (-1, -1), (-1000, -1), (-1001, -2),
        ] as [(Int64, Int64)] {
            #expect(Timestamp(milliseconds: milliseconds).seconds == seconds)
        }
    }

    @Test func aHeaderThatOnlyBeginsOrEndsLikeAKnownOneIsAnother() throws {
        let memory = ChainMemory(anchors: Sample.anchors(), rate: nil)
        let header = try CompactJWS(Sample.notification()).header
        _ = try memory.chain(header: header, now: Sample.now)
        let others: [ArraySlice<UInt8>] = [
            header + [65, 65, 65, 65], header.dropLast(4), header.dropFirst(4), [],
        ]
        for other in others {
            #expect(throws: Rejection.self) { try memory.chain(header: other, now: Sample.now) }
        }
        #expect(memory.counts.good == 1)
    }

    /// Headers that differ, all with the same good chain.
    private func headers(_ count: Int) throws -> [ArraySlice<UInt8>] {
        let text = try CompactJWS(Sample.notification())
        let known = try #require(Base64URL.decode(text.header).flatMap { WireValue(reading: $0) })
        return try (0..<count).map { number in
            var header = known
            header["n"] = .integer(Int64(number))
            let signer = PayloadSigner(key: SigningKey(seed: [9]), header: header)
            return try CompactJWS(signer.sign(["a": 1])).header
        }
    }

    @Test func theChainThatWasNotUsedForLongestMakesRoom() throws {
        let count = ChainMemory.goodMax
        let headers = try headers(count + 1)
        let memory = ChainMemory(
            anchors: Sample.anchors(),
            rate: ChainRate(burst: count + 1, perSecond: 0)
        )
        func reason(_ number: Int) -> Reason? {
            do throws(Rejection) {
                _ = try memory.chain(header: headers[number], now: Sample.now)
                return nil
            } catch { return error.reason }
        }
        for number in 0..<count { #expect(reason(number) == nil) }
        // Used again, the last one first: now that is the oldest.
        for number in (0..<count).reversed() { #expect(reason(number) == nil) }
        #expect(reason(count) == nil)
        #expect(memory.counts.good == count)
        for number in 0..<(count - 1) { #expect(reason(number) == nil, "\(number)") }
        // No more may be built, and this one would have to be.
        #expect(reason(count - 1) == .chainLimit)
    }

    @Test func whoeverEndsInNoRootOfOursCostsNoChain() {
        let verifier = Verifier(
            anchors: TrustAnchors(),
            apps: nil,
            unknownChains: ChainRate(burst: 0, perSecond: 0)
        )
        let rejection = verifier.verify(Sample.notification(), now: Sample.now).rejection
        #expect(rejection?.reason == .untrustedRoot)
    }

    @Test func aSecondsWorthOfChainsIsGivenOnce() {
        let rate = ChainRate(burst: 2, perSecond: 1)
        let start = ContinuousClock.now
        #expect(rate.take(at: start) && rate.take(at: start))
        #expect(!rate.take(at: start + .milliseconds(500)))
        #expect(rate.take(at: start + .milliseconds(1100)))
        // Who comes with an earlier clock gains nothing.
        #expect(!rate.take(at: start))
        #expect(!rate.take(at: start + .milliseconds(1200)))
        #expect(rate.take(at: start + .milliseconds(2100)))
        #expect(!rate.take(at: start + .milliseconds(2200)))
        // However long nobody came.
        for _ in 0..<2 { #expect(rate.take(at: start + .seconds(60))) }
        #expect(!rate.take(at: start + .seconds(60)))
    }

    @Test func anEnvironmentThatIsNotKnownIsRefusedAlsoWhereAnyAppIsAccepted() throws {
        let text = try Sample.transaction { $0["environment"] = "Staging" }
        let rejection = Sample.verifier(apps: nil).verify(text, now: Sample.now).rejection
        #expect(rejection?.reason == .environment)
        #expect(rejection?.detail == "the environment is not a known one")
    }

    @Test func onlyANotificationHasTextsNestedInIt() throws {
        let text = try Sample.transaction { payload in
            payload["data"] = ["signedTransactionInfo": "no signed text"]
        }
        let document = Sample.verifier().verify(text, now: Sample.now).document
        #expect(document?.nested.isEmpty == true)
    }

    @Test func whatANestedSignatureCoversIsKeptWhereItCannotBeRead() throws {
        let nested = Sample.signed(
            bytes: Array("{\"bundleId\":\"\(Sample.bundleID)\",\"a\":1,\"a\":2}".utf8)
        )
        var data = Sample.testData
        data["signedTransactionInfo"] = .string(String(decoding: nested, as: UTF8.self))
        let payload = Sample.envelope(type: "DID_RENEW", form: "data", data)
        let rejection = Sample.verifier().verify(Sample.signed(payload), now: Sample.now).rejection
        #expect(rejection?.reason == .nested)
        #expect(rejection?.nestedReason == .duplicateKey)
        #expect(rejection?.belongsInQuarantine == true)
    }

    @Test func whoseConsentIsWithdrawnIsReadFromTheNestedAppTransaction() throws {
        func customer(_ type: String, _ id: WireValue?) throws -> AppleID? {
            var nested: WireValue = [
                "receiptType": "Sandbox", "bundleId": .string(Sample.bundleID),
                "receiptCreationDate": .integer(Sample.start),
            ]
            if let id { nested["appTransactionId"] = id }
            var data = Sample.testData
            data["signedAppTransactionInfo"] = Sample.signer.text(nested)
            let payload = Sample.envelope(type: type, form: "appData", data)
            let verdict = Sample.verifier().verify(Sample.signed(payload), now: Sample.now)
            return try #require(verdict.document, "\(verdict)").rescindsConsentOf
        }
        #expect(try customer("RESCIND_CONSENT", "7043217")?.description == "7043217")
        #expect(try customer("RESCIND_CONSENT", "") == nil)
        #expect(try customer("RESCIND_CONSENT", nil) == nil)
        #expect(try customer("TEST", "7043217") == nil)
    }

    @Test func anEmptyRootFileIsCalledThat() {
        var anchors = TrustAnchors()
        do {
            try anchors.add([], name: "root.pem")
            Issue.record("an empty file is no root")
        } catch { #expect("\(error)".contains("root.pem: the file is empty")) }
    }
}
