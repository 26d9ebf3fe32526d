public import Postgres
internal import Projections

/// What a set of rows has in common with an equal set, whatever the order.
///
/// The sum of a 128-bit hash of each row, so the rows may come from several threads and a row can
/// be taken out again. It finds accidents, not forgeries: those are the log's business.
public struct Digest: Hashable, Sendable, CustomStringConvertible {
    private var sum: UInt128 = 0

    /// How many rows are in it.
    public private(set) var rows: Int64 = 0

    /// The digest of no rows.
    public init() {}

    /// Adds the row of a table, as COPY's binary format has it.
    mutating func add(_ row: ArraySlice<UInt8>, table: Int) {
        sum &+= Self.hash(row, seed: UInt64(table) &+ 1)
        rows += 1
    }

    /// Adds all the rows of another digest.
    mutating func add(_ other: Digest) {
        sum &+= other.sum
        rows += other.rows
    }

    /// Takes out all the rows of another digest, which were added before.
    mutating func subtract(_ other: Digest) {
        sum &-= other.sum
        rows -= other.rows
    }

    /// 32 hexadecimal digits.
    public var description: String {
        let digits = String(sum, radix: 16)
        return String(repeating: "0", count: 32 - digits.utf8.count) + digits
    }

    /// Two lanes of 64 × 64 → 128-bit multiplications, folded; eight bytes a step.
    private static func hash(_ row: ArraySlice<UInt8>, seed: UInt64) -> UInt128 {
        unsafe row.withUnsafeBytes { bytes in
            var high = mixed(seed ^ 0xA076_1D64_78BD_642F, 0xE703_7ED1_A0B4_28DB)
            var low = mixed(UInt64(bytes.count) ^ 0x8EBC_6AF0_9C88_C6E3, 0x5899_65CC_7537_4CC3)
            var offset = 0
            while offset + 8 <= bytes.count {
                let word = unsafe bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                (high, low) = step(high, low, word.littleEndian)
                offset += 8
            }
            var rest: UInt64 = 0
            while offset < bytes.count {
                rest = unsafe rest << 8 | UInt64(bytes[offset])
                offset += 1
            }
            (high, low) = step(high, low, rest)
            return UInt128(mixed(high, low ^ 0x1D8E_4E27_C47D_124F)) << 64
                | UInt128(mixed(low, high ^ 0xEB44_ACCA_B455_D165))
        }
    }

    private static func step(_ high: UInt64, _ low: UInt64, _ word: UInt64) -> (UInt64, UInt64) {
        (
            mixed(high ^ word, 0xA076_1D64_78BD_642F ^ low),
            mixed(low ^ word, 0xE703_7ED1_A0B4_28DB ^ high)
        )
    }

    private static func mixed(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}

extension Digest {
    /// Computes the digest of the rows that the views of a read model show now.
    ///
    /// - Throws: `.unknownProjection`, `.schema`, or what the server says.
    public init(ofLive name: String, _ connection: Connection) throws(ReadModelError) {
        let projection = try ReadModels.projections(named: [name])[0]
        self = try readModels("compute the digest of \(name)") {
            let current = try Current.read(connection).first { $0.projection == name }
            guard let current else {
                throw ReadModelError(.schema, "the read model \(name) is not there")
            }
            var digest = Digest()
            let generation = Generation(projection, current.generation)
            for (place, table) in generation.tables.enumerated() {
                var row: [UInt8] = []
                try connection.copyOut(generation.copyOut(table)) {
                    (fields: inout BinaryRow) throws(PostgresError) in
                    row.removeAll(keepingCapacity: true)
                    fields.appendRow(columns: table.columns.count, to: &row)
                    digest.add(row[...], table: place)
                }
            }
            return digest
        }
    }
}
