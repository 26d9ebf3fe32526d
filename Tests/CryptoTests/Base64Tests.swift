import Crypto
import Testing

@Suite struct Base64Tests {
    @Test func whatWasWrittenIsReadBack() {
        for length in 0..<200 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ length) }
            #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
            #expect(Base64.encode(bytes).count == (length + 2) / 3 * 4)
        }
        #expect(Base64URL.encode([0xFB, 0xFF]) == "-_8")
        #expect(Base64.encode([0xFB, 0xFF]) == "+/8=")
    }

    @Test(arguments: [
        "A", "AAAAA", "AA=", "AA==", "AB", "AAB", "A A", "AA\n", "+_AA", "AA/A", "AA.A", "é",
        "AAAA=",
    ])
    func base64urlHasOneSpelling(_ text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test(arguments: [
        "A", "AA", "AAA", "A===", "====", "AB==", "AAB=", "AA=A", "AAAA====", "AA==AA==", "-_AA",
        "AA ==", "AAAA\n",
    ])
    func base64HasOneSpelling(_ text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test func everyByteThatIsNoCharacterIsRefused() {
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8
        for byte in UInt8.min...UInt8.max {
            for place in 0..<8 {
                var text = [UInt8](repeating: 65, count: 8)
                text[place] = byte
                #expect((Base64URL.decode(text) != nil) == alphabet.contains(byte))
            }
        }
    }
}
