import Testing

@testable import Crypto

@Suite struct ByteScanTests {
    @Test func aRunIsEqualToItselfAloneWhateverByteDiffers() {
        let bytes = (0..<300).map { UInt8(truncatingIfNeeded: $0 * 7) }
        #expect(ByteScan.areEqual(bytes[...], bytes[...]))
        #expect(ByteScan.areEqual([][...], [][...]))
        #expect(!ByteScan.areEqual(bytes[...], bytes[..<299]))
        // The same bytes at another place of a longer run.
        #expect(ByteScan.areEqual((bytes + bytes)[300...], bytes[...]))
        for index in bytes.indices {
            var other = bytes
            other[index] ^= 0x10
            #expect(!ByteScan.areEqual(bytes[...], other[...]), "at \(index)")
        }
    }

    @Test func aByteIsFoundWhereItComesFirst() {
        let bytes = Array("abcabc".utf8)
        #expect(ByteScan.first(UInt8(ascii: "c"), in: bytes[...]) == 2)
        #expect(ByteScan.first(UInt8(ascii: "c"), in: bytes[3...]) == 5)
        #expect(ByteScan.first(UInt8(ascii: "d"), in: bytes[...]) == nil)
        #expect(ByteScan.first(UInt8(ascii: "a"), in: []) == nil)
        // At every place of words of eight bytes, beside bytes that differ in one bit.
        for byte in [0, 1, 0x2E, 0x7F, 0x80, 0xFF] as [UInt8] {
            for other in [byte ^ 1, byte ^ 0x80, byte &+ 1, byte &- 1] {
                for place in 0..<25 {
                    var bytes = [UInt8](repeating: other, count: 25)
                    #expect(ByteScan.first(byte, in: bytes[...]) == nil)
                    bytes[place] = byte
                    #expect(ByteScan.first(byte, in: bytes[...]) == place)
                    #expect(ByteScan.first(byte, in: bytes[(place + 1)...]) == nil)
                }
            }
        }
    }

    @Test(arguments: [
        ("", []), ("\"eyJ", []), ("\"eyJ\"", [1..<4]),
        ("x\"eyJab\",\"eyK\",\"eyJ\"", [2..<7, 16..<19]),
        ("\"eyJa", []), ("\"\"eyJ\"", [2..<5]), ("\"eyJ\"eyJ\"", [1..<4, 5..<8]),
    ])
    func textsThatMayBeSignedAreFound(_ text: String, _ ranges: [Range<Int>]) {
        #expect(ByteScan.quotedJWS(in: Array(text.utf8)) == ranges)
    }

    @Test(arguments: [
        ("", "", true), ("a", "", true), ("", "a", false), ("aab", "ab", true),
        ("aaab", "aab", true),
        ("abab", "abb", false), ("xxab", "ab", true), ("xxa", "ab", false),
    ])
    func aTextWithinAnotherIsFound(_ text: String, _ pattern: String, _ isThere: Bool) {
        #expect(ByteScan.contains(Array(text.utf8), Array(pattern.utf8)) == isThere)
    }
}
