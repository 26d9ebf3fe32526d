internal import AppStore
internal import EventLog
internal import Ledger
internal import LedgerService

/// `subledger quarantine list|show|replay|dismiss`.
enum QuarantineCommands {
    static let list = Command(
        name: "quarantine list",
        summary: "List the genuine documents that could not become events.",
        options: [
            .database, .config, .json,
            .flag("--all", "also those that somebody has dealt with"),
            .value("--limit", "N", "at most so many (default 1000)"),
        ],
        run: runList
    )

    static let show = Command(
        name: "quarantine show",
        summary: "Print what was received, byte for byte, and what verifying it says now.",
        operands: "ID",
        options: [.database, .config, .acceptBundle, .appAppleID, .root],
        details: """
            ID is the beginning of the document's SHA-256, as the list shows it. Standard output
            gets the received bytes and nothing else; the verdict goes to standard error.
            """,
        run: runShow
    )

    static let replay = Command(
        name: "quarantine replay",
        summary: "Verify quarantined documents again and append what can be an event now.",
        operands: "ID…",
        options: [
            .database, .config, .acceptBundle, .appAppleID, .root,
            .flag("--all", "every document that nobody has dealt with, instead of ID"),
            operatorOption, ticketOption,
        ],
        details: """
            Useful after the program or the configuration has learnt what it lacked. The document
            stays in quarantine; that it was dealt with is a row of its own. Exit code 1 means that
            some of the documents still cannot become events.
            """,
        run: runReplay
    )

    static let dismiss = Command(
        name: "quarantine dismiss",
        summary: "Note that nothing is to follow from a quarantined document.",
        operands: "ID…",
        options: [.database, .config, operatorOption, ticketOption],
        details: "The document stays where it is and is no longer listed without --all.",
        run: runDismiss
    )

    private static let operatorOption = Option.value("--operator", "WHO", "who deals with it")
    private static let ticketOption = Option.value("--ticket", "TEXT", "where more is to be read")

    /// How many digits of a digest a table shows.
    private static let nameLength = 12

    private static func runList(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let limit = try arguments.integer("--limit", in: 1...1_000_000) ?? 1000
        let database = try Database.open(arguments, Configuration.find(arguments))
        let entries = try Quarantine(database.connect(as: .auditor))
            .entries(includingResolved: arguments.has("--all"), limit: limit)
        let output = Output.standard()
        if arguments.has("--json") {
            var json = JSONWriter(pretty: true)
            json.beginArray()
            for entry in entries { write(entry, to: &json) }
            json.endArray()
            try output.line(json.text)
        } else {
            var table = TextTable("id", "recorded", "~reason", "~app", "#bytes", "~dealt with")
            for entry in entries {
                table.add(
                    String(entry.digest.prefix(nameLength)),
                    second(entry.recordedAt),
                    entry.reason,
                    entry.app.map { "\($0.bundleID) (\($0.environment))" } ?? "–",
                    "\(entry.sizeBytes)",
                    entry.resolution.map { "\($0.outcome.rawValue) by \($0.operatorName)" } ?? "–"
                )
            }
            try output.table(table)
        }
        try output.flush()
        return .done
    }

    private static func write(_ entry: Quarantine.Entry, to json: inout JSONWriter) {
        json.beginObject()
        json.member("sha256", entry.digest)
        json.member("recorded_at", entry.recordedAt)
        json.member("reason", entry.reason)
        json.member("bundle_id", entry.app?.bundleID)
        json.member("environment", entry.app.map { "\($0.environment)" })
        json.member("stream", entry.stream)
        json.member("event_key", entry.eventKey)
        json.member("size_bytes", entry.sizeBytes)
        json.key("resolution")
        if let resolution = entry.resolution {
            json.beginObject()
            json.member("outcome", resolution.outcome.rawValue)
            json.member("position", resolution.position)
            json.member("operator", resolution.operatorName)
            json.member("ticket", resolution.ticket)
            json.member("resolved_at", resolution.resolvedAt)
            json.endObject()
        } else {
            json.null()
        }
        json.endObject()
    }

    private static func runShow(_ arguments: Arguments) throws -> ExitCode {
        let name = try arguments.operands(named: "ID")[0]
        let configuration = try Configuration.find(arguments)
        let verifier = try lenientVerifier(arguments, configuration)
        let database = try Database.open(arguments, configuration)
        let quarantine = Quarantine(try database.connect(as: .auditor))
        let entry = try entry(named: name, in: quarantine)
        let received = try quarantine.received(entry)
        let output = Output.standard()
        try output.write(received)
        try output.line()
        try output.flush()
        let verdict =
            switch verifier.verify(received, now: .now) {
            case .trusted(let document):
                document.quarantineReason.map { "genuine, but not usable: \($0)" }
                    ?? (entry.reason.hasPrefix("sqlstate_")
                        ? "trusted: it can become an event where the database holds it now, see: "
                            + "quarantine replay"
                        : "trusted: it can become an event, see: quarantine replay")
            case .rejected(let rejection): "not usable: \(rejection)"
            case .undecided(let rejection): "undecided: \(rejection)"
            }
        printError(
            printable(
                "\(entry.digest.prefix(nameLength)), kept \(second(entry.recordedAt)) for "
                    + "\(entry.reason); now \(verdict)"
            )
        )
        if let resolution = entry.resolution {
            printError(
                printable(
                    "dealt with \(second(resolution.resolvedAt)) by \(resolution.operatorName): "
                        + resolution.outcome.rawValue
                )
            )
        }
        return .done
    }

