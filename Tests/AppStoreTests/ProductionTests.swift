import AppStore
import AppStoreSimulator
import Crypto
import Ledger
import Testing

/// Production, whose texts only Apple's roots vouch for; here a root that is taken for one.
@Suite struct ProductionTests {
    private static let id: Int64 = 1_234_567_890

    private func verifier(_ apps: [AcceptedApp]? = [Sample.app]) throws -> Verifier {
        var anchors = TrustAnchors()
        try anchors.addVouchingForAll(Sample.authority.rootDER, name: "as if Apple's")
        return Verifier(anchors: anchors, apps: apps)
    }

    private func notification(
        envelopeID: Int64? = id,
        transactionID: Int64? = nil
    ) -> [UInt8] {
        Sample.notification(
            transaction: {
                $0["environment"] = "Production"
                if let transactionID { $0["appAppleId"] = .integer(transactionID) }
            },
            renewal: { $0["environment"] = "Production" },
            envelope: {
                $0["data"]?["environment"] = "Production"
                $0["data"]?["appAppleId"] = envelopeID.map { .integer($0) } ?? .null
            }
        )
    }

    @Test func aNotificationOfTheAcceptedAppIsTrusted() throws {
        let verdict = try verifier().verify(notification(), now: Sample.now)
        #expect(verdict.document?.environment == .production)
        #expect(verdict.document?.appAppleID == Self.id)
        let same = notification(transactionID: Self.id)
        #expect(try verifier().verify(same, now: Sample.now).document != nil)
    }

    @Test func aNumberThatDisagreesWithTheEnvelopeRejectsTheWhole() throws {
        let text = notification(transactionID: 5)
        for apps in [nil, [Sample.app]] {
            let rejection = try verifier(apps).verify(text, now: Sample.now).rejection
            #expect(rejection?.reason == .nested)
            #expect(rejection?.detail.contains("appAppleId") == true)
        }
    }

    /// Transactions carry no number, so none is asked of them.
    @Test func aTransactionOnItsOwnNeedsNoNumberButAnAppTransactionDoes() throws {
        let transaction = try Sample.transaction { $0["environment"] = "Production" }
        #expect(try verifier().verify(transaction, now: Sample.now).document != nil)
        func app(_ id: Int64?) -> [UInt8] {
            var payload: WireValue = [
                "receiptType": "Production", "bundleId": .string(Sample.bundleID),
                "receiptCreationDate": .integer(Sample.start), "appTransactionId": "704",
            ]
            if let id { payload["appAppleId"] = .integer(id) }
            return Sample.signed(payload)
        }
        #expect(try verifier().verify(app(Self.id), now: Sample.now).document != nil)
        for wrong in [nil, 5] as [Int64?] {
            let verdict = try verifier().verify(app(wrong), now: Sample.now)
            #expect(verdict.rejection?.reason == .appAppleID)
        }
    }

    /// Two apps may have one bundle id, one of them in Sandbox only.
    @Test func theNumberMustBeThatOfAnAppThatIsAcceptedInProduction() throws {
        var tried = Sample.app
        tried.appAppleID = 5
        tried.environments = [.sandbox]
        let apps = [tried, Sample.app]
        #expect(try verifier(apps).verify(notification(), now: Sample.now).document != nil)
        let other = notification(envelopeID: 5)
        #expect(try verifier(apps).verify(other, now: Sample.now).rejection?.reason == .appAppleID)
    }

    @Test func anUnreadableTextWithoutADateIsJudgedByOurClock() throws {
        let payload = "{\"bundleId\":\"\(Sample.bundleID)\",\"a\":1,\"a\":1}"
        let text = Sample.signed(bytes: Array(payload.utf8))
        let now = Sample.verifier().verify(text, now: Sample.now).rejection
        #expect(now?.reason == .duplicateKey)
        #expect(now?.belongsInQuarantine == true)
        let later = Sample.verifier().verify(text, now: .latest).rejection
        #expect(later?.reason == .certificateDates)
    }
}
