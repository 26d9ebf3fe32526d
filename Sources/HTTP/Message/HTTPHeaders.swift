/// Header fields in the order they came, whose names are compared without regard to case.
public struct HTTPHeaders: Hashable, Sendable, Sequence {
    /// One header field.
    public struct Field: Hashable, Sendable {
        /// The name as it was sent.
        public var name: String
        /// The value without surrounding blanks.
        public var value: String

        /// Makes a field, unchecked: see `HTTPHeaders.isValid`.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    private var fields: [Field] = []

    /// No fields.
    public init() {}

    /// Fields from name and value pairs.
    public init(_ pairs: KeyValuePairs<String, String>) {
        fields = pairs.map { Field(name: $0.key, value: $0.value) }
    }

    /// How many fields there are, repeated ones included.
    public var count: Int { fields.count }

    /// Goes over the fields in their order.
    public func makeIterator() -> IndexingIterator<[Field]> { fields.makeIterator() }

    /// The first value of a name; setting it replaces all of them, nil removes them.
    public subscript(name: String) -> String? {
        get { fields.first { Self.isSame($0.name, name) }?.value }
        set {
            fields.removeAll { Self.isSame($0.name, name) }
            if let newValue { fields.append(Field(name: name, value: newValue)) }
        }
    }

    /// Every value of a name, in order.
    public func all(_ name: String) -> [String] {
        fields.filter { Self.isSame($0.name, name) }.map(\.value)
    }

    /// Adds a field beside those of the same name.
    public mutating func add(_ name: String, _ value: String) {
        fields.append(Field(name: name, value: value))
    }

    /// Whether every name is a token and no value can end its line.
    ///
    /// What is not valid is never sent: the client is answered 500 instead, so that text from
    /// elsewhere cannot smuggle a header, or a whole answer, into ours.
    public var isValid: Bool {
        fields.allSatisfy { Self.isValidName($0.name) && Self.isValidValue($0.value) }
    }

    /// Whether the text is a token as RFC 9110 has it.
    public static func isValidName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.allSatisfy(isTokenByte)
    }

    /// Whether the text has no control character but a tab.
    public static func isValidValue(_ value: String) -> Bool {
        value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default:
            "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    /// Whether two names differ in the case of ASCII letters at most.
    static func isSame(_ one: String, _ other: String) -> Bool {
        let left = one.utf8
        let right = other.utf8
        return left.count == right.count
            && zip(left, right).allSatisfy { lowercased($0) == lowercased($1) }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
