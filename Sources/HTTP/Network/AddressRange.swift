/// A network in CIDR form, such as `17.0.0.0/8`.
public struct AddressRange: Hashable, Sendable, CustomStringConvertible {
    private let base: IPAddress
    private let prefixLength: Int

    /// Reads a network, or one address; nil where bits beyond the prefix are set.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let base = IPAddress(parts[0]) else { return nil }
        let width = base.isIPv4 ? 32 : 128
        self.base = base
        if parts.count > 1 {
            guard !parts[1].isEmpty, parts[1].utf8.count <= 3,
                parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let length = Int(parts[1]), length <= width
            else { return nil }
            prefixLength = length
        } else {
            prefixLength = width
        }
        guard base.bits & ~mask == 0 else { return nil }
    }

    /// Whether the address is of this network; one of the other family never is.
    public func contains(_ address: IPAddress) -> Bool {
        address.isIPv4 == base.isIPv4 && address.bits & mask == base.bits
    }

    /// The network's usual text.
    public var description: String { "\(base)/\(prefixLength)" }

    private var mask: UInt128 {
        let width = base.isIPv4 ? 32 : 128
        let all = base.isIPv4 ? UInt128(UInt32.max) : UInt128.max
        return prefixLength == 0 ? 0 : all << (width - prefixLength) & all
    }
}

extension Sequence<AddressRange> {
    /// Whether the address is of any of these networks.
    public func contains(address: IPAddress) -> Bool {
        contains { $0.contains(address) }
    }
}
