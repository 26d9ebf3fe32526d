/// A JSON text that was read strictly, with every byte of it at hand.
///
/// Apple signs bytes, so nothing is converted on the way in: numbers keep their spelling (`1.50`,
/// `1e400`, `-0`), texts their escapes, objects their order and their unknown members. A duplicate
/// key, invalid UTF-8, a byte order mark and absurd depth are errors with names of their own. A
/// lone surrogate or `\u0000` is legal JSON and stays in the document; only reading it as text says
/// no.
public struct JSONDocument: Sendable {
    /// How deep objects and arrays may be nested; Apple's are under 8.
    public static let depthMax = 64
    /// The longest text that is read.
    public static let sizeMaxBytes = 16 * 1024 * 1024

    /// The text as it was given.
    public let bytes: [UInt8]
    let nodes: [JSONNode]

    /// Reads a text; any value may stand at the top.
    public init(_ bytes: [UInt8]) throws(AppStoreError) {
        self.bytes = bytes
        nodes = try JSONScanner.scan(bytes)
    }

    /// The value that is the whole text.
    public var root: JSONValue { JSONValue(document: self, index: 0) }

    /// The member of that name of the top object, nil where there is none.
    public subscript(key: String) -> JSONValue? { root[key] }

    /// The node of the value of an object's member, nil where there is none of that name.
    fileprivate func member(
        _ name: UnsafeBufferPointer<UInt8>,
        of object: Int
    ) -> Int? {
        let mark = unsafe JSONText.mark(name)
        let end = Int(nodes[object].next)
        var place = object + 1
        while place < end {
            if nodes[place].mark == mark {
                let key = nodes[place]
                let isFound =
                    key.hasEscape
                    ? unsafe JSONText.isEqual(
                        JSONText.bytes(bytes[Int(key.start)..<Int(key.end)], hasEscape: true)[...],
                        name
                    )
                    : unsafe JSONText.isEqual(bytes[Int(key.start + 1)..<Int(key.end - 1)], name)
                if isFound { return place + 1 }
            }
            place = Int(nodes[place + 1].next)
        }
        return nil
    }
}

/// A value within a document.
public struct JSONValue: Sendable {
    /// The kinds of values.
    public enum Kind: UInt8, Hashable, Sendable {
        /// `{…}`.
        case object
        /// `[…]`.
        case array
        /// `"…"`.
        case string
        /// A number, spelled in any way.
        case number
        /// `true`.
        case `true`
        /// `false`.
        case `false`
        /// `null`.
        case null
        /// The name of an object's member; never the kind of a value that is handed out.
        case key
    }

    let document: JSONDocument
    let index: Int

    private var node: JSONNode { document.nodes[index] }

    /// What kind of value it is.
    public var kind: Kind { node.kind }

    /// Whether it is `null`.
    public var isNull: Bool { kind == .null }

    /// Where it stands in the document's bytes, quotes included.
    public var range: Range<Int> { Int(node.start)..<Int(node.end) }

    /// Its spelling, quotes included.
    public var raw: ArraySlice<UInt8> { document.bytes[range] }

    /// The content of a text; nil for other kinds and where a lone surrogate makes it no Unicode.
    public var text: String? {
        guard kind == .string else { return nil }
        return JSONText.string(document.bytes[range], hasEscape: node.hasEscape)
    }

    /// The content of a text as bytes; a lone surrogate is written as if it were a character.
    public var textBytes: [UInt8]? {
        guard kind == .string else { return nil }
        return JSONText.bytes(document.bytes[range], hasEscape: node.hasEscape)
    }

    /// The spelling of a number, nil for other kinds.
    public var numberText: String? {
        kind == .number ? String(decoding: raw, as: UTF8.self) : nil
    }

    /// `true` or `false`, nil for other kinds.
    public var bool: Bool? {
        switch kind {
        case .true: true
        case .false: false
        default: nil
        }
    }

    /// The value of a whole number, however it is spelled (`1e3` is 1000).
    ///
    /// Throws `notAnInteger` for `1.5` and for other kinds, `integerOverflow` beyond 64 bits.
    public func int64() throws(AppStoreError) -> Int64 {
        guard kind == .number else {
            throw AppStoreError(code: .notAnInteger, message: "this is no number")
        }
        return try JSONInteger.value(of: raw)
    }

    /// The member of that name; nil where there is none or the value is no object.
    public subscript(key: String) -> JSONValue? {
        guard kind == .object else { return nil }
        let place = unsafe JSONText.withBytes(of: key) { unsafe document.member($0, of: index) }
        return place.map { JSONValue(document: document, index: $0) }
    }

    /// The members of an object in the order of the text; empty for other kinds.
    ///
    /// A name with a lone surrogate has U+FFFD in its place.
    public var members: [(name: String, value: JSONValue)] {
        guard kind == .object else { return [] }
        var members: [(name: String, value: JSONValue)] = []
        var place = index + 1
        while place < Int(node.next) {
            members.append(
                (
                    String(decoding: nameBytes(document.nodes[place]), as: UTF8.self),
                    JSONValue(document: document, index: place + 1)
                )
            )
            place = Int(document.nodes[place + 1].next)
        }
        return members
    }

    /// The elements of an array in order; empty for other kinds.
    public var elements: [JSONValue] {
        guard kind == .array else { return [] }
        var elements: [JSONValue] = []
        var place = index + 1
        while place < Int(node.next) {
            elements.append(JSONValue(document: document, index: place))
            place = Int(document.nodes[place].next)
        }
        return elements
    }

    private func nameBytes(_ name: JSONNode) -> [UInt8] {
        JSONText.bytes(
            document.bytes[Int(name.start)..<Int(name.end)],
            hasEscape: name.hasEscape
        )
    }
}
