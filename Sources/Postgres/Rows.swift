internal import CPostgres

/// The rows of one answer, held in libpq's memory until the value's last copy goes.
@safe public final class Rows {
    private let result: OpaquePointer?

    init(adopting result: OpaquePointer?) { unsafe self.result = result }

    deinit { unsafe PQclear(result) }

    /// How many rows there are.
    public var count: Int { Int(unsafe PQntuples(result)) }

    /// How many rows the command touched, 0 where it says nothing of that.
    public var affected: Int {
        Int(unsafe String(cString: PQcmdTuples(result))) ?? 0
    }

    /// The names of the columns, in order.
    public var columns: [String] {
        (0..<(unsafe PQnfields(result))).map { unsafe String(cString: PQfname(result, $0)) }
    }

    /// Whether the field is null.
    public func isNull(_ row: Int, _ column: Int) -> Bool {
        unsafe PQgetisnull(result, Int32(row), Int32(column)) != 0
    }

    /// The field's bytes in PostgreSQL's binary format, or nil when it is null.
    public func bytes(_ row: Int, _ column: Int) -> [UInt8]? {
        guard !isNull(row, column) else { return nil }
        let count = Int(unsafe PQgetlength(result, Int32(row), Int32(column)))
        let start = unsafe PQgetvalue(result, Int32(row), Int32(column))
        return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
    }

    /// The row in COPY's binary format: the number of columns, then length and value of each.
    public func copyBytes(_ row: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        appendRow(row, to: &bytes)
        return bytes
    }

    /// Appends the row in COPY's binary format.
    func appendRow(_ row: Int, to bytes: inout [UInt8]) {
        let columns = unsafe PQnfields(result)
        bytes.append(contentsOf: bigEndian(Int16(columns)))
        for column in 0..<columns {
            guard !isNull(row, Int(column)) else {
                bytes.append(contentsOf: [0xFF, 0xFF, 0xFF, 0xFF])
                continue
            }
            let length = unsafe PQgetlength(result, Int32(row), column)
            let start = unsafe PQgetvalue(result, Int32(row), column)
            unsafe withUnsafeBytes(of: length.bigEndian) { unsafe bytes.append(contentsOf: $0) }
            unsafe bytes.append(
                contentsOf: UnsafeRawBufferPointer(start: start, count: Int(length))
            )
        }
    }

    /// The field as text; for columns of type text, name or varchar.
    public func text(_ row: Int, _ column: Int) -> String? {
        bytes(row, column).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The field as an integer; for columns of type smallint, integer or bigint.
    public func int(_ row: Int, _ column: Int) -> Int64? {
        guard let bytes = bytes(row, column) else { return nil }
        var value: Int64 = (bytes.first ?? 0) & 0x80 == 0 ? 0 : -1
        for byte in bytes { value = value << 8 | Int64(byte) }
        return value
    }

    /// The field as a truth value.
    public func bool(_ row: Int, _ column: Int) -> Bool? {
        bytes(row, column).map { $0.first == 1 }
    }

    /// The field, a `timestamptz`, as milliseconds since 1970; infinity is `Int64.max`.
    public func instant(_ row: Int, _ column: Int) -> Int64? {
        int(row, column).map { microseconds in
            microseconds == .max || microseconds == .min
                ? microseconds
                : floorDivide(microseconds, by: 1000) + Bind.postgresEpochMilliseconds
        }
    }

    /// The field as the 128 bits of a `uuid`.
    public func uuid(_ row: Int, _ column: Int) -> UInt128? {
        bytes(row, column).map { $0.reduce(0) { $0 << 8 | UInt128($1) } }
    }

    /// The field as an array of integers; for `smallint[]`, `integer[]` and `bigint[]`.
    public func intArray(_ row: Int, _ column: Int) -> [Int64]? {
        elements(row, column)?.map { bytes in
            bytes.reduce((bytes.first ?? 0) & 0x80 == 0 ? 0 : -1) { $0 << 8 | Int64($1) }
        }
    }

    /// The field as an array of texts; for `text[]`.
    public func textArray(_ row: Int, _ column: Int) -> [String]? {
        elements(row, column)?.map { String(decoding: $0, as: UTF8.self) }
    }

    /// The field as an array of byte strings; for `bytea[]`.
    public func bytesArray(_ row: Int, _ column: Int) -> [[UInt8]]? {
        elements(row, column)?.map { Array($0) }
    }

    /// The elements of a one-dimensional array in binary format.
    private func elements(_ row: Int, _ column: Int) -> [ArraySlice<UInt8>]? {
        guard let bytes = bytes(row, column) else { return nil }
        guard bytes.count >= 20 else { return [] }
        func word(_ at: Int) -> Int {
            Int(Int32(bitPattern: bytes[at..<at + 4].reduce(0) { $0 << 8 | UInt32($1) }))
        }
        var at = 20
        var result: [ArraySlice<UInt8>] = []
        for _ in 0..<word(12) {
            let length = word(at)
            at += 4
            guard length >= 0 else { continue }
            result.append(bytes[at..<at + length])
            at += length
        }
        return result
    }
}

extension Rows {
    var status: ExecStatusType { unsafe PQresultStatus(result) }

    var sqlState: String? {
        guard let field = unsafe PQresultErrorField(result, shim_diag_sqlstate()) else {
            return nil
        }
        return unsafe String(cString: field)
    }

    /// Whether the server ended the session with this error.
    var isFatal: Bool {
        guard let field = unsafe PQresultErrorField(result, shim_diag_severity()) else {
            return false
        }
        let severity = unsafe String(cString: field)
        return severity == "FATAL" || severity == "PANIC"
    }

    var errorMessage: String {
        guard let field = unsafe PQresultErrorField(result, shim_diag_message_primary()) else {
            return "the server gave no message"
        }
        return unsafe String(cString: field)
    }
}

/// Division that rounds towards minus infinity.
@inlinable func floorDivide(_ value: Int64, by divisor: Int64) -> Int64 {
    let quotient = value / divisor
    return value % divisor < 0 ? quotient - 1 : quotient
}
