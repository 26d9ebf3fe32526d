internal import LedgerService

/// `subledger fx import`.
enum FxImportCommand {
    static let command = Command(
        name: "fx import",
        summary: "Append exchange rates from a CSV file, for reports in one currency.",
        operands: "FILE|-",
        options: [.database, .config],
        details: """
            A line is date,from,to,rate: 2026-01-31,EUR,USD,1.0875 says that 1 EUR was worth 1.0875
            USD that day. No rate is made up from others. A file is taken whole or not at all; a
            rate that differs from the one known becomes its next version, and nothing is changed.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        let path = try arguments.operands(named: "FILE")[0]
        let reader = try LineReader(path: path)
        var rates = FxRates()
        while let line = try reader.next() {
            switch line {
            case .text(let number, let bytes):
                rates.add(line: String(decoding: bytes, as: UTF8.self), number: number)
            case .tooLong(let number, _):
                throw CommandFailure.input("line \(number) is no exchange rate: it is too long")
            }
        }
        guard rates.problems.isEmpty else {
            for problem in rates.problems.prefix(20) {
                printError("line \(problem.line): \(problem.message)")
            }
            printError("\(rates.problems.count) lines are no rates; nothing was imported")
            return .someRejected
        }
        let database = try Database.open(arguments, Configuration.find(arguments))
        let appended = try rates.append(database.connect(as: .appender))
        try database.recordRows()
        let output = Output.standard()
        let known = rates.rates.count - appended
        try output.line("\(grouped(appended)) rates appended, \(grouped(known)) known already")
        try output.flush()
        return .done
    }
}
