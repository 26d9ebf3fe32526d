extension WireValue {
    /// Reads JSON text; nil where it is none, or nested deeper than anything that is sent here.
    ///
    /// What Apple's server makes of a repeated name is not known; here the first one counts.
    public init?(reading text: [UInt8]) {
        var reader = WireReader(text: text)
        guard let value = reader.value(depth: 0), reader.isAtEnd else { return nil }
        self = value
    }

    /// The string, where it is one.
    public var text: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }

    /// The whole number, where it is one.
    public var number: Int64? {
        guard case .integer(let number) = self else { return nil }
        return number
    }

    /// The number, whole or not.
    public var decimal: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .raw(let text): Double(text)
        default: nil
        }
    }

    /// The truth value, where it is one.
    public var flag: Bool? {
        guard case .bool(let flag) = self else { return nil }
        return flag
    }

    /// The elements, where it is an array.
    public var elements: [WireValue]? {
        guard case .array(let elements) = self else { return nil }
        return elements
    }

    /// The members, where it is an object.
    public var members: [WireMember]? {
        guard case .object(let members) = self else { return nil }
        return members
    }
}

/// Goes over JSON text once.
private struct WireReader {
    private static let depthMax = 32

    let text: [UInt8]
    var place = 0

    var isAtEnd: Bool {
        mutating get {
            skipSpace()
            return place == text.count
        }
    }

    mutating func value(depth: Int) -> WireValue? {
        guard depth < Self.depthMax else { return nil }
        skipSpace()
        guard place < text.count else { return nil }
        switch text[place] {
        case UInt8(ascii: "{"): return object(depth)
        case UInt8(ascii: "["): return array(depth)
        case UInt8(ascii: "\""): return string().map { .string($0) }
        case UInt8(ascii: "t"): return take("true") ? .bool(true) : nil
        case UInt8(ascii: "f"): return take("false") ? .bool(false) : nil
        case UInt8(ascii: "n"): return take("null") ? .null : nil
        default: return number()
        }
    }

    private mutating func object(_ depth: Int) -> WireValue? {
        place += 1
        var members: [WireMember] = []
        if takeMark("}") { return .object(members) }
        repeat {
            skipSpace()
            guard let name = string(), takeMark(":"), let value = value(depth: depth + 1) else {
                return nil
            }
            members.append(WireMember(name, value))
        } while takeMark(",")
        return takeMark("}") ? .object(members) : nil
    }

    private mutating func array(_ depth: Int) -> WireValue? {
        place += 1
        var elements: [WireValue] = []
        if takeMark("]") { return .array(elements) }
        repeat {
            guard let element = value(depth: depth + 1) else { return nil }
            elements.append(element)
        } while takeMark(",")
        return takeMark("]") ? .array(elements) : nil
    }

    private mutating func number() -> WireValue? {
        let start = place
        while place < text.count, "+-.0123456789eE".utf8.contains(text[place]) { place += 1 }
        let digits = String(decoding: text[start..<place], as: UTF8.self)
        guard let first = digits.utf8.first, first != UInt8(ascii: "+"), Double(digits) != nil
        else {
            return nil
        }
        return Int64(digits).map { .integer($0) } ?? .raw(digits)
    }

    private mutating func string() -> String? {
        guard place < text.count, text[place] == UInt8(ascii: "\"") else { return nil }
        place += 1
        var bytes: [UInt8] = []
        while place < text.count {
            let byte = text[place]
            place += 1
            switch byte {
            case UInt8(ascii: "\""): return String(validating: bytes, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let scalar = escaped() else { return nil }
                bytes += String(scalar).utf8
            case 0..<0x20: return nil
            default: bytes.append(byte)
            }
        }
        return nil
    }

    private mutating func escaped() -> Unicode.Scalar? {
        guard place < text.count else { return nil }
        place += 1
        switch text[place - 1] {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{c}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): break
        default: return nil
        }
        guard let unit = unit() else { return nil }
        guard 0xD800..<0xDC00 ~= unit else { return Unicode.Scalar(unit) }
        guard take("\\u"), let low = self.unit(), 0xDC00..<0xE000 ~= low else { return nil }
        return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
    }

    private mutating func unit() -> UInt32? {
        guard place + 4 <= text.count else { return nil }
        defer { place += 4 }
        let digits = text[place..<place + 4]
        guard digits.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }) else {
            return nil
        }
        return UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
    }

    private mutating func take(_ word: String) -> Bool {
        guard text[place...].starts(with: word.utf8) else { return false }
        place += word.utf8.count
        return true
    }

    private mutating func takeMark(_ mark: String) -> Bool {
        skipSpace()
        return take(mark)
    }

    private mutating func skipSpace() {
        while place < text.count, [0x20, 0x09, 0x0A, 0x0D].contains(text[place]) { place += 1 }
    }
}
