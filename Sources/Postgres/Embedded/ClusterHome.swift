internal import Glibc

/// The folder `.subledger`: where its cluster is, its locks and its log.
struct ClusterHome: Sendable {
    /// The folder's absolute path without links.
    let folder: String
    /// The account that runs the server.
    let account: ServerAccount
    /// The data folder, here or, where the account cannot get to here, elsewhere.
    let cluster: String

    /// Present while the server was told to go on without users; it names the run.
    var keepFile: String { "\(folder)/keep" }

    var logFile: String { "\(folder)/server.log" }

    /// Finds out where the folder's cluster is or is to be.
    ///
    /// The caller holds the start lock: two commands at once must not settle this differently.
    init(prepared folder: String) throws(EmbeddedServerError) {
        self.folder = folder
        let pointer = Self.pointer(in: folder)
        if let elsewhere = Self.target(of: pointer) {
            cluster = elsewhere
            account = try .forCluster(ownedBy: FileSystem.status(elsewhere)?.st_uid)
            return
        }
        let here = "\(folder)/cluster"
        if let status = FileSystem.status(here) {
            cluster = here
            account = try .forCluster(ownedBy: status.st_uid)
            return
        }
        account = try Self.account(forNewClusterIn: folder)
        // The account reaches the folder if it can write in one of its own there.
        let probe = "\(folder)/cluster.probe"
        try FileSystem.makeFolder(probe, mode: 0o700)
        defer { _ = unsafe rmdir(probe) }
        try account.own(probe)
        if try account.canWrite(probe) {
            cluster = here
            return
        }
        cluster = "\(try Self.makeRefuge(for: folder, account))/cluster"
        try FileSystem.write(
            """
            \(cluster)
            The database is in the folder above, since the account \(account.name), which runs
            the server, cannot get to this one. Remove both to start anew.

            """,
            to: pointer
        )
    }

    /// The home that is there already; nil when it has no cluster yet.
    static func existing(in folder: String) throws(EmbeddedServerError) -> ClusterHome? {
        let cluster = target(of: pointer(in: folder)) ?? "\(folder)/cluster"
        return Cluster.isInitialised(cluster) ? try ClusterHome(prepared: folder) : nil
    }

    /// A short folder for the socket that only the account, and root, can enter.
    ///
    /// A socket's path may have 107 bytes, so it cannot lie in the cluster. Its name follows from
    /// the cluster's, and since anybody may make a folder in `/tmp`, one that is not ours alone is
    /// passed over.
    func makeSocketFolder() throws(EmbeddedServerError) -> String {
        let base = "/tmp/subledger-\(FileSystem.shortName(of: cluster))"
        for candidate in [base] + (1...9).map({ "\(base)-\($0)" }) {
            if unsafe mkdir(candidate, 0o700) == 0 { try account.own(candidate) }
            guard let status = FileSystem.status(candidate, followsLinks: false) else { continue }
            if status.st_mode & S_IFMT == S_IFDIR, status.st_uid == account.user,
                status.st_mode & 0o077 == 0
            {
                return candidate
            }
        }
        throw EmbeddedServerError(
            code: .directory,
            message: "\(base) cannot be made or belongs to another account: remove it"
        )
    }

    /// Makes the folder where needed and returns its absolute path without links.
    static func prepare(_ directory: String) throws(EmbeddedServerError) -> String {
        let isNew = !FileSystem.isFolder(directory)
        try FileSystem.makeFolder(directory)
        guard let folder = FileSystem.resolved(directory) else {
            throw FileSystem.failure("cannot open the folder \(directory)")
        }
        if isNew, geteuid() == 0, let parent = FileSystem.status(FileSystem.parent(of: folder)) {
            // Under sudo the folder is to belong to whoever owns the clone.
            _ = unsafe chown(folder, parent.st_uid, parent.st_gid)
        }
        return folder
    }

    /// In somebody's folder root runs the server as them, so that they can go on without root.
    private static func account(
        forNewClusterIn folder: String
    ) throws(EmbeddedServerError) -> ServerAccount {
        if geteuid() == 0, let owner = FileSystem.status(folder)?.st_uid, owner != 0,
            let account = try? ServerAccount.forCluster(ownedBy: owner)
        {
            return account
        }
        return try .forCluster(ownedBy: nil)
    }

    private static func pointer(in folder: String) -> String { "\(folder)/cluster.path" }

    private static func target(of pointer: String) -> String? {
        FileSystem.text(pointer)?.split(separator: "\n").first.map { String($0) }
    }

    /// A folder outside that the account can reach, named after the home.
    private static func makeRefuge(
        for folder: String,
        _ account: ServerAccount
    ) throws(EmbeddedServerError) -> String {
        let name = FileSystem.shortName(of: folder)
        var failure: EmbeddedServerError?
        for refuge in ["/var/lib/subledger/\(name)", "/var/tmp/subledger-\(name)"] {
            do {
                try FileSystem.makeFolder(refuge, mode: 0o700)
                // In /var/tmp anybody may have made it, or a link to somewhere else.
                let owner = FileSystem.status(refuge, followsLinks: false)
                    .flatMap { $0.st_mode & S_IFMT == S_IFDIR ? $0.st_uid : nil }
                guard owner == 0 || owner == account.user else { continue }
                try account.own(refuge)
                if try account.canWrite(refuge) { return refuge }
            } catch {
                failure = failure ?? error
            }
        }
        throw failure
            ?? EmbeddedServerError(
                code: .directory,
                message: "the account \(account.name), which runs the server, can reach neither "
                    + "\(folder) nor /var/lib/subledger nor /var/tmp"
            )
    }
}
