internal import Glibc

/// The PostgreSQL server's programs of one version.
package struct ServerBinaries: Hashable, Sendable {
    /// The oldest major version that the ledger's schema runs on.
    static let oldestMajorVersion = 15

    /// The folder that holds `postgres` and `initdb`.
    package let folder: String

    /// The major version, 15 for 15.18.
    package let majorVersion: Int

    var initdb: String { "\(folder)/initdb" }
    var postgres: String { "\(folder)/postgres" }

    /// Finds the programs: on the PATH, then in Debian's folders, the newest version first.
    ///
    /// - Parameters:
    ///   - version: the major version that an existing cluster needs; nil takes any from 15 on.
    ///   - path: the value of PATH; nil is this process's.
    ///   - debianFolder: where Debian keeps one folder a version.
    /// - Returns: the first that will do.
    /// - Throws: `EmbeddedServerError` that says what to install.
    package static func find(
        version: Int? = nil,
        path: String? = nil,
        debianFolder: String = "/usr/lib/postgresql"
    ) throws(EmbeddedServerError) -> ServerBinaries {
        var found: [ServerBinaries] = []
        let variable = unsafe getenv("PATH").map { unsafe String(cString: $0) }
        let path = path ?? variable ?? ""
        for folder in path.split(separator: ":") {
            // A link's target holds the other programs and the libraries beside them.
            guard let initdb = FileSystem.resolved("\(folder)/initdb") else { continue }
            if let binaries = try look(in: FileSystem.parent(of: initdb)) {
                found.append(binaries)
            }
        }
        let installed = FileSystem.names(in: debianFolder).compactMap { Int($0) }
        for major in installed.sorted(by: >) {
            if let binaries = try look(in: "\(debianFolder)/\(major)/bin") {
                found.append(binaries)
            }
        }
        if let version {
            if let match = found.first(where: { $0.majorVersion == version }) { return match }
        } else if let match = found.first(where: { $0.majorVersion >= oldestMajorVersion }) {
            return match
        }
        throw notFound(version: version, found: found.map(\.majorVersion))
    }

    private static func look(in folder: String) throws(EmbeddedServerError) -> ServerBinaries? {
        guard
            FileSystem.isProgram("\(folder)/postgres"),
            FileSystem.isProgram("\(folder)/initdb")
        else { return nil }
        // Prints "postgres (PostgreSQL) 15.18 (Debian …)".
        let answer = try ChildProcess.run(["\(folder)/postgres", "--version"])
        guard answer.ending == .exited(0) else { return nil }
        let words = answer.output.split(whereSeparator: { $0 == " " || $0 == "\n" })
        guard
            words.count > 2,
            let major = Int(words[2].prefix(while: { $0.isNumber }))
        else { return nil }
        return ServerBinaries(folder: folder, majorVersion: major)
    }

    private static func notFound(version: Int?, found: [Int]) -> EmbeddedServerError {
        let remedy = "or set DATABASE_URL to a server that runs elsewhere"
        if let version {
            return EmbeddedServerError(
                code: found.isEmpty ? .noBinaries : .version,
                message: "the database was made by PostgreSQL \(version), whose server programs "
                    + "are not here: apt-get install postgresql-\(version), \(remedy)"
            )
        }
        if let newest = found.max() {
            return EmbeddedServerError(
                code: .version,
                message: "PostgreSQL \(newest) is too old, \(oldestMajorVersion) is the oldest "
                    + "that will do: apt-get install postgresql, \(remedy)"
            )
        }
        return EmbeddedServerError(
            code: .noBinaries,
            message: "no PostgreSQL server programs (initdb, postgres) on the PATH or in "
                + "/usr/lib/postgresql: apt-get install postgresql, \(remedy)"
        )
    }
}
