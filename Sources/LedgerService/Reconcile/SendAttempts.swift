internal import AppStore
package import EventLog
package import Ledger
package import Postgres

/// What Apple says of its own deliveries to us: `ledger.send_attempt`.
package struct SendAttempts {
    /// One notification and how Apple got on with it.
    package struct Delivery: Hashable, Sendable {
        /// The app.
        package var app: AppKey
        /// Apple's UUID of the notification.
        package var notificationUUID: String
        /// Its type.
        package var notificationType: String?
        /// The tries, the oldest first.
        package var attempts: [Attempt]
        /// Whether the log has it, however it came.
        package var isRecorded: Bool

        /// Whether the last try reached us.
        package var isDelivered: Bool { attempts.last?.result == "SUCCESS" }
    }

    /// One try.
    package struct Attempt: Hashable, Sendable {
        /// When.
        package var at: Timestamp
        /// Apple's word.
        package var result: String
    }

    private let connection: Connection

    /// Works over a session that may read it, and write it to note something.
    package init(_ connection: Connection) { self.connection = connection }

    /// Keeps what Apple said, once.
    func note(_ deliveries: [ResponseReading.Delivery]) throws(PostgresError) {
        var rows: [(delivery: ResponseReading.Delivery, attempt: APIAnswer.SendAttempt)] = []
        for delivery in deliveries {
            for attempt in delivery.attempts where attempt.date?.isStorable == true {
                guard (1...255).contains(attempt.result.unicodeScalars.count),
                    !attempt.result.utf8.contains(0), !delivery.stream.utf8.contains(0)
                else { continue }
                rows.append((delivery, attempt))
            }
        }
        for start in stride(from: 0, to: rows.count, by: 200) {
            let part = rows[start..<min(start + 200, rows.count)]
            let tuples = part.indices.map { index in
                let first = (index - start) * 7
                return "($\(first + 1), $\(first + 2), $\(first + 3), $\(first + 4),"
                    + " $\(first + 5)::timestamptz, $\(first + 6), $\(first + 7))"
            }
            try connection.query(
                """
                insert into ledger.send_attempt (stream, app_id, notification_uuid, attempted_at,
                    result, notification_type)
                select stream, app_id, uuid, attempted_at, result, type
                from (values \(tuples.joined(separator: ", ")))
                    as said (stream, bundle_id, environment, uuid, attempted_at, result, type)
                join ledger.app using (bundle_id, environment)
                on conflict (stream, app_id, notification_uuid, attempted_at) do nothing
                """,
                part.flatMap { delivery, attempt -> [Bind] in
                    [
                        .text(delivery.stream), .text(delivery.app.bundleID),
                        .text("\(delivery.app.environment)"), .text(delivery.notificationUUID),
                        .instant(milliseconds: attempt.date?.milliseconds),
                        .text(attempt.result), .text(Self.clean(delivery.notificationType)),
                    ]
                }
            )
        }
    }

    private static func clean(_ text: String?) -> String? {
        text.flatMap { $0.utf8.contains(0) ? nil : $0 }
    }

    /// The notifications that Apple sent last, the newest first.
    ///
    /// - Parameters:
    ///   - limit: how many at most.
    ///   - onlyFailed: only those of which some try failed.
    ///   - since: only those tried since then.
    /// - Returns: the notifications with all their tries.
    /// - Throws: `PostgresError`.
    package func latest(
        _ limit: Int64,
        onlyFailed: Bool,
        since: Timestamp = .earliest
    ) throws(PostgresError) -> [Delivery] {
        let rows = try connection.query(
            """
            with tried as (
                select stream, app_id, notification_uuid, min(notification_type) as type,
                    max(attempted_at) as last_at,
                    string_agg((extract(epoch from attempted_at) * 1000)::bigint::text || ' '
                        || result, chr(10) order by attempted_at) as attempts
                from ledger.send_attempt
                group by stream, app_id, notification_uuid
                having max(attempted_at) >= $1 and (not $2 or bool_or(result <> 'SUCCESS'))
                order by last_at desc, notification_uuid
                limit $3
            )
            select bundle_id, environment, notification_uuid, type, attempts,
                exists (
                    select from ledger.event where event.stream = tried.stream
                        and event.app_id = tried.app_id
                        and event.event_key = 'n:' || tried.notification_uuid)
            from tried join ledger.app using (app_id)
            order by last_at desc, notification_uuid
            """,
            [.instant(milliseconds: since.milliseconds), .bool(onlyFailed), .int(limit)]
        )
        return (0..<rows.count).map { row in
            Delivery(
                app: AppKey(
                    bundleID: rows.text(row, 0) ?? "",
                    environment: Environment(rows.text(row, 1) ?? "")
                ),
                notificationUUID: rows.text(row, 2) ?? "",
                notificationType: rows.text(row, 3),
                attempts: Self.attempts(rows.text(row, 4) ?? ""),
                isRecorded: rows.bool(row, 5) ?? false
            )
        }
    }

    private static func attempts(_ text: String) -> [Attempt] {
        text.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: " ", maxSplits: 1)
            guard parts.count == 2, let at = Int64(parts[0]) else { return nil }
            return Attempt(at: Timestamp(milliseconds: at), result: String(parts[1]))
        }
    }

    /// How tries ended since an instant: Apple's word and how often, the most frequent first.
    ///
    /// - Throws: `PostgresError`.
    package func results(since: Timestamp) throws(PostgresError) -> [(result: String, count: Int)] {
        let rows = try connection.query(
            """
            select result, count(*) from ledger.send_attempt where attempted_at >= $1
            group by result order by count(*) desc, result
            """,
            [.instant(milliseconds: since.milliseconds)]
        )
        return (0..<rows.count).map { (rows.text($0, 0) ?? "", Int(rows.int($0, 1) ?? 0)) }
    }

    /// What to do about one of Apple's words for a failure.
    package static func remedy(_ result: String) -> String {
        switch result {
        case "SUCCESS": "nothing: it was answered 200 to 206"
        case "TIMED_OUT":
            "the answer took too long: is the database slow, or a proxy in between?"
        case "TLS_ISSUE":
            "the certificate or its chain is not accepted: serve the whole chain with TLS 1.2 or "
                + "later, for the name in the URL, and see that it has not expired"
        case "CIRCULAR_REDIRECT":
            "the URL redirects: give Apple the last address, https and the exact path"
        case "NO_RESPONSE":
            "the connection was closed without an answer: is the service up, and is Apple's "
                + "network 17.0.0.0/8 let through without asking for a login?"
        case "SOCKET_ISSUE":
            "no connection came about, or it broke: check address, port (443 or above 1023) and "
                + "firewall"
        case "UNSUPPORTED_CHARSET":
            "the answer names a character set that Apple does not read: answer without a body"
        case "INVALID_RESPONSE": "what was answered is no HTTP that Apple understands"
        case "PREMATURE_CLOSE": "the connection ended within the answer: look at the proxy"
        case "UNSUCCESSFUL_HTTP_RESPONSE_CODE":
            "the answer was not 200 to 206: see `subledger refusals` for the reason; most often a "
                + "wrong app_apple_id or environment in the configuration, a login page or "
                + "password in front of the path, or this machine's clock"
        default: "Apple's word for it is not known here; see Apple's page on sendAttemptResult"
        }
    }
}
