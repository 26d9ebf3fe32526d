package import Ledger
package import Postgres

/// What somebody should look at about extensions.
package struct ExtensionAlerts: Hashable, Sendable {
    /// Extensions that nobody here asked for, signed within the last seven days.
    ///
    /// Those of family members and seats are left out: Apple refuses to extend them by themselves,
    /// so they followed the purchaser's.
    package var external = 0
    /// Extensions that Apple answered to have done a day ago or longer, and has not signed.
    package var unconfirmed = 0
    /// Requests that were sent an hour ago or longer, and nobody knows what became of them.
    package var undecided = 0

    /// How far back extensions that nobody asked for are counted.
    package static let externalReach = Milliseconds.days(7)
    /// How long Apple's signature may take.
    package static let confirmationMax = Milliseconds.hours(24)
    /// How long a request may be without an outcome.
    package static let decisionMax = Milliseconds.hours(1)

    /// Nothing to look at.
    package init() {}

    /// Looks.
    ///
    /// - Parameters:
    ///   - connection: a session that may read everything.
    ///   - now: our clock.
    /// - Throws: `PostgresError`.
    package init(_ connection: Connection, now: Timestamp) throws(PostgresError) {
        func before(_ duration: Milliseconds) -> Bind {
            .instant(milliseconds: now.milliseconds - duration.rawValue)
        }
        let rows = try connection.query(
            """
            select
                (select count(*) from read_model.extension_record_explained x
                    where x.outcome = 'external' and x.mass_request_identifier is null
                        and x.at > $1
                        and x.ownership not in ('FAMILY_SHARED', 'ASSIGNED')),
                (select count(*) from read_model.extension_record_live r
                    where r.outcome = 'accepted' and r.scope = 'single'
                        and coalesce(r.resolved_at, r.answered_at) < $2),
                (select count(*) from read_model.extension_record_live r
                    where r.outcome = 'unknown' and r.is_open and r.submitted_at < $3)
            """,
            [before(Self.externalReach), before(Self.confirmationMax), before(Self.decisionMax)]
        )
        external = Int(rows.int(0, 0) ?? 0)
        unconfirmed = Int(rows.int(0, 1) ?? 0)
        undecided = Int(rows.int(0, 2) ?? 0)
    }

    /// One of the numbers, with what is said of it.
    struct Entry {
        /// The stable name: of the log line, and after `subledger_` of the metric.
        var name: String
        /// How many.
        var count: Int
        /// What is counted.
        var help: String
        /// What to do.
        var remedy: String
    }

    /// The numbers in their order.
    var entries: [Entry] {
        [
            Entry(
                name: "extensions_external",
                count: external,
                help: "Extensions of the last 7 days that nobody here asked for.",
                remedy:
                    "select * from read_model.unattributed_extension: who has a key of Apple's, "
                    + "or extends in App Store Connect?"
            ),
            Entry(
                name: "extensions_unconfirmed",
                count: unconfirmed,
                help: "Extensions that Apple answered to have done a day ago or longer and has not "
                    + "signed.",
                remedy: "subledger audit extensions --outcome accepted, then subledger sync ID; do "
                    + "notifications arrive?"
            ),
            Entry(
                name: "extensions_undecided",
                count: undecided,
                help: "Requests to extend that were sent an hour ago or longer and whose outcome "
                    + "nobody knows.",
                remedy: "subledger extend resolve says of each what is missing"
            ),
        ]
    }

    /// Adds the numbers to a page.
    func add(to page: inout MetricsPage) {
        for entry in entries {
            page.gauge("subledger_\(entry.name)", entry.help, Double(entry.count))
        }
    }

    /// What is more than it was before.
    func grown(since before: ExtensionAlerts?) -> [Entry] {
        let old = before?.entries.map(\.count) ?? [0, 0, 0]
        return zip(entries, old).filter { $0.count > $1 }.map(\.0)
    }
}

extension Doctor {
    /// Extensions that nobody asked for, or that are not settled.
    func extensions() throws -> [Diagnosis] {
        let found = try ExtensionAlerts(connection, now: now()).entries.filter { $0.count > 0 }
        guard !found.isEmpty else {
            return [Diagnosis("extensions", .ok, "all are asked for here, and settled")]
        }
        return found.map { entry in
            Diagnosis("extensions", .warn, "\(entry.count): \(entry.help)", remedy: entry.remedy)
        }
    }
}
