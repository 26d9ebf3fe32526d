internal import EventLog
internal import Ledger
internal import LedgerService

/// `subledger db restored`.
enum RestoredCommand {
    static let command = Command(
        name: "db restored",
        summary: "Go on with a ledger that was restored or failed over, in a new epoch.",
        options: [
            .database, .config, .json,
            .value("--operator", "WHO", "who says so"),
            .value("--why", "TEXT", "what happened"),
            .flag("--no-backfill", "do not ask Apple for what is missing"),
            .flag("--no-rebuild", "leave the read models as they are"),
            .allowUnsafeServer,
        ],
        details: """
            A restore or a failover may lose the last events, whose positions are then given out
            again. So nothing is written to a ledger that came to another server, or another
            timeline, until this has been run. It sets the head to the last event that is there,
            opens an epoch, which the feed tells those who read on by position, gets what is
            missing from Apple, where a key is set up, and rebuilds the read models. First run
            `subledger migrate` and, with the head that you keep elsewhere, `audit verify`. It is
            also right after a restore on the same server, which cannot be noticed.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        guard let name = arguments.value("--operator"), let why = arguments.value("--why") else {
            throw CommandFailure.usage("db restored needs --operator WHO and --why TEXT")
        }
        for (option, text, most) in [("--operator", name, 200), ("--why", why, 1000)]
        where text.unicodeScalars.count > most || text.utf8.contains(0) {
            throw CommandFailure.usage("\(option) takes at most \(most) characters")
        }
        let configuration = try Configuration.find(arguments)
        let database = try Database.open(arguments, configuration)
        try database.refuseUnsafeServer(arguments)
        let session = try database.sessions(as: .appender).openBeforeEpoch()
        let before = try EpochBook(session).all().last
        let opened = try EpochBook(session).open(by: name, why: why, now: .now)
        try database.recordRows()
        let output = Output.standard()
        if arguments.has("--json") {
            try output.line(json(opened, before))
        } else {
            try output.line(
                "epoch \(opened.number) is open on \(opened.server): positions after "
                    + "\(grouped(opened.cutPosition)) are given out anew"
            )
        }
        try output.flush()
        // The epoch is open whatever Apple answers; the read models show what there is.
        let failure = Result { try backfill(arguments, configuration) }
        if !arguments.has("--no-rebuild") {
            _ = try Interruption.cooperatively {
                try RebuildCommand.rebuild(RebuildCommand.Settings(), database)
            }
            printError("the read models are rebuilt")
        }
        try failure.get()
        return .done
    }

    private static func backfill(
        _ arguments: Arguments,
        _ configuration: Configuration?
    ) throws {
        guard !arguments.has("--no-backfill") else { return }
        guard AppleDesk.isBegun(configuration) else {
            printError(
                "no key is set up, so Apple was not asked for what is missing: set up the section "
                    + "\"app_store\" (docs/reconcile.md) and run: subledger backfill"
            )
            return
        }
        let desk = try AppleDesk(arguments)
        var troubles = AppleTroubles()
        let wish = Backfill.Wish()
        for (account, report) in try BackfillCommand.reports(wish, desk, arguments, &troubles) {
            printError(BackfillCommand.text(report, of: account.app))
        }
        try troubles.rethrow()
    }

    private static func json(_ opened: Epoch, _ before: Epoch?) -> String {
        var json = JSONWriter(pretty: true)
        json.beginObject()
        json.member("epoch", opened.number)
        json.member("epoch_before", before?.number)
        json.member("cut_position", opened.cutPosition)
        json.member("server_identifier", opened.server.identifier)
        json.member("timeline", opened.server.timeline)
        json.member("opened_at", opened.openedAt)
        json.member("operator", opened.operatorName)
        json.member("why", opened.why)
        json.endObject()
        return json.text
    }
}
