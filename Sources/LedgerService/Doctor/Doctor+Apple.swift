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
        return diagnoses + (try history())
    }

    /// Up to when the list of what Apple sent was read.
    private func history() throws -> [Diagnosis] {
        let rows = try connection.query(
            """
            select bundle_id, environment, max(window_to)
            from ledger.history_window join ledger.app using (app_id)
            where not only_failures group by 1, 2 order by 1, 2
            """
        )
        return (0..<rows.count).compactMap { row in
            guard let end = rows.timestamp(row, 2) else { return nil }
            let name = "\(rows.text(row, 0) ?? "") in \(rows.text(row, 1) ?? "")"
            let isLate = end.adding(.hours(6)) < now()
            return Diagnosis(
                "history",
                isLate ? .warn : .ok,
                "what Apple sent for \(name) is known up to \(end)",
                remedy: isLate
                    ? "subledger backfill reads the rest; serve does so by itself" : nil
            )
        }
    }
}
