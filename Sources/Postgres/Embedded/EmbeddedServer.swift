internal import Glibc
internal import Synchronization

/// The private PostgreSQL server of one folder, shared by all commands that use it.
///
/// Whoever opens it holds a lock on the folder until `close()`. The first to open starts the
/// server, the last to close stops it; a command that is killed leaves it running, and the next
/// one finds it and takes over. The data are durable: `fsync` stays on.
///
/// ```swift
/// let server = try EmbeddedServer.open()
/// defer { server.close() }
/// let connection = try Connection(server.conninfo)
/// ```
public final class EmbeddedServer: Sendable {
    /// Where the server is kept unless said otherwise, relative to the working folder.
    public static let defaultDirectory = ".subledger"

    /// The database that the ledger lives in.
    public static let database = "subledger"

    /// How long to wait for another command that starts or stops the server.
    static let lockLimitSeconds = 420.0

    /// How a client reaches the ledger's database, as the superuser.
    public let conninfo: String

    /// The folder of the server's socket.
    public let socketFolder: String

    /// The folder with the data.
    public let dataFolder: String

    /// The file with the server's messages.
    public var logFile: String { home.logFile }

    let home: ClusterHome
    let cluster: Cluster
    private let startLock: FileLock
    private let useLock: FileLock
    private let isOpen = Mutex(true)

    /// Makes the server where there is none, starts it where it does not run, and holds it.
    ///
    /// - Parameters:
    ///   - directory: the folder that the server's files are in.
    ///   - progress: told what takes a moment: making the database, starting the server.
    /// - Returns: the server, running; close it when done.
    /// - Throws: `EmbeddedServerError` that says what to do about it.
    public static func open(
        directory: String = defaultDirectory,
        progress: (String) -> Void = { _ in }
    ) throws(EmbeddedServerError) -> EmbeddedServer {
        try EmbeddedServer(directory, progress: progress)
    }

    private init(
        _ directory: String,
        progress: (String) -> Void
    ) throws(EmbeddedServerError) {
        let folder = try ClusterHome.prepare(directory)
        startLock = try FileLock("\(folder)/start.lock")
        useLock = try FileLock("\(folder)/use.lock")
        try Self.acquire(startLock, in: folder)
        let startLock = startLock
        defer { startLock.release() }

        home = try ClusterHome(prepared: folder)
        dataFolder = home.cluster
        cluster = try Self.cluster(of: home)
        if !Cluster.isInitialised(home.cluster) {
            progress("making a private PostgreSQL \(cluster.binaries.majorVersion) in \(folder)")
            try cluster.initialise(settings: Self.settings)
        }
        guard useLock.acquire(.shared, withinSeconds: 5) else {
            throw EmbeddedServerError(code: .busy, message: "\(folder) is locked by a copy of it")
        }
        if cluster.postmaster == nil {
            progress("starting the private PostgreSQL in \(folder)")
            Self.keepLogShort(home.logFile)
        }
        // Should a signal end this process now, it stops the server that it has just started.
        defer { OpenServers.setStarting(nil) }
        socketFolder = try cluster.start(
            socketFolder: home.makeSocketFolder(),
            started: OpenServers.setStarting
        )
        conninfo = Cluster.conninfo(socketFolder: socketFolder, database: Self.database)
        do {
            try Self.makeDatabase(socketFolder)
        } catch {
            try? cluster.stop()
            throw error
        }
        OpenServers.add(self)
    }

    deinit { shut() }

    /// Lets the server go; the last one stops it, unless it was told to go on.
    ///
    /// A second call does nothing.
    public func close() {
        shut()
        OpenServers.remove(self)
    }

    /// What `close` does, apart from the list of open servers.
    func shut() {
        isOpen.withLock { isOpen in
            guard isOpen else { return }
            isOpen = false
            // Without the lock nothing is stopped: a server too many does less harm than a
            // server gone under somebody's feet.
            guard startLock.acquire(.exclusive, withinSeconds: Self.lockLimitSeconds) else {
                return
            }
            defer { startLock.release() }
            defer { useLock.release() }
            guard useLock.attempt(.exclusive), !Self.isKept(home, cluster) else { return }
            try? cluster.stop()
        }
    }

