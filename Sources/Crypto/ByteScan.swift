/// Loops over the bytes of received documents, which are read several times for each event.
///
/// The standard library's generic ones go byte by byte through a collection's indices, ten times as
/// slowly over 20 kB.
package enum ByteScan {
    /// Whether two runs of bytes are the same.
    package static func areEqual(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        return unsafe left.withUnsafeBufferPointer { left in
            unsafe right.withUnsafeBufferPointer { right in
                // Without an early end the loop is one over vectors.
                var difference: UInt8 = 0
                for index in 0..<left.count {
                    unsafe difference |= left[index] ^ right[index]
                }
                return difference == 0
            }
        }
    }

    /// Where a byte comes first, nil where it does not.
    package static func first(_ byte: UInt8, in bytes: ArraySlice<UInt8>) -> Int? {
        let offset = unsafe bytes.withUnsafeBufferPointer { buffer -> Int? in
            var index = 0
            // Eight at a time, as long as none of them is it: then no byte of `others` is zero.
            let pattern = UInt64(byte) &* 0x0101_0101_0101_0101
            while index &+ 8 <= buffer.count {
                let word = unsafe UnsafeRawBufferPointer(buffer).loadUnaligned(
                    fromByteOffset: index,
                    as: UInt64.self
                )
                let others = word ^ pattern
                let zeros = (others &- 0x0101_0101_0101_0101) & ~others & 0x8080_8080_8080_8080
                if zeros != 0 { break }
                index &+= 8
            }
            while index < buffer.count {
                if unsafe buffer[index] == byte { return index }
                index &+= 1
            }
            return nil
        }
        return offset.map { bytes.startIndex + $0 }
    }

    /// Where texts stand that begin with a quote and `eyJ`, without the quotes around them.
    package static func quotedJWS(in bytes: [UInt8]) -> [Range<Int>] {
        unsafe bytes.withUnsafeBufferPointer { buffer in
            let quote = UInt8(ascii: "\"")
            var result: [Range<Int>] = []
            var at = 0
            while at &+ 4 < buffer.count {
                guard unsafe buffer[at] == quote, unsafe buffer[at &+ 1] == UInt8(ascii: "e"),
                    unsafe buffer[at &+ 2] == UInt8(ascii: "y"),
                    unsafe buffer[at &+ 3] == UInt8(ascii: "J")
                else {
                    at &+= 1
                    continue
                }
                var end = at &+ 4
                while end < buffer.count, unsafe buffer[end] != quote { end &+= 1 }
                guard end < buffer.count else { break }
                result.append(at + 1..<end)
                at = end
            }
            return result
        }
    }

    /// Whether a text holds another one.
    package static func contains(_ text: [UInt8], _ pattern: [UInt8]) -> Bool {
        first(pattern, in: text) != nil
    }

    /// Where a text holds another one first, nil where it does not.
    package static func first(_ pattern: [UInt8], in text: [UInt8]) -> Int? {
        guard let first = pattern.first else { return 0 }
        return unsafe text.withUnsafeBufferPointer { text in
            unsafe pattern.withUnsafeBufferPointer { pattern in
                var at = 0
                while at &+ pattern.count <= text.count {
                    guard unsafe text[at] == first else {
                        at &+= 1
                        continue
                    }
                    var length = 1
                    while length < pattern.count,
                        unsafe text[at &+ length] == pattern[length]
                    {
                        length &+= 1
                    }
                    if length == pattern.count { return at }
                    at &+= 1
                }
                return nil
            }
        }
    }
}
