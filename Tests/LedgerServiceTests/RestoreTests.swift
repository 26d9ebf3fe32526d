import EventLog
import Glibc
import Ledger
import LedgerService
import Postgres
import Schema
import TestSupport
import Testing

/// A ledger comes back from its backups whole, and a copy that lacks something is told from one
/// that does not.
@Suite struct RestoreTests {
    /// Runs one of the server's programs to its end.
    private static func tool(_ words: [String], as account: ServerAccount? = nil) throws {
        let binaries = try ServerBinaries.find()
        let command = ["\(binaries.folder)/\(words[0])"] + words.dropFirst()
        let (ending, output) = try ChildProcess.run(account?.command(command) ?? command)
        #expect(ending == .exited(0), "\(words[0]): \(output)")
    }

    /// A ledger with signed events and receipts, folded.
    private static func fill(_ sample: IngestSample) throws {
        let report = try sample.ingest((1...40).map { sample.purchase($0) }).report
        #expect(report.appended == 40)
        _ = try Projector(sample.database.connect()).project()
    }

    private static func findings(
        _ connect: @escaping @Sendable () throws -> Connection,
        keeping head: AuditHead? = nil
    ) throws -> [String: String] {
        let findings = try RestoreCheck(connect).run(keeping: head, sample: 10)
        return Dictionary(
            uniqueKeysWithValues: findings.map {
                ($0.step.rawValue, $0.isOK ? "ok" : "FAIL \($0.text)")
            }
        )
    }

    @Test func aDumpRestoresUnderAnotherNameWithItsRoles() throws {
        let sample = try IngestSample()
        try Self.fill(sample)
        let head = try LogReader(sample.database.connect()).head()
        let roles = try Migrator.defaultRoles(sample.database.connect())
        let copy = try TestDatabase.create()
        let folder = try ScratchFolder()
        let server = TestServer.shared
        let place = ["-h", server.socketFolder, "-U", "postgres"]
        let file = "\(folder.path)/ledger.dump"
        try Self.tool(["pg_dump", "-Fc", "-f", file] + place + [sample.database.name])
        try Self.tool(["pg_restore", "--exit-on-error", "-d", copy.name] + place + [file])
        #expect(try Migrator.defaultRoles(copy.connect()) == roles)
        let findings = try Self.findings({ [copy] in try copy.connect() }, keeping: head)
        #expect(findings.count == 7)
        #expect(findings.values.allSatisfy { $0 == "ok" }, "\(findings)")

        // It goes on: the roles may do there what they could before, and no more.
        let session = try copy.connect()
        try session.execute("set role \(Roles.quoted(roles.appender))")
        #expect(throws: PostgresError.self) { try session.execute("delete from ledger.event") }
        let app = AppKey(bundleID: IngestSample.bundleID, environment: .sandbox)
        let reading = StatusReading(
            app: app,
            originalTransactionID: "7001",
            status: 1,
            readAt: IngestSample.now
        )
        let outcome = try Appender(session).append([reading.event(correlation: nil)])
        #expect(outcome == [.appended(position: head.position + 1)])
        #expect(try Migrator(copy.connect(), extra: ReadModels.migrations).migrate().isEmpty)
    }

