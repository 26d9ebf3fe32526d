/// What the program tells its caller at its end.
enum ExitCode: Int32, Error, Sendable {
    /// Everything asked for was done.
    case done = 0
    /// Some of the input was rejected, or what was asked for does not exist.
    case someRejected = 1
    /// The command line, the configuration or an input file cannot be used.
    case usage = 2
    /// The database cannot be reached, or it went away.
    case databaseUnavailable = 3
    /// The database's schema is not the one that this program serves.
    case schema = 4
    /// Something that must never be false is false.
    case integrity = 5
}

/// A failure with what to tell the user and how the program ends.
struct CommandFailure: Error, Sendable {
    /// How the program ends.
    var exitCode: ExitCode
    /// What went wrong, and what to do about it.
    var message: String
    /// Whether the command's usage is shown below the message.
    var showsUsage = false

    /// A command line that is not understood.
    static func usage(_ message: String) -> CommandFailure {
        CommandFailure(exitCode: .usage, message: message, showsUsage: true)
    }

    /// A file or setting that cannot be used.
    static func input(_ message: String) -> CommandFailure {
        CommandFailure(exitCode: .usage, message: message)
    }

    /// What was asked for does not exist.
    static func notFound(_ message: String) -> CommandFailure {
        CommandFailure(exitCode: .someRejected, message: message)
    }
}
