/// An option that a command takes.
struct Option: Hashable, Sendable {
    /// The option's name with its dashes.
    var name: String
    /// What its value stands for in the usage text, nil for a flag.
    var value: String?
    /// What it does, for the usage text.
    var help: String
    /// Whether it may be given several times.
    var repeats = false

    /// An option without a value.
    static func flag(_ name: String, _ help: String) -> Option {
        Option(name: name, value: nil, help: help)
    }

    /// An option with a value.
    static func value(_ name: String, _ value: String, _ help: String) -> Option {
        Option(name: name, value: value, help: help)
    }

    /// An option with a value that may be given several times.
    static func list(_ name: String, _ value: String, _ help: String) -> Option {
        Option(name: name, value: value, help: help, repeats: true)
    }
}

extension Option {
    /// Shows the usage of a command.
    static let help = Option.flag("--help", "show this text")
    /// Which database to use.
    static let database = Option.value(
        "--database",
        "URL",
        "use this PostgreSQL server instead of the embedded one (or set DATABASE_URL)"
    )
    /// Which configuration to use.
    static let config = Option.value(
        "--config",
        "FILE",
        "read the apps from this file (default ./subledger.json where there is one)"
    )
    /// Machine-readable output.
    static let json = Option.flag("--json", "print JSON instead of a table")
    /// Additional trust anchors.
    static let root = Option.list(
        "--root",
        "FILE",
        "also trust this root certificate (PEM or DER), for Sandbox data only; repeats"
    )
    /// An instant to look at.
    static let at = Option.value(
        "--at",
        "INSTANT",
        "as of then: 2026-01-31, 2026-01-31T12:00:00Z or milliseconds since 1970; default now"
    )
    /// What was known at an instant.
    static let knownAt = Option.value(
        "--known-at",
        "INSTANT",
        "only by what had been recorded by then"
    )
    /// What was known at a position.
    static let knownAtPosition = Option.value(
        "--known-at-position",
        "N",
        "only by the events up to this position"
    )
    /// Lets test servers through.
    static let allowUnsafeServer = Option.flag(
        "--allow-unsafe-server",
        "accept a server with fsync or full_page_writes off, for tests"
    )
    /// Lets a service run as somebody who could change the log.
    static let allowOwner = Option.flag(
        "--allow-owner",
        "run as a superuser or the log's owner, for trials"
    )
}