    /// How a client reaches another database of the server, or the same one as another role.
    public func conninfo(
        database: String = EmbeddedServer.database,
        user: String = "postgres"
    ) -> String {
        Cluster.conninfo(socketFolder: socketFolder, database: database, user: user)
    }

    // MARK: - Parts

    /// What differs from PostgreSQL's defaults; the file may be edited afterwards.
    package static let settings = [
        "timezone = 'UTC'",
        "log_timezone = 'UTC'",
        "log_line_prefix = '%m [%p] '",
        "max_connections = 100",
        "shared_buffers = '128MB'",
        "max_wal_size = '2GB'",
        "checkpoint_timeout = '15min'",
        // Compiling costs more than it saves on short queries, and needs LLVM beside the server.
        "jit = off",
    ]

    static func acquire(_ lock: FileLock, in folder: String) throws(EmbeddedServerError) {
        guard lock.acquire(.exclusive, withinSeconds: lockLimitSeconds) else {
            throw EmbeddedServerError(
                code: .busy,
                message: "another command has been starting or stopping the server in \(folder) "
                    + "for \(Int(lockLimitSeconds)) seconds"
            )
        }
    }

    static func cluster(of home: ClusterHome) throws(EmbeddedServerError) -> Cluster {
        let binaries = try ServerBinaries.find(version: Cluster.version(of: home.cluster))
        return Cluster(
            folder: home.cluster,
            binaries: binaries,
            account: home.account,
            logFile: home.logFile
        )
    }

    /// Whether this run of the server was told to go on without users.
    static func isKept(_ home: ClusterHome, _ cluster: Cluster) -> Bool {
        guard let kept = FileSystem.text(home.keepFile) else { return false }
        return kept == cluster.postmaster?.identity
    }

    private static func keepLogShort(_ path: String) {
        let limitBytes = 16 << 20
        if FileSystem.length(path) > limitBytes { _ = unsafe rename(path, "\(path).1") }
    }

    private static func makeDatabase(_ socketFolder: String) throws(EmbeddedServerError) {
        do {
            let maintenance = try Connection(
                Cluster.conninfo(socketFolder: socketFolder, database: "postgres")
            )
            let found = try maintenance.query(
                "select 1 from pg_catalog.pg_database where datname = $1",
                [.text(database)]
            )
            if found.count == 0 {
                try maintenance.execute("create database \(database) template template0")
            }
        } catch {
            throw EmbeddedServerError(
                code: error.sqlState == "53100" ? .diskFull : .start,
                message: "the private server started, but its database is not usable: \(error)"
            )
        }
    }
}

/// The servers that this process holds, for those who end it.
enum OpenServers {
    private struct State {
        var servers: [ObjectIdentifier: Weak] = [:]
        var starting: pid_t?
        var isAtExit = false
    }

    private struct Weak {
        weak let server: EmbeddedServer?
    }

    private static let state = Mutex(State())

    static func add(_ server: EmbeddedServer) {
        state.withLock { state in
            state.servers[ObjectIdentifier(server)] = Weak(server: server)
            // A program that ends by `exit` somewhere deep stops its server all the same.
            if !state.isAtExit {
                state.isAtExit = true
                atexit {
                    OpenServers.closeAll()
                    Termination.giveWay()
                }
            }
        }
    }

    static func remove(_ server: EmbeddedServer) {
        state.withLock { $0.servers[ObjectIdentifier(server)] = nil }
    }

    static func setStarting(_ process: pid_t?) {
        state.withLock { $0.starting = process }
    }

    static func closeAll() {
        let (servers, starting) = state.withLock { state in
            (state.servers.values.compactMap(\.server), state.starting)
        }
        for server in servers { server.close() }
        if let starting { kill(starting, SIGINT) }
    }
}
