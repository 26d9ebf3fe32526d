/// Texts out of JSON's spelling of them.
enum JSONText {
    /// The content of a spelling that the scanner accepted, quotes included; nil where a lone
    /// surrogate makes it no Unicode.
    static func string(_ spelling: ArraySlice<UInt8>, hasEscape: Bool) -> String? {
        guard hasEscape else {
            return String(decoding: spelling.dropFirst().dropLast(), as: UTF8.self)
        }
        var hasLoneSurrogate = false
        let bytes = unescaped(spelling, hasLoneSurrogate: &hasLoneSurrogate)
        return hasLoneSurrogate ? nil : String(decoding: bytes, as: UTF8.self)
    }

    /// The content as bytes: UTF-8, and three bytes of the same pattern for a lone surrogate.
    static func bytes(_ spelling: ArraySlice<UInt8>, hasEscape: Bool) -> [UInt8] {
        guard hasEscape else { return Array(spelling.dropFirst().dropLast()) }
        var hasLoneSurrogate = false
        return unescaped(spelling, hasLoneSurrogate: &hasLoneSurrogate)
    }

    /// What equal keys have in common: the length and three of the bytes.
    ///
    /// It is compared before the bytes are, and settles nearly every comparison of Apple's names.
    static func mark(_ name: UnsafeBufferPointer<UInt8>) -> UInt32 {
        guard let first = unsafe name.first, let last = unsafe name.last else { return 0 }
        let middle = unsafe name[name.count / 2]
        return UInt32(truncatingIfNeeded: name.count) << 24 | UInt32(first) << 16
            | UInt32(middle) << 8 | UInt32(last)
    }

    /// What equal keys have in common.
    static func mark(_ name: ArraySlice<UInt8>) -> UInt32 {
        unsafe name.withUnsafeBufferPointer { unsafe mark($0) }
    }

    /// Whether a key's bytes are those of a name.
    static func isEqual(_ bytes: ArraySlice<UInt8>, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        unsafe bytes.withUnsafeBufferPointer { bytes in
            guard bytes.count == name.count else { return false }
            for place in 0..<bytes.count where unsafe bytes[place] != name[place] { return false }
            return true
        }
    }

    /// Lends the UTF-8 of a name.
    static func withBytes<Result>(
        of name: String,
        _ body: (UnsafeBufferPointer<UInt8>) -> Result
    ) -> Result {
        if let result = unsafe name.utf8.withContiguousStorageIfAvailable(body) { return result }
        return unsafe Array(name.utf8).withUnsafeBufferPointer(body)
    }

    private static func unescaped(
        _ spelling: ArraySlice<UInt8>,
        hasLoneSurrogate: inout Bool
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(spelling.count)
        var place = spelling.startIndex + 1
        let end = spelling.endIndex - 1
        while place < end {
            let byte = spelling[place]
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                place += 1
                continue
            }
            let kind = spelling[place + 1]
            place += 2
            guard kind == UInt8(ascii: "u") else {
                bytes.append(plainEscape(kind))
                continue
            }
            var code = unit(spelling, at: place)
            place += 4
            if code >> 10 == 0xD800 >> 10, place + 6 <= end,
                spelling[place] == UInt8(ascii: "\\"), spelling[place + 1] == UInt8(ascii: "u")
            {
                let low = unit(spelling, at: place + 2)
                if low >> 10 == 0xDC00 >> 10 {
                    code = 0x10000 + (code & 0x3FF) << 10 + low & 0x3FF
                    place += 6
                }
            }
            if code >= 0xD800, code <= 0xDFFF { hasLoneSurrogate = true }
            append(code, to: &bytes)
        }
        return bytes
    }

    private static func plainEscape(_ kind: UInt8) -> UInt8 {
        switch kind {
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: kind
        }
    }

    /// Four hexadecimal digits, which the scanner has checked.
    private static func unit(_ spelling: ArraySlice<UInt8>, at place: Int) -> UInt32 {
        var unit: UInt32 = 0
        for byte in spelling[place..<place + 4] {
            let digit = byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x61 + 10
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    private static func append(_ code: UInt32, to bytes: inout [UInt8]) {
        switch code {
        case 0..<0x80:
            bytes.append(UInt8(code))
        case 0x80..<0x800:
            bytes.append(UInt8(0xC0 | code >> 6))
            bytes.append(UInt8(0x80 | code & 0x3F))
        case 0x800..<0x10000:
            bytes.append(UInt8(0xE0 | code >> 12))
            bytes.append(UInt8(0x80 | code >> 6 & 0x3F))
            bytes.append(UInt8(0x80 | code & 0x3F))
        default:
            bytes.append(UInt8(0xF0 | code >> 18))
            bytes.append(UInt8(0x80 | code >> 12 & 0x3F))
            bytes.append(UInt8(0x80 | code >> 6 & 0x3F))
            bytes.append(UInt8(0x80 | code & 0x3F))
        }
    }
}
