internal import EventLog
internal import Ledger
internal import Postgres
internal import Projections

extension Projector {
    /// How a batch begins: what is read is looked up by its key.
    ///
    /// A server that has no statistics yet (a new database, or one that has crashed) would rather
    /// read whole tables for that. The same few statements come with every batch, so that one plan
    /// for each is enough: planning took longer than a small batch.
    ///
    /// A program that stands still in the middle keeps its claims and a swap away for a minute and a half;
    /// then the server ends its session.
    static let begin =
        "begin; set local enable_seqscan = off; set local enable_hashjoin = off;"
        + " set local enable_mergejoin = off; set local max_parallel_workers_per_gather = 0;"
        + " set local plan_cache_mode = force_generic_plan;"
        + " set local idle_in_transaction_session_timeout = '90s'"

    /// Gives every stream its row in `read_model.claim`, in a transaction of its own: an insert
    /// that is not committed would make other projectors wait.
    func makeClaimable(_ keys: [SubscriptionKey]) throws(PostgresError) {
        _ = try connection.query(
            prepared: """
                    insert into read_model.claim (stream, app_id)
                    select * from unnest($1::text[], $2::integer[]) as k (stream, app_id)
                    on conflict do nothing
                """,
            Self.binds(keys)
        )
    }

    func claim(_ candidates: [Candidate]) throws(PostgresError) -> [Candidate] {
        let rows = try connection.query(
            prepared: """
                    select stream, app_id from read_model.claim
                    where (stream, app_id) in (select * from unnest($1::text[], $2::integer[]))
                    order by stream, app_id
                    for update skip locked
                """,
            Self.binds(candidates.map(\.key))
        )
        let claimed = Set(
            (0..<rows.count).map { row in
                SubscriptionKey(
                    appID: Int32(rows.int(row, 1) ?? 0),
                    stream: rows.text(row, 0) ?? ""
                )
            }
        )
        return candidates.filter { claimed.contains($0.key) }
    }

    /// The generations that the views show, kept from being swapped until the transaction ends.
    func liveGenerations() throws -> [Generation] {
        let current = try Current.read(connection, lock: "for share")
        return try Catalogue.all.map { projection in
            guard let row = current.first(where: { $0.projection == projection.name }) else {
                throw ReadModelError(
                    .schema,
                    "the read model \(projection.name) is not there; run: subledger migrate"
                )
            }
            guard row.version == projection.version, row.decoder == FactSource.current.version
            else {
                throw ReadModelError(
                    .outOfDate,
                    "the read model \(projection.name) was made by another version of this "
                        + "program; run: subledger rebuild"
                )
            }
            return Generation(projection, row.generation)
        }
    }

    /// Takes over the generations that the migration made, as long as nothing was ever folded:
    /// then every stream still has its mark, and an empty generation is right for any version.
    func adoptEmptyGenerations() throws {
        for row in try Current.read(connection) where row.version == 0 {
            guard let projection = Catalogue.projection(named: row.projection) else { continue }
            let binds: [Bind] = [
                .text(row.projection), .int(Int64(projection.version)),
                .int(Int64(FactSource.current.version)),
            ]
            try connection.transaction { connection in
                let updated = try connection.query(
                    """
                    update read_model.current set version = $2, decoder = $3
                    where projection = $1 and version = 0
                        and not exists (select from read_model.claim where app_id > 0)
                    """,
                    binds
                )
                guard updated.affected == 1 else { return }
                try connection.query(
                    """
                    update read_model.generation set version = $2, decoder = $3
                    where projection = $1 and generation = $4
                    """,
                    binds + [.int(Int64(row.generation))]
                )
            }
        }
    }

    func finish(_ folded: [Candidate]) throws(PostgresError) {
        let binds = Self.binds(folded.map(\.key)) + [.intArray(folded.map(\.position))]
        _ = try connection.query(
            prepared: """
                    delete from ledger.mark m
                    using unnest($1::text[], $2::integer[], $3::bigint[]) as k (stream, app_id, position)
                    where m.stream = k.stream and m.app_id = k.app_id
                        -- Not by the index of positions, whatever the planner thinks of so few rows.
                        and m.position + 0 <= k.position
                """,
            binds
        )
        _ = try connection.query(
            prepared: """
                    delete from read_model.parked
                    where (stream, app_id) in (select * from unnest($1::text[], $2::integer[]))
                """,
            Self.binds(folded.map(\.key))
        )
    }

    func park(_ candidate: Candidate, _ failure: ReadModelError) throws(PostgresError) {
        try Self.park(candidate.key, at: candidate.position, failure, connection)
        report.parked.append(
            Staleness.Parked(
                key: candidate.key,
                position: candidate.position,
                error: failure.description
            )
        )
    }

    static func binds(_ keys: [SubscriptionKey]) -> [Bind] {
        [.textArray(keys.map(\.stream)), .intArray(keys.map { Int64($0.appID) })]
    }
}
