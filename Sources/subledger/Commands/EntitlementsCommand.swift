internal import EventLog
internal import Ledger
internal import LedgerService
internal import Postgres

/// `subledger entitlements`.
enum EntitlementsCommand {
    static let command = Command(
        name: "entitlements",
        summary: "Show who has access to what at an instant.",
        options: [
            .database, .config, .json, .at, .knownAt, .knownAtPosition,
            .value("--owner", "TOKEN", "only this account's, by whatever way they are"),
            .value("--subscription", "ID", "only this originalTransactionId"),
            .value("--environment", "Sandbox|Production", "only this environment; default both"),
        ],
        details: """
            “Apple” is Apple's own line: an active period or a grace period. “policy” is yours:
            the access policy in subledger.json. With --json: an array, one object a subscription;
            with --known-at an object that says what was known, with that array in it.
            --owner lists all that an account has: its own, by an alias (a migration), family, an
            assigned seat, or bought by the same customer without a token. “*” marks the one that
            counts in each group: entitled, of the highest level, the longest.
            --known-at and --known-at-position go with --owner or --subscription: what was known
            then, by the events and the rules that had been recorded. --at is the instant that it
            is asked about all the same.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        var query = EntitlementQuery(at: try arguments.instant("--at") ?? .now)
        query.subscription = arguments.value("--subscription")
        query.environment = try environment(arguments)
        if let text = arguments.value("--owner") {
            guard let owner = UniqueID(text) else {
                throw CommandFailure.usage("--owner takes a UUID, not “\(text)”")
            }
            query.owner = owner
        }
        let database = try Database.open(arguments, Configuration.find(arguments))
        let output = Output.standard()
        if let knowledge = try arguments.knowledge() {
            let known = try query.known(knowledge, database.connect(as: .auditor))
            arguments.has("--json")
                ? try writeJSON(known, of: query, to: output)
                : try writeTable(known, of: query, to: output)
            try output.flush()
            if known.answers.isEmpty, let id = query.subscription {
                throw CommandFailure.notFound(
                    "no subscription \(printable(id)) at \(query.at), as \(known.prefix.sentence)"
                )
            }
            return .done
        }
        let connection = try database.connect(as: .reader)
        let count =
            arguments.has("--json")
            ? try writeJSON(query, connection, to: output)
            : try writeTable(query, connection, to: output)
        try output.flush()
        try reportStaleness(connection, isJSON: arguments.has("--json"))
        guard count == 0, let id = query.subscription else { return .done }
        throw CommandFailure.notFound(
            "no subscription \(printable(id)) at \(query.at); "
                + "`subledger events \(printable(id))` shows whether the ledger knows it at all"
        )
    }

    private static func writeJSON(
        _ known: KnownEntitlements,
        of query: EntitlementQuery,
        to output: Output
    ) throws {
        var json = JSONWriter(pretty: true)
        json.beginObject()
        json.member("at", query.at)
        known.prefix.writeMembers(to: &json)
        json.key("entitlements")
        json.beginArray()
        for answer in known.answers { answer.write(to: &json) }
        json.endArray()
        json.endObject()
        try output.line(json.text)
    }

    private static func writeTable(
        _ known: KnownEntitlements,
        of query: EntitlementQuery,
        to output: Output
    ) throws {
        var table = EntitlementTable(ofOwner: query.owner != nil)
        for answer in known.answers { table.add(answer) }
        if table.count > 0 {
            try output.table(table.table)
            try output.line()
        }
        let noun = table.count == 1 ? "subscription" : "subscriptions"
        try output.line(
            "\(grouped(table.count)) \(noun) at \(query.at), as \(known.prefix.sentence)"
        )
    }

    private static func writeJSON(
        _ query: EntitlementQuery,
        _ connection: Connection,
        to output: Output
    ) throws -> Int {
        var count = 0
        try output.write("[")
        try query.forEach(connection) { answer in
            var json = JSONWriter()
            answer.write(to: &json)
            try output.write(count == 0 ? "\n" : ",\n")
            try output.write(json.bytes)
            count += 1
        }
        try output.line(count == 0 ? "]" : "\n]")
        return count
    }

    private static func writeTable(
        _ query: EntitlementQuery,
        _ connection: Connection,
        to output: Output
    ) throws -> Int {
        var table = EntitlementTable(ofOwner: query.owner != nil)
        try query.forEach(connection) { table.add($0) }
        if table.count > 0 {
            try output.table(table.table)
            try output.line()
        }
        let noun = table.count == 1 ? "subscription" : "subscriptions"
        try output.line("\(grouped(table.count)) \(noun) at \(query.at)")
        return table.count
    }

    /// Says on standard error how far the read models are behind, if they are.
    static func reportStaleness(_ connection: Connection, isJSON: Bool) throws {
        let staleness = try Staleness(connection)
        guard staleness.staleStreams > 0 || !staleness.parked.isEmpty else { return }
        if isJSON {
            var json = JSONWriter()
            json.beginObject()
            json.member("stale_streams", staleness.staleStreams)
            json.member("parked_streams", staleness.parked.count)
            json.endObject()
            printError(json.text)
            return
        }
        if staleness.staleStreams > 0 {
            printError(
                "stale_streams: \(staleness.staleStreams): so many subscriptions have events that "
                    + "are not folded yet; `subledger rebuild` folds them"
            )
        }
        for parked in staleness.parked {
            printError(printable("not folded: \(parked.key): \(parked.error)"))
        }
    }

    /// The environment that an option names.
    static func environment(_ arguments: Arguments) throws -> Environment? {
        guard let text = arguments.value("--environment") else { return nil }
        let environment = Environment(text)
        guard environment.unknownText == nil else {
            throw CommandFailure.usage("--environment is Sandbox or Production, not “\(text)”")
        }
        return environment
    }
}

/// Answers as a table.
struct EntitlementTable {
    private(set) var table: TextTable
    private let ofOwner: Bool

    /// Makes an empty table; one of an owner also says how each is the owner's.
    init(ofOwner: Bool = false) {
        self.ofOwner = ofOwner
        let titles = [
            "subscription", "env", "<product", "~state", "Apple", "policy", "access until",
            "next change",
        ]
        table = TextTable((ofOwner ? ["", "via"] : []) + titles)
    }

    /// How many there are.
    var count: Int { table.count }

    /// Adds an answer.
    mutating func add(_ answer: EntitlementAnswer) {
        let owned = [answer.counts == true ? "*" : "", answer.via ?? ""]
        let fields = [
            answer.originalTransactionID,
            answer.app.environment == .production ? "Prod" : "\(answer.app.environment)",
            answer.productID ?? "–",
            answer.state + (answer.cause.map { " (\($0))" } ?? ""),
            answer.entitledApple ? "yes" : "no",
            answer.entitled ? "yes" : "no",
            answer.entitled ? answer.accessUntil.map(minute) ?? "for ever" : "–",
            answer.validUntil.map(minute) ?? "–",
        ]
        table.add((ofOwner ? owned : []) + fields)
    }
}

/// An instant to the minute, as tables show it.
func minute(_ instant: Timestamp) -> String {
    let text = "\(instant)"
    return text.prefix(10) + " " + text.dropFirst(11).prefix(5)
}
