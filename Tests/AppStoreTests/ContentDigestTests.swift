import AppStoreSimulator
import Ledger
import Testing

@testable import AppStore

@Suite struct ContentDigestTests {
    private func digest(_ text: String) throws -> [UInt8] {
        CanonicalContent(try JSONDocument(Array(text.utf8))).digest
    }

    @Test(arguments: [
        #"{ "b" : "x" , "a":1 }"#, #"{"a":1,"b":"\u0078"}"#, #"{"a":1,"b":"x","signedDate":5}"#,
        #"{"signedDate":{"a":7},"\u0061":1,"b":"x"}"#,
    ])
    func spellingOrderAndSigningTimeDoNotCount(_ text: String) throws {
        #expect(try digest(text) == digest(#"{"a":1,"b":"x"}"#))
    }

    @Test(arguments: [
        #"{"a":2,"b":"x"}"#, #"{"a":"1","b":"x"}"#, #"{"a":1,"b":"x","c":null}"#,
        #"{"a":1}"#, #"{"a":1,"b":["x"]}"#, #"{"a":1,"b":"X"}"#, #"{"a":true,"b":"x"}"#,
        #"{"a":1,"b":{"x":1}}"#, #"[{"a":1,"b":"x"}]"#, #"{"a":1,"bx":""}"#,
    ])
    func everythingElseCounts(_ text: String) throws {
        #expect(try digest(text) != digest(#"{"a":1,"b":"x"}"#))
    }

    @Test func signedDatesAreLeftOutAtEveryLevel() throws {
        let inner = #"{"x":[{"signedDate":1,"y":2}]}"#
        #expect(try digest(inner) == digest(#"{"x":[{"y":2}]}"#))
    }

    @Test func aNoticeSignedAnewSaysTheSame() throws {
        let verifier = Sample.verifier()
        func digest(_ text: [UInt8]) throws -> [UInt8] {
            try #require(verifier.verify(text, now: Sample.now).document).contentDigest
        }
        let first = try digest(Sample.notification())
        let later = try digest(
            Sample.notification(
                transaction: { $0["signedDate"] = .integer(Sample.start + 90_000) },
                renewal: { $0["signedDate"] = .integer(Sample.start + 90_001) },
                envelope: { $0["signedDate"] = .integer(Sample.start + 90_002) }
            )
        )
        #expect(first == later)
        let other = try digest(Sample.notification(transaction: { $0["price"] = 1 }))
        let another = try digest(Sample.notification(renewal: { $0["autoRenewStatus"] = 0 }))
        #expect(Set([first, other, another]).count == 3)
    }
}
