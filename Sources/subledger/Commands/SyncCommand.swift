internal import AppStore
internal import EventLog
internal import Ledger
internal import LedgerService

/// `subledger sync`.
enum SyncCommand {
    static let command = Command(
        name: "sync",
        summary: "Ask Apple how subscriptions stand, and take what is new into the ledger.",
        operands: "[ID…]",
        options: AppleDesk.options + [
            .flag("--overdue", "those whose period is over without news, or that are estimates"),
            .flag(
                "--anomalous",
                "those about which something does not fit together, or of which news came that are"
                    + " older than Apple's last answer"
            ),
            .flag("--all", "every subscription that the ledger knows"),
            .flag("--again", "read whole histories, also what was read before"),
            .value("--limit", "N", "at most so many, those asked about longest ago first"),
            .flag("--no-project", "leave the read models as they are; the streams stay marked"),
            .allowUnsafeServer,
        ],
        details: """
            Reads Get All Subscription Statuses and the transaction history, from where it was read
            last. ID is an originalTransactionId, or any transaction id that the ledger does not
            know: Production is asked for it, and Sandbox only where Production says that it has no
            such transaction. An answer that says nothing new appends nothing. `serve` does this by
            itself for overdue and anomalous subscriptions, and for those of which news came
            late: what Apple said before that and was not kept may be the newer word.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        var reasons: Set<SyncSelection.Reason> = []
        if arguments.has("--overdue") { reasons.insert(.overdue) }
        if arguments.has("--anomalous") { reasons.insert(.anomalous) }
        if arguments.has("--all") { reasons.insert(.all) }
        guard reasons.isEmpty != arguments.operands.isEmpty else {
            throw CommandFailure.usage(
                arguments.operands.isEmpty
                    ? "which ones? name IDs, or give --overdue, --anomalous or --all"
                    : "IDs go without --overdue, --anomalous and --all"
            )
        }
        let limit = try arguments.integer("--limit", in: 1...Int64.max) ?? .max
        let desk = try AppleDesk(arguments)
        try desk.database.refuseUnsafeServer(arguments)
        let accepted = try desk.accounts(arguments).map(\.app)
        let sync = Sync(
            desk.clients,
            desk.recorder,
            again: arguments.has("--again"),
            now: { .now }
        )
        let selection = SyncSelection(try desk.database.connect(as: .auditor))
        var targets: [SyncSelection.Target] = []
        if reasons.isEmpty {
            for id in arguments.operands {
                let apps = try selection.apps(having: id)
                let asked = apps.filter(accepted.contains)
                targets += asked.map { .init(app: $0, id: id, reason: .named) }
                if let app = apps.first, asked.isEmpty {
                    throw CommandFailure.notFound(
                        "\(printable(id)) is a subscription of \(app.bundleID) "
                            + "\(app.environment), which is not among the apps asked about"
                    )
                }
                if apps.isEmpty {
                    guard let found = try sync.find(id, in: accepted) else {
                        throw CommandFailure.notFound(
                            "Apple has no transaction \(printable(id)) of an accepted app"
                        )
                    }
                    targets.append(found)
                }
            }
        } else {
            if reasons.contains(.anomalous) {
                targets = try selection.overtaken(of: accepted, now: .now, limit: limit)
            }
            let late = Set(targets.map(\.subscription))
            targets += try selection.targets(
                reasons,
                of: accepted,
                now: .now,
                notSince: nil,
                limit: limit
            ).filter { !late.contains($0.subscription) }
            if targets.count > limit { targets.removeLast(targets.count - Int(limit)) }
        }
        targets.removeAll { !accepted.contains($0.app) }
        var troubles = AppleTroubles()
        let results = try run(targets, sync, &troubles)
        if !arguments.has("--no-project"), !Interruption.isRequested {
            try IngestCommand.project(desk.database)
        }
        try report(results, of: targets.count, arguments)
        try troubles.rethrow()
        return results.contains(where: \.isIncomplete) ? .someRejected : .done
    }

    private static func run(
        _ targets: [SyncSelection.Target],
        _ sync: Sync,
        _ troubles: inout AppleTroubles
    ) throws -> [Sync.Result] {
        let bar = ProgressBar("sync", unit: "subscriptions")
        defer { bar.clear() }
        var results: [Sync.Result] = []
        try Interruption.cooperatively {
            for target in targets where !Interruption.isRequested && !troubles.has(target.app) {
                guard let result = try troubles.asking(target.app, { try sync.run(target) })
                else { continue }
                results.append(result)
                let fraction = Double(results.count) / Double(max(1, targets.count))
                bar.update(fraction: fraction, count: results.count)
            }
        }
        return results
    }

    private static func report(
        _ results: [Sync.Result],
        of count: Int,
        _ arguments: Arguments
    ) throws {
        let output = Output.standard()
        if arguments.has("--json") {
            try output.line(json(results))
        } else {
            let failed = results.filter(\.isIncomplete)
            for result in failed.prefix(Refusals.shownMax) {
                try output.line(printable("\(result.target.id): \(what(result))"))
            }
            let appended = results.reduce(0) { $0 + $1.recorded.appended }
            let changed = results.count { $0.recorded.appended > 0 }
            try output.line(
                "\(grouped(results.count)) of \(grouped(count)) subscriptions asked about: "
                    + "\(grouped(changed)) had news (\(grouped(appended)) events), "
                    + "\(grouped(failed.count)) failed"
            )
        }
        try output.flush()
    }

    /// What is wrong with a result.
    private static func what(_ result: Sync.Result) -> String {
        if let failure = result.failure { return "\(failure)" }
        let rejected = result.recorded.rejected
        let first = rejected.first.map { "\($0)" } ?? ""
        return "\(rejected.count) signed texts were not taken, and are read again: \(first)"
    }

    private static func json(_ results: [Sync.Result]) -> String {
        var json = JSONWriter(pretty: true)
        json.beginArray()
        for result in results {
            json.beginObject()
            json.member("original_transaction_id", result.target.id)
            json.member("bundle_id", result.target.app.bundleID)
            json.member("environment", "\(result.target.app.environment)")
            json.member("reason", result.target.reason.rawValue)
            json.member("appended", result.recorded.appended)
            json.member("unchanged", result.recorded.unchanged)
            json.member("rejected", result.recorded.rejected.count)
            json.member("first_rejection", result.recorded.rejected.first.map { "\($0)" })
            json.member("error_code", result.failure?.code?.rawValue)
            json.member("error", result.failure.map { "\($0)" })
            json.endObject()
        }
        json.endArray()
        return json.text
    }
}