    /// Without any app, whose data it is is not checked: looking must not need a configuration.
    private static func lenientVerifier(
        _ arguments: Arguments,
        _ configuration: Configuration?
    ) throws -> Verifier {
        let namesApps =
            configuration?.apps.isEmpty == false || arguments.has(Option.acceptBundle.name)
        if namesApps {
            let acceptance = try Acceptance(arguments, configuration)
            return acceptance.verifier()
        }
        var acceptance = Acceptance()
        for path in arguments.values(Option.root.name) { try acceptance.addAnchor(path) }
        return Verifier(anchors: acceptance.anchors, apps: nil)
    }

    private static func runReplay(_ arguments: Arguments) throws -> ExitCode {
        guard arguments.has("--all") != !arguments.operands.isEmpty else {
            throw CommandFailure.usage("name documents by their ID, or all of them by --all")
        }
        let who = try author(arguments)
        let configuration = try Configuration.find(arguments)
        let acceptance = try Acceptance(arguments, configuration)
        let database = try Database.open(arguments, configuration)
        let entries = try entries(arguments, in: database)
        let replay = try QuarantineReplay(
            verifier: acceptance.verifier(),
            now: .now,
            database.connect(as: .appender)
        )
        let output = Output.standard()
        var remaining = 0
        for entry in entries {
            let name = entry.digest.prefix(nameLength)
            switch try replay.replay(entry, by: who, ticket: arguments.value("--ticket")) {
            case .resolved(let outcome, let position):
                try output.line("\(name) \(outcome.rawValue): event \(position)")
            case .resolvedBefore: try output.line("\(name) was dealt with before")
            case .remains(let reason, let detail):
                remaining += 1
                try output.line(printable("\(name) remains: \(reason): \(detail)"))
            }
        }
        try output.flush()
        try database.recordRows()
        try IngestCommand.project(database)
        return remaining == 0 ? .done : .someRejected
    }

    private static func runDismiss(_ arguments: Arguments) throws -> ExitCode {
        guard !arguments.operands.isEmpty else { throw CommandFailure.usage("ID is missing") }
        let who = try author(arguments)
        let database = try Database.open(arguments, Configuration.find(arguments))
        let entries = try entries(arguments, in: database)
        let quarantine = Quarantine(try database.connect(as: .appender))
        let output = Output.standard()
        for entry in entries {
            let isNoted = try quarantine.resolve(
                entry,
                as: .dismissed,
                by: who,
                ticket: arguments.value("--ticket")
            )
            let what = isNoted ? "is dismissed" : "was dealt with before"
            try output.line("\(entry.digest.prefix(nameLength)) \(what)")
        }
        try output.flush()
        try database.recordRows()
        return .done
    }

    private static func author(_ arguments: Arguments) throws -> String {
        guard let who = arguments.value("--operator") else {
            throw CommandFailure.usage("--operator WHO is missing: who deals with it?")
        }
        guard OneLine.isOne(who, countMax: 200),
            arguments.value("--ticket").map({ OneLine.isOne($0, countMax: 200) }) ?? true
        else {
            throw CommandFailure.usage("--operator and --ticket take \(OneLine.want(200))")
        }
        return who
    }

    private static func entries(
        _ arguments: Arguments,
        in database: Database
    ) throws -> [Quarantine.Entry] {
        let quarantine = Quarantine(try database.connect(as: .auditor))
        if arguments.has("--all") {
            return try quarantine.entries(includingResolved: false, limit: .max)
        }
        return try arguments.operands.map { try entry(named: $0, in: quarantine) }
    }

    private static func entry(
        named name: String,
        in quarantine: Quarantine
    ) throws -> Quarantine.Entry {
        guard name.count >= Quarantine.nameLengthMin, name.count <= 64,
            name.allSatisfy({ $0.isHexDigit })
        else {
            throw CommandFailure.usage(
                "ID is the beginning of a SHA-256, at least \(Quarantine.nameLengthMin) "
                    + "hexadecimal digits, not “\(name)”"
            )
        }
        let found = try quarantine.entries(named: name)
        guard let entry = found.first else {
            throw CommandFailure.notFound("nothing in quarantine is called \(name)")
        }
        guard found.count == 1 else {
            throw CommandFailure.usage("several documents begin with \(name); give more digits")
        }
        return entry
    }
}
