internal import EventLog
internal import Postgres
internal import Projections

/// Compares the rows of the read models with what the log gives, by rebuilding them.
struct ReadModelCheck {
    /// How many subscriptions are named that differ.
    static let namedMax = 5

    private let connection: Connection
    private let connect: @Sendable () throws -> Connection

    /// Makes a check.
    ///
    /// - Parameters:
    ///   - connection: a session in which temporary tables may be made.
    ///   - connect: opens sessions that may write the read models.
    init(_ connection: Connection, _ connect: @escaping @Sendable () throws -> Connection) {
        self.connection = connection
        self.connect = connect
    }

    /// Rebuilds and compares.
    func run() throws -> (isOK: Bool, text: String) {
        let before = try Current.read(connection)
        let absent = ReadModels.names.filter { name in
            !before.contains { $0.projection == name }
        }
        guard absent.isEmpty else {
            return (false, "there are no rows of \(absent.joined(separator: ", "))")
        }
        let waiting = try connection.query("select count(*) from ledger.mark").int(0, 0) ?? 0
        // What had not been folded when the backup was made is no difference.
        if waiting > 0 { _ = try Projector(connect()).project() }
        let current = try Current.read(connection)
        for generation in try generations(current) {
            for table in generation.tables { try keepDigests(generation, table) }
        }
        let report = try Rebuild(connect: connect).run()
        var differing: [String] = []
        var rows: Int64 = 0
        for readModel in report.readModels {
            rows += readModel.digest.rows
            guard let projection = Catalogue.projection(named: readModel.name) else { continue }
            let generation = Generation(projection, readModel.generation)
            for table in generation.tables { differing += try differences(generation, table) }
        }
        guard differing.isEmpty else {
            let named = Set(differing).sorted()
            let more = named.count > Self.namedMax ? " and \(named.count - Self.namedMax) more" : ""
            return (
                false,
                "other rows than the log gives: "
                    + named.prefix(Self.namedMax).joined(separator: ", ") + more
            )
        }
        return (true, "\(rows) rows of \(report.streams) streams rebuilt and equal")
    }

    private func generations(_ current: [Current]) throws -> [Generation] {
        current.compactMap { current in
            Catalogue.projection(named: current.projection).map {
                Generation($0, current.generation)
            }
        }
    }

    private func digests(_ generation: Generation, _ table: Table) -> String {
        """
        select app_id, stream, count(*) as rows,
            sum(hashtextextended(row(\(table.columns.joined(separator: ", ")))::text, 0)::numeric)
                as digest
        from \(generation.partition(table)) group by app_id, stream
        """
    }

    private func keepDigests(_ generation: Generation, _ table: Table) throws {
        try connection.execute(
            "drop table if exists kept_\(table.name); "
                + "create temporary table kept_\(table.name) as \(digests(generation, table))"
        )
    }

    /// The streams whose rows of a table are others than before.
    private func differences(_ generation: Generation, _ table: Table) throws -> [String] {
        let rows = try connection.query(
            """
            select coalesce(a.stream, b.stream)
            from kept_\(table.name) a
            full join (\(digests(generation, table))) b using (app_id, stream)
            where (a.rows, a.digest) is distinct from (b.rows, b.digest)
            order by 1 limit 100
            """
        )
        return (0..<rows.count).map { "\(rows.text($0, 0) ?? "") (\(table.name))" }
    }
}
