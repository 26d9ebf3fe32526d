internal import EventLog
internal import Ledger
internal import LedgerService
internal import Postgres

/// `subledger policy set` and `subledger policy diff`.
enum PolicyCommands {
    private static let switches: [Option] = [
        .database, .config, .json,
        .value(
            "--billing-retry-access",
            "POLICY",
            "deny, until_grace_ends, allow, or days:N with N up to 60"
        ),
        .value("--missing-grace-date", "estimate|deny", "where grace was announced without a date"),
        .value("--lapse-leeway-minutes", "N", "access after the end while no news has come"),
        .value("--refund-ends-access", "yes|no", "whether a refund of the current period does"),
        .value("--effective-from", "INSTANT", "count from then on; default now"),
        .flag("--retroactive", "rewrite what was granted before, from the instant or always"),
        .value("--bundle-id", "ID", "only this app; default all"),
        .value("--environment", "Sandbox|Production", "only this environment; default both"),
    ]

    static let set = Command(
        name: "policy set",
        summary: "Change who has access in billing retry and the like, from now on.",
        options: switches + [
            .value("--operator", "WHO", "who changes it"),
            .value("--ticket", "REF", "on which ticket"),
            .flag("--no-project", "leave the read models as they are; the streams stay marked"),
        ],
        details: """
            A change is a new version that counts from an instant on, and takes the place of
            whatever was to count from then. What was granted before stays granted, unless
            --retroactive says otherwise, which the version records. See `subledger policy diff`
            for who would gain and who would lose access.
            """,
        run: runSet
    )

    static let diff = Command(
        name: "policy diff",
        summary: "Show who would gain and who would lose access by a change of policy.",
        options: switches + DifferenceReport.options,
        details: """
            Nothing is written: the whole ledger is folded under the changed policy and compared
            with the live rows.
            """,
        run: runDiff
    )

    private static func runSet(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let edit = try edit(arguments)
        let start = try start(arguments)
        let (who, ticket) = try arguments.author()
        let database = try Database.open(arguments, Configuration.find(arguments))
        let connection = try database.connect()
        var json = JSONWriter(pretty: true)
        json.beginArray()
        let output = Output.standard()
        for app in try apps(arguments, connection) {
            let changed = try edit.record(
                of: app,
                from: start,
                operator: who,
                ticket: ticket,
                connection
            )
            if arguments.has("--json") {
                write(changed, app, to: &json)
            } else {
                try output.line("\(app.bundleID) in \(app.environment): \(text(changed, start))")
            }
        }
        json.endArray()
        try database.recordRows()
        if !arguments.has("--no-project") { try IngestCommand.project(database) }
        if arguments.has("--json") { try output.line(json.text) }
        try output.flush()
        return .done
    }

    private static func runDiff(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let edit = try edit(arguments)
        let start = try start(arguments)
        let database = try Database.open(arguments, Configuration.find(arguments))
        let connection = try database.connect(as: .projector)
        var comparison = try DifferenceReport.comparison(arguments, database)
        for app in try apps(arguments, connection) {
            comparison.policies[app] = try edit.policies(of: app, from: start, connection)
        }
        try DifferenceReport.show(comparison, arguments)
        return .done
    }

    // MARK: - Arguments

    private static func edit(_ arguments: Arguments) throws -> PolicyEdit {
        var edit = PolicyEdit()
        if let text = arguments.value("--billing-retry-access") {
            edit.billingRetryAccess = try billingRetryAccess(text)
        }
        if let text = arguments.value("--missing-grace-date") {
            guard let missing = MissingGraceDate(rawValue: text) else {
                throw CommandFailure.usage(
                    "--missing-grace-date is estimate or deny, not “\(text)”"
                )
            }
            edit.missingGraceDate = missing
        }
        edit.lapseLeeway = try arguments.integer("--lapse-leeway-minutes", in: 0...1440)
            .map { .minutes($0) }
        if let text = arguments.value("--refund-ends-access") {
            guard text == "yes" || text == "no" else {
                throw CommandFailure.usage("--refund-ends-access is yes or no, not “\(text)”")
            }
            edit.refundEndsAccess = text == "yes"
        }
        guard !edit.isEmpty else {
            throw CommandFailure.usage("nothing to change: say --billing-retry-access or another")
        }
        return edit
    }

    private static func billingRetryAccess(_ text: String) throws -> BillingRetryAccess {
        switch text {
        case "deny": return .deny
        case "until_grace_ends": return .untilGraceEnds
        case "allow": return .allow
        default:
            guard text.hasPrefix("days:"), let days = Int(text.dropFirst(5)), 1...60 ~= days else {
                throw CommandFailure.usage(
                    "--billing-retry-access is deny, until_grace_ends, allow or days:N with N "
                        + "from 1 to 60, not “\(text)”"
                )
            }
            return .days(days)
        }
    }

    private static func start(_ arguments: Arguments) throws -> RuleBook.Start {
        let instant = try arguments.instant("--effective-from")
        if arguments.has("--retroactive") { return .retroactively(from: instant) }
        guard let instant else { return .now }
        guard instant > .now else {
            throw CommandFailure.usage(
                "--effective-from \(instant) is past: that would rewrite what was granted since; "
                    + "say --retroactive if that is meant"
            )
        }
        return .at(instant)
    }

    private static func apps(_ arguments: Arguments, _ connection: Connection) throws -> [AppKey] {
        let environment = try EntitlementsCommand.environment(arguments)
        let bundleID = arguments.value("--bundle-id")
        let apps = try LogReader(connection).apps().sorted { $0.key < $1.key }.map(\.value)
            .filter { app in
                (bundleID.map { $0 == app.bundleID } ?? true)
                    && (environment.map { $0 == app.environment } ?? true)
            }
        guard !apps.isEmpty else {
            throw CommandFailure.notFound("the ledger knows no such app")
        }
        return apps
    }

    // MARK: - Results

    private static func text(_ policy: AccessPolicy?, _ start: RuleBook.Start) -> String {
        guard let policy else { return "the policy says so already" }
        let from =
            policy.effectiveFrom == .earliest
            ? "from the beginning" : "from \(policy.effectiveFrom)"
        return "version \(policy.version) counts \(from)"
            + (start.isRetroactive ? ", retroactively" : "")
            + ": billing retry \(policy.billingRetryAccess.text), "
            + "missing grace date \(policy.missingGraceDate.rawValue)"
    }

    private static func write(_ policy: AccessPolicy?, _ app: AppKey, to json: inout JSONWriter) {
        json.beginObject()
        json.member("bundle_id", app.bundleID)
        json.member("environment", app.environment.description)
        json.member("changed", policy != nil)
        json.member("version", policy?.version)
        json.member("effective_from", policy?.effectiveFrom)
        json.member("billing_retry_access", policy?.billingRetryAccess.text)
        json.member("missing_grace_date", policy?.missingGraceDate.rawValue)
        json.endObject()
    }
}
