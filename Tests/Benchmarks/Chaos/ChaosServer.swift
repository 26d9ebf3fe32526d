internal import Glibc
internal import Postgres
internal import Synchronization

/// A private PostgreSQL server with `fsync` on, to be stopped at once and started again.
final class ChaosServer: Sendable {
    /// The folder with everything of a run.
    let folder: String
    private let cluster: Cluster
    private let run: String
    private let environment: [String]
    static let database = "subledger_chaos"
    static let login = "chaos_service"

    /// Makes a cluster and starts it; `environment` is what it has besides the usual.
    init(environment: @Sendable (_ folder: String) -> [String] = { _ in [] }) throws {
        // The account that PostgreSQL runs as must get through, hence the mode.
        let made = "/tmp/subledger-chaos-\(getpid())-\(UInt32.random(in: .min ... .max))"
        try FileSystem.makeFolder(made, mode: 0o755)
        folder = made
        run = "\(made)/run"
        self.environment = environment(made)
        let account = try ServerAccount.forCluster(ownedBy: nil)
        let data = "\(made)/data"
        try FileSystem.makeFolder(data, mode: 0o755)
        try account.own(data)
        try FileSystem.makeFolder(run, mode: 0o700)
        try account.own(run)
        cluster = Cluster(
            folder: "\(data)/cluster",
            binaries: try .find(),
            account: account,
            logFile: "\(made)/postgres.log"
        )
        try cluster.initialise(settings: EmbeddedServer.settings)
        try start()
    }

    /// Starts it; after a crash it first replays its log.
    func start() throws {
        _ = try cluster.start(socketFolder: run, environment: environment)
    }

    /// `pg_ctl stop -m immediate`: nothing is written any more, sessions end where they are.
    func stopImmediately() throws { try cluster.stopImmediately() }

    /// An orderly stop.
    func stop() throws { try cluster.stop() }

    func conninfo(user: String = Cluster.superuser, database: String = database) -> String {
        Cluster.conninfo(socketFolder: run, database: database, user: user)
    }

    func connect() throws -> Connection { try Connection(conninfo()) }

    /// Has what is left removed when this process ends, in whatever way.
    ///
    /// The watchdog is a shell that reads from a pipe whose other end only this process has.
    func watch() {
        let script = """
            read -r line
            for file in "$1"/*.pid; do
                [ -f "$file" ] && kill -KILL "$(cat "$file")"
            done
            if [ -f "$1/data/cluster/postmaster.pid" ]; then
                kill -QUIT "$(head -n 1 "$1/data/cluster/postmaster.pid")"
                sleep 1
            fi
            [ -f "$1/keep" ] || rm -rf -- "$1"
            """
        var ends: [Int32] = [0, 0]
        guard unsafe pipe(&ends) == 0 else { return }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[0]) }
        _ = try? ChildProcess.spawn(
            ["/bin/sh", "-c", script, "watchdog", folder],
            streams: .init(input: ends[0])
        )
    }
}
