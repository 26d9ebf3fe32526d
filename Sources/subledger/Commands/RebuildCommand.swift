internal import EventLog
internal import Ledger
internal import LedgerService
internal import Postgres
internal import Synchronization

#if canImport(Glibc)
internal import Glibc
#endif

/// `subledger rebuild`.
enum RebuildCommand {
    static let command = Command(
        name: "rebuild",
        summary: "Make the read models anew from the ledger and swap them in.",
        operands: "[NAME]…",
        options: [
            .database, .config, .json,
            .list("--projection", "NAME", "only this read model, as an operand says; repeats"),
            .flag("--diff", "change nothing; show whose access a rebuild would change, by cause"),
            .flag("--verify", "change nothing; name every subscription whose rows are not right"),
            .knownAt, .knownAtPosition,
            .value("--into", "SCHEMA", "with --known-at: the schema to make"),
            .flag("--yes", "swap also where somebody's access changes"),
            .value("--jobs", "N", "fold so many parts at a time; default one for each processor"),
            .value("--memory", "MIB", "memory for rows that wait to be written; default 256"),
        ] + DifferenceReport.options,
        details: """
            Without a name all of them are made. Readers see the old rows until the new ones are
            whole; ended at any moment it leaves them as they were, and the next one begins anew.
            Where the version, the configuration or a policy was raised since the live rows were
            built, it shows first whose access changes, and asks, or wants --yes.

            With --diff the ledger is folded under the rules that a rebuild would record from the
            configuration, and compared with the live rows; --at is the instant that counts as
            now. --verify compares all columns and ends with 5 where rows differ.

            With --known-at or --known-at-position, and --into: the read models as they were known
            then, in a schema of that name with the same views: select from SCHEMA.churn_monthly.
            `subledger generations` lists and drops them.

            Read models: \(ReadModels.names.joined(separator: ", ")).
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        let configuration = try Configuration.find(arguments)
        let ways = ["--diff", "--verify", "--into"].filter(arguments.has)
        guard ways.count < 2 else {
            throw CommandFailure.usage("\(ways.joined(separator: " and ")) exclude each other")
        }
        let knowledge = try arguments.knowledge()
        guard (knowledge == nil) == !arguments.has("--into") else {
            throw CommandFailure.usage("--known-at or --known-at-position goes with --into SCHEMA")
        }
        if arguments.has("--diff") { return try showDifference(arguments, configuration) }
        for name in ["--at", "--csv"] where arguments.has(name) {
            throw CommandFailure.usage("\(name) goes with --diff")
        }
        let settings = try Settings(arguments)
        let database = try Database.open(arguments, configuration)
        if arguments.has("--verify") { return try verify(settings, database) }
        if let knowledge, let schema = arguments.value("--into") {
            return try build(knowledge, into: schema, settings, database)
        }
        guard
            try arguments.has("--yes")
                || isConfirmed(settings, arguments, configuration, database)
        else { return .someRejected }
        if let configuration { try IngestCommand.storeRules(configuration, in: database) }
        let report = try Interruption.cooperatively { try rebuild(settings, database) }
        // What other read models, or what came meanwhile, still wait for.
        try IngestCommand.project(database)
        let output = Output.standard()
        try output.line(settings.isJSON ? json(report) : text(report))
        try output.flush()
        return .done
    }

    /// How a rebuild is to be run.
    struct Settings {
        /// The read models; all of them where none is named.
        var names: [String] = []
        /// How many parts are folded at a time.
        var jobs = Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        /// The memory for rows that wait.
        var memoryBytes = 256 << 20
        /// Whether results are for machines.
        var isJSON = false

        /// Two workers, everything, for people.
        init() {}

        /// Reads the options.
        init(_ arguments: Arguments) throws(CommandFailure) {
            names = arguments.operands + arguments.values("--projection")
            isJSON = arguments.has("--json")
            if let count = try arguments.integer("--jobs", in: 1...64) { jobs = Int(count) }
            if let size = try arguments.integer("--memory", in: 1...65_536) {
                memoryBytes = Int(size) << 20
            }
        }
    }

    /// Says whose access a rebuild would change, and changes nothing.
    private static func showDifference(
        _ arguments: Arguments,
        _ configuration: Configuration?
    ) throws -> ExitCode {
        let names = arguments.operands + arguments.values("--projection")
        guard names.isEmpty || names == ["entitlement"] else {
            throw CommandFailure.usage("--diff is about access, so about entitlement alone")
        }
        let database = try Database.open(arguments, configuration)
        var comparison = try DifferenceReport.comparison(arguments, database)
        comparison.comparesStale = true
        comparison.rules = try wanted(configuration, database)
        try DifferenceReport.show(comparison, arguments)
        return .done
    }

    /// What the configuration says that the ledger does not yet; a rebuild records it.
    private static func wanted(
        _ configuration: Configuration?,
        _ database: Database
    ) throws -> [AppKey: AppRules] {
        try configuration?.preview(database.connect(as: .projector)) ?? [:]
    }

    /// Shows whose access changes where something was raised, and asks whether to go on.
    ///
    /// Nothing was recorded yet: the configuration is what it would be.
    private static func isConfirmed(
        _ settings: Settings,
        _ arguments: Arguments,
        _ configuration: Configuration?,
        _ database: Database
    ) throws -> Bool {
        let wanted = try wanted(configuration, database)
        let isAsked = settings.names.isEmpty || settings.names.contains("entitlement")
        // Recorded rules are for all read models, whichever is rebuilt.
        guard isAsked || !wanted.isEmpty else { return true }
        var reasons = isAsked ? try Rebuild.raised(database.connect(as: .projector)) : []
        for app in wanted.keys.sorted(by: { "\($0)" < "\($1)" }) {
            reasons.append(
                "the configuration says other rules of \(app.bundleID) (\(app.environment)) "
                    + "than the ledger"
            )
        }
        guard !reasons.isEmpty else { return true }
        for reason in reasons { printError(printable(reason)) }
        var comparison = try DifferenceReport.comparison(arguments, database)
        comparison.comparesStale = true
        comparison.rules = wanted
        let summary = try comparison.run(shouldStop: { Interruption.isRequested }, { _ in })
        guard summary.different > 0 else { return true }
        try DifferenceReport.show(comparison, arguments)
        guard Terminal.isError, isatty(0) == 1 else {
            printError("the live rows stay as they are; --yes swaps all the same")
            remind(wanted)
            return false
        }
        printError("Build the new rows and swap them in? Type yes: ")
        guard readLine() == "yes" else {
            printError("the live rows stay as they are")
            remind(wanted)
            return false
        }
        return true
    }

    private static func remind(_ wanted: [AppKey: AppRules]) {
        guard !wanted.isEmpty else { return }
        printError("put the configuration back: serve, ingest and others record it when they start")
    }

    // MARK: - Building

    /// Rebuilds with a progress bar on a terminal, JSON lines on standard error otherwise.
    static func rebuild(_ settings: Settings, _ database: Database) throws -> Rebuild.Report {
        let sessions = database.sessions(as: .projector)
        let rebuild = try Rebuild(
            settings.names,
            workers: settings.jobs,
            memoryBytes: settings.memoryBytes
        ) { try sessions.open() }
        let progress = RebuildProgress("rebuild")
        defer { progress.clear() }
        return try rebuild.run(
            shouldStop: { Interruption.isRequested },
            progress: { progress.show($0) }
        )
    }

    private static func build(
        _ knowledge: Knowledge,
        into schema: String,
        _ settings: Settings,
        _ database: Database
    ) throws -> ExitCode {
        guard settings.names.isEmpty else {
            throw CommandFailure.usage("--into makes all read models; their views need each other")
        }
        let sessions = database.sessions(as: .projector)
        let rebuild = try Rebuild(workers: settings.jobs, memoryBytes: settings.memoryBytes) {
            try sessions.open()
        }
        let progress = RebuildProgress("rebuild")
        defer { progress.clear() }
        let (report, prefix) = try Interruption.cooperatively {
            try rebuild.run(
                known: knowledge,
                into: schema,
                shouldStop: { Interruption.isRequested },
                progress: { progress.show($0) }
            )
        }
        progress.clear()
        let output = Output.standard()
        if settings.isJSON {
            try output.line(json(report, of: prefix, in: schema))
        } else {
            try output.line(text(report))
            try output.line("in the schema \(schema), as \(prefix.sentence)")
        }
        try output.flush()
        return .done
    }

    // MARK: - Verifying

    private static func verify(_ settings: Settings, _ database: Database) throws -> ExitCode {
        let sessions = database.sessions(as: .projector)
        let verification = try Verification(settings.names, workers: settings.jobs) {
            try sessions.open()
        }
        let progress = RebuildProgress("verify")
        let output = Mutex(Output.standard())
        let isJSON = settings.isJSON
        let report = try Interruption.cooperatively {
            try verification.run(
                shouldStop: { Interruption.isRequested },
                progress: { progress.show($0) }
            ) { difference in
                progress.clear()
                let line = isJSON ? json(difference) : text(difference)
                output.withLock { try? $0.line(line) }
            }
        }
        progress.clear()
        try output.withLock { output in
            try output.line(isJSON ? json(report) : text(report))
            try output.flush()
        }
        return report.different == 0 ? .done : .integrity
    }
}
