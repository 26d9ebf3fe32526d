import AppStoreSimulator
import Crypto
import Ledger
import Testing

@testable import AppStore

@Suite struct IdentityTests {
    private func reason(
        _ text: [UInt8],
        apps: [AcceptedApp]? = [Sample.app],
        environment: Environment? = nil
    ) -> Reason? {
        Sample.verifier(apps: apps, environment: environment)
            .verify(text, now: Sample.now).rejection?.reason
    }

    private func check(
        _ payload: WireValue,
        apps: [AcceptedApp]?,
        environment: Environment? = nil
    ) throws -> Environment {
        let claims = Claims(try JSONDocument(payload.bytes))
        return try IdentityCheck(apps: apps, environment: environment).check(claims)
    }

    private func production(appAppleID: Int64?) -> WireValue {
        var data: WireValue = [
            "bundleId": .string(Sample.bundleID), "environment": "Production",
        ]
        if let appAppleID { data["appAppleId"] = .integer(appAppleID) }
        return Sample.envelope(type: "TEST", form: "data", data)
    }

    @Test func anEmptyListOfAppsAcceptsNone() {
        #expect(reason(Sample.notification(), apps: []) == .bundleID)
        #expect(reason(Sample.notification(), apps: nil) == nil)
    }

    @Test func theEnvironmentMustBeAcceptedForTheApp() {
        var app = Sample.app
        app.environments = [.production]
        #expect(reason(Sample.notification(), apps: [app]) == .environment)
        app.environments = [.sandbox]
        #expect(reason(Sample.notification(), apps: [app]) == nil)
        #expect(reason(Sample.notification(), environment: .production) == .environment)
        #expect(reason(Sample.notification(), environment: .sandbox) == nil)
    }

    @Test func theAppAppleIDCountsInProductionOnly() throws {
        let id: Int64 = 1_234_567_890
        #expect(try check(production(appAppleID: id), apps: [Sample.app]) == .production)
        for wrong in [nil, 1] as [Int64?] {
            let error = #expect(throws: Rejection.self) {
                try check(production(appAppleID: wrong), apps: [Sample.app])
            }
            #expect(error?.reason == .appAppleID)
        }
        var unnumbered = Sample.app
        unnumbered.appAppleID = nil
        let error = #expect(throws: Rejection.self) {
            try check(production(appAppleID: id), apps: [unnumbered])
        }
        #expect(error?.reason == .appAppleID)
        #expect(error?.detail.contains("not configured") == true)
        // Sandbox needs none, and one that is there does no harm.
        #expect(reason(Sample.notification(), apps: [unnumbered]) == nil)
        let other = Sample.notification(envelope: { $0["data"]?["appAppleId"] = 5 })
        #expect(reason(other) == nil)
        // A number that is spelled as text is the same number.
        var spelled = production(appAppleID: id)
        spelled["data"]?["appAppleId"] = "1234567890"
        #expect(try check(spelled, apps: [Sample.app]) == .production)
    }

    @Test func anExternalPurchaseTokenTellsItsEnvironmentByItsID() throws {
        let token: WireValue = [
            "externalPurchaseId": "SANDBOX_1", "bundleId": .string(Sample.bundleID),
            "appAppleId": 1_234_567_890,
        ]
        var payload = Sample.envelope(
            type: "EXTERNAL_PURCHASE_TOKEN",
            form: "externalPurchaseToken",
            token
        )
        #expect(try check(payload, apps: [Sample.app]) == .sandbox)
        payload["externalPurchaseToken"]?["externalPurchaseId"] = "0f_SANDBOX"
        #expect(try check(payload, apps: [Sample.app]) == .production)
        payload["externalPurchaseToken"]?["externalPurchaseId"] = nil
        #expect(throws: Rejection.self) { try check(payload, apps: [Sample.app]) }
    }

    @Test func nestedTextsMustAgreeWithEachOtherAndTheEnvelope() {
        let disagreeing = [
            Sample.notification(transaction: { $0["bundleId"] = "com.example.other" }),
            Sample.notification(transaction: { $0["environment"] = "Production" }),
            Sample.notification(renewal: { $0["environment"] = "Production" }),
            Sample.notification(renewal: { $0["originalTransactionId"] = "2000000900000002" }),
        ]
        for text in disagreeing {
            let rejection = Sample.verifier().verify(text, now: Sample.now).rejection
            #expect(rejection?.reason == .nested)
            #expect(rejection?.isSignatureValid == true)
            #expect(rejection?.belongsInQuarantine == true)
        }
        // What is absent contradicts nothing, and a number is its own text.
        let agreeing = [
            Sample.notification(transaction: { $0["environment"] = nil }),
            Sample.notification(renewal: { $0["originalTransactionId"] = 2_000_000_900_000_001 }),
        ]
        for text in agreeing { #expect(reason(text) == nil) }
    }

    @Test func aNestedTextOfAnotherKeyRejectsTheWhole() throws {
        let stranger = TestCertificateAuthority(
            seed: 12,
            from: Sample.start,
            until: Sample.start + 86_400_000
        )
        let payload = Sample.chain.payload(try #require(Sample.notice.transaction))
        let forged = stranger.signer(at: Sample.start).text(payload)
        let unsigned = PayloadSigner(key: SigningKey(seed: [3]), chain: []).text(payload)
        for (nested, inner) in [(forged, Reason.untrustedRoot), (unsigned, .chainLength)] {
            let text = Sample.notification(envelope: {
                $0["data"]?["signedTransactionInfo"] = nested
            })
            let rejection = Sample.verifier().verify(text, now: Sample.now).rejection
            #expect(rejection?.reason == .nested)
            #expect(rejection?.nestedReason == inner)
            #expect(rejection?.belongsInQuarantine == false)
            #expect(rejection?.detail.contains("signedTransactionInfo") == true)
        }
    }

    @Test func aNestedTextThatIsNoTextRejectsTheWhole() {
        for value in [["transactionId": "1"], 7, "", "eyJ.x"] as [WireValue] {
            let text = Sample.notification(envelope: {
                $0["data"]?["signedRenewalInfo"] = value
            })
            #expect(reason(text) == .nested)
        }
        let absent = Sample.notification(envelope: { $0["data"]?["signedRenewalInfo"] = nil })
        let null = Sample.notification(envelope: { $0["data"]?["signedRenewalInfo"] = .null })
        #expect(reason(absent) == nil)
        #expect(reason(null) == nil)
    }
}
