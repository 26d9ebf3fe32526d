internal import EventLog
internal import Ledger
internal import LedgerService

/// `subledger streams parked|retry`.
enum StreamsCommands {
    static let parked = Command(
        name: "streams parked",
        summary: "List the subscriptions that could not be folded, with the reasons.",
        options: [.database, .config, .json],
        details: """
            Their read models show what was known before; everything else goes on. A parked
            subscription is tried again by itself when it has news.
            """,
        run: runParked
    )

    static let retry = Command(
        name: "streams retry",
        summary: "Fold parked subscriptions again, now.",
        operands: "[ID]",
        options: [.database, .config],
        details: """
            ID is an originalTransactionId as `subledger streams parked` lists it; without it all
            are tried. Exit code 1 means that some still cannot be folded.
            """,
        run: runRetry
    )

    private static func runParked(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let database = try Database.open(arguments, Configuration.find(arguments))
        let streams = try ParkedStreams(database.connect(as: .auditor)).all()
        let output = Output.standard()
        if arguments.has("--json") {
            var json = JSONWriter(pretty: true)
            json.beginArray()
            for stream in streams {
                json.beginObject()
                json.member("stream", stream.key.stream)
                json.member("bundle_id", stream.app?.bundleID)
                json.member("environment", stream.app.map { "\($0.environment)" })
                json.member("position", stream.position)
                json.member("parked_at", stream.parkedAt)
                json.member("error", stream.error)
                json.endObject()
            }
            json.endArray()
            try output.line(json.text)
        } else {
            var table = TextTable("subscription", "~app", "#position", "parked", "~reason")
            for stream in streams {
                table.add(
                    printable(stream.key.stream),
                    stream.app.map { "\($0.bundleID) (\($0.environment))" } ?? "–",
                    "\(stream.position)",
                    second(stream.parkedAt),
                    printable(stream.error)
                )
            }
            try output.table(table)
        }
        try output.flush()
        return .done
    }

    private static func runRetry(_ arguments: Arguments) throws -> ExitCode {
        if arguments.operands.count > 1 { _ = try arguments.operands(named: "ID") }
        let id = arguments.operands.first
        let database = try Database.open(arguments, Configuration.find(arguments))
        let streams = ParkedStreams(try database.connect(as: .projector))
        let tried = try streams.retry(stream: id)
        if let id, tried.isEmpty {
            throw CommandFailure.notFound(
                "no subscription \(printable(id)) is parked; see: streams parked"
            )
        }
        let remaining = try streams.settle(tried)
        let output = Output.standard()
        try output.line("\(tried.count - remaining.count) folded, \(remaining.count) still parked")
        for stream in remaining {
            try output.line(printable("\(stream.key.stream): \(stream.error)"))
        }
        try output.flush()
        return remaining.isEmpty ? .done : .someRejected
    }
}
