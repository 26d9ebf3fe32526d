internal import EventLog
internal import LedgerService
internal import Postgres

/// `subledger db check-restore`.
enum RestoreCommands {
    static let check = Command(
        name: "db check-restore",
        summary: "Check a restored copy of a ledger: nothing missing, nothing changed.",
        operands: "URL",
        options: [
            .json,
            .value("--sample", "N", "verify the signatures of N events; default 10000"),
            .flag("--all", "verify every signature"),
            .value("--position", "N", "the position of a head that was kept elsewhere"),
            .value("--root", "HASH", "its hash; the copy must contain it"),
        ],
        details: """
            URL names the copy, for a login that may do everything there: its read models are
            rebuilt and compared with those that came with the backup. Never give it the ledger
            that serves. The chain is checked whole, and the signatures of a sample. Exit code 5
            when something is missing or differs.
            """,
        run: run
    )

    /// How many events' signatures are verified when nobody says how many.
    private static let sampleDefault: Int64 = 10_000

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        let url = try arguments.operands(named: "URL")[0]
        let sample = try arguments.integer("--sample", in: 1...Int64.max)
        if sample != nil, arguments.has("--all") {
            throw CommandFailure.usage("--sample and --all exclude each other")
        }
        let kept = try AuditCommands.kept(arguments)
        let check = try RestoreCheck { try Connection(url) }
        let output = Output.standard()
        var json = JSONWriter()
        let isJSON = arguments.has("--json")
        json.beginArray()
        let findings = try check.run(
            keeping: kept,
            sample: arguments.has("--all") ? nil : sample ?? sampleDefault
        ) { finding in
            json.beginObject()
            json.member("step", finding.step.rawValue)
            json.member("ok", finding.isOK)
            json.member("finding", finding.text)
            json.endObject()
            guard !isJSON else { return }
            let name = finding.step.rawValue
            let gap = String(repeating: " ", count: 12 - name.count)
            try output.line(
                printable("\(finding.isOK ? "ok  " : "FAIL")  \(name)\(gap)  \(finding.text)")
            )
            try output.flush()
        }
        json.endArray()
        if isJSON { try output.line(json.text) }
        try output.flush()
        return findings.allSatisfy(\.isOK) ? .done : .integrity
    }
}
