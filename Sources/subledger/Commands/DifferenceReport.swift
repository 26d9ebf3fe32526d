internal import EventLog
internal import Ledger
internal import LedgerService

/// Shows who gains and who loses access, for `policy diff` and `rebuild --diff`.
enum DifferenceReport {
    /// How many single subscriptions a table shows.
    static let shownMax = 20

    /// The options that both commands have beside their own.
    static let options: [Option] = [
        .at,
        .flag("--csv", "print every difference as comma-separated values"),
    ]

    /// A comparison at the instant of `--at`.
    static func comparison(
        _ arguments: Arguments,
        _ database: Database
    ) throws -> AccessComparison {
        if arguments.has("--json"), arguments.has("--csv") {
            throw CommandFailure.usage("--json and --csv exclude each other")
        }
        let sessions = database.sessions(as: .projector)
        return AccessComparison(at: try arguments.instant("--at") ?? .now) { try sessions.open() }
    }

    /// Runs the comparison and prints what differs.
    @discardableResult
    static func show(
        _ comparison: AccessComparison,
        _ arguments: Arguments
    ) throws -> AccessDifferenceSummary {
        let output = Output.standard()
        var shown: [AccessDifference] = []
        var count = 0
        let isJSON = arguments.has("--json")
        let isCSV = arguments.has("--csv")
        if isJSON { try output.write("{\"differences\":[") }
        if isCSV { try output.line(CommaSeparated.line(names)) }
        let bar = ProgressBar("compare", unit: "subscriptions")
        func tell(_ difference: AccessDifference) throws {
            if isJSON {
                try output.write(count == 0 ? "\n" : ",\n")
                try output.write(json(difference))
            } else if isCSV {
                try output.line(CommaSeparated.line(fields(difference)))
            } else if shown.count < shownMax {
                shown.append(difference)
            }
            count += 1
        }
        let summary = try comparison.run(
            shouldStop: { Interruption.isRequested },
            progress: { done, total in
                bar.update(
                    fraction: total == 0 ? nil : Double(done) / Double(total),
                    count: Int(done)
                )
            },
            tell
        )
        bar.clear()
        if isJSON {
            try output.line("\n],\"summary\":\(json(summary))}")
        } else if !isCSV {
            try write(summary, shown, of: count, at: comparison.at, to: output)
        }
        try output.flush()
        if summary.stale > 0 {
            printError(
                "\(grouped(summary.stale)) subscriptions have news that the live rows do not hold "
                    + (comparison.comparesStale ? "yet" : "yet; they were left out")
            )
        }
        return summary
    }

    private static func write(
        _ summary: AccessDifferenceSummary,
        _ shown: [AccessDifference],
        of count: Int,
        at instant: Timestamp,
        to output: Output
    ) throws {
        if summary.different > 0 {
            var groups = TextTable("change", "state", "cause", "#subscriptions", "#now", "earliest")
            for (group, count) in summary.ordered {
                groups.add(
                    group.gains ? "gains access" : "loses access",
                    group.state,
                    group.cause ?? "–",
                    grouped(count.subscriptions),
                    grouped(count.now),
                    minute(count.from)
                )
            }
            try output.table(groups)
            try output.line()
            var single = TextTable(
                "subscription",
                "env",
                "~owner",
                "change",
                "~state",
                "from",
                "until"
            )
            for difference in shown {
                single.add(
                    difference.originalTransactionID,
                    "\(difference.app.environment)",
                    difference.owner?.description ?? "–",
                    difference.gains ? "gains" : "loses",
                    difference.state + (difference.cause.map { " (\($0))" } ?? ""),
                    minute(difference.from),
                    difference.until.map(minute) ?? "for ever"
                )
            }
            try output.table(single)
            if count > shown.count {
                try output.line("… and \(grouped(count - shown.count)) more; --csv lists all")
            }
            try output.line()
        }
        try output.line(
            "\(grouped(summary.different)) of \(grouped(summary.compared)) subscriptions would have "
                + "other access; “now” is \(instant). Nothing was changed."
        )
    }

    private static let names: [String?] = [
        "original_transaction_id", "environment", "bundle_id", "app_account_token", "change",
        "state", "cause", "from", "until",
    ]

    private static func fields(_ difference: AccessDifference) -> [String?] {
        [
            difference.originalTransactionID, "\(difference.app.environment)",
            difference.app.bundleID, difference.owner?.description,
            difference.gains ? "gains" : "loses", difference.state, difference.cause,
            "\(difference.from)", difference.until?.description,
        ]
    }

    private static func json(_ difference: AccessDifference) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        for (name, value) in zip(names, fields(difference)) { json.member(name ?? "", value) }
        json.endObject()
        return json.bytes
    }

    private static func json(_ summary: AccessDifferenceSummary) -> String {
        var json = JSONWriter()
        json.beginObject()
        json.member("compared", summary.compared)
        json.member("different", summary.different)
        json.member("stale", summary.stale)
        json.key("groups")
        json.beginArray()
        for (group, count) in summary.ordered {
            json.beginObject()
            json.member("change", group.gains ? "gains" : "loses")
            json.member("state", group.state)
            json.member("cause", group.cause)
            json.member("subscriptions", count.subscriptions)
            json.member("now", count.now)
            json.member("earliest", count.from)
            json.endObject()
        }
        json.endArray()
        json.endObject()
        return json.text
    }
}
