/// The two inner loops of reading a text.
enum PlainText {
    /// The first place from `start` on with a quote, a backslash, a control character or a byte
    /// that is not ASCII.
    ///
    /// Nested signed texts are 5 kB without any of them, so eight bytes are looked at together.
    static func end(in bytes: [UInt8], from start: Int) -> Int {
        unsafe bytes.withUnsafeBytes { buffer in
            var place = start
            while place + 8 <= buffer.count {
                let word = unsafe buffer.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                guard special(in: word) == 0 else { break }
                place += 8
            }
            while place < buffer.count {
                let byte = unsafe buffer[place]
                if byte < 0x20 || byte >= 0x80 || byte == 0x22 || byte == 0x5C { break }
                place += 1
            }
            return place
        }
    }

    /// Not 0 where one of eight bytes is special; may also be not 0 for bytes above such a one.
    private static func special(in word: UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let high: UInt64 = 0x8080_8080_8080_8080
        let quote = word ^ (ones &* 0x22)
        let backslash = word ^ (ones &* 0x5C)
        let isControl = (word &- ones &* 0x20) & ~word
        let isQuote = (quote &- ones) & ~quote
        let isBackslash = (backslash &- ones) & ~backslash
        return (isControl | isQuote | isBackslash | word) & high
    }

    /// The length of the UTF-8 sequence of two to four bytes that begins there.
    ///
    /// Overlong forms, surrogates and code points above U+10FFFF are no UTF-8.
    static func sequenceLength(in bytes: [UInt8], at place: Int) throws(AppStoreError) -> Int {
        let first = bytes[place]
        let length: Int
        var second: ClosedRange<UInt8> = 0x80...0xBF
        switch first {
        case 0xC2...0xDF: length = 2
        case 0xE0:
            length = 3
            second = 0xA0...0xBF
        case 0xED:
            length = 3
            second = 0x80...0x9F
        case 0xE1...0xEF: length = 3
        case 0xF0:
            length = 4
            second = 0x90...0xBF
        case 0xF1...0xF3: length = 4
        case 0xF4:
            length = 4
            second = 0x80...0x8F
        default: length = 0
        }
        let isValid =
            length > 0 && place + length <= bytes.count && second.contains(bytes[place + 1])
            && bytes[(place + 2)..<(place + length)].allSatisfy { $0 >= 0x80 && $0 <= 0xBF }
        guard isValid else {
            throw AppStoreError(
                code: .invalidUTF8,
                message: "a text is not UTF-8",
                offset: place
            )
        }
        return length
    }
}
