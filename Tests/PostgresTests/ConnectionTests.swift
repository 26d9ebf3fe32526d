import Dispatch
import Postgres
import TestSupport
import Testing

@Suite struct ConnectionTests {
    @Test func anErrorKeepsItsStateAndTheSessionGoesOn() throws {
        try withDatabase { connection in
            try connection.execute("create table t (a int primary key); insert into t values (1)")
            let cases = [
                ("selec 1", "42601"), ("select * from nowhere", "42P01"),
                ("insert into t values (1)", "23505"), ("select 1 / 0", "22012"),
            ]
            for (sql, state) in cases {
                for attempt in [{ try connection.execute(sql) }, { try connection.query(sql) }] {
                    let error = #expect(throws: PostgresError.self) { try attempt() }
                    #expect(error?.code == .server)
                    #expect(error?.sqlState == state)
                    #expect(error?.isTemporary == false)
                }
                #expect(connection.isAlive)
            }
            #expect(try connection.query("select a from t").count == 1)
        }
    }

    @Test func aMessageNeverHoldsTheValues() throws {
        try withDatabase { connection in
            try connection.execute("create table t (a text primary key)")
            try connection.query("insert into t values ($1)", [.text("secret")])
            let error = #expect(throws: PostgresError.self) {
                try connection.query("insert into t values ($1)", [.text("secret")])
            }
            #expect(error?.description.contains("secret") == false)
        }
    }

    @Test func everySessionSpeaksUTCAndSaysWhoItIs() throws {
        try withDatabase { connection in
            let rows = try connection.query(
                """
                select current_setting('TimeZone'), current_setting('client_encoding'),
                    current_setting('application_name')
                """
            )
            #expect((0..<3).map { rows.text(0, $0) } == ["UTC", "UTF8", "subledger"])
            #expect(connection.serverVersion >= 150_000)
        }
    }

    @Test func theConninfoMayNameTheApplicationItself() throws {
        let database = try TestDatabase.create()
        let connection = try Connection(database.conninfo + " application_name='a b'")
        let rows = try connection.query("select current_setting('application_name')")
        #expect(rows.text(0, 0) == "a b")
    }

    @Test func aURLWillDoAsWell() throws {
        let database = try TestDatabase.create()
        let connection = try Connection(
            "postgresql://postgres@/\(database.name)?host=\(TestServer.shared.socketFolder)&"
                + "application_name=by%20url"
        )
        let rows = try connection.query(
            "select current_database()::text, current_setting('application_name')"
        )
        #expect(rows.text(0, 0) == database.name)
        #expect(rows.text(0, 1) == "by url")
    }

    @Test(arguments: [("a b", "'a b'"), ("it's", "'it\\'s'"), ("a\\b", "'a\\\\b'"), ("", "''")])
    func valuesOfAConninfoAreQuoted(_ value: String, _ quoted: String) {
        #expect(Connection.conninfo([("host", value)]) == "host=\(quoted)")
    }

    /// libpq quotes what it cannot read, which may be the password.
    @Test(arguments: [
        "postgresql://u:s3%zzcret@h/x", "postgresql://u:s3cret@[::1/x", "s3cret",
        "host=x password=s3 cret", "host=x s3cret",
    ])
    func ofAConninfoThatCannotBeReadNothingIsRepeated(_ conninfo: String) {
        let error = #expect(throws: PostgresError.self) { _ = try Connection(conninfo) }
        #expect(error?.code == .connection)
        let text = error?.description ?? ""
        #expect(text.contains("cannot be read"), "\(text)")
        #expect(!text.contains("s3") && !text.contains("cret"), "\(text)")
    }

    @Test func aThrownErrorRollsTheTransactionBack() throws {
        try withDatabase { connection in
            try connection.execute("create table t (a int)")
            #expect(throws: Refusal.self) {
                try connection.transaction { connection in
                    try connection.execute("insert into t values (1)")
                    #expect(connection.isInTransaction)
                    throw Refusal()
                }
            }
            #expect(!connection.isInTransaction)
            #expect(try connection.query("select a from t").count == 0)
            let value = try connection.transaction("begin isolation level serializable") { inner in
                try inner.execute("insert into t values (2)")
                return try inner.query("select a from t").int(0, 0)
            }
            #expect(value == 2)
            #expect(try connection.query("select a from t").count == 1)
        }
    }

    @Test func anErrorKeptQuietInATransactionIsNoCommit() throws {
        try withDatabase { connection in
            try connection.execute("create table t (a int)")
            let error = #expect(throws: PostgresError.self) {
                try connection.transaction { connection in
                    try connection.execute("insert into t values (1)")
                    try? connection.execute("select 1 / 0")
                }
            }
            #expect(error?.sqlState == "25P02")
            #expect(!connection.isInTransaction)
            #expect(try connection.query("select a from t").count == 0)
        }
    }

    @Test func anErrorAtCommitIsThrown() throws {
        try withDatabase { connection in
            try connection.execute(
                "create table t (a int unique deferrable initially deferred)"
            )
            let error = #expect(throws: PostgresError.self) {
                try connection.transaction { connection in
                    try connection.execute("insert into t values (1), (1)")
                }
            }
            #expect(error?.sqlState == "23505")
            #expect(!connection.isInTransaction)
        }
    }

    @Test func aLostSessionIsAConnectionErrorAndTemporary() throws {
        let database = try TestDatabase.create()
        let victim = try database.connect()
        let process = try #require(try victim.query("select pg_backend_pid()").int(0, 0))
        try database.connect().query("select pg_terminate_backend($1::int)", [.int(process)])
        let first = #expect(throws: PostgresError.self) { try victim.query("select 1") }
        #expect(first?.code == .connection)
        #expect(first?.isTemporary == true)
        let second = #expect(throws: PostgresError.self) { try victim.execute("select 1") }
        #expect(second?.code == .connection)
        #expect(!victim.isAlive)
    }

    @Test func aSessionLostInACopyIsAConnectionError() throws {
        let database = try TestDatabase.create()
        let victim = try database.connect()
        try victim.execute("create table t (a bigint)")
        let process = try #require(try victim.query("select pg_backend_pid()").int(0, 0))
        let killer = try database.connect()
        let inward = #expect(throws: PostgresError.self) {
            try victim.copyIn("copy t from stdin (format binary)") { writer in
                try killer.query("select pg_terminate_backend($1::int, 5000)", [.int(process)])
                for number in 0..<1_000_000 {
                    writer.rows.beginRow(columns: 1)
                    writer.rows.int64(Int64(number))
                    try writer.flushIfFull()
                }
            }
        }
        #expect(inward?.code == .connection)
        let other = try database.connect()
        let number = try #require(try other.query("select pg_backend_pid()").int(0, 0))
        let outward = #expect(throws: PostgresError.self) {
            var isFirst = true
            try other.copyOut(
                "copy (select generate_series(1, 100000000)) to stdout (format binary)"
            ) { _ throws in
                if isFirst {
                    try killer.query("select pg_terminate_backend($1::int, 5000)", [.int(number)])
                }
                isFirst = false
            }
        }
        #expect(outward?.code == .connection)
    }

    @Test func noServerIsAConnectionErrorWithItsReason() {
        let error = #expect(throws: PostgresError.self) {
            try Connection("host=/nonexistent dbname=x")
        }
        #expect(error?.code == .connection)
        #expect(error?.message.contains("/nonexistent") == true)
    }

    @Test func anErrorWithoutACodeIsThatOfALostSession() throws {
        let server = try ScriptedServer()
        let connection = try Connection(server.conninfo)
        #expect(connection.isAlive)
        let error = #expect(throws: PostgresError.self) { try connection.query("select 1") }
        #expect(error?.code == .connection)
        #expect(error?.message.contains("something was lost") == true)
        // libpq has not seen its end and would take it for usable.
        #expect(!connection.isAlive)
    }

    @Test func moreBindsThanTheProtocolHasRoomForAreRefused() throws {
        try withDatabase { connection in
            let binds = [Bind](repeating: .int(1), count: 65_536)
            let error = #expect(throws: PostgresError.self) {
                try connection.query("select 1", binds)
            }
            #expect(error?.code == .server)
            #expect(error?.sqlState == "54023")
            #expect(isUsable(connection))
        }
    }

    @Test func aHostThatNeverAnswersIsGivenUp() throws {
        let clock = ContinuousClock()
        let start = clock.now
        let silent = try SilentListener()
        let error = #expect(throws: PostgresError.self) {
            try Connection("host=127.0.0.1 port=\(silent.port) dbname=x connect_timeout=2")
        }
        #expect(error?.code == .connection)
        #expect(clock.now - start < .seconds(10))
    }

    @Test func aStatementCanBeCancelledFromAnotherThread() throws {
        try withDatabase { connection in
            let canceller = connection.canceller()
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(100)) {
                canceller.cancel()
            }
            let error = #expect(throws: PostgresError.self) {
                try connection.query("select pg_sleep(60)")
            }
            #expect(error?.sqlState == "57014")
            #expect(connection.isAlive)
            #expect(isUsable(connection))
        }
    }

    @Test func aDatabaseMadeFromATemplateHoldsWhatWasPrepared() throws {
        for _ in 0..<2 {
            let database = try TestDatabase.create(template: "of one table") { connection in
                try connection.execute("create table t as select 5 as a")
            }
            let rows = try database.connect().query("delete from t returning a")
            #expect(rows.int(0, 0) == 5)
        }
    }

    @Test func theDurableServerFlushesWhatItCommits() throws {
        let connection = try TestServer.durable.connect()
        let rows = try connection.query(
            "select current_setting('fsync'), current_setting('full_page_writes')"
        )
        #expect(rows.text(0, 0) == "on")
        #expect(rows.text(0, 1) == "on")
    }
}
