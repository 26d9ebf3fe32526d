import Testing

@testable import HTTP

@Suite struct MessageTests {
    @Test func headerNamesAreComparedWithoutCase() {
        var headers: HTTPHeaders = ["Accept": "a", "ACCEPT": "b", "X": "c"]
        #expect(headers["accept"] == "a")
        #expect(headers.all("Accept") == ["a", "b"])
        headers["aCCept"] = "d"
        #expect(headers.map(\.value) == ["c", "d"])
        headers["x"] = nil
        #expect(headers.count == 1)
    }

    @Test(arguments: [
        ("X-A", "b", true), ("X-A", "b\tc", true), ("X-A", "ä", true), ("X-A", "b\r\nX: y", false),
        ("X-A", "b\n", false), ("X-A", "b\r", false), ("X-A", "\0", false), ("X A", "b", false),
        ("", "b", false), ("X:", "b", false), ("X\n", "b", false), ("Xä", "b", false),
    ])
    func aHeaderCannotEndItsLine(_ name: String, _ value: String, _ isValid: Bool) {
        var headers = HTTPHeaders()
        headers.add(name, value)
        #expect(headers.isValid == isValid)
    }

    @Test func textIsEscapedForJSON() {
        #expect(JSONText.quoted("a\"b\\c\n\r\t\u{1}ä/\u{1F}") == #""a\"b\\c\n\r\t\u0001ä/\u001f""#)
    }

    @Test func aProblemIsJSONWithAStableReason() {
        let problem = Problem(status: 400, reason: "bad_thing", title: "A \"bad\" thing")
        #expect(
            problem.json
                == #"{"type":"about:blank","title":"A \"bad\" thing","status":400,"reason":"bad_thing"}"#
        )
        let response = HTTPResponse.problem(problem)
        #expect(response.headers["content-type"] == "application/problem+json")
        #expect(response.status == 400)
    }

    @Test func everyRefusalHasAnErrorsStatusAndItsOwnTitle() {
        for refusal in Refusal.allCases {
            #expect((400...599).contains(refusal.meaning.status))
        }
        #expect(Set(Refusal.allCases.map(\.meaning.title)).count == Refusal.allCases.count)
    }
}
