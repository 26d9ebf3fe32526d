import AppStore
import AppStoreSimulator
import Crypto
import Ledger
import Testing

@Suite struct VerifierTests {
    @Test func aSignedNotificationIsTrustedWithAllItsLayers() throws {
        let text = Sample.notification()
        let document = try #require(Sample.verifier().verify(text, now: Sample.now).document)
        #expect(document.kind == .notification)
        #expect(document.received == text)
        #expect(document.notificationType == "SUBSCRIBED")
        #expect(document.subtype == "INITIAL_BUY")
        #expect(document.notificationUUID == Sample.notice.uuid)
        #expect(document.bundleID == Sample.bundleID)
        #expect(document.environment == .sandbox)
        #expect(document.signedDate.milliseconds == Sample.notice.signedDate)
        #expect(document.originalTransactionID == Sample.chain.originalTransactionID)
        #expect(document.nested.map(\.field) == ["signedTransactionInfo", "signedRenewalInfo"])
        #expect(document.nested.map(\.kind) == [.transaction, .renewalInfo])
        #expect(document.layers.count == 3)
        let header = text.prefix { $0 != UInt8(ascii: ".") }
        #expect(document.layers.allSatisfy { $0.headerDigest == SHA256.digest(header) })
        #expect(document.layers.allSatisfy { $0.anchorDER == Sample.authority.rootDER })
        #expect(!document.isUnrecognised)
        #expect(document.decodeAnomalies == [])
        #expect(document.quarantineReason == nil)
        let nestedText = String(
            decoding: try #require(document.nested.first).received,
            as: UTF8.self
        )
        #expect(document.payload["data"]?["signedTransactionInfo"]?.text == nestedText)
    }

