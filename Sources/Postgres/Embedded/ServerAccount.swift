internal import Glibc

/// The account that the server's programs run as.
///
/// PostgreSQL refuses to run as root, so root hands them to an unprivileged account.
package struct ServerAccount: Hashable, Sendable {
    /// The account's name, for messages.
    let name: String
    let user: uid_t
    let group: gid_t
    /// Whether it is not the account of this process, which must then be root.
    let isOther: Bool

    /// The account for a cluster whose folder belongs to `owner`; nil where there is none yet.
    ///
    /// A folder that somebody made before stays theirs: root then runs the server as them.
    package static func forCluster(
        ownedBy owner: UInt32?
    ) throws(EmbeddedServerError)
        -> ServerAccount
    {
        let own = geteuid()
        guard own == 0 else {
            if let owner, owner != own {
                throw EmbeddedServerError(
                    code: .account,
                    message: "the database belongs to the account \(name(of: owner)); "
                        + "run the command as that account or as root"
                )
            }
            return ServerAccount(name: name(of: own), user: own, group: getegid(), isOther: false)
        }
        if let owner, owner != 0 {
            guard let account = unsafe look(up: { unsafe getpwuid_r(owner, $0, $1, $2, $3) }) else {
                throw EmbeddedServerError(
                    code: .account,
                    message: "the database belongs to the user number \(owner), which has no entry "
                        + "in /etc/passwd, and PostgreSQL refuses to run as such a user"
                )
            }
            return account
        }
        for candidate in ["postgres", "nobody"] {
            if let account = unsafe look(up: { unsafe getpwnam_r(candidate, $0, $1, $2, $3) }) {
                return account
            }
        }
        throw EmbeddedServerError(
            code: .account,
            message: "PostgreSQL refuses to run as root, and there is neither an account "
                + "'postgres' nor 'nobody': add one with 'useradd --system postgres'"
        )
    }

    /// The arguments that run a program as this account.
    package func command(_ arguments: [String]) throws(EmbeddedServerError) -> [String] {
        guard isOther else { return arguments }
        let places = ["/usr/bin/setpriv", "/bin/setpriv", "/usr/local/bin/setpriv"]
        guard let setpriv = places.first(where: FileSystem.isProgram) else {
            throw EmbeddedServerError(
                code: .account,
                message: "PostgreSQL refuses to run as root, and 'setpriv' is not there to run it "
                    + "as \(name): apt-get install util-linux"
            )
        }
        return [
            setpriv, "--reuid=\(user)", "--regid=\(group)", "--clear-groups", "--",
        ] + arguments
    }

    /// Whether this account can get to the folder and write in it.
    ///
    /// The system is asked by trying, since modes alone do not tell (access lists, mounts).
    func canWrite(_ folder: String) throws(EmbeddedServerError) -> Bool {
        if !isOther { return unsafe access(folder, W_OK | X_OK) == 0 }
        let test = ["/usr/bin/test", "/bin/test"].first(where: FileSystem.isProgram)
        guard let test else { return false }
        return try ChildProcess.run(command([test, "-w", folder])).ending == .exited(0)
    }

    /// Makes the account the owner of a path.
    package func own(_ path: String) throws(EmbeddedServerError) {
        guard isOther else { return }
        guard unsafe chown(path, user, group) == 0 else {
            throw FileSystem.failure("cannot give \(path) to the account \(name)")
        }
    }

    private static func name(of user: uid_t) -> String {
        unsafe look(up: { unsafe getpwuid_r(user, $0, $1, $2, $3) })?.name ?? "number \(user)"
    }

    @unsafe private static func look(
        up call: (
            UnsafeMutablePointer<passwd>, UnsafeMutablePointer<CChar>, Int,
            UnsafeMutablePointer<UnsafeMutablePointer<passwd>?>
        ) -> Int32
    ) -> ServerAccount? {
        var entry = unsafe passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16 * 1024)
        let count = buffer.count
        // The entry's name points into `buffer`, so it is copied while that is lent.
        let name = unsafe buffer.withUnsafeMutableBufferPointer { buffer -> String? in
            guard let base = buffer.baseAddress else { return nil }
            guard unsafe call(&entry, base, count, &found) == 0 else { return nil }
            return unsafe found.map { unsafe String(cString: $0.pointee.pw_name) }
        }
        guard let name else { return nil }
        return unsafe ServerAccount(
            name: name,
            user: entry.pw_uid,
            group: entry.pw_gid,
            isOther: entry.pw_uid != geteuid()
        )
    }
}
