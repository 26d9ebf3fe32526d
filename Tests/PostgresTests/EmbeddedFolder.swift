import Glibc
import Postgres
import TestSupport

/// A folder for a private server, which is stopped and removed with the object.
final class EmbeddedFolder {
    /// What is removed in the end.
    private let root: String
    /// The folder that plays `.subledger`.
    let directory: String

    /// Makes the folder that the server's is to be made in.
    ///
    /// - Parameters:
    ///   - name: the folders between the temporary one and `.subledger`.
    ///   - mode: the mode of the first of them.
    /// - Throws: `EmbeddedServerError` when a folder cannot be made.
    init(_ name: String = "clone", mode: UInt32 = 0o755) throws {
        root = try TestFolder.make()
        let first = name.split(separator: "/").first.map { String($0) } ?? name
        try FileSystem.makeFolder("\(root)/\(first)", mode: mode)
        try FileSystem.makeFolder("\(root)/\(name)")
        directory = "\(root)/\(name)/.subledger"
    }

    deinit {
        if let status = try? EmbeddedServer.status(directory: directory),
            let data = status.dataFolder
        {
            Cluster.killProcesses(of: data)
            // A killed server leaves its socket.
            FileSystem.removeTree("/tmp/subledger-\(FileSystem.shortName(of: data))")
            // Where the account could not get to the folder, the data are elsewhere.
            if !data.hasPrefix(root) { FileSystem.removeTree(FileSystem.parent(of: data)) }
        }
        FileSystem.removeTree(root)
    }

    func open() throws(EmbeddedServerError) -> EmbeddedServer {
        try EmbeddedServer.open(directory: directory)
    }

    func status() throws(EmbeddedServerError) -> EmbeddedServer.Status {
        try EmbeddedServer.status(directory: directory)
    }
}

extension EmbeddedServer {
    /// Runs a statement in a session of its own and returns its first value.
    @discardableResult
    func value(_ sql: String) throws(PostgresError) -> Int64? {
        let rows = try Connection(conninfo).query(sql)
        return rows.count > 0 && !rows.columns.isEmpty ? rows.int(0, 0) : nil
    }
}
