/// Writes JSON text, value by value, in the order of the calls.
///
/// It is for what this program says itself. What Apple signed is never written with it: those
/// bytes go out as they came in, through `raw(_:)`.
public struct JSONWriter: Sendable {
    /// What was written so far.
    public private(set) var bytes: [UInt8] = []

    private let isPretty: Bool
    /// For each open object or array, whether it has no member yet.
    private var isEmpty: [Bool] = []
    private var isAfterKey = false

    /// Makes an empty writer.
    ///
    /// - Parameter pretty: one member a line, indented, for people; otherwise one line in all.
    public init(pretty: Bool = false) { isPretty = pretty }

    /// What was written so far, as text.
    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Begins an object.
    public mutating func beginObject() { open(UInt8(ascii: "{")) }

    /// Ends the innermost object.
    public mutating func endObject() { close(UInt8(ascii: "}")) }

    /// Begins an array.
    public mutating func beginArray() { open(UInt8(ascii: "[")) }

    /// Ends the innermost array.
    public mutating func endArray() { close(UInt8(ascii: "]")) }

    /// Writes a member's name; its value must follow.
    public mutating func key(_ name: String) {
        separate()
        quote(name)
        bytes.append(UInt8(ascii: ":"))
        if isPretty { bytes.append(UInt8(ascii: " ")) }
        isAfterKey = true
    }

    /// Writes null.
    public mutating func null() { literal("null") }

    /// Writes a text, or null.
    public mutating func string(_ value: String?) {
        guard let value else { return null() }
        separate()
        quote(value)
    }

    /// Writes an integer, or null.
    public mutating func int(_ value: (some BinaryInteger)?) {
        guard let value else { return null() }
        literal(String(value))
    }

    /// Writes a truth value, or null.
    public mutating func bool(_ value: Bool?) {
        guard let value else { return null() }
        literal(value ? "true" : "false")
    }

    /// Writes a value that is JSON text already.
    public mutating func raw(_ json: some Sequence<UInt8>) {
        separate()
        bytes.append(contentsOf: json)
    }

    /// Writes a member with a text, or null.
    public mutating func member(_ name: String, _ value: String?) {
        key(name)
        string(value)
    }

    /// Writes a member with an integer, or null.
    public mutating func member(_ name: String, _ value: (some BinaryInteger)?) {
        key(name)
        int(value)
    }

    /// Writes a member with a truth value, or null.
    public mutating func member(_ name: String, _ value: Bool?) {
        key(name)
        bool(value)
    }

    /// Empties the writer and keeps its memory; nothing may be open.
    public mutating func removeAll() {
        precondition(isEmpty.isEmpty, "an object or array is still open")
        bytes.removeAll(keepingCapacity: true)
    }

    private mutating func literal(_ text: String) {
        separate()
        bytes.append(contentsOf: text.utf8)
    }

    private mutating func open(_ bracket: UInt8) {
        separate()
        bytes.append(bracket)
        isEmpty.append(true)
    }

    private mutating func close(_ bracket: UInt8) {
        let wasEmpty = isEmpty.removeLast()
        if isPretty, !wasEmpty { newLine() }
        bytes.append(bracket)
    }

    /// Puts the comma and the line break that the next key or element needs.
    private mutating func separate() {
        if isAfterKey {
            isAfterKey = false
            return
        }
        guard let isFirst = isEmpty.last else { return }
        if !isFirst { bytes.append(UInt8(ascii: ",")) }
        isEmpty[isEmpty.count - 1] = false
        if isPretty { newLine() }
    }

    private mutating func newLine() {
        bytes.append(UInt8(ascii: "\n"))
        bytes.append(contentsOf: repeatElement(UInt8(ascii: " "), count: isEmpty.count * 2))
    }

    private mutating func quote(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case UInt8(ascii: "\n"): bytes.append(contentsOf: "\\n".utf8)
            case UInt8(ascii: "\r"): bytes.append(contentsOf: "\\r".utf8)
            case UInt8(ascii: "\t"): bytes.append(contentsOf: "\\t".utf8)
            case 0..<0x20, 0x7F:
                // 0x7F needs no escape in JSON, but a terminal would act on it.
                let digits = String(byte, radix: 16)
                let zeros = String(repeating: "0", count: 4 - digits.utf8.count)
                bytes.append(contentsOf: "\\u\(zeros)\(digits)".utf8)
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
