internal import Ledger
internal import Projections

/// One row that a projection made, read by the names of its columns.
///
/// It answers from rows that are in no table, as the views do from those that are.
struct ProjectedRow {
    private let fields: [String: ArraySlice<UInt8>]

    /// Reads a row as COPY's binary format has it: a count, then length and value of each column.
    init(_ bytes: ArraySlice<UInt8>, of table: Table) {
        var fields: [String: ArraySlice<UInt8>] = [:]
        var at = bytes.startIndex + 2
        for column in table.columns {
            let length = Int(Self.integer(bytes[at..<at + 4]))
            at += 4
            guard length >= 0 else { continue }
            fields[column] = bytes[at..<at + length]
            at += length
        }
        self.fields = fields
    }

    func text(_ column: String) -> String? {
        fields[column].map { String(decoding: $0, as: UTF8.self) }
    }

    func int(_ column: String) -> Int64? { fields[column].map(Self.integer) }

    func bool(_ column: String) -> Bool? { fields[column].map { $0.first != 0 } }

    func uuid(_ column: String) -> UniqueID? {
        fields[column].map { bytes in
            UniqueID(bits: bytes.reduce(0) { $0 << 8 | UInt128($1) })
        }
    }

    /// An instant; nil for null and for infinity.
    func timestamp(_ column: String) -> Timestamp? {
        guard let microseconds = int(column), microseconds != .max, microseconds != .min else {
            return nil
        }
        return Timestamp(postgresMicroseconds: microseconds)
    }

    func intArray(_ column: String) -> [Int64] { elements(column).map(Self.integer) }

    func textArray(_ column: String) -> [String] {
        elements(column).map { String(decoding: $0, as: UTF8.self) }
    }

    private func elements(_ column: String) -> [ArraySlice<UInt8>] {
        // Dimensions, flags and the element's type; of one dimension, its length and first index.
        guard let bytes = fields[column], bytes.count >= 20 else { return [] }
        let start = bytes.startIndex
        var at = start + 20
        return (0..<Self.integer(bytes[start + 12..<start + 16])).map { _ in
            let length = Int(Self.integer(bytes[at..<at + 4]))
            defer { at += 4 + length }
            return bytes[at + 4..<at + 4 + length]
        }
    }

    private static func integer(_ bytes: ArraySlice<UInt8>) -> Int64 {
        let isNegative = (bytes.first ?? 0) & 0x80 != 0
        return bytes.reduce(isNegative ? -1 : 0) { $0 << 8 | Int64($1) }
    }
}

extension Timestamp {
    /// An instant as PostgreSQL counts it, in microseconds since 2000.
    ///
    /// Instants of ours are whole milliseconds, so nothing is rounded.
    init(postgresMicroseconds: Int64) {
        self.init(milliseconds: postgresMicroseconds / 1000 + 946_684_800_000)
    }
}
