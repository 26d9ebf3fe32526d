/// One command of the program.
struct Command: Sendable {
    /// The words that call it, such as `audit head`.
    var name: String
    /// What it does, in one line.
    var summary: String
    /// Its operands in the usage line.
    var operands = ""
    /// The options it takes, `--help` not among them.
    var options: [Option] = []
    /// What else is to be known.
    var details = ""
    /// Whether everything behind the name is the command's own, options too (`db psql`).
    var passesEverything = false
    /// Does it.
    var run: @Sendable (Arguments) throws -> ExitCode

    /// The words that call it.
    var words: [Substring] { name.split(separator: " ") }

    /// The text that `--help` shows.
    var usage: String {
        var text = "Usage: subledger \(name)"
        for option in options where option.value == nil || !option.repeats {
            let value = option.value.map { " \($0)" } ?? ""
            text += " [\(option.name)\(value)]"
        }
        for option in options where option.value != nil && option.repeats {
            text += " [\(option.name) \(option.value ?? "")]…"
        }
        if !operands.isEmpty { text += " \(operands)" }
        text = wrapped(text, width: 80, hangingBy: 4)
        text += "\n\n\(summary)\n"
        if !details.isEmpty { text += "\n\(details)\n" }
        text += "\nOptions:\n"
        for option in options + [.help] {
            let left = option.name + (option.value.map { " \($0)" } ?? "")
            let padding = String(repeating: " ", count: max(2, 26 - left.count))
            text += wrapped("  \(left)\(padding)\(option.help)", width: 80, hangingBy: 28) + "\n"
        }
        return text
    }
}

/// Breaks a line between words so that none is longer than `width` where that is possible.
func wrapped(_ line: String, width: Int, hangingBy indent: Int) -> String {
    var lines: [String] = []
    // Spaces at the beginning and runs of them are kept: they align columns.
    let pieces = line.split(separator: " ", omittingEmptySubsequences: false)
    var current = String(pieces.first ?? "")
    for piece in pieces.dropFirst() {
        if !piece.isEmpty, current.count + 1 + piece.count > width {
            lines.append(current)
            current = String(repeating: " ", count: indent) + piece
        } else {
            current += " \(piece)"
        }
    }
    return (lines + [current]).joined(separator: "\n")
}
