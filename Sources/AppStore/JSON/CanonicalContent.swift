internal import Crypto
internal import Glibc

/// What a decoded payload says, in a form that does not depend on spelling, order or signing time.
///
/// Apple signs the same content anew for each answer; two deliveries are the same fact when their
/// canonical forms are. The form, byte by byte, with all counts as four bytes, most significant
/// first:
///
/// - object: `o`, the count of members, then each member's name (length and bytes) and value, by
///   the names' bytes in ascending order; members called `signedDate` are left out at every level
/// - array: `a`, the count, then each element
/// - text: `s`, the length and the bytes after unescaping
/// - number: `n`, the length and the spelling
/// - `t`, `f`, `z` for true, false and null
/// - `j` and a SHA-256 for a nested signed text: the digest of its decoded payload's form
struct CanonicalContent {
    /// The names that say when something was signed and not what it says.
    private static let signingTime = Array("signedDate".utf8)

    private(set) var bytes: [UInt8] = []
    private let nested: [(index: Int, digest: [UInt8])]

    /// The form of a document, with the digests of the nested texts at their nodes.
    init(_ document: JSONDocument, nested: [(index: Int, digest: [UInt8])] = []) {
        self.nested = nested
        bytes.reserveCapacity(min(document.bytes.count, 4096))
        append(document, 0)
    }

    /// SHA-256 of the form.
    var digest: [UInt8] { SHA256.digest(bytes) }

    private mutating func append(_ document: JSONDocument, _ index: Int) {
        let node = document.nodes[index]
        let range = Int(node.start)..<Int(node.end)
        switch node.kind {
        case .object: appendObject(document, index)
        case .array:
            bytes.append(UInt8(ascii: "a"))
            let countPlace = bytes.count
            append(count: 0)
            var count = 0
            var place = index + 1
            while place < Int(node.next) {
                append(document, place)
                count += 1
                place = Int(document.nodes[place].next)
            }
            set(count: count, at: countPlace)
        case .string, .key:
            if let nested = nested.first(where: { $0.index == index }) {
                bytes.append(UInt8(ascii: "j"))
                bytes.append(contentsOf: nested.digest)
                return
            }
            bytes.append(UInt8(ascii: "s"))
            if node.hasEscape {
                append(JSONText.bytes(document.bytes[range], hasEscape: true)[...])
            } else {
                append(document.bytes[(range.lowerBound + 1)..<(range.upperBound - 1)])
            }
        case .number:
            bytes.append(UInt8(ascii: "n"))
            append(document.bytes[range])
        case .true: bytes.append(UInt8(ascii: "t"))
        case .false: bytes.append(UInt8(ascii: "f"))
        case .null: bytes.append(UInt8(ascii: "z"))
        }
    }

    private mutating func appendObject(_ document: JSONDocument, _ index: Int) {
        var members: [(name: ArraySlice<UInt8>, value: Int)] = []
        members.reserveCapacity(40)
        var place = index + 1
        while place < Int(document.nodes[index].next) {
            let key = document.nodes[place]
            let range = Int(key.start)..<Int(key.end)
            let name =
                key.hasEscape
                ? JSONText.bytes(document.bytes[range], hasEscape: true)[...]
                : document.bytes[(range.lowerBound + 1)..<(range.upperBound - 1)]
            if !name.elementsEqual(Self.signingTime) { members.append((name, place + 1)) }
            place = Int(document.nodes[place + 1].next)
        }
        members.sort { Self.precedes($0.name, $1.name) }
        bytes.append(UInt8(ascii: "o"))
        append(count: members.count)
        for member in members {
            append(member.name)
            append(document, member.value)
        }
    }

    private static func precedes(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Bool {
        unsafe left.withUnsafeBytes { left in
            unsafe right.withUnsafeBytes { right in
                guard let first = left.baseAddress, let second = right.baseAddress else {
                    return left.count < right.count
                }
                let order = unsafe memcmp(first, second, min(left.count, right.count))
                return order == 0 ? left.count < right.count : order < 0
            }
        }
    }

    private mutating func append(_ content: ArraySlice<UInt8>) {
        append(count: content.count)
        bytes.append(contentsOf: content)
    }

    private mutating func append(count: Int) {
        let number = UInt32(truncatingIfNeeded: count)
        bytes.append(UInt8(truncatingIfNeeded: number >> 24))
        bytes.append(UInt8(truncatingIfNeeded: number >> 16))
        bytes.append(UInt8(truncatingIfNeeded: number >> 8))
        bytes.append(UInt8(truncatingIfNeeded: number))
    }

    private mutating func set(count: Int, at place: Int) {
        for byte in 0..<4 {
            bytes[place + byte] = UInt8(truncatingIfNeeded: count >> (24 - byte * 8))
        }
    }
}
