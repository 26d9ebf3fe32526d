internal import EventLog
public import Postgres
internal import Projections

extension Rebuild {
    /// Why rebuilt rows may grant other access than the live ones: another version of the program,
    /// or rules that were recorded since the live rows were built; empty where there is no reason.
    ///
    /// The first rules of an app are none: nothing was granted before them.
    public static func raised(_ connection: Connection) throws(ReadModelError) -> [String] {
        try readModels("look for reasons to compare first") {
            var reasons: [String] = []
            let current = try Current.read(connection).first {
                $0.projection == Entitlement.name && $0.version != 0
            }
            if let current {
                if current.version != Entitlement.version {
                    reasons.append(
                        "the live rows are of version \(current.version), these will be of "
                            + "version \(Entitlement.version)"
                    )
                }
                if current.decoder != FactSource.current.version {
                    reasons.append(
                        "the live rows were made from what decoder \(current.decoder) read, these "
                            + "will be from decoder \(FactSource.current.version)"
                    )
                }
            }
            let rows = try connection.query(
                """
                select r.what || ' ' || r.version || ' of ' || a.bundle_id || ' ('
                    || a.environment || ') was recorded since the live rows were built'
                from (
                    select 'access policy' as what, app_id, version, recorded_at
                    from ledger.access_policy
                    union all
                    select 'configuration', app_id, version, recorded_at from ledger.app_rules
                ) r
                join ledger.app a on a.app_id = r.app_id
                where r.version > 1 and r.recorded_at > (
                    select g.started_at
                    from read_model.generation g
                    join read_model.current c
                        on c.projection = g.projection and c.generation = g.generation
                    where c.projection = 'entitlement'
                )
                order by r.recorded_at, 1
                """
            )
            return reasons + (0..<rows.count).map { rows.text($0, 0) ?? "" }
        }
    }
}
