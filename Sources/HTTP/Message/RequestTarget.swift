/// The path and query of a request, decoded strictly.
///
/// There is one reading of every target or none: a bad escape, U+0000, text that is not UTF-8, a
/// byte that had to be escaped, `.` and `..` are refused rather than repaired, since a proxy in
/// front may have repaired them in another way.
public struct RequestTarget: Hashable, Sendable {
    /// One `name=value` of the query.
    public struct QueryItem: Hashable, Sendable {
        /// The decoded name.
        public var name: String
        /// The decoded value; empty where there is no `=`.
        public var value: String

        /// Makes an item.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The decoded segments: `/a/b%2Fc` has `a` and `b/c`, `/` has none.
    public var path: [String]

    /// The query's items in their order, repeated names included.
    ///
    /// `+` stands for itself, as RFC 3986 has it, so that the offset of an instant survives.
    public var query: [QueryItem]

    /// Whether it is the `*` of `OPTIONS *`.
    public var isAsterisk: Bool

    /// Decodes a target; nil when it is refused.
    ///
    /// - Parameter text: the target as it was sent; `http://host/path` is taken as well.
    public init?(_ text: some Sequence<UInt8>) {
        var rest = ArraySlice(Array(text))
        isAsterisk = rest.elementsEqual("*".utf8)
        path = []
        query = []
        if isAsterisk { return }
        guard rest.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }) else {
            return nil
        }
        for scheme in ["http://", "https://"] where rest.starts(with: scheme.utf8) {
            rest = rest.dropFirst(scheme.utf8.count)
            guard let slash = rest.firstIndex(of: UInt8(ascii: "/")), slash > rest.startIndex else {
                return nil
            }
            rest = rest[slash...]
            break
        }
        guard rest.first == UInt8(ascii: "/") else { return nil }
        let parts = rest.split(
            separator: UInt8(ascii: "?"),
            maxSplits: 1,
            omittingEmptySubsequences: false
        )
        guard let segments = Self.segments(parts[0]) else { return nil }
        path = segments
        if parts.count > 1 {
            guard let items = Self.items(parts[1]) else { return nil }
            query = items
        }
    }

    private static func segments(_ bytes: ArraySlice<UInt8>) -> [String]? {
        if bytes.count == 1 { return [] }
        var segments: [String] = []
        for part in bytes.dropFirst().split(
            separator: UInt8(ascii: "/"),
            omittingEmptySubsequences: false
        ) {
            guard let segment = decoded(part), segment != "..", segment != "." else { return nil }
            segments.append(segment)
        }
        return segments
    }

    private static func items(_ bytes: ArraySlice<UInt8>) -> [QueryItem]? {
        var items: [QueryItem] = []
        for part in bytes.split(separator: UInt8(ascii: "&")) {
            let sides = part.split(
                separator: UInt8(ascii: "="),
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            guard let name = decoded(sides[0]), let value = decoded(sides.count > 1 ? sides[1] : [])
            else { return nil }
            items.append(QueryItem(name: name, value: value))
        }
        return items
    }

    private static func decoded(_ bytes: ArraySlice<UInt8>) -> String? {
        guard bytes.contains(UInt8(ascii: "%")) else {
            return String(validating: bytes, as: UTF8.self)
        }
        var plain: [UInt8] = []
        plain.reserveCapacity(bytes.count)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            guard bytes[index] == UInt8(ascii: "%") else {
                plain.append(bytes[index])
                index += 1
                continue
            }
            guard index + 2 < bytes.endIndex, let high = digit(bytes[index + 1]),
                let low = digit(bytes[index + 2]), high << 4 | low != 0
            else { return nil }
            plain.append(high << 4 | low)
            index += 3
        }
        return String(validating: plain, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
