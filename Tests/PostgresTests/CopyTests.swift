import Postgres
import TestSupport
import Testing

@Suite struct CopyTests {
    /// One value of each type that a COPY carries.
    struct Row: Equatable {
        var bigint: Int64?
        var integer: Int32?
        var smallint: Int16?
        var truth: Bool?
        var instant: Int64?
        var uuid: UInt128?
        var text: String?
        var bytes: [UInt8]?
        var integers: [Int64]?
        var texts: [String]?
    }

    static let rows = [
        Row(),
        Row(
            bigint: .min,
            integer: .max,
            smallint: -1,
            truth: true,
            instant: 1_760_000_000_123,
            uuid: .max,
            text: "å \\ \t \n 'x'",
            bytes: [0, 1, 0xFF],
            integers: [.min, -1, 0, .max],
            texts: ["", "a,b", "{}", "\"NULL\""]
        ),
        Row(
            bigint: 0,
            integer: .min,
            smallint: .max,
            truth: false,
            instant: -1,
            uuid: 0,
            text: "",
            bytes: [],
            integers: [],
            texts: []
        ),
        Row(instant: .max),
    ]

    static let columns = """
        a bigint, b integer, c smallint, d boolean, e timestamptz, f uuid, g text, h bytea,
        i bigint[], j text[]
        """

    private func write(_ row: Row, to buffer: inout RowBuffer) {
        buffer.beginRow(columns: 10)
        buffer.int64(row.bigint)
        buffer.int32(row.integer)
        buffer.int16(row.smallint)
        buffer.bool(row.truth)
        buffer.instant(milliseconds: row.instant)
        buffer.uuid(row.uuid)
        buffer.text(row.text)
        buffer.bytea(row.bytes)
        buffer.int64Array(row.integers)
        buffer.textArray(row.texts)
    }

    private func read(_ row: inout BinaryRow) -> Row {
        Row(
            bigint: row.int(),
            integer: row.int().map { Int32($0) },
            smallint: row.int().map { Int16($0) },
            truth: row.bool(),
            instant: row.instant(),
            uuid: row.uuid(),
            text: row.text(),
            bytes: row.byteArray(),
            integers: row.intArray(),
            texts: row.textArray()
        )
    }

