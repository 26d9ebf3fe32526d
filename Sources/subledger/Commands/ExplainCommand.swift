internal import Ledger
internal import LedgerService

/// `subledger explain`.
enum ExplainCommand {
    static let command = Command(
        name: "explain",
        summary: "Show a subscription's timeline and the events that decided each part of it.",
        operands: "ID",
        options: [.database, .config, .json, .at],
        details: "ID is an originalTransactionId.",
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        let id = try arguments.operands(named: "ID")[0]
        let at = try arguments.instant("--at")
        let database = try Database.open(arguments, Configuration.find(arguments))
        let explanations = try Explanation.explanations(
            of: id,
            at: at,
            database.connect(as: .auditor)
        )
        let output = Output.standard()
        if arguments.has("--json") {
            var json = JSONWriter(pretty: true)
            json.beginArray()
            for explanation in explanations { explanation.write(to: &json) }
            json.endArray()
            try output.line(json.text)
        } else {
            for (index, explanation) in explanations.enumerated() {
                if index > 0 { try output.line() }
                try output.write(explanation.text)
            }
        }
        try output.flush()
        guard !explanations.isEmpty else { throw CommandFailure.unknownSubscription(id) }
        return .done
    }
}
