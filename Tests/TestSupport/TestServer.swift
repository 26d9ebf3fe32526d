internal import Glibc
public import Postgres
internal import Synchronization

/// A private PostgreSQL server for the tests of this process, started when first asked for.
///
/// It lies in a temporary folder and is stopped and removed when the process ends, in whatever
/// way: a watchdog sees the end even of a process that was killed.
public final class TestServer: Sendable {
    /// The server that tests share, quick because it flushes nothing to the disk.
    public static let shared: TestServer = start(isDurable: false)

    /// A server with `fsync` and `full_page_writes` on, for tests of what survives a crash.
    public static let durable: TestServer = start(isDurable: true)

    /// A durable server that no other test uses, to be ended as by a power cut.
    package static func forCrashes() -> TestServer { start(isDurable: true) }

    /// The cluster, for tests that stop and start it.
    package let cluster: Cluster

    /// The folder of the server's socket.
    public let socketFolder: String

    private let settings: [String]
    private let databaseNumber = Atomic<Int>(0)
    private let templates = Mutex<[String: String]>([:])

    private init(_ cluster: Cluster, socketFolder: String, settings: [String]) {
        self.cluster = cluster
        self.socketFolder = socketFolder
        self.settings = settings
    }

    /// How a client reaches a database of the server.
    public func conninfo(database: String = "postgres", user: String = "postgres") -> String {
        Cluster.conninfo(socketFolder: socketFolder, database: database, user: user)
    }

    /// Opens a session; the superuser's, unless another role is named.
    public func connect(
        database: String = "postgres",
        user: String = "postgres"
    ) throws(PostgresError) -> Connection {
        try Connection(conninfo(database: database, user: user))
    }

    /// A name that no other database of the server has.
    func nextDatabaseName() -> String {
        "test_\(databaseNumber.add(1, ordering: .relaxed).newValue)"
    }

    /// The database that `prepare` made once for all tests that name the same template.
    ///
    /// The others wait for the first; it must have closed its sessions when it returns.
    func template(
        _ name: String,
        prepare: (Connection) throws -> Void
    ) throws -> String {
        try templates.withLock { templates in
            if let database = templates[name] { return database }
            let database = "template_\(templates.count + 1)"
            let maintenance = try connect()
            try maintenance.execute("create database \(database) template template0")
            try prepare(try connect(database: database))
            templates[name] = database
            return database
        }
    }

    // MARK: - Start and end

    private static func start(isDurable: Bool) -> TestServer {
        do {
            return try open(isDurable: isDurable)
        } catch {
            // A test that needs the server cannot go on, and none is to be passed over in silence.
            fatalError("no PostgreSQL server for the tests: \(error)")
        }
    }

    private static func open(isDurable: Bool) throws(EmbeddedServerError) -> TestServer {
        let folder = try TestFolder.make()
        let account = try ServerAccount.forCluster(ownedBy: nil)
        let cluster = Cluster(
            folder: "\(folder)/cluster",
            binaries: try .find(),
            account: account,
            logFile: "\(folder)/log"
        )
        try cluster.initialise(isDurable: false)
        let run = "\(folder)/run"
        try FileSystem.makeFolder(run, mode: 0o700)
        try account.own(run)
        // Small memory, since several test processes may run beside each other.
        var settings = [
            "max_connections=200", "shared_buffers=32MB", "max_wal_size=256MB", "jit=off",
            "timezone=UTC", "log_timezone=UTC", "autovacuum_naptime=5min",
        ]
        if !isDurable {
            settings += ["fsync=off", "full_page_writes=off", "synchronous_commit=off"]
        }
        let socketFolder = try cluster.start(
            socketFolder: run,
            settings: settings,
            started: { TestFolder.watch(folder, server: $0) }
        )
        return TestServer(cluster, socketFolder: socketFolder, settings: settings)
    }

    /// Ends the server at once, as a power cut would, and starts it again.
    package func crashAndRestart() throws(EmbeddedServerError) {
        cluster.killAll()
        let folder = FileSystem.parent(of: cluster.folder)
        _ = try cluster.start(
            socketFolder: socketFolder,
            settings: settings,
            started: { TestFolder.watch(folder, server: $0) }
        )
    }
}
