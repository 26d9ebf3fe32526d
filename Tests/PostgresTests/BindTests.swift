import Postgres
import TestSupport
import Testing

@Suite struct BindTests {
    @Test(arguments: [
        ("bool", Bind.bool(true)), ("smallint", .int(-32_768)), ("integer", .int(2_147_483_647)),
        ("bigint", .int(.min)), ("text", .text("")), ("text", .text("å 𝄞 'quoted' \\ \n")),
        ("bytea", .bytes([])), ("bytea", .bytes([0, 0xFF, 0x27, 0x5C, 0])),
        ("timestamptz", .instant(milliseconds: -1)),
        ("timestamptz", .instant(milliseconds: 253_402_300_799_999)),
        ("timestamptz", .instant(milliseconds: .max)),
        ("uuid", .uuid(0x0011_2233_4455_6677_8899_AABB_CCDD_EEFF)),
        ("text[]", .textArray([])), ("text[]", .textArray(["", "a,b", "{\"\\}", "NULL", "ü"])),
        ("bigint[]", .intArray([])), ("bigint[]", .intArray([.min, 0, .max])),
    ])
    func everyTypeComesBackAsItWent(_ type: String, _ bind: Bind) throws {
        try withDatabase { connection in
            let rows = try connection.query("select $1::\(type) as value, null::\(type)", [bind])
            #expect(rows.columns == ["value", type.replacingBrackets])
            #expect(read(rows, column: 0, like: bind) == bind)
            #expect(rows.isNull(0, 1))
            #expect(read(rows, column: 1, like: bind) == .null)
        }
    }

    @Test func aNullBindIsNull() throws {
        try withDatabase { connection in
            let binds = [
                Bind.text(String?.none), .int(Int64?.none), .instant(milliseconds: Int64?.none),
            ]
            let rows = try connection.query("select $1::text, $2::bigint, $3::timestamptz", binds)
            #expect((0..<3).allSatisfy { rows.isNull(0, $0) })
        }
    }

    @Test func textWithAZeroCharacterIsRefusedAndNotCutShort() throws {
        try withDatabase { connection in
            for bind in [Bind.text("a\0b"), .textArray(["fine", "a\0"])] {
                let error = #expect(throws: PostgresError.self) {
                    try connection.query("select $1::text", [bind])
                }
                #expect(error?.sqlState == "22021")
            }
            #expect(isUsable(connection))
        }
    }

    @Test func anInstantBeyondPostgresIsRefusedByIt() throws {
        try withDatabase { connection in
            for milliseconds in [Int64.max - 1, Int64.min + 1, Int64.max / 999] {
                let error = #expect(throws: PostgresError.self) {
                    try connection.query(
                        "select $1::timestamptz",
                        [.instant(milliseconds: milliseconds)]
                    )
                }
                #expect(error?.sqlState == "22008", "\(milliseconds)")
            }
        }
    }

    @Test func aCommandSaysHowManyRowsItTouched() throws {
        try withDatabase { connection in
            try connection.execute("create table t as select 1 as a from generate_series(1, 7)")
            #expect(try connection.query("update t set a = 2").affected == 7)
            #expect(try connection.query("select a from t where a = $1", [.int(3)]).count == 0)
        }
    }

    private func read(_ rows: Rows, column: Int, like bind: Bind) -> Bind? {
        if rows.isNull(0, column) { return .null }
        return switch bind {
        case .null: .null
        case .bool: rows.bool(0, column).map { .bool($0) }
        case .int: rows.int(0, column).map { .int($0) }
        case .text: rows.text(0, column).map { .text($0) }
        case .bytes: rows.bytes(0, column).map { .bytes($0) }
        case .instant: rows.instant(0, column).map { .instant(milliseconds: $0) }
        case .uuid: rows.uuid(0, column).map { .uuid($0) }
        case .textArray: rows.textArray(0, column).map { .textArray($0) }
        case .intArray: rows.intArray(0, column).map { .intArray($0) }
        }
    }
}

extension String {
    /// PostgreSQL names an unnamed cast's column after the type, in its short form.
    fileprivate var replacingBrackets: String {
        let names = ["smallint": "int2", "integer": "int4", "bigint": "int8"]
        let base = hasSuffix("[]") ? String(dropLast(2)) : self
        return names[base] ?? base
    }
}
