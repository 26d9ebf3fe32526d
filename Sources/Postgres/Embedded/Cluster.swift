internal import CPostgres
internal import Glibc

/// One PostgreSQL cluster on disk, and the server that runs on it.
///
/// It knows nothing of who else uses it; `EmbeddedServer` and the tests bring the locks.
package struct Cluster: Sendable {
    /// The superuser that `initdb` makes, whatever the account is called.
    package static let superuser = "postgres"

    /// The only port, which names the socket's file; nothing listens on TCP.
    static let port = 5432

    /// How long a start may take; recovery after a crash replays the log first.
    static let startLimitSeconds = 300.0

    /// How long a killed server's children may take to notice and end.
    static let leftBehindLimitSeconds = 30.0

    /// How long a stop may take; it writes what is in memory first.
    static let stopLimitSeconds = 120.0

    /// The data folder.
    package let folder: String
    package let binaries: ServerBinaries
    package let account: ServerAccount
    /// Where the server writes its messages.
    package let logFile: String

    /// Describes a cluster; nothing is made or started.
    package init(
        folder: String,
        binaries: ServerBinaries,
        account: ServerAccount,
        logFile: String
    ) {
        self.folder = folder
        self.binaries = binaries
        self.account = account
        self.logFile = logFile
    }

    // MARK: - Making

    /// Whether the data folder holds a whole cluster.
    package static func isInitialised(_ folder: String) -> Bool {
        FileSystem.exists("\(folder)/PG_VERSION")
    }

    /// The major version that made the cluster; nil where there is none.
    package static func version(of folder: String) -> Int? {
        FileSystem.text("\(folder)/PG_VERSION").flatMap { text in
            Int(text.prefix(while: { $0.isNumber }))
        }
    }

    /// Runs `initdb`, in a folder beside the final one, which appears only when it is whole.
    ///
    /// - Parameters:
    ///   - settings: lines for the end of `postgresql.conf`.
    ///   - isDurable: whether the new files are flushed to the disk; tests need not.
    /// - Throws: `EmbeddedServerError` with what `initdb` said.
    package func initialise(
        settings: [String] = [],
        isDurable: Bool = true
    ) throws(EmbeddedServerError) {
        let draft = "\(folder).draft"
        // What an earlier attempt left that was killed half way.
        FileSystem.removeTree(draft)
        try FileSystem.makeFolder(draft, mode: 0o700)
        try account.own(draft)
        var arguments = [
            binaries.initdb, "-D", draft, "-U", Self.superuser, "-A", "trust", "-E", "UTF8",
            "--locale=C.UTF-8",
        ]
        if !isDurable { arguments.append("--no-sync") }
        let (ending, output) = try ChildProcess.run(account.command(arguments))
        guard ending == .exited(0) else {
            FileSystem.removeTree(draft)
            throw Self.failure(
                .initialisation,
                "initdb could not make the database in \(FileSystem.parent(of: folder))",
                log: output
            )
        }
        try append(settings, to: "\(draft)/postgresql.conf")
        guard unsafe rename(draft, folder) == 0 else {
            throw FileSystem.failure("cannot move the new database to \(folder)")
        }
    }

    private func append(_ settings: [String], to path: String) throws(EmbeddedServerError) {
        guard !settings.isEmpty else { return }
        let file = unsafe open(path, O_WRONLY | O_APPEND | O_CLOEXEC)
        guard file >= 0 else { throw FileSystem.failure("cannot write \(path)") }
        defer { close(file) }
        let text = "\n# Added by subledger.\n" + settings.map { $0 + "\n" }.joined()
        guard FileSystem.append(text, to: file) else {
            throw FileSystem.failure("cannot write \(path)")
        }
    }

    // MARK: - Running

    /// The server's own word on itself; nil when no server runs on the cluster.
    var postmaster: PostmasterFile? {
        PostmasterFile(cluster: folder).flatMap { $0.isRunning(in: folder) ? $0 : nil }
    }

    /// How a client reaches the server.
    package static func conninfo(
        socketFolder: String,
        database: String,
        user: String = superuser
    ) -> String {
        Connection.conninfo([
            ("host", socketFolder), ("port", String(port)), ("dbname", database), ("user", user),
        ])
    }

    /// Starts the server, or waits for one that is starting, and returns its socket's folder.
    ///
    /// The caller holds the cluster's lock, so that nobody else starts or stops it meanwhile.
    ///
    /// - Parameters:
    ///   - socketFolder: a short folder of mode 0700 that belongs to the account.
    ///   - settings: `name=value` pairs for this run.
    ///   - environment: `NAME=value` pairs beside the usual ones.
    ///   - started: called with the process id as soon as there is one.
    /// - Returns: the folder of the server's socket; another one when it ran already.
    /// - Throws: `EmbeddedServerError` with the end of the server's log.
    package func start(
        socketFolder: String,
        settings: [String] = [],
        environment: [String] = [],
        started: (Int32) -> Void = { _ in }
    ) throws(EmbeddedServerError) -> String {
        let begin = Clock.seconds()
        let end = begin + Self.startLimitSeconds
        while true {
            if let running = postmaster {
                if running.state == "ready", isAnswering(running.socketFolder) {
                    return running.socketFolder
                }
                // It is starting, or on its way down after somebody's Ctrl-C.
                guard Clock.seconds() < end else { throw tooSlow(from: 0) }
                Clock.sleep(milliseconds: 20)
                continue
            }
            try removeStaleLocks(socketFolder)
            let offset = FileSystem.length(logFile)
            let process = try spawn(
                socketFolder: socketFolder,
                settings: settings,
                environment: environment
            )
            started(process)
            do {
                try awaitReady(process, socketFolder: socketFolder, logOffset: offset, until: end)
                return socketFolder
            } catch let error
                where error.message.contains("pre-existing shared memory block")
                && Clock.seconds() < begin + Self.leftBehindLimitSeconds
            {
                // A killed server's children still hold its memory: they see its death and end.
                Clock.sleep(milliseconds: 200)
            }
        }
    }

    private func spawn(
        socketFolder: String,
        settings: [String],
        environment: [String]
    ) throws(EmbeddedServerError) -> pid_t {
        let log = unsafe open(logFile, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard log >= 0 else { throw FileSystem.failure("cannot write the server's log \(logFile)") }
        defer { close(log) }
        // Whoever owns the folder goes on with the same log when root no longer starts the server.
        if account.isOther { _ = fchown(log, account.user, account.group) }
        var arguments = [
            binaries.postgres, "-D", folder, "-k", socketFolder, "-p", String(Self.port),
            "-c", "listen_addresses=", "-c", "unix_socket_permissions=0700",
        ]
        for setting in settings { arguments += ["-c", setting] }
        return try ChildProcess.spawn(
            account.command(arguments),
            environment: ChildProcess.serverEnvironment + environment,
            streams: .init(output: log)
        )
    }

    /// Waits for a server just started, and says why where it ends instead.
    private func awaitReady(
        _ process: pid_t,
        socketFolder: String,
        logOffset: Int,
        until end: Double
    ) throws(EmbeddedServerError) {
        while true {
            if let ending = ChildProcess.poll(process) {
                let log = FileSystem.text(logFile, from: logOffset) ?? ""
                throw Self.failure(
                    .start,
                    "the PostgreSQL server in \(folder) did not start (\(ending))",
                    log: log
                )
            }
            if let running = PostmasterFile(cluster: folder), running.process == process,
                running.state == "ready", isAnswering(socketFolder)
            {
                return
            }
            guard Clock.seconds() < end else {
                _ = Glibc.kill(process, SIGINT)
                throw tooSlow(from: logOffset)
            }
            Clock.sleep(milliseconds: 10)
        }
    }

    private func isAnswering(_ socketFolder: String) -> Bool {
        let target = Self.conninfo(socketFolder: socketFolder, database: "postgres")
        return unsafe PQping(target) == PQPING_OK
    }

    /// Removes `postmaster.pid` and the socket's lock where their number is no server's any more.
    ///
    /// PostgreSQL itself passes over a dead number, but not over one that some other program of
    /// the same account has got since, nor over a killed server that is still on its way out or
    /// that its parent has not waited for: it would refuse to start, in the last case for ever.
    /// The socket's folder is this cluster's alone, so its lock is as stale as the cluster's.
    private func removeStaleLocks(_ socketFolder: String) throws(EmbeddedServerError) {
        let locks = ["\(folder)/postmaster.pid", "\(socketFolder)/.s.PGSQL.\(Self.port).lock"]
        let stale = locks.filter { isHeld($0) }
        guard !stale.isEmpty else { return }
        // The files also guard the shared memory that children of a killed server still use.
        let end = Clock.seconds() + Self.leftBehindLimitSeconds
        while !PostmasterFile.processes(of: folder).isEmpty {
            guard Clock.seconds() < end else {
                throw EmbeddedServerError(
                    code: .start,
                    message: "processes of an earlier PostgreSQL server still run in \(folder)"
                )
            }
            Clock.sleep(milliseconds: 50)
        }
        for lock in stale { FileSystem.remove(lock) }
    }

    /// Whether a lock file names a process that is there, be it a zombie.
    private func isHeld(_ lock: String) -> Bool {
        guard let text = FileSystem.text(lock) else { return false }
        guard let process = pid_t(text.prefix(while: \.isNumber)), process > 0 else { return false }
        // If it was our own child, this is the wait.
        _ = ChildProcess.poll(process)
        return Glibc.kill(process, 0) == 0 || errno == EPERM
    }

    // MARK: - Stopping

    /// Stops the server: sessions are ended, what is open is rolled back, all is written.
    ///
    /// The caller holds the cluster's lock. No server is no error.
    package func stop() throws(EmbeddedServerError) {
        guard let running = postmaster else { return }
        // SIGINT is PostgreSQL's "fast" shutdown.
        guard Glibc.kill(running.process, SIGINT) == 0 || errno == ESRCH else {
            throw FileSystem.failure("cannot stop the PostgreSQL server \(running.process)")
        }
        let end = Clock.seconds() + Self.stopLimitSeconds
        while ChildProcess.poll(running.process) == nil {
            guard Clock.seconds() < end else {
                throw Self.failure(
                    .stop,
                    "the PostgreSQL server \(running.process) is still stopping",
                    log: FileSystem.text(logFile, limitBytes: 2000) ?? ""
                )
            }
            Clock.sleep(milliseconds: 5)
        }
        _ = unsafe rmdir(running.socketFolder)
    }

    /// Stops the server where it is (`pg_ctl stop -m immediate`): nothing more is written, and the
    /// next start replays the log; for tests.
    package func stopImmediately() throws(EmbeddedServerError) {
        guard let running = postmaster else { return }
        guard Glibc.kill(running.process, SIGQUIT) == 0 || errno == ESRCH else {
            throw FileSystem.failure("cannot stop the PostgreSQL server \(running.process)")
        }
        let end = Clock.seconds() + Self.stopLimitSeconds
        while ChildProcess.poll(running.process) == nil, Clock.seconds() < end {
            Clock.sleep(milliseconds: 5)
        }
    }

    /// Kills the server and its children at once, as a power cut would; for tests.
    package func killAll() { Self.killProcesses(of: folder) }

    /// Kills whatever runs in a cluster's folder and waits until it is gone; for tests.
    package static func killProcesses(of folder: String) {
        while true {
            let processes = PostmasterFile.processes(of: folder)
            if processes.isEmpty { return }
            for process in processes { _ = Glibc.kill(process, SIGKILL) }
            for process in processes {
                // A process that is being ended leaves its folder before it is a zombie.
                while ChildProcess.poll(process) == nil { Clock.sleep(milliseconds: 1) }
            }
        }
    }

    private func tooSlow(from offset: Int) -> EmbeddedServerError {
        Self.failure(
            .start,
            "the PostgreSQL server in \(folder) is not ready yet",
            log: FileSystem.text(logFile, from: offset) ?? ""
        )
    }

    /// An error that ends in the last lines of what the program said.
    private static func failure(
        _ code: EmbeddedServerError.Code,
        _ what: String,
        log: String
    ) -> EmbeddedServerError {
        let isFull = log.contains("No space left on device") || log.contains("quota exceeded")
        let lines = log.split(separator: "\n").suffix(8).map { "\n  \($0)" }.joined()
        let remedy = isFull ? "the disk is full: " : ""
        return EmbeddedServerError(
            code: isFull ? .diskFull : code,
            message: "\(remedy)\(what)" + (lines.isEmpty ? "" : "; it said:\(lines)")
        )
    }
}