    @Test func everyTypeGoesInAndComesOutTheSame() throws {
        try withDatabase { connection in
            try connection.execute("create table t (n serial, \(Self.columns))")
            try connection.copyIn(
                "copy t (a, b, c, d, e, f, g, h, i, j) from stdin (format binary)"
            ) { writer in
                for row in Self.rows { write(row, to: &writer.rows) }
            }
            var found: [Row] = []
            try connection.copyOut(
                """
                copy (select a, b, c, d, e, f, g, h, i, j from t order by n)
                to stdout (format binary)
                """
            ) { row in
                found.append(read(&row))
            }
            #expect(found == Self.rows)
            // The server's own reading, so that two mistakes do not cancel each other out.
            let rows = try connection.query(
                """
                select a = -9223372036854775808, e = '2025-10-09T08:53:20.123Z', f::text,
                    i = '{-9223372036854775808,-1,0,9223372036854775807}', j[2], h
                from t where n = 2
                """
            )
            #expect(rows.bool(0, 0) == true)
            #expect(rows.bool(0, 1) == true)
            #expect(rows.text(0, 2) == "ffffffff-ffff-ffff-ffff-ffffffffffff")
            #expect(rows.bool(0, 3) == true)
            #expect(rows.text(0, 4) == "a,b")
            #expect(rows.bytes(0, 5) == [0, 1, 0xFF])
            #expect(
                try connection.query("select e = 'infinity' from t where n = 4").bool(0, 0) == true
            )
        }
    }

    @Test(arguments: [0, 7, 10, 1_000_000_000_042, UInt64(Int64.max), .max])
    func aNumberInDigitsIsTheSameAsItsText(number: UInt64) {
        var digits = RowBuffer()
        digits.text(decimal: number)
        var text = RowBuffer()
        text.text("\(number)")
        #expect(digits.bytes == text.bytes)
        #expect(digits.byteCount == 4 + "\(number)".utf8.count)
    }

    @Test func anEmptiedBufferHoldsNothingOfWhatItHeld() {
        var buffer = RowBuffer()
        buffer.text(String(repeating: "x", count: 1000))
        let held = buffer.bytes
        buffer.removeAll()
        #expect(buffer.bytes.isEmpty)
        buffer.bool(true)
        #expect(buffer.bytes == [0, 0, 0, 1, 1])
        // What was lent before is as it was.
        #expect(held.count == 1004)
        #expect(held.last == UInt8(ascii: "x"))
    }

    @Test func noRowsAndManyRowsGoThrough() throws {
        try withDatabase { connection in
            try connection.execute("create table t (a bigint, b text)")
            try connection.copyIn("copy t from stdin (format binary)") { _ in }
            var count = 0
            try connection.copyOut("copy t to stdout (format binary)") { _ in count += 1 }
            #expect(count == 0)

            let text = String(repeating: "x", count: 100)
            try connection.copyIn("copy t from stdin (format binary)") { writer in
                for number in 0..<50_000 {
                    writer.rows.beginRow(columns: 2)
                    writer.rows.int64(Int64(number))
                    writer.rows.text(text)
                    try writer.flushIfFull()
                }
            }
            var sum: Int64 = 0
            try connection.copyOut("copy t to stdout (format binary)") { row in
                sum += row.int() ?? 0
                row.skip()
                count += 1
            }
            #expect(count == 50_000)
            #expect(sum == 49_999 * 25_000)
        }
    }

    @Test func rowsEncodedElsewhereAreSentWhole() throws {
        try withDatabase { connection in
            try connection.execute("create table t (a bigint)")
            var buffer = RowBuffer()
            for number in 1...3 {
                buffer.beginRow(columns: 1)
                buffer.int64(Int64(number))
            }
            #expect(buffer.rowCount == 3)
            try connection.copyIn("copy t from stdin (format binary)") { writer in
                try writer.write(buffer)
                try writer.write(RowBuffer())
            }
            #expect(try connection.query("select sum(a)::bigint from t").int(0, 0) == 6)
        }
    }

    @Test func anErrorOfTheServerInACopyInLeavesTheSessionUsableAndNothingWritten() throws {
        try withDatabase { connection in
            try connection.execute("create table t (a bigint primary key)")
            let error = #expect(throws: PostgresError.self) {
                try connection.copyIn("copy t from stdin (format binary)") { writer in
                    for number in 0..<200_000 {
                        writer.rows.beginRow(columns: 1)
                        // The tenth row breaks the key long before the last is sent.
                        writer.rows.int64(Int64(number == 10 ? 9 : number))
                        try writer.flushIfFull()
                    }
                }
            }
            #expect(error?.code == .server)
            #expect(error?.sqlState == "23505")
            #expect(try connection.query("select count(*) from t").int(0, 0) == 0)
        }
    }

    @Test func anErrorOfTheCallerInACopyInIsThrownOnAndNothingIsWritten() throws {
        try withDatabase { connection in
            try connection.execute("create table t (a bigint)")
            #expect(throws: Refusal.self) {
                try connection.copyIn("copy t from stdin (format binary)") { writer in
                    writer.rows.beginRow(columns: 1)
                    writer.rows.int64(1)
                    try writer.write(RowBuffer())
                    throw Refusal()
                }
            }
            #expect(try connection.query("select count(*) from t").int(0, 0) == 0)
            #expect(!connection.isInTransaction)
        }
    }

    @Test func anErrorOfTheServerInACopyOutComesThroughAndTheSessionStaysUsable() throws {
        try withDatabase { connection in
            var count = 0
            let error = #expect(throws: PostgresError.self) {
                try connection.copyOut(
                    """
                    copy (select 1000 / (500 - n) from generate_series(1, 1000) n)
                    to stdout (format binary)
                    """
                ) { _ in count += 1 }
            }
            #expect(error?.sqlState == "22012")
            #expect(count == 499)
            #expect(isUsable(connection))
        }
    }

    @Test func anErrorOfTheCallerInACopyOutIsThrownOnAndTheRestIsNotRead() throws {
        try withDatabase { connection in
            var count = 0
            #expect(throws: Refusal.self) {
                // Without a cancel this would take far longer than the test may.
                try connection.copyOut(
                    "copy (select generate_series(1, 1000000000000)) to stdout (format binary)"
                ) { _ throws in
                    count += 1
                    if count == 3 { throw Refusal() }
                }
            }
            #expect(count == 3)
            #expect(isUsable(connection))
        }
    }

    @Test func rowsOfAStatementComeOneByOneInTheFormOfACopy() throws {
        try withDatabase { connection in
            var seen: [String] = []
            for limit in [3, 2] as [Int64] {
                try connection.forEachRow(
                    prepared:
                        "select n, nullif(n, 2), 'n' || n from generate_series(1, $1::bigint) n",
                    [.int(limit)]
                ) { row in
                    let number = row.int()
                    let other = row.int()
                    seen.append("\(number ?? -1) \(other ?? -1) \(row.text() ?? "")")
                }
            }
            #expect(seen == ["1 1 n1", "2 -1 n2", "3 3 n3", "1 1 n1", "2 -1 n2"])
            #expect(isUsable(connection))
        }
    }

    @Test func anErrorAmongRowsThatComeOneByOneComesThrough() throws {
        try withDatabase { connection in
            var count = 0
            let error = #expect(throws: PostgresError.self) {
                try connection.forEachRow(
                    prepared: "select 1000 / (500 - n) from generate_series(1, 1000) n",
                    []
                ) { _ in count += 1 }
            }
            #expect(error?.sqlState == "22012")
            #expect(count == 499)
            #expect(throws: Refusal.self) {
                // Without a cancel this would take far longer than the test may.
                try connection.forEachRow(
                    prepared: "select generate_series(1, 1000000000000)",
                    []
                ) { _ throws in
                    count += 1
                    if count == 502 { throw Refusal() }
                }
            }
            #expect(count == 502)
            #expect(isUsable(connection))
            #expect(throws: PostgresError.self) {
                try connection.forEachRow(prepared: "select nothing", []) { _ in }
            }
            #expect(isUsable(connection))
        }
    }

    @Test func aCopyTheWrongWayRoundIsAnErrorAndLeavesTheSessionUsable() throws {
        try withDatabase { connection in
            try connection.execute("create table t (a bigint)")
            let tries: [() throws -> Void] = [
                { try connection.copyIn("copy t to stdout (format binary)") { _ in } },
                { try connection.copyOut("copy t from stdin (format binary)") { _ in } },
                { try connection.execute("copy t from stdin") },
                { try connection.copyOut("select 1") { _ in } },
            ]
            for attempt in tries {
                let error = #expect(throws: PostgresError.self) { try attempt() }
                #expect(error?.code == .unexpectedResult)
                #expect(isUsable(connection))
            }
        }
    }
}

struct Refusal: Error {}

/// Whether the session answers a query.
func isUsable(_ connection: Connection) -> Bool {
    (try? connection.query("select 1").count) == 1
}
