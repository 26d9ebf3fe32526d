internal import Glibc
internal import LedgerService
internal import Postgres

/// Who sits at the command line, as far as that can be known without their word.
enum OperatorAccount {
    /// The actor of a command: the account of the operating system, the machine and the login of
    /// the database, beside the name that was given.
    static func actor(claimed: String, _ connection: Connection) throws -> ExtensionActor {
        let rows = try connection.query("select session_user::text")
        return ExtensionActor(
            osUser: userName(),
            host: hostName(),
            databaseRole: rows.text(0, 0) ?? "unknown",
            claimed: claimed
        )
    }

    /// The name of the account that the program runs as; after `sudo` the one that called it.
    static func userName() -> String {
        if geteuid() == 0, let caller = environment("SUDO_USER"), !caller.isEmpty { return caller }
        // One thread reads the command line, so the shared entry is nobody else's meanwhile.
        guard let entry = unsafe getpwuid(geteuid()) else { return "uid \(geteuid())" }
        return unsafe String(cString: entry.pointee.pw_name)
    }

    /// The machine's name.
    static func hostName() -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&buffer, buffer.count - 1) == 0 else { return "unknown" }
        return String(
            decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) },
            as: UTF8.self
        )
    }
}
