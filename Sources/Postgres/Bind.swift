/// A value for a `$n` of a statement, the only way for a value to reach SQL.
public enum Bind: Hashable, Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    case text(String)
    case bytes([UInt8])
    /// An instant in milliseconds since 1970, sent as `timestamptz`.
    case instant(milliseconds: Int64)
    /// The 16 bytes of a `uuid`, most significant first.
    case uuid(UInt128)
    case textArray([String])
    case intArray([Int64])

    /// The text or the value null.
    public static func text(_ value: String?) -> Bind {
        value.map { .text($0) } ?? .null
    }

    /// The integer or the value null.
    public static func int(_ value: Int64?) -> Bind {
        value.map { .int($0) } ?? .null
    }

    /// The instant or the value null.
    public static func instant(milliseconds value: Int64?) -> Bind {
        value.map { .instant(milliseconds: $0) } ?? .null
    }
}

extension Bind {
    /// PostgreSQL's epoch, 2000-01-01, in milliseconds since 1970.
    @inlinable static var postgresEpochMilliseconds: Int64 { 946_684_800_000 }

    /// The type's OID where the format needs it; 0 lets the server infer the type.
    var oid: UInt32 {
        switch self {
        case .bytes: 17
        case .instant: 1184
        case .uuid: 2950
        case .textArray: 1009
        case .intArray: 1016
        case .bool: 16
        case .null, .int, .text: 0
        }
    }

    /// 1 for PostgreSQL's binary format, 0 for text.
    var format: Int32 {
        switch self {
        case .bytes, .instant, .uuid: 1
        default: 0
        }
    }

    /// The value as libpq sends it (text values end in a zero byte), or nil for null.
    var encoded: [UInt8]? {
        switch self {
        case .null: nil
        case .bool(let value): Array((value ? "t" : "f").utf8) + [0]
        case .int(let value): Array(String(value).utf8) + [0]
        case .text(let value): Array(value.utf8) + [0]
        case .bytes(let value): value
        case .instant(let milliseconds):
            bigEndian(Self.microseconds(milliseconds))
        case .uuid(let value): bigEndian(value)
        case .textArray(let values):
            Array(("{" + values.map(Self.quoted).joined(separator: ",") + "}").utf8) + [0]
        case .intArray(let values):
            Array(("{" + values.map { String($0) }.joined(separator: ",") + "}").utf8) + [0]
        }
    }

    /// An instant as PostgreSQL counts it; `Int64.max` is infinity, as where it is read.
    ///
    /// What is too far away becomes a number that PostgreSQL refuses with 22008: an overflow here
    /// would end the program.
    static func microseconds(_ milliseconds: Int64) -> Int64 {
        if milliseconds == .max || milliseconds == .min { return milliseconds }
        let (shifted, isTooSmall) = milliseconds.subtractingReportingOverflow(
            postgresEpochMilliseconds
        )
        let (product, isTooLarge) = shifted.multipliedReportingOverflow(by: 1000)
        if isTooSmall || isTooLarge { return milliseconds < 0 ? .min + 1 : .max - 1 }
        return product
    }

    /// Whether it is text with U+0000 in it, which PostgreSQL cannot hold.
    ///
    /// libpq takes text up to the first zero byte, so the rest would be lost without a word.
    var isCutByZero: Bool {
        switch self {
        case .text(let value): value.utf8.contains(0)
        case .textArray(let values): values.contains { $0.utf8.contains(0) }
        default: false
        }
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for character in text.unicodeScalars {
            if character == "\"" || character == "\\" { result.unicodeScalars.append("\\") }
            result.unicodeScalars.append(character)
        }
        return result + "\""
    }
}

/// The bytes of an integer, most significant first.
func bigEndian<I: FixedWidthInteger>(_ value: I) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(I.bitWidth / 8)
    var shift = I.bitWidth - 8
    while shift >= 0 {
        bytes.append(UInt8(truncatingIfNeeded: value >> I(shift)))
        shift -= 8
    }
    return bytes
}
