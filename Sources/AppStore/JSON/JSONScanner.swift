/// Reads JSON by RFC 8259, with nothing added and nothing forgiven.
struct JSONScanner {
    /// Objects with more keys than that look duplicates up in a set, so that a hostile object
    /// cannot buy time that grows with the square of its size.
    private static let linearKeysMax = 48

    private let bytes: [UInt8]
    private var position = 0
    private var nodes: [JSONNode] = []
    /// Where the first repeated key stands.
    private var duplicateOffset: Int?

    /// The nodes of a text.
    ///
    /// A text that is no JSON says so even if a key is repeated before the fault.
    static func scan(_ bytes: [UInt8]) throws(AppStoreError) -> [JSONNode] {
        guard bytes.count <= JSONDocument.sizeMaxBytes else {
            throw AppStoreError(code: .tooLong, message: "the JSON is too long")
        }
        guard !bytes.starts(with: [0xEF, 0xBB, 0xBF]) else {
            throw AppStoreError(
                code: .byteOrderMark,
                message: "the JSON begins with a byte order mark",
                offset: 0
            )
        }
        var scanner = JSONScanner(bytes: bytes)
        scanner.skipSpace()
        try scanner.value(depth: 0)
        scanner.skipSpace()
        guard scanner.position == bytes.count else { throw scanner.fault("something follows") }
        if let offset = scanner.duplicateOffset {
            throw AppStoreError(code: .duplicateKey, message: "a key is repeated", offset: offset)
        }
        return scanner.nodes
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
        nodes.reserveCapacity(64)
    }

    private func fault(_ message: String) -> AppStoreError {
        AppStoreError(code: .syntax, message: "no JSON: \(message)", offset: position)
    }

