/// Writes the few forms of ASN.1 DER that keys and certificates need.
///
/// Issuing goes through this and not through OpenSSL's builders, since tests need certificates
/// that OpenSSL would refuse to build.
enum DER {
    static func tagged(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        var out = [tag]
        out.reserveCapacity(content.count + 4)
        switch content.count {
        case ..<0x80:
            out.append(UInt8(content.count))
        case ..<0x100:
            out += [0x81, UInt8(content.count)]
        case ..<0x10000:
            out += [0x82, UInt8(content.count >> 8), UInt8(content.count & 0xff)]
        default:
            preconditionFailure("nothing that is issued here is above 64 KiB")
        }
        return out + content
    }

    static func sequence(_ parts: [UInt8]...) -> [UInt8] { tagged(0x30, Array(parts.joined())) }
    static func set(_ parts: [UInt8]...) -> [UInt8] { tagged(0x31, Array(parts.joined())) }
    static func octetString(_ bytes: [UInt8]) -> [UInt8] { tagged(0x04, bytes) }
    static func bitString(_ bytes: [UInt8], unusedBits: UInt8 = 0) -> [UInt8] {
        tagged(0x03, [unusedBits] + bytes)
    }
    static func utf8String(_ text: String) -> [UInt8] { tagged(0x0c, Array(text.utf8)) }
    static func printableString(_ text: String) -> [UInt8] { tagged(0x13, Array(text.utf8)) }
    static func boolean(_ value: Bool) -> [UInt8] { [0x01, 0x01, value ? 0xff : 0x00] }
    static let null: [UInt8] = [0x05, 0x00]

    /// An unsigned integer of any width.
    static func integer(_ magnitude: [UInt8]) -> [UInt8] {
        var bytes = Array(magnitude.drop { $0 == 0 })
        if bytes.first.map({ $0 >= 0x80 }) ?? true { bytes.insert(0, at: 0) }
        return tagged(0x02, bytes)
    }

    static func integer(_ value: Int) -> [UInt8] {
        integer((0..<8).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) })
    }

    /// An object identifier from its dotted text.
    static func objectIdentifier(_ dotted: String) -> [UInt8] {
        let arcs = dotted.split(separator: ".").compactMap { UInt64($0) }
        precondition(arcs.count >= 2, "an object identifier has at least two arcs")
        var content: [UInt8] = []
        for arc in [arcs[0] * 40 + arcs[1]] + arcs.dropFirst(2) {
            var groups = [UInt8(arc & 0x7f)]
            var rest = arc >> 7
            while rest > 0 {
                groups.append(UInt8(rest & 0x7f) | 0x80)
                rest >>= 7
            }
            content += groups.reversed()
        }
        return tagged(0x06, content)
    }

    /// An instant as X.509 wants it: UTCTime to 2049, GeneralizedTime after.
    static func time(_ secondsSinceEpoch: Int64) -> [UInt8] {
        let days = secondsSinceEpoch.dividedRounding(by: 86_400)
        let second = secondsSinceEpoch - days * 86_400
        let (year, month, day) = civil(fromDays: days)
        let clock = [month, day, second / 3600, second / 60 % 60, second % 60]
        let tail = clock.map { ($0 < 10 ? "0" : "") + String($0) }.joined() + "Z"
        guard (1950..<2050).contains(year) else {
            let padded = String(repeating: "0", count: max(0, 4 - String(year).count))
            return tagged(0x18, Array((padded + String(year) + tail).utf8))
        }
        let short = year % 100
        return tagged(0x17, Array(((short < 10 ? "0" : "") + String(short) + tail).utf8))
    }

    /// The date of a day number (Howard Hinnant's days-to-civil, in years that begin in March).
    private static func civil(fromDays days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = shifted.dividedRounding(by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }
}

extension Int64 {
    /// The quotient rounded towards minus infinity.
    fileprivate func dividedRounding(by divisor: Int64) -> Int64 {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}
