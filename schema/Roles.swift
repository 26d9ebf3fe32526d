/// The NOLOGIN roles of one installation.
///
/// They are cluster-wide in PostgreSQL, so their names begin with a prefix: by default the name
/// of the database.
public struct Roles: Hashable, Sendable {
    /// What all the names begin with.
    public var prefix: String

    /// Makes the names with a prefix.
    public init(prefix: String) { self.prefix = prefix }

    /// Owns the log; used by migrations only.
    public var owner: String { "\(prefix)_owner" }
    /// Inserts into the log and moves its head.
    public var appender: String { "\(prefix)_appender" }
    /// Reads the log and owns the read models.
    public var projector: String { "\(prefix)_projector" }
    /// Reads the read models.
    public var reader: String { "\(prefix)_reader" }
    /// Reads everything, evidence included.
    public var auditor: String { "\(prefix)_auditor" }

    /// All the names.
    public var all: [String] { [owner, appender, projector, reader, auditor] }

    /// The SQL with the roles' names in place of `:"owner"` and so on.
    public func applied(to sql: String) -> String {
        var rest = Substring(sql)
        var result = ""
        while let start = rest.firstIndex(of: ":") {
            result += rest[..<start]
            rest = rest[start...]
            let match = names.first { rest.hasPrefix(":\"\($0.variable)\"") }
            if let match {
                result += Self.quoted(match.name)
                rest = rest.dropFirst(match.variable.count + 3)
            } else {
                result += ":"
                rest = rest.dropFirst()
            }
        }
        return result + rest
    }

    /// The statements that make the roles, one a line.
    public var statements: [String] {
        applied(to: Schema.roles).split(separator: "\n").map { String($0) }
    }

    /// The statements that make a login which may serve: everything but own the log.
    public func login(_ name: String) -> [String] {
        let login = Self.quoted(name)
        let granted = [appender, projector, reader, auditor].map { Self.quoted($0) }
        return [
            "create role \(login) login;",
            "grant \(granted.joined(separator: ", ")) to \(login);",
        ]
    }

    /// An identifier as SQL quotes it.
    public static func quoted(_ name: String) -> String {
        "\""
            + name.split(separator: "\"", omittingEmptySubsequences: false).joined(
                separator: "\"\""
            )
            + "\""
    }

    private var names: [(variable: String, name: String)] {
        [
            ("owner", owner), ("appender", appender), ("projector", projector),
            ("reader", reader), ("auditor", auditor),
        ]
    }
}
