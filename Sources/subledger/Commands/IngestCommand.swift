internal import AppStore
internal import EventLog
internal import Ledger
internal import LedgerService

/// `subledger ingest`.
enum IngestCommand {
    static let command = Command(
        name: "ingest",
        summary: "Verify the notifications of a file and append them to the ledger.",
        operands: "FILE|-",
        options: [
            .database, .config, .json, .acceptBundle, .appAppleID, .root,
            .value("--rejects", "FILE", "write each refused line's number and reason there"),
            .flag("--no-project", "leave the read models as they are; the streams stay marked"),
            .allowUnsafeServer,
        ],
        details: """
            A line is {"signedPayload": "…"} or a signed text itself: a notification, a
            transaction, a renewal info or an app transaction. Reading a file again is harmless:
            what is in the ledger is recognised. Lines above 1 MiB are passed over.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        let path = try arguments.operands(named: "FILE")[0]
        let configuration = try Configuration.find(arguments)
        let acceptance = try Acceptance(arguments, configuration)
        // What is wrong with a file is told before a server is started for it.
        let reader = try LineReader(path: path)
        let refusals = try Refusals(path: arguments.value("--rejects"), reading: path)
        let database = try Database.open(arguments, configuration)
        try database.refuseUnsafeServer(arguments)
        if let configuration { try storeRules(configuration, in: database) }

        let report = try ingest(reader, acceptance, database, refusals)
        try refusals.finish()
        if !arguments.has("--no-project"), !report.isStopped { try project(database) }
        let output = Output.standard()
        try output.line(arguments.has("--json") ? report.json : report.text)
        try output.flush()
        if report.isStopped {
            printError("stopped; run the same command again: what is stored is recognised")
        }
        return report.rejected > 0 ? .someRejected : .done
    }

    /// Ingests with a progress bar.
    static func ingest(
        _ reader: LineReader,
        _ acceptance: Acceptance,
        _ database: Database,
        _ refusals: Refusals
    ) throws -> IngestReport {
        let verifier = acceptance.verifier()
        let ingest = Ingest(verifier: verifier) { try database.connect(as: .appender) }
        let bar = ProgressBar("ingest", unit: "lines")
        var listener = Ingest.Listener()
        listener.refused = refusals.add
        listener.shouldStop = { Interruption.isRequested }
        listener.progress = { report in
            let fraction = reader.sizeBytes.map { size in
                size == 0 ? 1 : Double(reader.readBytes) / Double(size)
            }
            bar.update(fraction: fraction, count: report.read)
        }
        defer { bar.clear() }
        return try Interruption.cooperatively {
            try ingest.run(reader, now: .now, listener: listener)
        }
    }

    /// Keeps what the configuration says of the apps; subscriptions that a change concerns are
    /// marked to be folded again.
    static func storeRules(_ configuration: Configuration, in database: Database) throws {
        let changed = try configuration.record(database.connect())
        if !changed.isEmpty { try database.recordRows() }
    }

    /// Folds the subscriptions that are marked.
    static func project(_ database: Database) throws {
        let projector = Projector(try database.connect(as: .projector))
        let bar = ProgressBar("fold", unit: "streams")
        defer { bar.clear() }
        let report = try projector.project(
            shouldStop: { Interruption.isRequested },
            progress: { bar.update(fraction: nil, count: $0.streams) }
        )
        for parked in report.parked {
            printError(printable("subledger: not folded: \(parked.key): \(parked.error)"))
        }
    }
}

extension IngestReport {
    /// The counts for people.
    var text: String {
        var text = "\(grouped(read)) read: \(grouped(appended)) appended, "
        text += "\(grouped(duplicate)) duplicate, \(grouped(conflict)) in conflict, "
        text += "\(grouped(rejected)) rejected, \(grouped(quarantined)) quarantined"
        if unrecognised > 0 { text += "; \(grouped(unrecognised)) hold values not known yet" }
        return text
    }
}
