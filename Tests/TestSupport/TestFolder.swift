internal import Glibc
package import Postgres

/// Folders for tests in the system's temporary place, removed when the process ends.
package enum TestFolder {
    private static let prefix = "subledger-test-"
    private static let place = "/tmp"

    /// Makes a folder that every account can reach, and removes what dead processes left.
    package static func make() throws(EmbeddedServerError) -> String {
        _ = cleanOnce
        let folder = "\(place)/\(prefix)\(getpid())-\(UInt32.random(in: .min ... .max))"
        try FileSystem.makeFolder(folder)
        return folder
    }

    /// Has the folder removed, and the server in it stopped, when this process ends.
    ///
    /// The watchdog is a shell that reads from a pipe whose other end only this process has: the
    /// read ends when the process does, however that comes about.
    package static func watch(_ folder: String, server: Int32 = 0) {
        let script = """
            read -r line
            if [ "$1" -gt 0 ]; then
                kill -QUIT "$1"
                for try in 1 2 3 4 5 6 7 8 9 10; do
                    kill -0 "$1" || break
                    sleep 0.1
                done
            fi
            rm -rf -- "$2"
            """
        var ends: [Int32] = [0, 0]
        guard unsafe pipe(&ends) == 0 else { return }
        // Neither end may reach the server or another child: it would keep the pipe open.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[0]) }
        // The other end is never closed: that is what the watchdog waits for.
        _ = try? ChildProcess.spawn(
            ["/bin/sh", "-c", script, "watchdog", "\(server)", folder],
            streams: .init(input: ends[0])
        )
    }

    /// What processes that are gone left behind, for which even the watchdog was killed.
    private static let cleanOnce: Void = {
        for name in FileSystem.names(in: place) where name.hasPrefix(prefix) {
            let number = name.dropFirst(prefix.count).prefix(while: \.isNumber)
            guard let process = Int32(number), !ChildProcess.isRunning(process) else { continue }
            let folder = "\(place)/\(name)"
            Cluster.killProcesses(of: "\(folder)/cluster")
            FileSystem.removeTree(folder)
        }
    }()
}
