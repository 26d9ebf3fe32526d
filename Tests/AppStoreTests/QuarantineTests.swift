import AppStore
import AppStoreSimulator
import Ledger
import Testing

/// What a good signature covers is kept, also where it cannot be used.
@Suite struct QuarantineTests {
    private func refusal(
        _ text: [UInt8],
        apps: [AcceptedApp]? = [Sample.app]
    ) -> Rejection? {
        Sample.verifier(apps: apps).verify(text, now: Sample.now).rejection
    }

    private static let ours = "\"bundleId\":\"\(Sample.bundleID)\",\"signedDate\":\(Sample.start)"

    @Test(arguments: [
        ("{\(ours),\"version\":1,\"version\":2}", Reason.duplicateKey),
        ("{\(ours),\"a\":{\"b\":1,\"\\u0062\":1}}", .duplicateKey),
        ("{\(ours),}", .badJSON), ("\u{FEFF}{\(ours)}", .badJSON), ("{\(ours)", .badJSON),
        ("[{\(ours)}]", .badJSON),
        ("{\(ours),\"a\":" + String(repeating: "[", count: 100), .badJSON),
        ("", .badJSON),
        (
            "{\"notificationType\":\"TEST\",\"data\":{\"bundleId\":\"\(Sample.bundleID)\"}}",
            .signedDateMissing
        ),
        ("{\"signedDate\":\(Sample.start)}", .bundleID),
        (
            "{\"signedDate\":\(Sample.start),\"data\":{\"bundleId\":\"\(Sample.bundleID)\"}}",
            .environment
        ),
    ])
    func unreadableContentOfOurAppIsKept(_ payload: String, _ reason: Reason) throws {
        let text = Sample.signed(bytes: Array(payload.utf8))
        let rejection = try #require(refusal(text))
        #expect(rejection.reason == reason, "\(rejection)")
        #expect(rejection.isSignatureValid)
        #expect(rejection.belongsInQuarantine)
        // The same bytes without a good signature are worth nothing.
        var forged = text
        forged[forged.count - 20] = forged[forged.count - 20] == 65 ? 66 : 65
        let forgery = try #require(self.refusal(forged))
        #expect(forgery.reason == .badSignature)
        #expect(!forgery.isSignatureValid)
        #expect(!forgery.belongsInQuarantine)
    }

    @Test func invalidUTF8OfOurAppIsKept() throws {
        let payload = Array("{\(Self.ours),\"a\":\"".utf8) + [0xC3, 0x28] + Array("\"}".utf8)
        let rejection = try #require(refusal(Sample.signed(bytes: payload)))
        #expect(rejection.reason == .badJSON)
        #expect(rejection.detail.contains("invalid_utf8"))
        #expect(rejection.belongsInQuarantine)
    }

    @Test func unreadableContentOfAnotherAppIsNotKept() throws {
        let payload =
            "{\"data\":{\"bundleId\" : \"com.example.other\"},\"a\":1,\"a\":1,"
            + "\"signedDate\":\(Sample.start)}"
        let text = Sample.signed(bytes: Array(payload.utf8))
        let rejection = try #require(refusal(text))
        #expect(rejection.reason == .duplicateKey)
        #expect(rejection.isSignatureValid)
        #expect(!rejection.belongsInQuarantine)
        let both = payload.replacing("}", with: ",\"bundleId\":\"\(Sample.bundleID)\"}")
        let mixed = try #require(self.refusal(Sample.signed(bytes: Array(both.utf8))))
        #expect(!mixed.belongsInQuarantine)
        let unchecked = try #require(self.refusal(text, apps: nil))
        #expect(unchecked.belongsInQuarantine)
    }

    @Test func aReadableTextOfAnotherAppIsNotKept() throws {
        let text = Sample.notification(envelope: { $0["data"]?["bundleId"] = "com.example.other" })
        let rejection = try #require(refusal(text))
        #expect(rejection.isSignatureValid)
        #expect(!rejection.belongsInQuarantine)
    }

    @Test func unreadableContentOutsideTheCertificatesDatesIsNotKept() throws {
        let payload = "{\"bundleId\":\"\(Sample.bundleID)\",\"a\":1,\"a\":1,\"signedDate\":1}"
        let rejection = try #require(refusal(Sample.signed(bytes: Array(payload.utf8))))
        #expect(rejection.reason == .certificateDates)
        #expect(!rejection.belongsInQuarantine)
    }

    @Test func aTrustedNoticeWithoutAPlaceInTheLogSaysSo() throws {
        let verifier = Sample.verifier()
        let samples: [(String?, [UInt8])] = [
            (nil, Sample.notification()),
            (
                "notification_uuid_missing",
                Sample.notification(envelope: { $0["notificationUUID"] = nil })
            ),
            (
                "notification_uuid_missing",
                Sample.notification(envelope: { $0["notificationUUID"] = .raw(#""\ud800""#) })
            ),
            (
                "notification_type_missing",
                Sample.notification(envelope: { $0["notificationType"] = nil })
            ),
            (
                "transaction_missing",
                Sample.notification(envelope: {
                    $0["data"]?["signedTransactionInfo"] = nil
                    $0["data"]?["signedRenewalInfo"] = nil
                })
            ),
            (
                "original_transaction_id_missing",
                try Sample.transaction { $0["originalTransactionId"] = nil }
            ),
            (nil, Sample.signed(Sample.envelope(type: "TEST", form: "data", Sample.testData))),
        ]
        for (reason, text) in samples {
            let document = try #require(verifier.verify(text, now: Sample.now).document)
            #expect(document.quarantineReason == reason)
        }
    }
}
