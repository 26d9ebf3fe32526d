internal import EventLog
internal import Ledger
internal import LedgerService

/// `subledger deliveries`.
enum DeliveriesCommand {
    static let command = Command(
        name: "deliveries",
        summary: "Show how Apple's own tries to send notifications to us ended, newest first.",
        options: [
            .database, .config, .json,
            .flag("--failed", "only notifications of which a try failed, with what helps"),
            .value("--limit", "N", "at most so many (default 50)"),
        ],
        details: """
            Apple says this in its notification history, which `backfill` and `serve` read. What
            failed at Apple's side and is recorded here all the same came with a later try or by
            `backfill`.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let limit = try arguments.integer("--limit", in: 1...100_000) ?? 50
        let database = try Database.open(arguments, Configuration.find(arguments))
        let deliveries = try SendAttempts(database.connect(as: .auditor)).latest(
            limit,
            onlyFailed: arguments.has("--failed")
        )
        let output = Output.standard()
        if arguments.has("--json") {
            try output.line(json(deliveries))
        } else {
            try output.table(table(deliveries))
            let failures = Set(deliveries.flatMap(\.attempts).map(\.result))
                .subtracting(["SUCCESS"]).sorted()
            for result in failures {
                try output.line(printable("\(result): \(SendAttempts.remedy(result))"))
            }
        }
        try output.flush()
        return .done
    }

    private static func table(_ deliveries: [SendAttempts.Delivery]) -> TextTable {
        var table = TextTable(
            "first try",
            "environment",
            "~type",
            "notification",
            "#tries",
            "~results",
            "recorded"
        )
        for delivery in deliveries {
            table.add(
                delivery.attempts.first.map { second($0.at) } ?? "–",
                "\(delivery.app.environment)",
                delivery.notificationType ?? "–",
                delivery.notificationUUID,
                "\(delivery.attempts.count)",
                delivery.attempts.map(\.result).joined(separator: ", "),
                delivery.isRecorded ? "yes" : "NO"
            )
        }
        return table
    }

    private static func json(_ deliveries: [SendAttempts.Delivery]) -> String {
        var json = JSONWriter(pretty: true)
        json.beginArray()
        for delivery in deliveries {
            json.beginObject()
            json.member("notification_uuid", delivery.notificationUUID)
            json.member("notification_type", delivery.notificationType)
            json.member("bundle_id", delivery.app.bundleID)
            json.member("environment", "\(delivery.app.environment)")
            json.member("recorded", delivery.isRecorded)
            json.member("delivered", delivery.isDelivered)
            json.key("send_attempts")
            json.beginArray()
            for attempt in delivery.attempts {
                json.beginObject()
                json.member("attempted_at", attempt.at)
                json.member("result", attempt.result)
                if attempt.result != "SUCCESS" {
                    json.member("remedy", SendAttempts.remedy(attempt.result))
                }
                json.endObject()
            }
            json.endArray()
            json.endObject()
        }
        json.endArray()
        return json.text
    }
}
