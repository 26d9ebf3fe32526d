/// A JSON value as it goes over the wire: members keep their order, numbers their spelling.
///
/// The simulator has a JSON writer of its own, so that a mistake in the product's reader cannot
/// hide behind the same mistake here. Tests edit these values to make any sample.
public indirect enum WireValue: Hashable, Sendable {
    /// An object with its members in order; the same name may come twice.
    case object([WireMember])
    /// An array.
    case array([WireValue])
    /// A string.
    case string(String)
    /// An integer.
    case integer(Int64)
    /// True or false.
    case bool(Bool)
    /// JSON's null.
    case null
    /// Text that is written as it stands, valid JSON or not: `1.50`, `1e400`, `"\ud800"`.
    case raw(String)
}

/// One member of a JSON object.
public struct WireMember: Hashable, Sendable {
    /// The name.
    public var name: String
    /// The value.
    public var value: WireValue

    /// Makes a member.
    public init(_ name: String, _ value: WireValue) {
        self.name = name
        self.value = value
    }
}

extension WireValue {
    /// The first member of that name; setting nil removes all of that name.
    public subscript(_ name: String) -> WireValue? {
        get {
            guard case .object(let members) = self else { return nil }
            return members.first { $0.name == name }?.value
        }
        set {
            guard case .object(var members) = self else { return }
            guard let newValue else {
                members.removeAll { $0.name == name }
                self = .object(members)
                return
            }
            if let index = members.firstIndex(where: { $0.name == name }) {
                members[index].value = newValue
            } else {
                members.append(WireMember(name, newValue))
            }
            self = .object(members)
        }
    }

    /// The compact JSON text.
    public var bytes: [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(1024)
        write(to: &out)
        return out
    }

    private func write(to out: inout [UInt8]) {
        switch self {
        case .object(let members):
            out.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                Self.write(member.name, to: &out)
                out.append(UInt8(ascii: ":"))
                member.value.write(to: &out)
            }
            out.append(UInt8(ascii: "}"))
        case .array(let values):
            out.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                value.write(to: &out)
            }
            out.append(UInt8(ascii: "]"))
        case .string(let text): Self.write(text, to: &out)
        case .integer(let number): out += String(number).utf8
        case .bool(let flag): out += (flag ? "true" : "false").utf8
        case .null: out += "null".utf8
        case .raw(let text): out += text.utf8
        }
    }

    private static func write(_ text: String, to out: inout [UInt8]) {
        out.append(UInt8(ascii: "\""))
        defer { out.append(UInt8(ascii: "\"")) }
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                out.append(UInt8(ascii: "\\"))
                out.append(byte)
            case 0..<0x20:
                let digits = Array("0123456789abcdef".utf8)
                out += "\\u00".utf8
                out.append(digits[Int(byte >> 4)])
                out.append(digits[Int(byte & 15)])
            default: out.append(byte)
            }
        }
    }
}

extension WireValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral,
    ExpressibleByNilLiteral
{
    /// A string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// An integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// True or false.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// An array.
    public init(arrayLiteral elements: WireValue...) { self = .array(elements) }
    /// An object with its members in the order of the literal.
    public init(dictionaryLiteral elements: (String, WireValue)...) {
        self = .object(elements.map { WireMember($0.0, $0.1) })
    }
    /// Null.
    public init(nilLiteral: ()) { self = .null }
}
