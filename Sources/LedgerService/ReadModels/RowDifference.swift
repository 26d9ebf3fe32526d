internal import Ledger
internal import Postgres
internal import Projections

/// Replaces the rows of some subscriptions in one generation, touching only those that differ.
///
/// An event mostly changes the last rows of a timeline; the rest stays where it is, so that
/// tables and indexes do not fill with dead copies.
struct RowDifference {
    /// The rows that came, and those that went.
    private(set) var insertedRows = Digest()
    private(set) var deletedRows = Digest()

    /// Brings the rows of `keys` in `generation` to exactly `rows`.
    ///
    /// It belongs into the transaction that read the events.
    mutating func apply(
        _ rows: ProjectedRows,
        of keys: [SubscriptionKey],
        to generation: Generation,
        over connection: Connection
    ) throws {
        let wanted = Set(keys)
        for (index, table) in generation.tables.enumerated() {
            var stored = try Self.stored(table, of: wanted, in: generation, connection)
            let new = rows.tables[index]
            var inserts: [Int] = []
            var deletes: [RowKey] = []
            for row in new.starts.indices {
                let bytes = new.buffer.bytes[new.range(row)]
                let key = RowKey(bytes, of: table)
                if let old = stored.removeValue(forKey: key) {
                    if old[...] == bytes { continue }
                    deletes.append(key)
                    deletedRows.add(old[...], table: index)
                }
                inserts.append(row)
                insertedRows.add(bytes, table: index)
            }
            for (key, old) in stored {
                deletes.append(key)
                deletedRows.add(old[...], table: index)
            }
            try Self.delete(deletes, from: table, in: generation, connection)
            try Self.insert(inserts, of: new, into: table, in: generation, connection)
        }
    }

    static func stored(
        _ table: Table,
        of keys: Set<SubscriptionKey>,
        in generation: Generation,
        _ connection: Connection
    ) throws -> [RowKey: [UInt8]] {
        let rows = try connection.query(
            prepared:
                "select \(table.columns.joined(separator: ", ")) from \(generation.partition(table))"
                + " where stream = any($1)",
            [.textArray(Set(keys.map(\.stream)).sorted())]
        )
        var stored: [RowKey: [UInt8]] = [:]
        stored.reserveCapacity(rows.count)
        for row in 0..<rows.count {
            let key = SubscriptionKey(
                appID: Int32(truncatingIfNeeded: rows.int(row, 0) ?? 0),
                stream: rows.text(row, 1) ?? ""
            )
            guard keys.contains(key) else { continue }
            let bytes = rows.copyBytes(row)
            stored[RowKey(bytes[...], of: table)] = bytes
        }
        return stored
    }

    private static func delete(
        _ keys: [RowKey],
        from table: Table,
        in generation: Generation,
        _ connection: Connection
    ) throws {
        guard !keys.isEmpty else { return }
        let decoded = keys.map(\.decoded)
        var binds: [Bind] = [
            .intArray(decoded.map { Int64($0.key.appID) }), .textArray(decoded.map(\.key.stream)),
        ]
        var columns = "app_id, stream"
        var arrays = "$1::integer[], $2::text[]"
        if let instantKey = table.instantKey {
            binds.append(.textArray(decoded.map { $0.instant?.description ?? "" }))
            columns += ", \(instantKey)"
            arrays += ", $3::timestamptz[]"
        }
        if let sequenceKey = table.sequenceKey {
            binds.append(.intArray(decoded.map { $0.sequence ?? 0 }))
            columns += ", \(sequenceKey)"
            arrays += ", $4::integer[]"
        }
        _ = try connection.query(
            prepared: "delete from \(generation.partition(table)) where (\(columns)) in"
                + " (select * from unnest(\(arrays)))",
            binds
        )
    }

    private static func insert(
        _ indexes: [Int],
        of rows: TableRows,
        into table: Table,
        in generation: Generation,
        _ connection: Connection
    ) throws {
        guard !indexes.isEmpty else { return }
        try connection.copyIn(generation.copyIn(table)) { writer in
            if indexes.count == rows.starts.count { return try writer.write(rows.buffer) }
            for index in indexes {
                writer.rows.row(encoded: rows.buffer.bytes[rows.range(index)])
                try writer.flushIfFull()
            }
        }
    }
}

/// The key of a row as the row's own first bytes: app, stream and, where the table has them, the
/// instant and the sequence within it.
struct RowKey: Hashable {
    var bytes: ArraySlice<UInt8>

    init(_ row: ArraySlice<UInt8>, of table: Table) {
        // A count of columns, then length and value of each.
        var end = row.startIndex + 2
        let more = (table.instantKey == nil ? 0 : 1) + (table.sequenceKey == nil ? 0 : 1)
        for _ in 0..<(2 + more) {
            end += 4 + Int(Self.integer(row, at: end, bytes: 4))
        }
        bytes = row[row.startIndex..<end]
    }

    var decoded: (key: SubscriptionKey, instant: Timestamp?, sequence: Int64?) {
        let start = bytes.startIndex + 2
        let appID = Int32(truncatingIfNeeded: Self.integer(bytes, at: start + 4, bytes: 4))
        let length = Int(Self.integer(bytes, at: start + 8, bytes: 4))
        let stream = String(decoding: bytes[(start + 12)..<(start + 12 + length)], as: UTF8.self)
        let key = SubscriptionKey(appID: appID, stream: stream)
        let at = start + 12 + length
        guard at < bytes.endIndex else { return (key, nil, nil) }
        let microseconds = Self.integer(bytes, at: at + 4, bytes: 8)
        let instant = Timestamp(postgresMicroseconds: microseconds)
        guard at + 12 < bytes.endIndex else { return (key, instant, nil) }
        return (key, instant, Self.integer(bytes, at: at + 16, bytes: 4))
    }

    /// An integer that COPY wrote at that place.
    private static func integer(_ bytes: ArraySlice<UInt8>, at: Int, bytes count: Int) -> Int64 {
        var value: Int64 = 0
        for offset in 0..<count { value = value << 8 | Int64(bytes[at + offset]) }
        return value
    }
}
