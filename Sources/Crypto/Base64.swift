/// Standard base64 with padding, as certificates in `x5c` and in PEM files are written.
public enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )
    private static let table = Base64Table(alphabet: alphabet)

    /// Writes bytes with padding.
    public static func encode(_ bytes: [UInt8]) -> String {
        var text = Base64Table.encode(bytes, alphabet: alphabet)
        while text.count % 4 != 0 { text.append(UInt8(ascii: "=")) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Reads canonical base64; nil for anything else.
    ///
    /// The padding must be there, the bits left over must be zero, and no space is allowed: so a
    /// certificate has exactly one spelling.
    public static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        var body = text
        if body.last == UInt8(ascii: "=") { body.removeLast() }
        if body.last == UInt8(ascii: "=") { body.removeLast() }
        return table.decode(body)
    }

    /// Reads canonical base64; nil for anything else.
    public static func decode(_ text: [UInt8]) -> [UInt8]? { decode(text[...]) }

    /// Reads canonical base64; nil for anything else.
    public static func decode(_ text: String) -> [UInt8]? { decode(Array(text.utf8)[...]) }
}

/// Base64 in the alphabet of URLs and without padding, as the parts of a JWS are written.
public enum Base64URL {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8
    )
    private static let table = Base64Table(alphabet: alphabet)

    /// Writes bytes without padding.
    public static func encode(_ bytes: [UInt8]) -> String {
        String(decoding: encodeBytes(bytes), as: UTF8.self)
    }

    /// Writes bytes without padding, as ASCII bytes.
    public static func encodeBytes(_ bytes: [UInt8]) -> [UInt8] {
        Base64Table.encode(bytes, alphabet: alphabet)
    }

    /// Reads canonical base64url; nil for anything else.
    ///
    /// No padding and no space is allowed and the bits left over must be zero, so that encoding
    /// the result gives the same text again.
    public static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? { table.decode(text) }

    /// Reads canonical base64url; nil for anything else.
    public static func decode(_ text: [UInt8]) -> [UInt8]? { table.decode(text[...]) }

    /// Reads canonical base64url; nil for anything else.
    public static func decode(_ text: String) -> [UInt8]? { table.decode(Array(text.utf8)[...]) }
}

/// The value of each character of an alphabet.
struct Base64Table: Sendable {
    /// 256 values; anything above 63 is no character of the alphabet.
    private let values: [UInt8]

    init(alphabet: [UInt8]) {
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        self.values = values
    }

    static func encode(_ bytes: [UInt8], alphabet: [UInt8]) -> [UInt8] {
        // A multiple of four with room for padding, so that nobody grows it afterwards.
        let capacity = (bytes.count + 2) / 3 * 4
        return unsafe [UInt8](unsafeUninitializedCapacity: capacity) { output, count in
            unsafe bytes.withUnsafeBufferPointer { input in
                unsafe alphabet.withUnsafeBufferPointer { alphabet in
                    count = unsafe Self.encode(input, into: output, alphabet: alphabet)
                }
            }
        }
    }

    /// The inner loop, over pointers since each notification is written again to be compared.
    private static func encode(
        _ input: UnsafeBufferPointer<UInt8>,
        into output: UnsafeMutableBufferPointer<UInt8>,
        alphabet: UnsafeBufferPointer<UInt8>
    ) -> Int {
        var source = 0
        var target = 0
        while source &+ 3 <= input.count {
            let a = unsafe input[source]
            let b = unsafe input[source &+ 1]
            let c = unsafe input[source &+ 2]
            unsafe output[target] = alphabet[Int(a >> 2)]
            unsafe output[target &+ 1] = alphabet[Int(a & 3) << 4 | Int(b >> 4)]
            unsafe output[target &+ 2] = alphabet[Int(b & 15) << 2 | Int(c >> 6)]
            unsafe output[target &+ 3] = alphabet[Int(c & 63)]
            source &+= 3
            target &+= 4
        }
        switch input.count - source {
        case 1:
            let a = unsafe input[source]
            unsafe output[target] = alphabet[Int(a >> 2)]
            unsafe output[target &+ 1] = alphabet[Int(a & 3) << 4]
            return target + 2
        case 2:
            let a = unsafe input[source]
            let b = unsafe input[source &+ 1]
            unsafe output[target] = alphabet[Int(a >> 2)]
            unsafe output[target &+ 1] = alphabet[Int(a & 3) << 4 | Int(b >> 4)]
            unsafe output[target &+ 2] = alphabet[Int(b & 15) << 2]
            return target + 3
        default: return target
        }
    }

    /// Reads text without padding; nil where a character, the length or the last bits are wrong.
    func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let remainder = text.count % 4
        guard remainder != 1 else { return nil }
        let length = text.count / 4 * 3 + (remainder == 0 ? 0 : remainder - 1)
        guard length > 0 else { return [] }
        var isCanonical = true
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: length) { output, count in
            unsafe text.withUnsafeBufferPointer { input in
                unsafe values.withUnsafeBufferPointer { values in
                    isCanonical = unsafe Self.decode(input, into: output, values: values)
                }
            }
            count = length
        }
        return isCanonical ? bytes : nil
    }

    /// The inner loop, over pointers since it reads 30 kB for each notification.
    private static func decode(
        _ input: UnsafeBufferPointer<UInt8>,
        into output: UnsafeMutableBufferPointer<UInt8>,
        values: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        var seen: UInt8 = 0
        var source = 0
        var target = 0
        let wholeEnd = input.count / 4 * 4
        while source < wholeEnd {
            let a = unsafe values[Int(input[source])]
            let b = unsafe values[Int(input[source &+ 1])]
            let c = unsafe values[Int(input[source &+ 2])]
            let d = unsafe values[Int(input[source &+ 3])]
            seen |= a | b | c | d
            unsafe output[target] = a << 2 | b >> 4
            unsafe output[target &+ 1] = b << 4 | c >> 2
            unsafe output[target &+ 2] = c << 6 | d
            source &+= 4
            target &+= 3
        }
        switch input.count - wholeEnd {
        case 2:
            let a = unsafe values[Int(input[source])]
            let b = unsafe values[Int(input[source &+ 1])]
            unsafe output[target] = a << 2 | b >> 4
            return (seen | a | b) < 64 && b & 15 == 0
        case 3:
            let a = unsafe values[Int(input[source])]
            let b = unsafe values[Int(input[source &+ 1])]
            let c = unsafe values[Int(input[source &+ 2])]
            unsafe output[target] = a << 2 | b >> 4
            unsafe output[target &+ 1] = b << 4 | c >> 2
            return (seen | a | b | c) < 64 && c & 3 == 0
        default: return seen < 64
        }
    }
}
