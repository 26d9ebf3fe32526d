import Ledger
import Testing

@testable import AppStore

@Suite struct JSONDocumentTests {
    private func read(_ text: String) throws -> JSONDocument {
        try JSONDocument(Array(text.utf8))
    }

    private func code(_ bytes: [UInt8]) -> AppStoreError.Code? {
        do throws(AppStoreError) {
            _ = try JSONDocument(bytes)
            return nil
        } catch { return error.code }
    }

    @Test func membersAreFoundByNameAndKeepOrderAndSpelling() throws {
        let text = " {\"b\" :1.50 ,\"a\":[ true,false , null, {} ],\"\\u0063\":\"x\\ny\"}\r\n"
        let document = try read(text)
        #expect(document.root.members.map(\.name) == ["b", "a", "c"])
        #expect(document["b"]?.numberText == "1.50")
        #expect(document["a"]?.elements.map(\.kind) == [.true, .false, .null, .object])
        #expect(document["c"]?.text == "x\ny")
        #expect(document["d"] == nil)
        #expect(document["a"]?["b"] == nil)
        #expect(document.bytes == Array(text.utf8))
        #expect(document["c"].map { String(decoding: $0.raw, as: UTF8.self) } == "\"x\\ny\"")
        let compact = JSONCompactText(document, replacing: [])
        #expect(
            String(decoding: compact.bytes, as: UTF8.self)
                == "{\"b\":1.50,\"a\":[true,false,null,{}],\"\\u0063\":\"x\\ny\"}"
        )
    }

    @Test(arguments: [
        "1.50", "1e400", "-0", "-0.0", "0", "1E+2", "4999000000", "99999999999999999999999",
    ])
    func aNumberKeepsItsSpelling(_ spelling: String) throws {
        let document = try read("{\"n\":\(spelling)}")
        #expect(document["n"]?.numberText == spelling)
    }

    @Test(arguments: [
        ("0", Int64(0)), ("-0", 0), ("-0.000", 0), ("0e999999999999999999", 0), ("7", 7),
        ("1e3", 1000), ("10.0", 10), ("1.5e1", 15), ("1500e-2", 15), ("4999000000", 4_999_000_000),
        ("9223372036854775807", .max), ("-9223372036854775808", .min),
    ])
    func aWholeNumberIsReadHoweverItIsSpelled(_ spelling: String, _ value: Int64) throws {
        #expect(try read(spelling).root.int64() == value)
    }

    @Test(arguments: [
        ("9223372036854775808", AppStoreError.Code.integerOverflow),
        ("-9223372036854775809", .integerOverflow), ("1e400", .integerOverflow),
        ("1e99999999999999999999", .integerOverflow), ("1.50", .notAnInteger),
        ("1e-1", .notAnInteger), ("true", .notAnInteger), ("\"1\"", .notAnInteger),
    ])
    func otherNumbersAreNamed(_ spelling: String, _ code: AppStoreError.Code) throws {
        let value = try read(spelling).root
        let error = #expect(throws: AppStoreError.self) { try value.int64() }
        #expect(error?.code == code)
    }

    @Test(arguments: [
        "", " ", "{", "}", "[", "{]", "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}",
        "{'a':1}", "01", "+1", "1.", ".5", "1e", "1e+", "-", "--1", "0x1", "NaN", "Infinity", "nul",
        "tru", "True", "\"", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12G4\"", "\"a\nb\"",
        "\"\u{0}\"",
        "\"\t\"", "1 2", "{} {}", "[1 2]", "{\"a\" 1}", "/*c*/1", "1//c", "\u{0C}1", "\u{A0}1",
    ])
    func whatIsNoJSONIsASyntaxError(_ text: String) {
        #expect(code(Array(text.utf8)) == .syntax)
    }

    @Test func faultsHaveNamesOfTheirOwn() {
        #expect(code(Array("\u{FEFF}{}".utf8)) == .byteOrderMark)
        #expect(code(Array(#"{"a":1,"a":1}"#.utf8)) == .duplicateKey)
        #expect(code(Array(#"{"a":1,"\u0061":1}"#.utf8)) == .duplicateKey)
        #expect(code(Array(#"{"a":{"b":1},"b":{"a":1,"b":2}}"#.utf8)) == nil)
        #expect(code(Array(#"{"a":1,"a":1"#.utf8)) == .syntax)
        let depth = JSONDocument.depthMax
        func nested(_ depth: Int) -> [UInt8] {
            Array(
                (String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8
            )
        }
        #expect(code(nested(depth)) == nil)
        #expect(code(nested(depth + 1)) == .tooDeep)
        #expect(code([UInt8](repeating: 0x5B, count: 1_000_000)) == .tooDeep)
    }

    @Test(
        arguments: [
            [0x80], [0xC3], [0xC0, 0x80], [0xC1, 0xBF], [0xC3, 0x28], [0xE0, 0x9F, 0xBF],
            [0xED, 0xA0, 0x80], [0xEF, 0xBF], [0xF0, 0x8F, 0xBF, 0xBF], [0xF4, 0x90, 0x80, 0x80],
            [0xF5, 0x80, 0x80, 0x80], [0xFF], [0xE2, 0x82, 0x22],
        ] as [[UInt8]]
    )
    func whatIsNoUTF8IsNamed(_ sequence: [UInt8]) {
        let long = Array("some text before ".utf8)
        for prefix in [[], long] {
            #expect(code([0x22] + prefix + sequence + [0x22]) == .invalidUTF8)
        }
    }

    @Test func everyCharacterIsReadBack() throws {
        var random = TestRandom(state: 3)
        for _ in 0..<300 {
            var text = ""
            for _ in 0..<(random.next() % 40) {
                let limit = [0x80, 0x800, 0x10000, 0x110000][Int(random.next() % 4)]
                guard let scalar = Unicode.Scalar(UInt32(random.next() % UInt64(limit))) else {
                    continue
                }
                text.unicodeScalars.append(scalar)
            }
            #expect(try read(JSONQuoting.quoted(text)).root.text == text)
        }
    }

    @Test func surrogatesAndNULAreLegalJSON() throws {
        let document = try read(
            #"{"p":"\ud83d\ude00","l":"\ud800","r":"\ude00\ud83d","n":"a\u0000b"}"#
        )
        #expect(document["p"]?.text == "😀")
        #expect(document["l"]?.text == nil)
        #expect(document["l"]?.textBytes == [0xED, 0xA0, 0x80])
        #expect(document["r"]?.text == nil)
        #expect(document["n"]?.text == "a\0b")
    }

    @Test func aHostileObjectCostsNoSquareOfItsSize() throws {
        let members = (0..<20_000).map { "\"key\($0)\":\($0)" }.joined(separator: ",")
        let document = try read("{\(members)}")
        #expect(document["key19999"]?.numberText == "19999")
        #expect(code(Array("{\(members),\"key7\":0}".utf8)) == .duplicateKey)
    }

    @Test func garbageNeverTraps() throws {
        var random = TestRandom(state: 99)
        let seedText = Array(#"{"a":[1.5,-2e3,"x\u00e9\n",true,null],"b":{"c":"é😀"}}"#.utf8)
        for _ in 0..<4000 {
            var bytes = seedText
            for _ in 0...(random.next() % 3) {
                let place = Int(random.next() % UInt64(bytes.count))
                switch random.next() % 3 {
                case 0: bytes[place] = UInt8(truncatingIfNeeded: random.next())
                case 1: bytes.remove(at: place)
                default: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: place)
                }
            }
            guard let document = try? JSONDocument(bytes) else { continue }
            let compact = JSONCompactText(document, replacing: []).bytes
            let again = try JSONDocument(compact)
            #expect(CanonicalContent(again).bytes == CanonicalContent(document).bytes)
        }
    }
}