    private var byte: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x0A, 0x0D, 0x09: position += 1
            default: return
            }
        }
    }

    private mutating func append(_ kind: JSONValue.Kind, from start: Int) {
        nodes.append(
            JSONNode(
                kind: kind,
                start: Int32(start),
                end: Int32(position),
                next: Int32(nodes.count + 1)
            )
        )
    }

    private mutating func value(depth: Int) throws(AppStoreError) {
        switch byte {
        case UInt8(ascii: "{"): try object(depth: depth + 1)
        case UInt8(ascii: "["): try array(depth: depth + 1)
        case UInt8(ascii: "\""): try string(.string)
        case UInt8(ascii: "t"): try word("true", .true)
        case UInt8(ascii: "f"): try word("false", .false)
        case UInt8(ascii: "n"): try word("null", .null)
        case .some(0x30...0x39), UInt8(ascii: "-"): try number()
        case nil: throw fault("it ends too early")
        default: throw fault("a value is expected")
        }
    }

    private mutating func word(
        _ word: String,
        _ kind: JSONValue.Kind
    ) throws(AppStoreError) {
        let start = position
        for expected in word.utf8 {
            guard byte == expected else { throw fault("a value is expected") }
            position += 1
        }
        append(kind, from: start)
    }

    private func checkDepth(_ depth: Int) throws(AppStoreError) {
        guard depth <= JSONDocument.depthMax else {
            throw AppStoreError(
                code: .tooDeep,
                message: "the JSON is nested too deeply",
                offset: position
            )
        }
    }

    private mutating func close(_ node: Int) {
        position += 1
        nodes[node].end = Int32(position)
        nodes[node].next = Int32(nodes.count)
    }

    private mutating func array(depth: Int) throws(AppStoreError) {
        try checkDepth(depth)
        let node = nodes.count
        append(.array, from: position)
        position += 1
        skipSpace()
        if byte == UInt8(ascii: "]") { return close(node) }
        while true {
            skipSpace()
            try value(depth: depth)
            skipSpace()
            if byte == UInt8(ascii: "]") { return close(node) }
            guard byte == UInt8(ascii: ",") else { throw fault("a comma is expected") }
            position += 1
        }
    }

    private mutating func object(depth: Int) throws(AppStoreError) {
        try checkDepth(depth)
        let node = nodes.count
        append(.object, from: position)
        position += 1
        skipSpace()
        if byte == UInt8(ascii: "}") { return close(node) }
        var count = 0
        var names: Set<[UInt8]> = []
        while true {
            skipSpace()
            guard byte == UInt8(ascii: "\"") else { throw fault("a key is expected") }
            let key = nodes.count
            try string(.key)
            count += 1
            noteDuplicate(of: key, in: node, count: count, names: &names)
            skipSpace()
            guard byte == UInt8(ascii: ":") else { throw fault("a colon is expected") }
            position += 1
            skipSpace()
            try value(depth: depth)
            skipSpace()
            if byte == UInt8(ascii: "}") { return close(node) }
            guard byte == UInt8(ascii: ",") else { throw fault("a comma is expected") }
            position += 1
        }
    }

    /// Remembers where a key stands that its object had already.
    private mutating func noteDuplicate(
        of key: Int,
        in object: Int,
        count: Int,
        names: inout Set<[UInt8]>
    ) {
        guard duplicateOffset == nil else { return }
        if count <= Self.linearKeysMax {
            let mark = nodes[key].mark
            var place = object + 1
            while place < key {
                if nodes[place].mark == mark, nameBytes(place) == nameBytes(key) {
                    duplicateOffset = Int(nodes[key].start)
                    return
                }
                place = Int(nodes[place + 1].next)
            }
            return
        }
        if names.isEmpty {
            var place = object + 1
            while place < key {
                names.insert(nameBytes(place))
                place = Int(nodes[place + 1].next)
            }
        }
        if !names.insert(nameBytes(key)).inserted { duplicateOffset = Int(nodes[key].start) }
    }

    private func nameBytes(_ node: Int) -> [UInt8] {
        JSONText.bytes(
            bytes[Int(nodes[node].start)..<Int(nodes[node].end)],
            hasEscape: nodes[node].hasEscape
        )
    }

    private mutating func number() throws(AppStoreError) {
        let start = position
        if byte == UInt8(ascii: "-") { position += 1 }
        if byte == UInt8(ascii: "0") {
            position += 1
        } else {
            try digits()
        }
        if byte == UInt8(ascii: ".") {
            position += 1
            try digits()
        }
        if byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E") {
            position += 1
            if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
        append(.number, from: start)
    }

    private mutating func digits() throws(AppStoreError) {
        let start = position
        while let byte, byte >= 0x30, byte <= 0x39 { position += 1 }
        guard position > start else { throw fault("a digit is expected") }
    }

    private mutating func string(_ kind: JSONValue.Kind) throws(AppStoreError) {
        let start = position
        var hasEscape = false
        position += 1
        while true {
            position = PlainText.end(in: bytes, from: position)
            guard let byte else { throw fault("a text is not closed") }
            if byte == UInt8(ascii: "\"") { break }
            if byte == UInt8(ascii: "\\") {
                hasEscape = true
                try escape()
            } else if byte >= 0x80 {
                position += try PlainText.sequenceLength(in: bytes, at: position)
            } else {
                throw fault("a control character stands in a text")
            }
        }
        position += 1
        append(kind, from: start)
        nodes[nodes.count - 1].hasEscape = hasEscape
        guard kind == .key else { return }
        nodes[nodes.count - 1].mark =
            hasEscape
            ? JSONText.mark(nameBytes(nodes.count - 1)[...])
            : JSONText.mark(bytes[(start + 1)..<(position - 1)])
    }

    private mutating func escape() throws(AppStoreError) {
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
            UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 1
        case UInt8(ascii: "u"):
            position += 1
            for _ in 0..<4 {
                switch byte {
                case .some(0x30...0x39), .some(0x41...0x46), .some(0x61...0x66): position += 1
                default: throw fault("four hexadecimal digits are expected")
                }
            }
        default: throw fault("an unknown escape")
        }
    }
}
