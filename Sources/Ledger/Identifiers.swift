/// One of Apple's numbers for a transaction, an order line or an app transaction.
///
/// Apple sends them as text. Canonical decimals below 2^63 are held as the number itself; any
/// other text (none was ever seen) is kept as a symbol, so that nothing is lost.
public struct AppleID: Hashable, Sendable, CustomStringConvertible {
    /// The number, or, with the highest bit set, the number of a symbol.
    @usableFromInline let bits: UInt64

    private static let symbolBit: UInt64 = 1 << 63

    /// Reads an identifier from Apple's text.
    public init(_ text: String) {
        if let number = UInt64(text), number < Self.symbolBit, String(number) == text {
            bits = number
        } else {
            bits = Self.symbolBit | UInt64(Symbol(text).index)
        }
    }

    /// Makes an identifier from its number, which is below 2^63.
    public init(_ number: UInt64) {
        precondition(number < Self.symbolBit, "an identifier is below 2^63")
        bits = number
    }

    /// The number, nil where Apple wrote anything else.
    @inlinable public var number: UInt64? { bits & 1 << 63 == 0 ? bits : nil }

    /// The identifier as Apple wrote it.
    public var description: String {
        bits & Self.symbolBit == 0
            ? String(bits)
            : Symbol(index: UInt32(truncatingIfNeeded: bits)).text
    }
}

extension AppleID: Packable {
    @usableFromInline init(bits: UInt64) { self.bits = bits }

    /// The bits of a symbol whose number is too large to be one.
    @inlinable public static var absent: AppleID { AppleID(bits: .max) }
}

/// A UUID: an `appAccountToken` or a `notificationUUID`.
public struct UniqueID: Hashable, Sendable, CustomStringConvertible {
    // Two halves, since a UInt128 would align each fact to 16 bytes.
    private let high: UInt64
    private let low: UInt64

    /// The 128 bits, most significant first.
    public var bits: UInt128 { UInt128(high) << 64 | UInt128(low) }

    /// Makes a UUID from its bits.
    public init(bits: UInt128) {
        high = UInt64(truncatingIfNeeded: bits >> 64)
        low = UInt64(truncatingIfNeeded: bits)
    }

    /// Reads `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` in either case; nil for anything else.
    public init?(_ text: String) {
        var bits: UInt128 = 0
        var place = 0
        for byte in text.utf8 {
            if place == 8 || place == 13 || place == 18 || place == 23 {
                guard byte == 0x2D else { return nil }
            } else {
                let digit: UInt8
                switch byte {
                case 0x30...0x39: digit = byte - 0x30
                case 0x41...0x46: digit = byte - 0x41 + 10
                case 0x61...0x66: digit = byte - 0x61 + 10
                default: return nil
                }
                bits = bits << 4 | UInt128(digit)
            }
            place += 1
        }
        guard place == 36 else { return nil }
        self.init(bits: bits)
    }

    /// The UUID in lower case.
    public var description: String {
        var result = ""
        for place in 0..<32 {
            if place == 8 || place == 12 || place == 16 || place == 20 { result += "-" }
            result += String(Int((bits >> UInt128(124 - place * 4)) & 0xF), radix: 16)
        }
        return result
    }
}
