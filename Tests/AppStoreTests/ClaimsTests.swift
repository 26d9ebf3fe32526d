import AppStoreSimulator
import Crypto
import Ledger
import Testing

@testable import AppStore

/// What a payload says of whose it is, and what can be made out of one that is no JSON.
@Suite struct ClaimsTests {
    private func bundleIDs(_ text: String) -> Set<String> {
        RawClaims.bundleIDs(in: Array(text.utf8))
    }

    private func signedDate(_ text: String) -> Int64? {
        RawClaims.signedDate(in: Array(text.utf8))?.milliseconds
    }

    @Test func bundleIDsAreFoundAtAnyDepthOfWhatIsNoJSON() {
        #expect(bundleIDs(#"{"bundleId":"a","data":{"bundleId" : "b"#) == ["a", "b"])
        #expect(bundleIDs("{\"bundleId\"\n:\t\"a\"") == ["a"])
        #expect(bundleIDs(#"{"bundleId":7,"other":"a"}"#) == [])
        #expect(bundleIDs(#"{"other":"bundleId","c":"a"}"#) == [])
        #expect(bundleIDs(#"{"xbundleId":"a"}"#) == [])
        #expect(bundleIDs(#"{"bundleId":"a\u0062"}"#) == ["a"])
        #expect(bundleIDs(#"{"bundleId":"#) == [])
        #expect(bundleIDs("") == [])
    }

    @Test func theFirstSignedDateWithDigitsCounts() {
        #expect(signedDate(#"{"signedDate":"x","signedDate": 1234 ,"#) == 1234)
        #expect(signedDate(#"{"signedDate":90,"signedDate":1}"#) == 90)
        #expect(signedDate(#"{"signedDate":0}"#) == 0)
        #expect(signedDate(#"{"signedDate""#) == nil)
        #expect(signedDate(#"["signedDate",5]"#) == nil)
    }

    /// Which kind a payload is shows by the members that only that kind has.
    @Test(arguments: [
        (#"{"notificationUUID":"a","transactionId":"1"}"#, DocumentKind.notification),
        (#"{"notificationType":"TEST"}"#, .notification),
        (#"{"receiptType":"Sandbox","originalTransactionId":"1"}"#, .appTransaction),
        (#"{"receiptCreationDate":1,"transactionId":"1"}"#, .appTransaction),
        (#"{"transactionId":"1","originalTransactionId":"1"}"#, .transaction),
        (#"{"originalTransactionId":"1"}"#, .renewalInfo), ("{}", .notification),
    ])
    func theKindShowsByItsMembers(_ payload: String, _ kind: DocumentKind) throws {
        let claims = Claims(try JSONDocument(Array(payload.utf8)))
        #expect(claims.kind == kind)
    }

    /// A form that Apple adds later speaks through the object that names an app.
    @Test func anUnknownFormSpeaksThroughTheObjectThatNamesAnApp() throws {
        let payload =
            #"{"notificationType":"NEW","a":{"environment":"Production"},"#
            + #""b":{"bundleId":"x","environment":"Sandbox","appAppleId":5}}"#
        let claims = Claims(try JSONDocument(Array(payload.utf8)))
        #expect(claims.form == nil)
        #expect(claims.bundleID == "x")
        #expect(claims.environment == .sandbox)
        #expect(claims.appAppleID == 5)
    }

    @Test func theEnvironmentStandsWhereEachKindHasIt() throws {
        func environment(_ payload: String) throws -> String? {
            Claims(try JSONDocument(Array(payload.utf8))).environmentText
        }
        #expect(try environment(#"{"transactionId":"1","environment":"Sandbox"}"#) == "Sandbox")
        #expect(
            try environment(#"{"originalTransactionId":"1","environment":"Sandbox"}"#) == "Sandbox"
        )
        #expect(try environment(#"{"receiptType":"Production"}"#) == "Production")
        #expect(
            try environment(#"{"notificationType":"A","data":{"environment":"Sandbox"}}"#)
                == "Sandbox"
        )
        #expect(
            try environment(
                #"{"notificationType":"A","externalPurchaseToken":{"externalPurchaseId":"SANDBOX1","#
                    + #""environment":"Production"}}"#
            ) == "Sandbox"
        )
    }
}
