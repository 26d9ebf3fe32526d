internal import Ledger
internal import LedgerService
internal import Postgres
internal import Synchronization

/// `subledger rebuild`.
enum RebuildCommand {
    static let command = Command(
        name: "rebuild",
        summary: "Make the read models anew from the ledger and swap them in.",
        operands: "[NAME]…",
        options: [
            .database, .config, .json,
            .flag("--diff", "change nothing; show whose access a rebuild would change, by cause"),
        ] + DifferenceReport.options,
        details: """
            Without a name all of them are made. Readers see the old rows until the new ones are
            whole; killed at any moment it leaves them as they were. With --diff the ledger is
            folded under the rules that it holds and compared with the live rows, --at is the
            instant that counts as now.

            Read models: \(ReadModels.names.joined(separator: ", ")).
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        let configuration = try Configuration.find(arguments)
        if arguments.has("--diff") { return try showDifference(arguments, configuration) }
        for name in ["--at", "--csv"] where arguments.has(name) {
            throw CommandFailure.usage("\(name) goes with --diff")
        }
        let database = try Database.open(arguments, configuration)
        if let configuration { try IngestCommand.storeRules(configuration, in: database) }
        let report = try rebuild(arguments.operands, database, isJSON: arguments.has("--json"))
        let output = Output.standard()
        try output.line(arguments.has("--json") ? json(report) : text(report))
        try output.flush()
        return .done
    }

    /// Says whose access a rebuild would change, and changes nothing.
    private static func showDifference(
        _ arguments: Arguments,
        _ configuration: Configuration?
    ) throws -> ExitCode {
        guard arguments.operands.isEmpty || arguments.operands == ["entitlement"] else {
            throw CommandFailure.usage("--diff is about access, so about entitlement alone")
        }
        let database = try Database.open(arguments, configuration)
        var comparison = try DifferenceReport.comparison(arguments, database)
        comparison.comparesStale = true
        return try DifferenceReport.show(comparison, arguments)
    }

    /// Rebuilds with a progress bar on a terminal, JSON lines on standard error otherwise.
    static func rebuild(
        _ names: [String],
        _ database: Database,
        isJSON: Bool
    ) throws -> Rebuild.Report {
        let sessions = database.sessions(as: .projector)
        let rebuild = try Rebuild(names, workers: 2) { try sessions.open() }
        let bar = ProgressBar("rebuild", unit: "events")
        let lines = isJSON ? ProgressLines() : nil
        defer { bar.clear() }
        return try rebuild.run(
            shouldStop: { Interruption.isRequested },
            progress: { progress in
                lines?.write(progress)
                bar.update(
                    fraction: progress.eventsTotal == 0
                        ? nil : Double(progress.events) / Double(progress.eventsTotal),
                    count: Int(progress.events),
                    step: progress.phase == .fold
                        ? "rebuild" : "rebuild (\(progress.phase.rawValue))"
                )
            }
        )
    }

    static func text(_ report: Rebuild.Report) -> String {
        let rate = report.seconds > 0 ? Double(report.events) / report.seconds : 0
        var lines = [
            "\(grouped(report.events)) events of \(grouped(report.streams)) streams read in "
                + "\(duration(report.seconds)) (\(grouped(Int(rate)))/s)"
        ]
        for model in report.readModels {
            lines.append(
                "\(model.name): generation \(model.generation), "
                    + "\(grouped(model.digest.rows)) rows, digest \(model.digest)"
            )
        }
        return lines.joined(separator: "\n")
    }

    private static func json(_ report: Rebuild.Report) -> String {
        var json = JSONWriter()
        json.beginObject()
        json.member("events", report.events)
        json.member("streams", report.streams)
        json.member("milliseconds", Int(report.seconds * 1000))
        json.key("read_models")
        json.beginArray()
        for model in report.readModels {
            json.beginObject()
            json.member("name", model.name)
            json.member("generation", model.generation)
            json.member("rows", model.digest.rows)
            json.member("digest", "\(model.digest)")
            json.endObject()
        }
        json.endArray()
        json.endObject()
        return json.text
    }
}

/// Writes the progress as JSON lines to standard error, at most one a second.
private final class ProgressLines: Sendable {
    private let lastNanoseconds = Mutex<UInt64>(0)

    func write(_ progress: Rebuild.Progress) {
        let now = monotonicNanoseconds()
        let isDue = lastNanoseconds.withLock { last in
            guard now - last >= 1_000_000_000 else { return false }
            last = now
            return true
        }
        guard isDue, !Terminal.isError else { return }
        var json = JSONWriter()
        json.beginObject()
        json.member("phase", progress.phase.rawValue)
        json.member("events", progress.events)
        json.member("events_total", progress.eventsTotal)
        json.member("events_per_second", Int(progress.rate))
        json.endObject()
        printError(json.text)
    }
}
