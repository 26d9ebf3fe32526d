internal import EventLog
internal import LedgerService

/// `subledger redecode`.
enum RedecodeCommand {
    static let command = Command(
        name: "redecode",
        summary: "Fill ledger.fact anew from the evidence, after a change of the decoder.",
        options: [
            .database, .config, .json,
            .value("--jobs", "N", "fill so many parts at a time; default one for each processor"),
        ],
        details: """
            Rows that this program's decoder filled are left alone. Until a row is filled anew,
            what needs it decodes the evidence each time, which is right and slow. It stops at the
            first event that cannot be read and names it: `subledger events skip` passes it over.
            Ended at any moment it goes on where it was. Then `subledger rebuild` makes the read
            models from the new rows. Run it as the role that migrates.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let settings = try RebuildCommand.Settings(arguments)
        let database = try Database.open(arguments, Configuration.find(arguments))
        let sessions = database.sessions(as: .owner)
        let redecode = Redecode(workers: settings.jobs) { try sessions.open() }
        let progress = RebuildProgress("redecode")
        defer { progress.clear() }
        let report = try Interruption.cooperatively {
            try redecode.run(
                shouldStop: { Interruption.isRequested },
                progress: { progress.show($0) }
            )
        }
        progress.clear()
        let output = Output.standard()
        if settings.isJSON {
            var json = JSONWriter()
            json.beginObject()
            json.member("rows", report.rows)
            json.member("skipped", report.skipped)
            json.endObject()
            try output.line(json.text)
        } else {
            try output.line(
                "\(grouped(report.rows)) rows filled anew"
                    + (report.skipped == 0 ? "" : ", \(report.skipped) of them passed over")
            )
        }
        try output.flush()
        return .done
    }
}

/// `subledger events skip`.
enum EventSkipCommand {
    static let command = Command(
        name: "events skip",
        summary: "Have one event passed over that this program cannot read.",
        operands: "POSITION",
        options: [
            .database, .config, .json,
            .value("--operator", "WHO", "who says so"),
            .value("--ticket", "REF", "on which ticket"),
            .value("--why", "TEXT", "why"),
            .flag("--no-project", "leave the read models as they are; the stream stays marked"),
            .allowUnsafeServer,
        ],
        details: """
            A rebuild, a redecode and a subscription's folding stop at an event that they cannot
            read. This records, as an event of the same stream for ever, that it is passed over,
            which all of them and the audit honour. What can be read is never passed over, also if
            a later program can read this one.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        let position = try Arguments.integer(
            arguments.operands(named: "POSITION")[0],
            of: "POSITION",
            in: 1...Int64.max
        )
        let (who, ticket) = try arguments.author()
        guard let why = arguments.value("--why") else {
            throw CommandFailure.usage("--why TEXT is missing: why is it passed over?")
        }
        let database = try Database.open(arguments, Configuration.find(arguments))
        try database.refuseUnsafeServer(arguments)
        let outcome = try EventSkipping(database.connect(as: .appender)).skip(
            position,
            operator: who,
            ticket: ticket,
            why: why,
            now: .now
        )
        if !arguments.has("--no-project") { try IngestCommand.project(database) }
        let (word, at) =
            switch outcome {
            case .skipped(let at): ("skipped", at)
            case .repeated(let at): ("repeated", at)
            }
        let output = Output.standard()
        if arguments.has("--json") {
            var json = JSONWriter()
            json.beginObject()
            json.member("skipped", position)
            json.member("outcome", word)
            json.member("position", at)
            json.endObject()
            try output.line(json.text)
        } else {
            try output.line(
                word == "skipped"
                    ? "event \(position) is passed over, by event \(at)"
                    : "that was said before, by event \(at); nothing was recorded"
            )
        }
        try output.flush()
        return .done
    }
}
