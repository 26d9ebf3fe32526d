internal import Ledger
internal import LedgerService

/// `subledger explain`.
enum ExplainCommand {
    static let command = Command(
        name: "explain",
        summary: "Show a subscription's timeline and the events that decided each part of it.",
        operands: "ID",
        options: [.database, .config, .json, .at, .knownAt, .knownAtPosition],
        details: """
            ID is an originalTransactionId. With --known-at or --known-at-position: what was known
            of it then, by the events and the rules that had been recorded; --at is the instant
            that it is asked about all the same.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        let id = try arguments.operands(named: "ID")[0]
        let at = try arguments.instant("--at")
        let database = try Database.open(arguments, Configuration.find(arguments))
        let explanations = try Explanation.explanations(
            of: id,
            at: at,
            known: try arguments.knowledge(),
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
