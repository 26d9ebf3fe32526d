internal import EventLog
package import Postgres

/// When the last notification of each environment was stored.
///
/// An endpoint that refuses everything, or that nothing reaches any more, looks healthy from
/// inside: only the age of what it last took tells.
package struct Silence: Hashable, Sendable {
    /// For how long nothing may come, by environment, in hours; nil for ever.
    package struct Limits: Hashable, Sendable {
        /// In Production.
        package var productionHours: Int64? = 48
        /// In Sandbox, where nobody may test for weeks.
        package var sandboxHours: Int64?

        /// The usual limits.
        package init() {}

        /// The limit of an environment in seconds; nil for none.
        func seconds(_ environment: String) -> Int64? {
            switch environment {
            case "Production": productionHours.map { $0 * 3600 }
            case "Sandbox": sandboxHours.map { $0 * 3600 }
            default: nil
            }
        }
    }

    /// How many of the newest events are looked at; a longer search would cost at each question.
    static let eventsMax: Int64 = 20_000

    /// The environment.
    package var environment: String
    /// How many seconds ago the last one was stored, or more; nil where there never was one.
    package var ageSeconds: Int64?
    /// Whether it was longer ago than `ageSeconds` says: none is among the newest events.
    package var isOlder: Bool

    /// What the log says of each environment that it knows an app of.
    ///
    /// - Parameter connection: a session that may read the log.
    /// - Returns: one for each, by name.
    /// - Throws: `PostgresError`.
    package static func all(_ connection: Connection) throws(PostgresError) -> [Silence] {
        let rows = try connection.query(
            """
            with head as (select position from ledger.head),
            newest as (
                select a.environment, (
                    select e.recorded_at from ledger.event e
                    where e.kind = 'notification'
                        and e.app_id in (
                            select b.app_id from ledger.app b where b.environment = a.environment)
                        and e.position > head.position - $1
                    order by e.position desc limit 1
                ) as at
                from (select distinct environment from ledger.app) a cross join head
            )
            select environment, floor(extract(epoch from now() - coalesce(at, (
                    select e.recorded_at from ledger.event e cross join head
                    where e.position = head.position - $1 + 1
                ))))::bigint,
                at is null
            from newest order by environment
            """,
            [.int(eventsMax)]
        )
        return (0..<rows.count).map { row in
            Silence(
                environment: rows.text(row, 0) ?? "",
                ageSeconds: rows.int(row, 1).map { max(0, $0) },
                isOlder: rows.bool(row, 2) ?? false
            )
        }
    }

    /// The age in words.
    var text: String {
        guard let ageSeconds else { return "no notification was ever stored" }
        let hours = ageSeconds / 3600
        let age =
            hours >= 48
            ? "\(hours / 24) days" : hours >= 2 ? "\(hours) hours" : "\(ageSeconds / 60) minutes"
        return isOlder
            ? "the last notification was stored more than \(age) ago"
            : "the last notification was stored \(age) ago"
    }
}
