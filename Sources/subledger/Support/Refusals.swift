internal import LedgerService

/// Takes the lines that were refused: into a file, or the first of them to standard error.
final class Refusals {
    private let file: OutputFile?
    private var count = 0
    private var quarantined = 0

    /// How many are shown where no file takes them.
    static let shownMax = 20

    /// Opens the file where one is named.
    ///
    /// - Throws: `CommandFailure` where it cannot be written, or is the one that is read.
    init(path: String?, reading input: String? = nil) throws {
        if let path, let input, isSameFile(path, input) {
            throw CommandFailure.usage(
                "--rejects names the file that is read, which would be lost: name another"
            )
        }
        file = try path.map { path throws(CommandFailure) in try OutputFile(path: path) }
    }

    /// Takes a line.
    func add(_ line: RefusedLine) throws {
        count += 1
        if line.outcome == .quarantined { quarantined += 1 }
        if let file {
            try file.line(line.json)
        } else if count <= Self.shownMax {
            printError(
                printable(
                    "line \(line.line): \(line.outcome.rawValue): \(line.reason): \(line.detail)"
                )
            )
        }
    }

    /// Ends the file and says what is left to say.
    func finish() throws {
        try file?.finish()
        if file == nil, count > Self.shownMax {
            let more = grouped(count - Self.shownMax)
            printError("… and \(more) more lines; --rejects FILE writes all of them")
        }
        if quarantined > 0 {
            printError(
                "subledger: \(grouped(quarantined)) genuine documents could not become events; "
                    + "their bytes are kept in ledger.quarantine and need a look"
            )
        }
    }
}
