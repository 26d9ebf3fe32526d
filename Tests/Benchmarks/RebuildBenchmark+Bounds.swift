internal import Dispatch
internal import EventLog
internal import Glibc
internal import Postgres
internal import Projections
internal import Synchronization

extension RebuildBenchmark {
    /// What `body` takes.
    func cost(_ body: () throws -> Void) throws -> Cost {
        let asking = try connect()
        let before = try ProcessorTime(asking)
        let seconds = ContinuousClock.now
        try body()
        let passed = (ContinuousClock.now - seconds) / .seconds(1)
        // A session that has ended is counted when its parent has seen that.
        usleep(200_000)
        let used = try ProcessorTime(asking) - before
        return Cost(seconds: passed, own: used.own, server: used.server)
    }

    func measureReading(_ result: inout Result, _ connection: Connection) throws {
        let rows = try connection.query("select part from ledger.slices('ledger.fact')")
        let parts = (0..<rows.count).map { rows.text($0, 0) ?? "" }
        result.copyOut = try cost {
            try spread(jobs: parts.count) { job, connection in
                try connection.copyOut("copy \(parts[job]) to stdout (format binary)") {
                    (_: inout BinaryRow) throws(PostgresError) in
                }
            }
        }
        result.copyInOrder = try cost {
            try spread(jobs: parts.count) { job, connection in
                let query = "select * from \(parts[job]) order by stream, app_id, position"
                try connection.copyOut("copy (\(query)) to stdout (format binary)") {
                    (_: inout BinaryRow) throws(PostgresError) in
                }
            }
        }
        let slices = try LogReader(connection).stretches()
        result.decoding = try cost {
            try spread(jobs: slices.count) { job, connection in
                try LogReader(connection).forEachStream(in: slices[job], atMost: 1000) { _, _ in }
            }
        }
    }

    /// Sends a sample of a table's rows again and again, until there are as many as it has.
    func copyIn(_ connection: Connection) throws -> Cost {
        var sum = Cost()
        for source in try partitions(connection) {
            let sink = "read_model.benchmark_rows"
            let columns = source.columns.joined(separator: ", ")
            let total = try connection.query("select count(*) from \(source.name)").int(0, 0) ?? 0
            let sample = try sampleRows(of: source.name, columns, connection)
            guard sample.rowCount > 0 else { continue }
            try connection.execute(
                "create table \(sink) (like \(source.name) including defaults)"
            )
            let rounds = Int(total) / sample.rowCount + 1
            let share = Double(total) / Double(rounds * sample.rowCount)
            let cost = try cost {
                try spread(jobs: rounds) { _, connection in
                    try connection.copyIn(
                        "copy \(sink) (\(columns)) from stdin (format binary)"
                    ) { try $0.write(sample) }
                }
            }
            sum =
                sum
                + Cost(
                    seconds: share * cost.seconds,
                    own: share * cost.own,
                    server: share * cost.server
                )
            try connection.execute("drop table \(sink)")
        }
        return sum
    }

    /// Builds every index of the live rows once more.
    func keys(_ connection: Connection) throws -> Cost {
        var statements: [String] = []
        for source in try partitions(connection) {
            let rows = try connection.query(
                """
                select regexp_replace(pg_get_indexdef(indexrelid), ' INDEX \\S+ ON ',
                    ' INDEX benchmark_' || indexrelid || ' ON ')
                from pg_index where indrelid = $1::text::regclass
                """,
                [.text(source.name)]
            )
            statements += (0..<rows.count).compactMap { rows.text($0, 0) }
        }
        let cost = try cost {
            try spread(jobs: statements.count) { [statements] job, connection in
                try connection.execute("set maintenance_work_mem = '128MB'; \(statements[job])")
            }
        }
        let made = try connection.query(
            "select relname::text from pg_class where relname like 'benchmark\\_%' and relkind = 'i'"
        )
        for row in 0..<made.count {
            try connection.execute("drop index read_model.\(made.text(row, 0) ?? "")")
        }
        return cost
    }

    func measureSizes(_ result: inout Result, _ connection: Connection) throws {
        let facts = try connection.query(
            """
            select sum(pg_total_relation_size(to_regclass(part)))::bigint
            from ledger.slices('ledger.fact')
            """
        )
        result.factBytes = facts.int(0, 0) ?? 0
        for source in try partitions(connection) {
            let size = try connection.query(
                "select pg_total_relation_size($1::text::regclass)",
                [.text(source.name)]
            )
            result.rowBytes += size.int(0, 0) ?? 0
        }
    }

    /// The tables that the views show.
    private func partitions(
        _ connection: Connection
    ) throws -> [(name: String, columns: [String])] {
        try Catalogue.all.flatMap { projection in
            let current = try connection.query(
                "select generation from read_model.current where projection = $1",
                [.text(projection.name)]
            )
            let generation = current.int(0, 0) ?? 0
            return projection.tables.map {
                ("read_model.\($0.name)_g\(generation)", $0.columns)
            }
        }
    }

    private func sampleRows(
        of source: String,
        _ columns: String,
        _ connection: Connection
    ) throws -> RowBuffer {
        let rows = try connection.query("select \(columns) from \(source) limit 10000")
        var sample = RowBuffer()
        for row in 0..<rows.count { sample.row(encoded: rows.copyBytes(row)[...]) }
        return sample
    }

    /// Has some sessions do the jobs together.
    private func spread(
        jobs count: Int,
        _ job: @Sendable (Int, Connection) throws -> Void
    ) throws {
        let next = Atomic(0)
        let failure = Mutex<(any Error)?>(nil)
        DispatchQueue.concurrentPerform(iterations: options.workers) { _ in
            do {
                let connection = try connect()
                while true {
                    let number = next.add(1, ordering: .relaxed).oldValue
                    guard number < count else { return }
                    try job(number, connection)
                }
            } catch {
                failure.withLock { $0 = $0 ?? error }
            }
        }
        if let failure = failure.withLock({ $0 }) { throw failure }
    }
}
