/// A reader over one row of a binary COPY; each call reads the next field.
///
/// It is valid only during the call it is handed to, so it cannot be copied. Its functions are
/// inlinable, since a rebuild calls dozens of them for each event.
@safe public struct BinaryRow: ~Copyable {
    @usableFromInline let bytes: UnsafeRawBufferPointer
    @usableFromInline var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { unsafe self.bytes = bytes }

    /// Skips the signature, the flags and the header extension.
    mutating func skipHeader() throws(PostgresError) {
        guard unsafe bytes.count >= 19 else { throw Self.truncated }
        offset = 15
        let extra = Int(integer(UInt32.self))
        offset += extra
    }

    /// Reads the field count; false at the end marker or where the message holds only the header.
    mutating func beginRow() throws(PostgresError) -> Bool {
        guard unsafe offset + 2 <= bytes.count else { return false }
        return integer(Int16.self) >= 0
    }

    /// The next field's length in bytes, or nil when it is null.
    @inlinable mutating func length() -> Int? {
        let length = integer(Int32.self)
        return length < 0 ? nil : Int(length)
    }

    @inlinable mutating func integer<I: FixedWidthInteger & BitwiseCopyable>(_ type: I.Type) -> I {
        let value = unsafe I(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: type))
        offset += MemoryLayout<I>.size
        return value
    }

    /// The next field, a smallint, integer or bigint.
    @inlinable public mutating func int() -> Int64? {
        guard let length = length() else { return nil }
        switch length {
        case 2: return Int64(integer(Int16.self))
        case 4: return Int64(integer(Int32.self))
        case 8: return integer(Int64.self)
        default: preconditionFailure("an integer column of \(length) bytes")
        }
    }

    /// The next field, a boolean.
    @inlinable public mutating func bool() -> Bool? {
        guard length() != nil else { return nil }
        return integer(UInt8.self) != 0
    }

    /// The next field, a `timestamptz`, in milliseconds since 1970; infinity is `Int64.max`.
    @inlinable public mutating func instant() -> Int64? {
        guard length() != nil else { return nil }
        let microseconds = integer(Int64.self)
        if microseconds == .max || microseconds == .min { return microseconds }
        return floorDivide(microseconds, by: 1000) + Bind.postgresEpochMilliseconds
    }

    /// The next field, a `uuid`.
    @inlinable public mutating func uuid() -> UInt128? {
        guard length() != nil else { return nil }
        return integer(UInt128.self)
    }

    /// The next field, text.
    public mutating func text() -> String? {
        unsafe withBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }

    /// The next field's bytes.
    public mutating func byteArray() -> [UInt8]? {
        unsafe withBytes { unsafe Array($0) }
    }

    /// Lends the next field's bytes to `body`; nil when it is null.
    @inlinable public mutating func withBytes<Value>(
        _ body: (UnsafeRawBufferPointer) -> Value
    ) -> Value? {
        guard let length = length() else { return nil }
        let slice = unsafe UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + length])
        offset += length
        return unsafe body(slice)
    }

    /// The next field, a `smallint[]`, `integer[]` or `bigint[]`.
    public mutating func intArray() -> [Int64]? {
        array { row in row.int() }
    }

    /// The next field, a `text[]`.
    public mutating func textArray() -> [String]? {
        array { row in row.text() }
    }

    /// The elements of a one-dimensional array, nulls left out.
    private mutating func array<Element>(
        _ element: (inout BinaryRow) -> Element?
    ) -> [Element]? {
        guard length() != nil else { return nil }
        let dimensions = integer(Int32.self)
        // Whether there are nulls, and the elements' type; each element says both itself.
        offset += 8
        guard dimensions > 0 else { return [] }
        precondition(dimensions == 1, "an array column of \(dimensions) dimensions")
        let count = integer(Int32.self)
        offset += 4
        var elements: [Element] = []
        for _ in 0..<count {
            if let element = element(&self) { elements.append(element) }
        }
        return elements
    }

    /// Appends the whole row as COPY's binary format has it; no field may have been read before.
    public mutating func appendRow(columns: Int, to row: inout [UInt8]) {
        row.append(contentsOf: bigEndian(Int16(columns)))
        let start = offset
        for _ in 0..<columns { skip() }
        unsafe row.append(contentsOf: bytes[start..<offset])
    }

    /// Skips the next field.
    @inlinable public mutating func skip() {
        if let length = length() { offset += length }
    }

    private static let truncated = PostgresError(
        code: .unexpectedResult,
        message: "a COPY message was shorter than its header"
    )
}
