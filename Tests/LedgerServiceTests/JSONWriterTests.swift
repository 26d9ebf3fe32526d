import LedgerService
import Testing

@Suite struct JSONWriterTests {
    private func sample(pretty: Bool) -> String {
        var json = JSONWriter(pretty: pretty)
        json.beginObject()
        json.member("a", 1)
        json.key("b")
        json.beginArray()
        json.string("x")
        json.null()
        json.beginObject()
        json.endObject()
        json.endArray()
        json.key("c")
        json.raw("{\"kept\":1.50}".utf8)
        json.member("d", nil as String?)
        json.member("e", true)
        json.endObject()
        return json.text
    }

    @Test func valuesAreSeparatedByCommasAndKeysByColons() {
        #expect(
            sample(pretty: false)
                == #"{"a":1,"b":["x",null,{}],"c":{"kept":1.50},"d":null,"e":true}"#
        )
    }

    @Test func aPrettyTextHasOneMemberALine() {
        #expect(
            sample(pretty: true) == """
                {
                  "a": 1,
                  "b": [
                    "x",
                    null,
                    {}
                  ],
                  "c": {"kept":1.50},
                  "d": null,
                  "e": true
                }
                """
        )
    }

    @Test func whatWouldBreakTextOrTerminalIsEscaped() {
        var json = JSONWriter()
        json.string("\"\\\n\r\t\u{0}\u{1B}[31m\u{7F}é🎧")
        #expect(json.text == #""\"\\\n\r\t\u0000\u001b[31m\u007fé🎧""#)
    }

    @Test func aWriterCanBeEmptiedAndUsedAgain() {
        var json = JSONWriter()
        for _ in 0..<2 {
            json.beginArray()
            json.int(1)
            json.int(2)
            json.endArray()
            #expect(json.text == "[1,2]")
            json.removeAll()
        }
    }
}
