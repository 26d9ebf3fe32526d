import AppStore
import AppStoreSimulator
import Ledger
import Testing

@Suite struct VerifyReportTests {
    private func line(
        _ input: [UInt8],
        verifier: Verifier = Sample.verifier()
    ) throws -> (json: JSONDocument, isTrusted: Bool) {
        let line = VerifyReport(verifier: verifier).line(7, input: input, now: Sample.now)
        #expect(!line.json.contains(0x0A))
        return (try JSONDocument(line.json), line.isTrusted)
    }

    @Test func aTrustedLineShowsTheDecodedPayload() throws {
        let text = Sample.notification(
            transaction: { $0["price"] = .raw("1.50") },
            envelope: {
                $0["odd"] = .raw(" [ 1e400 ,-0, \"\\u0000\\ud800\" ] ")
            }
        )
        for input in [NoticeSigner.line(text), text, text + Array("\r".utf8)] {
            let (json, isTrusted) = try line(input)
            #expect(isTrusted)
            #expect(json["line"]?.numberText == "7")
            #expect(json["kind"]?.text == "notification")
            #expect(json["verdict"]?.text == "trusted")
            #expect(json["reason"]?.isNull == true)
            #expect(json["identity"]?.text == "checked")
            let data = try #require(json["payload"]?["data"])
            #expect(data["signedTransactionInfo"]?["price"]?.numberText == "1.50")
            #expect(data["signedRenewalInfo"]?["autoRenewStatus"]?.numberText == "1")
            #expect(data["bundleId"]?.text == Sample.bundleID)
            let odd = try #require(json["payload"]?["odd"])
            #expect(String(decoding: odd.raw, as: UTF8.self) == #"[1e400,-0,"\u0000\ud800"]"#)
        }
    }

    @Test func aSkippedIdentityIsSaid() throws {
        let (json, isTrusted) = try line(
            Sample.notification(),
            verifier: Sample.verifier(apps: nil)
        )
        #expect(isTrusted)
        #expect(json["identity"]?.text == "skipped")
    }

    @Test(arguments: [
        ("garbage", "malformed_jws"), ("{\"signedPayload\":\"a.b\"}", "malformed_jws"),
        ("{\"signedPayload\":7}", "malformed_jws"), ("{\"other\":\"a.b.c\"}", "malformed_jws"),
        ("{\"signedPayload\":", "bad_json"),
        ("{\"signedPayload\":\"\\u0022.\\n.\"}", "bad_base64url"),
        ("{\"signedPayload\":\"a\",\"signedPayload\":\"b\"}", "duplicate_key"),
        ("[1,2]", "malformed_jws"), ("\u{0}\u{1}\u{2}", "malformed_jws"),
    ])
    func garbageIsRejectedWithAReason(_ input: String, _ reason: String) throws {
        let (json, isTrusted) = try line(Array(input.utf8))
        #expect(!isTrusted)
        #expect(json["verdict"]?.text == "rejected")
        #expect(json["reason"]?.text == reason)
        #expect(json["payload"]?.isNull == true)
        #expect(json["detail"]?.text?.isEmpty == false)
    }

    @Test func aRejectedLineShowsNothingOfItsPayload() throws {
        var text = Sample.notification()
        text[text.count - 20] = text[text.count - 20] == 65 ? 66 : 65
        let (json, isTrusted) = try line(text)
        #expect(!isTrusted)
        #expect(json["kind"]?.text == "notification")
        #expect(json["reason"]?.text == "bad_signature")
        #expect(json["payload"]?.isNull == true)
    }

    @Test func aLineFromTheFutureIsUndecided() throws {
        let text = Sample.notification(envelope: {
            $0["signedDate"] = .integer(Sample.now.milliseconds + 3_600_000)
        })
        let (json, isTrusted) = try line(text)
        #expect(!isTrusted)
        #expect(json["verdict"]?.text == "undecided")
        #expect(json["reason"]?.text == "signed_date_future")
    }

    @Test func blankLinesAreToldApart() {
        #expect(SignedInput.isBlank(Array(" \r\n\t".utf8)))
        #expect(SignedInput.isBlank([]))
        #expect(!SignedInput.isBlank(Array(" x".utf8)))
    }
}
