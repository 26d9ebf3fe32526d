internal import AppStore
internal import EventLog
internal import Ledger
internal import Postgres

extension Doctor {
    /// How far back Apple's tries are looked at.
    static let deliveriesReach = Milliseconds.days(7)

    /// What Apple says of its own tries to reach us, and how far that is known.
    func appleDeliveries() throws -> [Diagnosis] {
        let since = now().adding(Milliseconds(rawValue: -Self.deliveriesReach.rawValue))
        let results = try SendAttempts(connection).results(since: since)
        var diagnoses: [Diagnosis] = []
        if results.isEmpty {
            diagnoses.append(
                Diagnosis("apple_deliveries", .ok, "Apple was not asked how its deliveries went")
            )
        }
        let good = results.filter { $0.result == "SUCCESS" }.reduce(0) { $0 + $1.count }
        let all = results.reduce(0) { $0 + $1.count }
        if all > 0, good == all {
            diagnoses.append(
                Diagnosis("apple_deliveries", .ok, "Apple reached us \(good) times in 7 days")
            )
        }
        for (result, count) in results where result != "SUCCESS" {
            diagnoses.append(
                Diagnosis(
                    "apple_deliveries",
                    .warn,
                    "\(count) of Apple's \(all) tries in 7 days ended with \(result)",
                    remedy: SendAttempts.remedy(result)
                )
            )
        }
        return try diagnoses + refused() + unanswered() + history()
    }

    /// Apps whose notifications could not be asked for the last time.
    private func unanswered() throws -> [Diagnosis] {
        let rows = try connection.query(
            """
            select bundle_id, environment, outcome, last_at
            from ledger.poll join ledger.app using (app_id)
            where stream = 'app:' || bundle_id and source = 'notification_history'
                and outcome not in ('ok', 'rejected')
            order by 1, 2
            """
        )
        return (0..<rows.count).map { row in
            let outcome = rows.text(row, 2) ?? ""
            return Diagnosis(
                "apple_answers",
                .warn,
                "Apple's list for \(rows.text(row, 0) ?? "") in \(rows.text(row, 1) ?? "") could not "
                    + "be read at \(rows.timestamp(row, 3) ?? .earliest): \(outcome)",
                remedy: "subledger backfill says what is wrong; 401 is a key that Apple refuses"
            )
        }
    }

    /// Answers of Apple's of which something was not taken.
    private func refused() throws -> [Diagnosis] {
        let rows = try connection.query(
            """
            select bundle_id, environment, count(*)
            from ledger.poll join ledger.app using (app_id)
            where outcome = 'rejected' group by 1, 2 order by 1, 2
            """
        )
        return (0..<rows.count).map { row in
            Diagnosis(
                "apple_answers",
                .warn,
                "\(rows.int(row, 2) ?? 0) of Apple's last answers about \(rows.text(row, 0) ?? "") in "
                    + "\(rows.text(row, 1) ?? "") hold texts that were not taken",
                remedy: "subledger sync --all and subledger backfill say why"
            )
        }
    }

    /// Up to when the list of what Apple sent was read, and what of it was not.
    private func history() throws -> [Diagnosis] {
        let rows = try connection.query(
            """
            select bundle_id, environment
            from ledger.history_window join ledger.app using (app_id)
            where not only_failures group by 1, 2 order by 1, 2
            """
        )
        return try (0..<rows.count).flatMap { row -> [Diagnosis] in
            let app = AppKey(
                bundleID: rows.text(row, 0) ?? "",
                environment: Environment(rows.text(row, 1) ?? "")
            )
            let book = WindowBook(connection)
            guard let end = try book.end(of: app) else { return [] }
            let name = "\(app.bundleID) in \(app.environment)"
            let holes = try book.holes(
                of: app,
                since: NotificationHistoryQuery.earliestStart(in: app.environment, now: now())
            )
            if let hole = holes.first {
                return [
                    Diagnosis(
                        "history",
                        .warn,
                        "what Apple sent for \(name) from \(hole) was not read, or not all taken",
                        remedy: "subledger backfill reads it and says what is wrong with it"
                    )
                ]
            }
            let isLate = end.adding(.hours(6)) < now()
            return [
                Diagnosis(
                    "history",
                    isLate ? .warn : .ok,
                    "what Apple sent for \(name) is known up to \(end)",
                    remedy: isLate
                        ? "subledger backfill reads the rest; serve does so by itself" : nil
                )
            ]
        }
    }
}
