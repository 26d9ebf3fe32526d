internal import AppStoreSimulator
internal import Ledger
internal import LedgerService
internal import Postgres

/// What a demo shows at its end: states and access, some answers, the truth, one explanation.
final class DemoReport {
    private let company: DemoCompany
    private let database: Database
    private let output: Output
    private let at: Timestamp

    /// Whether every answer was the right one.
    private(set) var isTrue = true
    /// The subscription that was explained.
    private(set) var explainedID: String?

    init(company: DemoCompany, database: Database, output: Output) {
        self.company = company
        self.database = database
        self.output = output
        at = Timestamp(milliseconds: company.options.until)
    }

    /// Writes everything.
    func write() throws {
        let connection = try database.connect(as: .auditor)
        let answers = try EntitlementQuery(at: at).answers(connection)
        try writeStates(connection)
        try writeSamples(answers)
        try writeTruth(answers)
        try writeExplanation(connection)
    }

    private func writeStates(_ connection: Connection) throws {
        let comparison = try PolicyComparison([.deny, .untilGraceEnds], at: at, connection)
        try DemoCommand.heading(
            "Who has access: Apple's line beside two policies, at \(minute(at))",
            output
        )
        var table = TextTable(
            "state",
            "#subscriptions",
            "#entitled_apple",
            "#entitled: deny",
            "#entitled: until_grace_ends",
            "#as Apple knows it"
        )
        var totals = [0, 0, 0, 0, 0]
        for line in comparison.lines {
            let known = company.statistics.appleStates[line.state] ?? 0
            let counts = [line.subscriptions, line.entitledApple] + line.entitled + [known]
            for (index, count) in counts.enumerated() { totals[index] += count }
            table.add([line.state] + counts.map { grouped($0) })
        }
        table.add(["all"] + totals.map { grouped($0) })
        try output.table(table)
        try output.line(
            wrapped(
                "Many guides ask to keep access while Apple retries a failed charge; Apple asks "
                    + "for it in a grace period only. Both columns stand in every answer. The last "
                    + "column differs where a notification was lost: reconciling finds those.",
                width: Terminal.columns,
                hangingBy: 0
            )
        )
    }

    /// Shows two subscriptions of each state.
    private func writeSamples(_ answers: [EntitlementAnswer]) throws {
        try DemoCommand.heading("Some answers of `subledger entitlements`", output)
        var shown: [String: Int] = [:]
        var table = EntitlementTable()
        for answer in answers {
            let state = answer.state + (answer.cause ?? "")
            guard shown[state, default: 0] < 2 else { continue }
            shown[state, default: 0] += 1
            table.add(answer)
        }
        try output.table(table.table)
    }

    /// Compares every answer with what the simulator says follows from what was delivered.
    private func writeTruth(_ answers: [EntitlementAnswer]) throws {
        var wrong: [String] = []
        for answer in answers {
            let truth = company.truth[answer.originalTransactionID]
            let isRight =
                truth?.state == answer.state && truth?.productID == answer.productID
                && truth?.entitledApple == answer.entitledApple
                && truth?.until == answer.stateUntil?.milliseconds
            if !isRight { wrong.append(answer.originalTransactionID) }
        }
        isTrue = wrong.isEmpty && answers.count == company.truth.count
        try DemoCommand.heading("Compared with the truth", output)
        let right = grouped(answers.count - wrong.count)
        try output.line(
            "\(right) of \(grouped(company.truth.count)) answers (state, product, access, until) "
                + "are what follows from what was delivered."
        )
        for id in wrong.prefix(5) { try output.line("  differs: \(id)") }
    }

    /// Explains a subscription that went through much in few steps.
    private func writeExplanation(_ connection: Connection) throws {
        let rows = try connection.query(
            """
            select original_transaction_id from read_model.entitlement_all
            group by original_transaction_id
            order by (count(*) <= 8) desc, count(distinct state) desc, count(*) desc,
                original_transaction_id
            limit 1
            """
        )
        guard rows.count == 1, let id = rows.text(0, 0) else { return }
        explainedID = id
        try DemoCommand.heading("One subscription explained: subledger explain \(id)", output)
        for explanation in try Explanation.explanations(of: id, at: at, connection) {
            try output.write(explanation.text)
        }
    }
}
