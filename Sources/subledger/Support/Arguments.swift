internal import EventLog
internal import Ledger
internal import LedgerService

/// The options and operands of one command line.
struct Arguments: Hashable, Sendable {
    /// An option as it was given.
    struct Given: Hashable, Sendable {
        /// The option's name with its dashes.
        var name: String
        /// Its value, empty for a flag.
        var value: String
    }

    /// The options in the order they were given; the order ties `--app-apple-id` to its bundle.
    private(set) var options: [Given] = []
    /// What is no option, in order.
    private(set) var operands: [String] = []

    /// Reads words as the options allow.
    ///
    /// `--name value` and `--name=value` are the same; `--` ends the options; `-` is an operand.
    ///
    /// - Throws: `CommandFailure` for an unknown option (with the nearest known one), a missing or
    ///   needless value, and a repetition that makes no sense.
    init(_ words: [String], allowing known: [Option]) throws(CommandFailure) {
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--" {
                operands += rest
                return
            }
            guard word.hasPrefix("-"), word != "-" else {
                operands.append(word)
                continue
            }
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = parts[0] == "-h" ? "--help" : String(parts[0])
            guard let option = known.first(where: { $0.name == name }) else {
                let nearest = nearest(to: name, among: known.map(\.name))
                let hint = nearest.map { "; did you mean \($0)?" } ?? ""
                throw .usage("unknown option \(name)\(hint)")
            }
            guard option.repeats || !has(name) else {
                throw .usage("\(name) is given twice")
            }
            guard let placeholder = option.value else {
                guard parts.count == 1 else { throw .usage("\(name) takes no value") }
                options.append(Given(name: name, value: ""))
                continue
            }
            guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst(), !value.isEmpty
            else {
                throw .usage("\(name) needs a value: \(name) \(placeholder)")
            }
            options.append(Given(name: name, value: value))
        }
    }

    /// Whether the option was given.
    func has(_ name: String) -> Bool { options.contains { $0.name == name } }

    /// The option's value, nil when it was not given.
    func value(_ name: String) -> String? { options.first { $0.name == name }?.value }

    /// All values of an option that repeats, in order.
    func values(_ name: String) -> [String] {
        options.filter { $0.name == name }.map(\.value)
    }

    /// The option's value as a whole number within bounds.
    func integer(_ name: String, in range: ClosedRange<Int64>) throws(CommandFailure) -> Int64? {
        guard let text = value(name) else { return nil }
        return try Self.integer(text, of: name, in: range)
    }

    /// A text as a whole number within bounds.
    static func integer(
        _ text: String,
        of name: String,
        in range: ClosedRange<Int64>
    ) throws(CommandFailure) -> Int64 {
        guard let number = Int64(text), range.contains(number) else {
            let bounds =
                range.upperBound == .max
                ? "from \(range.lowerBound) on" : "\(range.lowerBound) to \(range.upperBound)"
            throw .usage("\(name) takes a whole number, \(bounds), not “\(text)”")
        }
        return number
    }

    /// The option's value as an instant.
    func instant(_ name: String) throws(CommandFailure) -> Timestamp? {
        guard let text = value(name) else { return nil }
        guard let instant = Timestamp(parsing: text) else {
            throw .usage(
                "\(name) takes 2026-01-31, 2026-01-31T12:00:00Z or milliseconds since 1970, "
                    + "not “\(text)”"
            )
        }
        return instant
    }

    /// What `--known-at` or `--known-at-position` asks for; nil for what is known now.
    func knowledge() throws(CommandFailure) -> Knowledge? {
        let instant = try instant(Option.knownAt.name)
        let position = try integer(Option.knownAtPosition.name, in: 0...Int64.max)
        guard instant == nil || position == nil else {
            throw .usage("either --known-at or --known-at-position, not both")
        }
        return instant.map { .instant($0) } ?? position.map { .position($0) }
    }

    /// The operands, which must be so many.
    ///
    /// - Parameter names: what each stands for, for the message.
    /// - Returns: the operands.
    /// - Throws: `CommandFailure` when there are fewer or more.
    func operands(named names: String...) throws(CommandFailure) -> [String] {
        if operands.count < names.count {
            throw .usage("\(names[operands.count]) is missing")
        }
        if operands.count > names.count {
            throw .usage("unexpected “\(operands[names.count])”")
        }
        return operands
    }
}
