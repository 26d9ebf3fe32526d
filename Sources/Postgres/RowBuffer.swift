/// Rows in PostgreSQL's binary COPY format, one field a call.
///
/// A pure value: whoever makes rows needs no connection. `CopyWriter` sends it.
public struct RowBuffer: Sendable {
    /// Room for the rows.
    ///
    /// A field is stored where it belongs: appending a few bytes at a time took longer than all else
    /// of encoding a row.
    private var room: [UInt8] = []

    /// How many bytes of the room are written.
    public private(set) var byteCount = 0

    /// The encoded rows, without the header and the end marker.
    public var bytes: ArraySlice<UInt8> { room[..<byteCount] }

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
        unsafe row.withUnsafeBytes { unsafe append($0) }
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
        append(UInt8(value ? 1 : 0))
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
        guard var value else { return null() }
        value.withUTF8 { unsafe field(UnsafeRawBufferPointer($0)) }
    }

    /// Adds a `text` field that holds a number's decimal digits.
    public mutating func text(decimal value: UInt64) {
        var digits: (UInt64, UInt64, UInt64) = (0, 0, 0)
        unsafe withUnsafeMutableBytes(of: &digits) { digits in
            var rest = value
            var start = digits.count
            repeat {
                start -= 1
                let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
                unsafe digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit)
                rest = quotient
            } while rest > 0
            unsafe field(UnsafeRawBufferPointer(rebasing: digits[start...]))
        }
    }

    /// Adds a `bytea` field.
    public mutating func bytea(_ value: [UInt8]?) {
        guard let value else { return null() }
        unsafe value.withUnsafeBytes { unsafe field($0) }
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
        for value in values { appendEight(value) }
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
        for value in values { text(value) }
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
    public mutating func fields(of part: RowBuffer) {
        unsafe part.bytes.withUnsafeBytes { unsafe append($0) }
    }

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
        byteCount = 0
        rowCount = 0
    }

    /// Appends the length 8 and a value of eight bytes, in one go: this is most of a row.
    private mutating func appendEight(_ value: Int64) {
        let at = extend(by: 12)
        unsafe room.withUnsafeMutableBytes { room in
            unsafe room.storeBytes(of: Int32(8).bigEndian, toByteOffset: at, as: Int32.self)
            unsafe room.storeBytes(of: value.bigEndian, toByteOffset: at + 4, as: Int64.self)
        }
    }

    /// Appends a length and so many bytes.
    private mutating func field(_ value: UnsafeRawBufferPointer) {
        append(Int32(value.count))
        unsafe append(value)
    }

    private mutating func append<I: FixedWidthInteger & BitwiseCopyable>(_ value: I) {
        let at = extend(by: MemoryLayout<I>.size)
        unsafe room.withUnsafeMutableBytes { room in
            unsafe room.storeBytes(of: value.bigEndian, toByteOffset: at, as: I.self)
        }
    }

    private mutating func append(_ value: UnsafeRawBufferPointer) {
        let count = value.count
        guard count > 0 else { return }
        let at = extend(by: count)
        unsafe room.withUnsafeMutableBytes { room in
            let place = unsafe UnsafeMutableRawBufferPointer(rebasing: room[at..<at + count])
            unsafe place.copyMemory(from: value)
        }
    }

    /// Counts so many more bytes, for which there is room then; returns where they begin.
    private mutating func extend(by count: Int) -> Int {
        let at = byteCount
        byteCount += count
        if byteCount > room.count {
            let missing = max(byteCount, 2 * room.count, 64) - room.count
            room.append(contentsOf: repeatElement(0, count: missing))
        }
        return at
    }
}
