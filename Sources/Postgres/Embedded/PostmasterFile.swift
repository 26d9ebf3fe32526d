internal import Glibc

/// What `postmaster.pid` in a cluster says of its server.
struct PostmasterFile: Hashable, Sendable {
    let process: pid_t
    /// When the server was started, in seconds since 1970.
    let startedAt: Int64
    let port: Int
    let socketFolder: String
    /// `starting`, `ready`, `stopping` or `standby`; empty in a file just being written.
    let state: String

    /// Reads the file; nil when there is none or it is not whole yet.
    init?(cluster: String) {
        guard let text = FileSystem.text("\(cluster)/postmaster.pid") else { return nil }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            var line = line
            while line.last == " " { line.removeLast() }
            return String(line)
        }
        guard lines.count >= 5, let process = pid_t(lines[0]), process > 0 else { return nil }
        self.process = process
        startedAt = Int64(lines[2]) ?? 0
        port = Int(lines[3]) ?? 0
        socketFolder = lines[4]
        state = lines.count > 7 ? lines[7] : ""
    }

    /// What tells this run of the server from every other.
    var identity: String { "\(process) \(startedAt)" }

    /// The processes whose working folder is the cluster: the server and its children.
    ///
    /// The number in the file is no proof, since after a crash it may belong to a stranger.
    static func processes(of cluster: String) -> Set<pid_t> {
        guard let cluster = FileSystem.resolved(cluster) else { return [] }
        var found: Set<pid_t> = []
        for name in FileSystem.names(in: "/proc") {
            guard let process = pid_t(name) else { continue }
            if FileSystem.resolved("/proc/\(process)/cwd") == cluster,
                ChildProcess.isRunning(process)
            {
                found.insert(process)
            }
        }
        return found
    }

    /// Whether the process named is the server of this cluster.
    func isRunning(in cluster: String) -> Bool {
        guard ChildProcess.isRunning(process) else { return false }
        // A child of ours not yet past exec is in no folder of its own, but then the file is not
        // written either.
        return FileSystem.resolved("/proc/\(process)/cwd") == FileSystem.resolved(cluster)
    }
}
