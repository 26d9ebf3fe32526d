internal import AppStore
internal import EventLog
internal import Ledger
internal import LedgerService

/// `subledger backfill`.
enum BackfillCommand {
    static let command = Command(
        name: "backfill",
        summary: "Get the notifications that Apple sent and that did not arrive.",
        options: AppleDesk.options + [
            .value("--from", "INSTANT", "from then on (default: where Apple's memory begins)"),
            .value("--to", "INSTANT", "up to then (default now)"),
            .flag("--only-failures", "only those whose sending failed at least once"),
            .flag("--again", "read also what was read to its end before"),
            .flag("--no-project", "leave the read models as they are; the streams stay marked"),
            .allowUnsafeServer,
        ],
        details: """
            Apple keeps notifications for 180 days in Production, for 30 in Sandbox. They are read a
            day at a time; a day that was read to its end is not read again, so a run that was
            stopped is simply run again. What is in the ledger is known by its notificationUUID.
            `serve` does this by itself every 15 minutes. It needs the section "app_store" of
            subledger.json: docs/reconcile.md.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        var wish = Backfill.Wish()
        wish.from = try arguments.instant("--from")
        wish.to = try arguments.instant("--to")
        wish.onlyFailures = arguments.has("--only-failures")
        wish.again = arguments.has("--again")
        if let from = wish.from, let to = wish.to, from >= to {
            throw CommandFailure.usage("--from is not earlier than --to")
        }
        let desk = try AppleDesk(arguments)
        try desk.database.refuseUnsafeServer(arguments)
        var troubles = AppleTroubles()
        let reports = try reports(wish, desk, arguments, &troubles)
        let isStopped = reports.contains { $0.report.isStopped } || Interruption.isRequested
        if !arguments.has("--no-project"), !isStopped {
            try IngestCommand.project(desk.database)
        }
        let output = Output.standard()
        if arguments.has("--json") {
            try output.line(json(reports))
        } else {
            for (account, report) in reports { try output.line(text(report, of: account.app)) }
        }
        try output.flush()
        if isStopped {
            printError("stopped; run the same command again: it goes on where it was")
        }
        try troubles.rethrow()
        guard reports.contains(where: { !$0.report.rejected.isEmpty }) else { return .done }
        printError("subledger: days of which something was not taken are read again next time")
        return .someRejected
    }

    /// What was read for each of the accounts that the options leave and that Apple answers.
    static func reports(
        _ wish: Backfill.Wish,
        _ desk: AppleDesk,
        _ arguments: Arguments,
        _ troubles: inout AppleTroubles
    ) throws -> [(account: AppStoreClients.Account, report: Backfill.Report)] {
        let accounts = try desk.accounts(arguments)
        var reports: [(account: AppStoreClients.Account, report: Backfill.Report)] = []
        try Interruption.cooperatively {
            for account in accounts where !Interruption.isRequested {
                let report = try troubles.asking(account.app) {
                    try backfill(account, wish, desk)
                }
                if let report { reports.append((account, report)) }
            }
        }
        return reports
    }

    private static func backfill(
        _ account: AppStoreClients.Account,
        _ wish: Backfill.Wish,
        _ desk: AppleDesk
    ) throws -> Backfill.Report {
        let bar = ProgressBar("backfill \(account.app.environment)", unit: "notifications")
        defer { bar.clear() }
        let report: Backfill.Report
        do {
            report = try Backfill(account, desk.recorder, now: { .now }).run(
                wish,
                shouldStop: { Interruption.isRequested },
                progress: { bar.update(fraction: $1, count: $0.listed) }
            )
        } catch let error as AppStoreAPIError where error.kind == .unauthorized {
            // An app that was never released is none that Production knows.
            guard account.isUnreleased, account.app.environment == .production else { throw error }
            return Backfill.Report()
        }
        if let start = report.clampedTo, wish.from != nil {
            printError(
                "subledger: warning: Apple keeps \(account.app.environment) notifications since "
                    + "\(second(start)) only; older news is in the transaction history: "
                    + "subledger sync --all"
            )
        }
        for rejection in report.rejected.prefix(Refusals.shownMax) {
            printError(printable("subledger: not taken: \(rejection)"))
        }
        return report
    }

    /// What was read, in a line.
    static func text(_ report: Backfill.Report, of app: AppKey) -> String {
        var text = "\(app.bundleID) \(app.environment): \(grouped(report.listed)) listed on "
        text += "\(grouped(report.pages)) pages, \(grouped(report.recovered)) recovered, "
        text += "\(grouped(report.known)) known"
        if report.conflict > 0 { text += ", \(grouped(report.conflict)) in conflict" }
        if report.quarantined > 0 { text += ", \(grouped(report.quarantined)) quarantined" }
        if !report.rejected.isEmpty { text += ", \(grouped(report.rejected.count)) rejected" }
        return printable(text)
    }

    private static func json(
        _ reports: [(account: AppStoreClients.Account, report: Backfill.Report)]
    ) -> String {
        var json = JSONWriter(pretty: true)
        json.beginArray()
        for (account, report) in reports {
            json.beginObject()
            json.member("bundle_id", account.app.bundleID)
            json.member("environment", "\(account.app.environment)")
            json.member("from", report.span?.from)
            json.member("to", report.span?.to)
            json.member("pages", report.pages)
            json.member("listed", report.listed)
            json.member("recovered", report.recovered)
            json.member("known", report.known)
            json.member("conflict", report.conflict)
            json.member("quarantined", report.quarantined)
            json.member("rejected", report.rejected.count)
            json.member("stopped", report.isStopped)
            json.endObject()
        }
        json.endArray()
        return json.text
    }
}
