import HTTP
import Testing

@Suite struct RequestTargetTests {
    @Test(arguments: [
        ("/", []), ("/a/b", ["a", "b"]), ("/a%2Fb/c", ["a/b", "c"]),
        ("/a//b/", ["a", "", "b", ""]),
        ("/%C3%A4", ["ä"]), ("http://host:1/x", ["x"]), ("/a+b", ["a+b"]), ("/...", ["..."]),
    ])
    func aPathIsDecodedBySegments(_ text: String, _ segments: [String]) {
        #expect(RequestTarget(text.utf8)?.path == segments)
    }

    @Test(arguments: [
        "", "a", "/%", "/%2", "/%zz", "/%00", "/a?b=%0", "/a?%00=b", "/..", "/a/../b", "/%2e%2E/b",
        "/.", "/a/%2e", "/%FF", "/%C3", "/ä", "/a b", "/a\tb", "/a#b", "/a?b#c", "http://",
        "http:///x", "ftp://host/x", "?a=b", "/%C0%AF", "/\u{7F}", "/%+1",
    ])
    func aTargetThatHasTwoReadingsIsRefused(_ text: String) {
        #expect(RequestTarget(text.utf8) == nil)
    }

    @Test func theQueryKeepsDuplicatesAndTheirOrder() throws {
        let target = try #require(RequestTarget("/a?x=1&y&x=2&=z&x=a%26b%3Dc&&t=1+00:00?".utf8))
        #expect(
            target.query.map { [$0.name, $0.value] } == [
                ["x", "1"], ["y", ""], ["x", "2"], ["", "z"], ["x", "a&b=c"], ["t", "1+00:00?"],
            ]
        )
        #expect(RequestTarget("/a?".utf8)?.query == [])
    }

    @Test func theAsteriskIsNoPath() {
        #expect(RequestTarget("*".utf8)?.isAsterisk == true)
        #expect(RequestTarget("/*".utf8)?.isAsterisk == false)
    }
}