    @Test func transactionsRenewalsAndAppTransactionsAreTrustedOnTheirOwn() throws {
        let verifier = Sample.verifier()
        let transaction = try Sample.transaction()
        let document = try #require(verifier.verify(transaction, now: Sample.now).document)
        #expect(document.kind == .transaction)
        #expect(document.fact?.transaction?.productID == "premium.monthly")
        #expect(document.fact?.kind == .transaction)

        let renewal = Sample.signed(Sample.chain.payload(try #require(Sample.notice.renewal)))
        let renewalInfo = try #require(verifier.verify(renewal, now: Sample.now).document)
        #expect(renewalInfo.kind == .renewalInfo)
        #expect(renewalInfo.bundleID == nil)
        #expect(renewalInfo.originalTransactionID == Sample.chain.originalTransactionID)
        #expect(renewalInfo.fact?.renewal?.autoRenewProductID == "premium.monthly")

        let app = Sample.signed([
            "receiptType": "Sandbox", "bundleId": .string(Sample.bundleID),
            "receiptCreationDate": .integer(Sample.start), "appTransactionId": "704",
        ])
        let appTransaction = try #require(verifier.verify(app, now: Sample.now).document)
        #expect(appTransaction.kind == .appTransaction)
        #expect(appTransaction.fact == nil)
        #expect(appTransaction.originalTransactionID == nil)
    }

    @Test func whatNamesNoTransactionIsKeptAndNeverFolded() throws {
        let summary: WireValue = [
            "requestIdentifier": "11111111-0000-4000-8000-000000000001",
            "environment": "Sandbox", "bundleId": .string(Sample.bundleID),
            "productId": "gold.month", "succeededCount": 97, "failedCount": 3,
        ]
        let token: WireValue = [
            "externalPurchaseId": "SANDBOX_1f0b", "tokenCreationDate": .integer(Sample.start),
            "appAppleId": 1_234_567_890, "bundleId": .string(Sample.bundleID),
        ]
        var appData = Sample.testData
        appData["signedAppTransactionInfo"] = Sample.signer.text([
            "receiptType": "Sandbox", "bundleId": .string(Sample.bundleID),
            "receiptCreationDate": .integer(Sample.start),
        ])
        var unclaim = Sample.testData
        unclaim["unclaimSeatIds"] = ["5e09dcfc-205e-4ea1-9883-96676f394992"]
        let payloads = [
            Sample.envelope(type: "TEST", form: "data", Sample.testData),
            Sample.envelope(
                type: "RENEWAL_EXTENSION",
                subtype: "SUMMARY",
                form: "summary",
                summary
            ),
            Sample.envelope(
                type: "EXTERNAL_PURCHASE_TOKEN",
                subtype: "CREATED",
                form: "externalPurchaseToken",
                token
            ),
            Sample.envelope(type: "RESCIND_CONSENT", form: "appData", appData),
            Sample.envelope(type: "UNCLAIM_SEATS", form: "unclaimInfo", unclaim),
        ]
        let verifier = Sample.verifier()
        for payload in payloads {
            let verdict = verifier.verify(Sample.signed(payload), now: Sample.now)
            let document = try #require(verdict.document, "\(verdict)")
            #expect(document.fact == nil)
            #expect(document.originalTransactionID == nil)
            #expect(document.quarantineReason == nil)
            #expect(!document.isUnrecognised)
            #expect(document.bundleID == Sample.bundleID)
        }
    }

    @Test func anObjectThatAppleAddsLaterIsKeptAsUnrecognised() throws {
        let payload = Sample.envelope(type: "FUTURE_TYPE", form: "futureInfo", Sample.testData)
        let verdict = Sample.verifier().verify(Sample.signed(payload), now: Sample.now)
        let document = try #require(verdict.document, "\(verdict)")
        #expect(document.isUnrecognised)
        #expect(document.fact == nil)
        #expect(document.quarantineReason == nil)
    }

    @Test func aTextThatClaimsToComeFromTheFutureIsUndecided() {
        let verifier = Sample.verifier()
        let text = Sample.notification()
        let signed = Timestamp(milliseconds: Sample.notice.signedDate)
        let skew = Verifier.clockSkewMax.rawValue
        let early = Timestamp(milliseconds: signed.milliseconds - skew - 1)
        let verdict = verifier.verify(text, now: early)
        #expect(verdict.isUndecided)
        #expect(verdict.rejection?.reason == .signedDateFuture)
        #expect(verdict.rejection?.isSignatureValid == true)
        let justEarlyEnough = Timestamp(milliseconds: signed.milliseconds - skew)
        #expect(verifier.verify(text, now: justEarlyEnough).document != nil)
        #expect(verifier.verify(text, now: .latest).document != nil)
    }

    @Test func aForgedTextFromTheFutureIsRejectedAndNotUndecided() {
        var text = Sample.notification(envelope: {
            $0["signedDate"] = .integer(Sample.now.milliseconds + 86_400_000)
        })
        text[text.count - 20] = text[text.count - 20] == 65 ? 66 : 65
        let verdict = Sample.verifier().verify(text, now: Sample.now)
        #expect(!verdict.isUndecided)
        #expect(verdict.rejection?.reason == .badSignature)
    }

    @Test func oneVerifierServesManyThreads() async {
        let verifier = Sample.verifier()
        let text = Sample.notification()
        let trusted = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    (0..<25).count { _ in verifier.verify(text, now: Sample.now).document != nil }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(trusted == 200)
    }

    @Test func whatALaterProgramNeedsToKnowIsInTheHeaderAndTheAnchor() throws {
        let text = try Sample.transaction()
        let jws = try CompactJWS(text)
        let spelled =
            Array(jws.header) + [0x2E] + Base64URL.encodeBytes(jws.payload) + [0x2E]
            + Base64URL.encodeBytes(jws.signature)
        #expect(spelled == text)
        let document = try #require(Sample.verifier().verify(text, now: Sample.now).document)
        #expect(document.layers.first?.anchorFingerprint == SHA256.digest(Sample.authority.rootDER))
    }
}
