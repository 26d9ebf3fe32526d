internal import AppStore
internal import EventLog
internal import Ledger
internal import LedgerService

/// `subledger test-notification`.
enum TestNotificationCommand {
    static let command = Command(
        name: "test-notification",
        summary: "Have Apple send a test notification; wait, and show how that went.",
        options: AppleDesk.options + [.allowUnsafeServer],
        details: """
            Apple sends to the URL that is set up in App Store Connect for the environment; `serve`
            must be reachable there. Exit code 0 where it arrived, 1 where it did not. Apple answers
            for a minute at most; Production tries again for days what failed.
            """,
        run: run
    )

    private static func run(_ arguments: Arguments) throws -> ExitCode {
        _ = try arguments.operands()
        let desk = try AppleDesk(arguments)
        try desk.database.refuseUnsafeServer(arguments)
        let accounts = try desk.accounts(arguments)
        guard accounts.count == 1 else {
            let names = accounts.map { "\($0.app.bundleID) in \($0.app.environment)" }
            throw CommandFailure.usage(
                "name one of them with --bundle-id and --environment: "
                    + names.joined(separator: ", ")
            )
        }
        let test = TestNotification(
            accounts[0],
            desk.recorder,
            sleep: AppleDesk.surroundings.sleep
        )
        let result = try Interruption.cooperatively { try test.run() }
        let output = Output.standard()
        if arguments.has("--json") {
            try output.line(json(result))
        } else {
            try output.line(text(result))
        }
        try output.flush()
        return result.attempts.last?.result == "SUCCESS" ? .done : .someRejected
    }

    private static func text(_ result: TestNotification.Result) -> String {
        guard let last = result.attempts.last else {
            return "Apple took the request (token \(printable(result.token))) and has not said yet "
                + "how sending went"
        }
        var lines: [String] = []
        for attempt in result.attempts {
            let at = attempt.date.map { second($0) } ?? "–"
            lines.append(printable("\(at)  \(attempt.result)"))
        }
        if last.result != "SUCCESS" {
            lines.append(printable("→ \(SendAttempts.remedy(last.result))"))
        } else if result.hasArrived {
            lines.append("it arrived, was verified and is in the ledger")
        } else {
            lines.append(
                "Apple was answered 200, but the ledger had it not: does the URL lead to another "
                    + "service, or this command to another database than serve's?"
            )
        }
        return lines.joined(separator: "\n")
    }

    private static func json(_ result: TestNotification.Result) -> String {
        var json = JSONWriter(pretty: true)
        json.beginObject()
        json.member("test_notification_token", result.token)
        json.member("notification_uuid", result.notificationUUID)
        json.member("arrived", result.hasArrived)
        json.key("send_attempts")
        json.beginArray()
        for attempt in result.attempts {
            json.beginObject()
            json.member("attempted_at", attempt.date)
            json.member("result", attempt.result)
            json.endObject()
        }
        json.endArray()
        json.endObject()
        return json.text
    }
}
