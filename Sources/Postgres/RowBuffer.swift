/// Rows in PostgreSQL's binary COPY format, one field a call.
///
/// A pure value: whoever makes rows needs no connection. `CopyWriter` sends it.
public struct RowBuffer: Sendable {
    /// The encoded rows, without the header and the end marker.
    public private(set) var bytes: [UInt8] = []

    /// How many rows were begun.
    public private(set) var rowCount = 0

    /// Makes an empty buffer.
    public init() {}

    /// Begins a row of so many columns; exactly that many field calls must follow.
    public mutating func beginRow(columns: Int) {
        rowCount += 1
        append(Int16(columns))
    }

    /// Adds a whole row that is encoded already: its number of columns, then its fields.
    public mutating func row(encoded row: ArraySlice<UInt8>) {
        rowCount += 1
        bytes.append(contentsOf: row)
    }

    /// Adds a null field.
    public mutating func null() { append(Int32(-1)) }

    /// Adds a `bigint` field.
    public mutating func int64(_ value: Int64?) {
        guard let value else { return null() }
        appendEight(value)
    }

    /// Adds an `integer` field.
    public mutating func int32(_ value: Int32?) {
        guard let value else { return null() }
        append(UInt64(4) << 32 | UInt64(UInt32(bitPattern: value)))
    }

    /// Adds a `smallint` field.
    public mutating func int16(_ value: Int16?) {
        guard let value else { return null() }
        append(Int32(2))
        append(value)
    }

    /// Adds a `boolean` field.
    public mutating func bool(_ value: Bool?) {
        guard let value else { return null() }
        append(Int32(1))
        bytes.append(value ? 1 : 0)
    }

    /// Adds a `timestamptz` field from milliseconds since 1970.
    public mutating func instant(milliseconds value: Int64?) {
        guard let value else { return null() }
        appendEight(Bind.microseconds(value))
    }

    /// Adds a `timestamptz` field that holds infinity.
    public mutating func infinity() {
        appendEight(.max)
    }

    /// Adds a `uuid` field.
    public mutating func uuid(_ value: UInt128?) {
        guard let value else { return null() }
        append(Int32(16))
        append(value)
    }

    /// Adds a `text` field.
    public mutating func text(_ value: String?) {
        guard let value else { return null() }
        append(Int32(value.utf8.count))
        bytes.append(contentsOf: value.utf8)
    }

    /// Adds a `bytea` field.
    public mutating func bytea(_ value: [UInt8]?) {
        guard let value else { return null() }
        append(Int32(value.count))
        bytes.append(contentsOf: value)
    }

    /// Adds a `bigint[]` field.
    public mutating func int64Array(_ values: [Int64]?) {
        guard let values else { return null() }
        let dimensions = values.isEmpty ? 0 : 1
        append(Int32(12 + dimensions * 8 + values.count * 12))
        append(Int32(dimensions))
        append(Int32(0))
        append(UInt32(20))
        if !values.isEmpty {
            append(Int32(values.count))
            append(Int32(1))
        }
        for value in values {
            append(Int32(8))
            append(value)
        }
    }

    /// Adds a `text[]` field.
    public mutating func textArray(_ values: [String]?) {
        guard let values else { return null() }
        let dimensions = values.isEmpty ? 0 : 1
        let size = values.reduce(12 + dimensions * 8) { $0 + 4 + $1.utf8.count }
        append(Int32(size))
        append(Int32(dimensions))
        append(Int32(0))
        append(UInt32(25))
        if !values.isEmpty {
            append(Int32(values.count))
            append(Int32(1))
        }
        for value in values {
            append(Int32(value.utf8.count))
            bytes.append(contentsOf: value.utf8)
        }
    }

    /// Adds an `integer[]` field.
    public mutating func int32Array(_ values: [Int32]) {
        arrayHeader(count: values.count, element: 23, contentBytes: values.count * 8)
        for value in values {
            append(Int32(4))
            append(value)
        }
    }

    /// Adds a `timestamptz[]` field from milliseconds since 1970.
    public mutating func instantArray(milliseconds values: [Int64]?) {
        guard let values else { return null() }
        arrayHeader(count: values.count, element: 1184, contentBytes: values.count * 12)
        for value in values { instant(milliseconds: value) }
    }

    /// Adds a `bytea[]` field.
    public mutating func byteaArray(_ values: [[UInt8]]) {
        let size = values.reduce(0) { $0 + 4 + $1.count }
        arrayHeader(count: values.count, element: 17, contentBytes: size)
        for value in values { bytea(value) }
    }

    /// Adds the fields of a buffer that holds a part of a row.
    public mutating func fields(of part: RowBuffer) { bytes.append(contentsOf: part.bytes) }

    private mutating func arrayHeader(count: Int, element: UInt32, contentBytes: Int) {
        append(Int32(12 + (count == 0 ? 0 : 8) + contentBytes))
        append(Int32(count == 0 ? 0 : 1))
        append(Int32(0))
        append(element)
        if count > 0 {
            append(Int32(count))
            append(Int32(1))
        }
    }

    /// Empties the buffer and keeps its memory.
    public mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        rowCount = 0
    }

    /// Appends the length 8 and a value of eight bytes, in one go: this is most of a row.
    private mutating func appendEight(_ value: Int64) {
        let field = UInt128(8) << 96 | UInt128(UInt64(bitPattern: value)) << 32
        unsafe withUnsafeBytes(of: field.bigEndian) { field in
            unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: field[..<12]))
        }
    }

    private mutating func append<I: FixedWidthInteger>(_ value: I) {
        unsafe withUnsafeBytes(of: value.bigEndian) { unsafe bytes.append(contentsOf: $0) }
    }
}
