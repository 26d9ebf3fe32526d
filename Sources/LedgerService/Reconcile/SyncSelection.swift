package import EventLog
package import Ledger
package import Postgres

/// Which subscriptions Apple is asked about.
package struct SyncSelection {
    /// Why a subscription is asked about.
    package enum Reason: String, Hashable, Sendable, CaseIterable {
        /// Its period is over and no news came, or what is shown of it is an estimate or the
        /// clock's word alone.
        case overdue
        /// Something about it does not fit together.
        case anomalous
        /// News of it came that is older than what Apple last told.
        case overtaken
        /// Because it is there.
        case all
        /// Because somebody named it.
        case named
    }

    /// A subscription to ask about.
    package struct Target: Hashable, Sendable {
        /// The app.
        package var app: AppKey
        /// Apple's `originalTransactionId`.
        package var id: String
        /// Why.
        package var reason: Reason

        /// Which one it is, whatever the reason.
        package var subscription: [String] { [app.bundleID, "\(app.environment)", id] }

        /// Makes it.
        package init(app: AppKey, id: String, reason: Reason) {
            self.app = app
            self.id = id
            self.reason = reason
        }
    }

    private let connection: Connection

    /// Works over a session that may read the read models and the log's own notes.
    package init(_ connection: Connection) { self.connection = connection }

    /// The subscriptions that have a reason and were not asked about for a while, those that were
    /// asked about longest ago first.
    ///
    /// - Parameters:
    ///   - reasons: the reasons that count.
    ///   - apps: only those of these: whoever cannot be asked about takes no place of others.
    ///   - now: our clock.
    ///   - notSince: only those last asked about before then; nil for all.
    ///   - limit: how many at most.
    /// - Returns: the subscriptions.
    /// - Throws: `PostgresError`.
    package func targets(
        _ reasons: Set<Reason>,
        of apps: [AppKey],
        now: Timestamp,
        notSince: Timestamp?,
        limit: Int64 = .max
    ) throws(PostgresError) -> [Target] {
        // A pending renewal is asked about again within the hour, anything else once a day: what
        // Apple does not know either stays as it is.
        let rows = try connection.query(
            """
            select app.bundle_id, app.environment, s.stream,
                case when coalesce(i.is_overdue, false) and $3 then 'overdue'
                    when cardinality(s.anomalies) > 0 and $4 then 'anomalous' else 'all' end
            from read_model.subscription_live as s
            join ledger.app using (app_id)
            left join lateral (
                select v.state = 'renewal_pending'
                    or v.confidence in ('estimated', 'clock', 'provisional') as is_overdue
                from read_model.entitlement_interval as v
                where v.stream = s.stream and v.app_id = s.app_id
                    and v.valid_from <= $1 and $1 < v.valid_until
                    and v.generation = (
                        select generation from read_model.current
                        where projection = 'entitlement')
                limit 1
            ) as i on true
            left join ledger.poll as p on p.stream = s.stream and p.app_id = s.app_id
                and p.source = 'subscription_statuses'
            where (app.bundle_id, app.environment) in (
                    select * from unnest($7::text[], $8::text[]))
                and (p.last_at is null or $2::timestamptz is null or p.last_at < $2)
                and ($5 or ($3 and coalesce(i.is_overdue, false))
                    or ($4 and cardinality(s.anomalies) > 0))
            order by p.last_at nulls first, s.stream, s.app_id
            limit $6
            """,
            [
                .instant(milliseconds: now.milliseconds),
                .instant(milliseconds: notSince?.milliseconds),
                .bool(reasons.contains(.overdue)), .bool(reasons.contains(.anomalous)),
                .bool(reasons.contains(.all)), .int(limit),
                .textArray(apps.map(\.bundleID)), .textArray(apps.map { "\($0.environment)" }),
            ]
        )
        return (0..<rows.count).map { row in
            Target(
                app: AppKey(
                    bundleID: rows.text(row, 0) ?? "",
                    environment: Environment(rows.text(row, 1) ?? "")
                ),
                id: rows.text(row, 2) ?? "",
                reason: Reason(rawValue: rows.text(row, 3) ?? "") ?? .all
            )
        }
    }

    /// The subscriptions of which a notification came only after Apple had been asked, though it was
    /// signed before.
    ///
    /// An answer that tells nothing new is not kept: it says what the fact before it says. News that
    /// come late may lie between the two, and then what is kept is the older of both words. Apple is
    /// asked again; its answer is newer than all, and is kept where it says something else. Where
    /// Apple did not answer it is asked again after an hour, for a day's news.
    ///
    /// - Parameters:
    ///   - apps: only those of these.
    ///   - now: our clock.
    ///   - limit: how many at most.
    /// - Returns: the subscriptions.
    /// - Throws: `PostgresError`.
    package func overtaken(
        of apps: [AppKey],
        now: Timestamp,
        limit: Int64 = .max
    ) throws(PostgresError) -> [Target] {
        let rows = try connection.query(
            """
            select app.bundle_id, app.environment, p.stream
            from ledger.poll as p
            join ledger.app using (app_id)
            where p.source = 'subscription_statuses'
                and (app.bundle_id, app.environment) in (
                    select * from unnest($1::text[], $2::text[]))
                and exists (
                    select from ledger.event as e
                    where e.stream = p.stream and e.app_id = p.app_id and e.kind = 'notification'
                        and e.signed_at < p.last_at
                        and case when coalesce(p.outcome, 'ok') = 'ok'
                            then e.recorded_at > p.last_at
                            else e.recorded_at > p.last_at - interval '1 day'
                                and p.last_at < $4::timestamptz - interval '1 hour' end)
            order by p.last_at, p.stream, p.app_id
            limit $3
            """,
            [
                .textArray(apps.map(\.bundleID)), .textArray(apps.map { "\($0.environment)" }),
                .int(limit), .instant(milliseconds: now.milliseconds),
            ]
        )
        return (0..<rows.count).map { row in
            Target(
                app: AppKey(
                    bundleID: rows.text(row, 0) ?? "",
                    environment: Environment(rows.text(row, 1) ?? "")
                ),
                id: rows.text(row, 2) ?? "",
                reason: .overtaken
            )
        }
    }

    /// The apps that have a stream of that name.
    ///
    /// - Throws: `PostgresError`.
    package func apps(having id: String) throws(PostgresError) -> [AppKey] {
        let rows = try connection.query(
            """
            select distinct app.bundle_id, app.environment
            from ledger.event join ledger.app using (app_id)
            where event.stream = $1 order by 1, 2
            """,
            [.text(id)]
        )
        return (0..<rows.count).map { row in
            AppKey(
                bundleID: rows.text(row, 0) ?? "",
                environment: Environment(rows.text(row, 1) ?? "")
            )
        }
    }
}
