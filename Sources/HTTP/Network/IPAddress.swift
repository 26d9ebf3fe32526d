internal import Glibc

/// An IPv4 or IPv6 address.
///
/// An IPv4 address that came mapped into IPv6 is the IPv4 address: a socket for both families
/// gives it in that form, and a list of networks must not care.
public struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// Whether it is an IPv4 address.
    public let isIPv4: Bool

    /// The address's bits, in the low 32 where it is IPv4.
    let bits: UInt128

    /// 127.0.0.1.
    public static let loopback = IPAddress(v4: 0x7F00_0001)

    init(v4 bits: UInt32) {
        isIPv4 = true
        self.bits = UInt128(bits)
    }

    init(v6 bits: UInt128) {
        isIPv4 = bits >> 32 == 0xFFFF
        self.bits = isIPv4 ? bits & 0xFFFF_FFFF : bits
    }

    /// Reads an address: four decimal numbers without leading zeros, or RFC 4291's text without a
    /// zone; nil for anything else.
    public init?(_ text: some StringProtocol) {
        if text.contains(":") {
            var bytes = in6_addr()
            guard text.utf8.count <= 45, unsafe inet_pton(AF_INET6, String(text), &bytes) == 1
            else { return nil }
            self.init(v6: unsafe Self.bits(of: bytes))
            return
        }
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bits: UInt32 = 0
        for part in parts {
            guard (1...3).contains(part.count), part.count == 1 || part.first != 0x30,
                part.allSatisfy({ (0x30...0x39).contains($0) })
            else { return nil }
            let number = part.reduce(UInt32(0)) { $0 * 10 + UInt32($1 - 0x30) }
            guard number < 256 else { return nil }
            bits = bits << 8 | number
        }
        self.init(v4: bits)
    }

    /// Takes the address out of what the socket calls give; nil for another family.
    @unsafe init?(_ address: UnsafePointer<sockaddr>) {
        switch Int32(unsafe address.pointee.sa_family) {
        case AF_INET:
            let bits = unsafe UnsafeRawPointer(address).load(as: sockaddr_in.self).sin_addr.s_addr
            self.init(v4: UInt32(bigEndian: bits))
        case AF_INET6:
            let bytes = unsafe UnsafeRawPointer(address).load(as: sockaddr_in6.self).sin6_addr
            self.init(v6: unsafe Self.bits(of: bytes))
        default:
            return nil
        }
    }

    @unsafe private static func bits(of address: in6_addr) -> UInt128 {
        unsafe withUnsafeBytes(of: address) { bytes in
            unsafe bytes.reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
        }
    }

    /// What a limit for one client counts together: an IPv6 client has 2⁶⁴ addresses.
    var limitGroup: IPAddress {
        isIPv4 ? self : IPAddress(v6: bits & (UInt128.max << 64))
    }

    /// The usual text: `17.0.0.1`, `2620:149::1`.
    public var description: String {
        if isIPv4 {
            return (0..<4).reversed().map { String((bits >> ($0 * 8)) & 0xFF) }
                .joined(separator: ".")
        }
        var bytes = in6_addr()
        unsafe withUnsafeMutableBytes(of: &bytes) { bytes in
            for index in 0..<16 {
                unsafe bytes[index] = UInt8(truncatingIfNeeded: bits >> ((15 - index) * 8))
            }
        }
        var text = [CChar](repeating: 0, count: 64)
        guard unsafe inet_ntop(AF_INET6, &bytes, &text, socklen_t(text.count)) != nil else {
            return "?"
        }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
    }
}
