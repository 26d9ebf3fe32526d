import Testing

@testable import subledger

@Suite struct ArgumentsTests {
    private let known: [Option] = [.json, .root, .database, .help]

    private func message(_ words: [String]) -> String? {
        #expect(throws: CommandFailure.self) { try Arguments(words, allowing: known) }?.message
    }

    @Test func optionsAndOperandsMayBeMixed() throws {
        let arguments = try Arguments(
            ["a", "--json", "--root", "x", "--root=y=z", "-", "--", "--json"],
            allowing: known
        )
        #expect(arguments.operands == ["a", "-", "--json"])
        #expect(arguments.has("--json"))
        #expect(arguments.values("--root") == ["x", "y=z"])
        #expect(arguments.value("--database") == nil)
    }

    @Test func whatIsNotKnownIsRefusedWithASuggestion() {
        #expect(message(["--jsn"]) == "unknown option --jsn; did you mean --json?")
        #expect(message(["--colour-of-the-sky"]) == "unknown option --colour-of-the-sky")
    }

    @Test func valuesMustBeThereOnlyWhereTheyBelong() {
        #expect(message(["--root"]) == "--root needs a value: --root FILE")
        #expect(message(["--root="]) == "--root needs a value: --root FILE")
        #expect(message(["--json=yes"]) == "--json takes no value")
        #expect(message(["--database", "a", "--database", "b"]) == "--database is given twice")
    }

    @Test func numbersAreCheckedAgainstTheirBounds() throws {
        let option = [Option.value("--seed", "S", "")]
        let arguments = try Arguments(["--seed", "12"], allowing: option)
        #expect(try arguments.integer("--seed", in: 0...20) == 12)
        #expect(throws: CommandFailure.self) { try arguments.integer("--seed", in: 0...11) }
        let text = try Arguments(["--seed", "1e3"], allowing: option)
        #expect(throws: CommandFailure.self) { try text.integer("--seed", in: 0...2000) }
    }

    @Test func aMissingAndASurplusOperandAreNamed() throws {
        let none = try Arguments([], allowing: known)
        #expect(throws: CommandFailure.self) { try none.operands(named: "FILE") }
        let two = try Arguments(["a", "b"], allowing: known)
        let failure = #expect(throws: CommandFailure.self) { try two.operands(named: "FILE") }
        #expect(failure?.message == "unexpected “b”")
    }
}

@Suite struct ProgramTests {
    @Test func theCommandWithTheLongestNameIsTaken() {
        #expect(Program.command(for: ["config", "check", "--json"])?.name == "config check")
        #expect(Program.command(for: ["config"]) == nil)
        #expect(Program.command(for: ["nothing"]) == nil)
    }

    @Test(arguments: Program.commands.map(\.name))
    func everyUsageTextFitsATerminal(name: String) throws {
        let command = try #require(Program.commands.first { $0.name == name })
        for line in command.usage.split(separator: "\n") {
            #expect(line.count <= 88, "\(line)")
        }
        #expect(command.usage.contains("--help"))
        #expect(command.summary.hasSuffix("."))
    }

    @Test func noNameIsTheBeginningOfAnother() {
        let names = Program.commands.map(\.name)
        #expect(Set(names).count == names.count)
    }
}