    @Test func aBaseBackupWithItsLogComesBackAsOfItsEnd() throws {
        let server = TestServer.forCrashes()
        let sample = try IngestSample(on: server)
        try Self.fill(sample)
        let folder = try TestFolder.make()
        TestFolder.watch(folder)
        let account = server.cluster.account
        try account.own(folder)
        try Self.tool(
            [
                "pg_basebackup", "-D", "\(folder)/cluster", "-X", "stream", "-c", "fast", "-h",
                server.socketFolder, "-U", "postgres", "--no-sync",
            ],
            as: account
        )
        try Self.tool(["pg_verifybackup", "\(folder)/cluster"], as: account)
        let copy = Cluster(
            folder: "\(folder)/cluster",
            binaries: server.cluster.binaries,
            account: account,
            logFile: "\(folder)/log"
        )
        let run = "\(folder)/run"
        try FileSystem.makeFolder(run, mode: 0o700)
        try account.own(run)
        let socketFolder = try copy.start(socketFolder: run, settings: ["fsync=off"])
        defer { copy.killAll() }
        let conninfo = Cluster.conninfo(socketFolder: socketFolder, database: sample.database.name)
        let head = try LogReader(sample.database.connect()).head()
        let findings = try Self.findings({ try Connection(conninfo) }, keeping: head)
        #expect(findings.values.allSatisfy { $0 == "ok" }, "\(findings)")
        #expect(try LogReader(Connection(conninfo)).head() == head)
        // Nothing was promoted and nothing recovered to another end: it is the same server.
        try EpochBook(Connection(conninfo)).check()

        // A standby of it takes over: the same server, on another timeline.
        try copy.stop()
        try FileSystem.makeFolder(run, mode: 0o700)
        try account.own(run)
        try FileSystem.write("", to: "\(folder)/cluster/recovery.signal")
        try account.own("\(folder)/cluster/recovery.signal")
        _ = try copy.start(
            socketFolder: run,
            settings: ["fsync=off", "restore_command=false"]
        )
        let promoted = try Self.promoted(conninfo)
        let refusal = #expect(throws: EventLogError.self) { try EpochBook(promoted).check() }
        #expect(refusal?.code == .restored)
        let epoch = try EpochBook(promoted).open(by: "olga", why: "x", now: IngestSample.now)
        #expect(epoch.server.timeline == 2 && epoch.cutPosition == head.position)
        try EpochBook(promoted).check()
    }

    /// A session of a server that has ended its recovery.
    private static func promoted(_ conninfo: String) throws -> Connection {
        for _ in 0..<600 {
            if let connection = try? Connection(conninfo),
                try connection.query("select pg_is_in_recovery()").bool(0, 0) == false
            {
                return connection
            }
            usleep(100_000)
        }
        return try Connection(conninfo)
    }

    /// What is broken in a copy, and the step that must find it.
    static let damages: [(sql: String, step: String)] = [
        ("delete from ledger.event where position = 7", "positions"),
        (
            "delete from ledger.batch where last_position = (select max(last_position) "
                + "from ledger.batch)", "positions"
        ),
        ("update ledger.head set position = position - 1", "positions"),
        ("delete from ledger.evidence where position = 5", "evidence"),
        ("update ledger.evidence set codec = 9 where position = 5", "evidence"),
        ("update ledger.evidence set headers[1] = 999 where position = 5", "evidence"),
        ("update ledger.event set operator = 'x' where position = 9", "chain"),
        ("update ledger.fact set price = 1", "signatures"),
        ("delete from read_model.entitlement_interval where stream like '%7'", "read_models"),
        (
            "update read_model.entitlement_interval set entitled = not entitled "
                + "where stream like '%7'", "read_models"
        ),
        ("delete from ledger.schema where component = 'log' and number = 1", "schema"),
        (
            "insert into ledger.schema (component, number, name, checksum, serves) "
                + "values ('log', 1, 'reference', sha256(''), 'x') on conflict (component, number) "
                + "do update set checksum = excluded.checksum", "schema"
        ),
    ]

    @Test(arguments: damages.indices)
    func whatIsBrokenInACopyIsFoundByTheStepThatLooksForIt(_ number: Int) throws {
        let sample = try IngestSample()
        try Self.fill(sample)
        let (sql, step) = Self.damages[number]
        let connection = try sample.database.connect()
        // What a superuser could do, or a disk.
        let guarded = try connection.query(
            """
            select distinct tgrelid::regclass::text from pg_trigger t join pg_class c
                on c.oid = t.tgrelid
            where c.relnamespace = 'ledger'::regnamespace
            """
        )
        for row in 0..<guarded.count {
            let table = guarded.text(row, 0) ?? ""
            try connection.execute("alter table \(table) disable trigger all")
        }
        try connection.execute(sql)
        let database = sample.database
        let findings = try Self.findings { try database.connect() }
        #expect(findings[step]?.hasPrefix("FAIL") == true, "\(findings)")
    }

    @Test func aHeadThatWasKeptElsewhereTellsOfATailThatWasLost() throws {
        let sample = try IngestSample()
        try Self.fill(sample)
        var head = try LogReader(sample.database.connect()).head()
        head.position += 1
        let database = sample.database
        let findings = try Self.findings({ try database.connect() }, keeping: head)
        #expect(findings["chain"]?.hasPrefix("FAIL") == true)
        #expect(findings["positions"] == "ok")
    }
}
