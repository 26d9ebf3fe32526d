internal import Glibc

/// What `subledger db` does.
extension EmbeddedServer {
    /// The state of a folder's server.
    public struct Status: Hashable, Sendable {
        /// The folder that was asked about, absolute.
        public var directory: String
        /// The folder with the data; nil while there are none.
        public var dataFolder: String?
        /// The server's major version.
        public var majorVersion: Int?
        /// The server's process id while it runs.
        public var process: Int32?
        /// When it was started, in milliseconds since 1970.
        public var startedAt: Int64?
        /// Whether it goes on when no command uses it, as `db start` asks.
        public var isKept: Bool
        /// Whether a command uses it just now.
        public var isInUse: Bool
        /// How a client reaches it while it runs.
        public var conninfo: String?
        /// The file with the server's messages.
        public var logFile: String?

        /// Whether the server runs.
        public var isRunning: Bool { process != nil }
    }

    /// Says how the folder's server is, without starting or making anything.
    public static func status(
        directory: String = defaultDirectory
    ) throws(EmbeddedServerError) -> Status {
        var status = Status(directory: directory, isKept: false, isInUse: false)
        guard let folder = FileSystem.resolved(directory) else { return status }
        status.directory = folder
        guard FileSystem.exists("\(folder)/start.lock") else { return status }
        let startLock = try FileLock("\(folder)/start.lock")
        try acquire(startLock, in: folder)
        defer { startLock.release() }
        guard let home = try ClusterHome.existing(in: folder) else { return status }
        status.dataFolder = home.cluster
        status.majorVersion = Cluster.version(of: home.cluster)
        status.logFile = home.logFile
        let useLock = try FileLock("\(folder)/use.lock")
        status.isInUse = !useLock.attempt(.exclusive)
        useLock.release()
        let cluster = try cluster(of: home)
        guard let running = cluster.postmaster else { return status }
        status.process = running.process
        status.startedAt = running.startedAt * 1000
        status.isKept = isKept(home, cluster)
        status.conninfo = Cluster.conninfo(
            socketFolder: running.socketFolder,
            database: database
        )
        return status
    }

    /// Lets the server go on when its last user is gone, until `stop` or a restart.
    public func keepRunning() throws(EmbeddedServerError) {
        guard let identity = cluster.postmaster?.identity else {
            throw EmbeddedServerError(code: .start, message: "the private server has ended")
        }
        try FileSystem.write(identity, to: home.keepFile)
    }

    /// Stops the folder's server.
    ///
    /// - Parameters:
    ///   - directory: the folder that the server's files are in.
    ///   - isForced: stop it even while commands use it; they then fail, and what they had not
    ///     committed is undone.
    /// - Returns: whether there was one to stop.
    /// - Throws: `EmbeddedServerError` with `code == .busy` when commands use it.
    @discardableResult
    public static func stop(
        directory: String = defaultDirectory,
        isForced: Bool = false
    ) throws(EmbeddedServerError) -> Bool {
        guard let folder = FileSystem.resolved(directory) else { return false }
        guard FileSystem.exists("\(folder)/start.lock") else { return false }
        let startLock = try FileLock("\(folder)/start.lock")
        try acquire(startLock, in: folder)
        defer { startLock.release() }
        guard let home = try ClusterHome.existing(in: folder) else { return false }
        let cluster = try cluster(of: home)
        FileSystem.remove(home.keepFile)
        guard cluster.postmaster != nil else { return false }
        let useLock = try FileLock("\(folder)/use.lock")
        guard useLock.attempt(.exclusive) || isForced else {
            throw EmbeddedServerError(
                code: .busy,
                message: "another command uses the server; it stops with the last one"
            )
        }
        try cluster.stop()
        return true
    }

    /// Runs psql on the ledger's database, with the caller's terminal, until the user leaves it.
    ///
    /// - Parameter arguments: what else psql is to be told.
    /// - Returns: psql's exit status.
    /// - Throws: `EmbeddedServerError` when psql is not there.
    public func psql(_ arguments: [String] = []) throws(EmbeddedServerError) -> Int32 {
        let places = ["\(cluster.binaries.folder)/psql", "/usr/bin/psql"]
        guard let psql = places.first(where: FileSystem.isProgram) else {
            throw EmbeddedServerError(
                code: .noBinaries,
                message: "psql is not there: apt-get install postgresql-client"
            )
        }
        // Ctrl-C in psql is for psql, which gives up the query and goes on.
        return try Termination.whileSuspended { () throws(EmbeddedServerError) in
            let process = try ChildProcess.spawn(
                [psql, "--dbname", conninfo] + arguments,
                environment: nil,
                folder: nil,
                isDetached: false,
                streams: .inherited
            )
            switch ChildProcess.wait(for: process) {
            case .exited(let status): return status
            case .killed(let signal): return 128 + signal
            case .unknown: return 1
            }
        }
    }
}
