internal import EventLog
internal import Ledger
internal import Postgres
internal import Projections

extension Rebuild {
    /// Folds what came since `from` until little is behind, then the rest with projectors shut
    /// out, and swaps.
    ///
    /// Whole streams are folded again, so it does not matter whether the log was read before or
    /// after an event of theirs was committed.
    func catchUp(_ build: Build, from: Int64, _ connection: Connection) throws {
        try build.enter(.catchUp)
        let start = ContinuousClock.now
        defer { build.add(Times(catchUp: (ContinuousClock.now - start).seconds)) }
        var registry = build.registry
        var position = from
        while true {
            let head = try Self.head(connection)
            let behind = try Self.changedStreams(after: position, upTo: head, connection)
            if behind.count > Self.swapBehindMax {
                try fold(behind, registry, build, connection)
                position = head
                continue
            }
            let swapped = try Retry.whileLocked {
                try swap(build, after: position, registry, connection)
            }
            if swapped { return }
            // Rules changed, or much came at once: what they touch is folded first.
            let new = try AppRegistry(connection)
            for app in new.apps.values where registry.apps[app.id] != app {
                try fold(Self.streams(ofApp: app.id, connection), new, build, connection)
            }
            registry = new
        }
    }

    /// Makes the swap, unless more is behind than may be folded meanwhile.
    private func swap(
        _ build: Build,
        after position: Int64,
        _ registry: AppRegistry,
        _ connection: Connection
    ) throws -> Bool {
        try connection.transaction(Projector.begin) { connection in
            try connection.execute("set local lock_timeout = '2s'")
            // Projectors at work finish, others wait: from here on nothing is folded but here.
            _ = try Current.read(connection, lock: "for update")
            let head = try Self.head(connection)
            let behind = try Self.changedStreams(after: position, upTo: head, connection)
            guard behind.count <= Self.swapBehindMax, try AppRegistry(connection) == registry else {
                return false
            }
            let start = ContinuousClock.now
            try apply(behind, registry, build, connection)
            for key in build.report(seconds: 0).tooLong {
                try Projector.park(key, connection)
            }
            for generation in build.generations {
                try Self.show(generation, head: head, build, connection)
            }
            if projections.count == ReadModels.names.count {
                try Self.endMarks(upTo: head, connection)
            }
            build.add(Times(swap: (ContinuousClock.now - start).seconds))
            return true
        }
    }

    /// Ends the marks of which all read models hold what they stand for.
    ///
    /// Whoever marks subscriptions for rules that changed waits for `read_model.current`, which is
    /// locked here, and these rules are the newest. What is parked keeps its marks: a projector
    /// that can fold it takes it off the list with them.
    private static func endMarks(upTo head: Int64, _ connection: Connection) throws {
        try connection.query(
            """
            delete from ledger.mark m
            where m.position <= $1 and not exists (
                select from read_model.parked p
                where p.stream = m.stream and p.app_id = m.app_id
            )
            """,
            [.int(head)]
        )
    }

    /// Has the views of its schema show a generation.
    static func show(
        _ generation: Generation,
        head: Int64,
        _ build: Build,
        _ connection: Connection
    ) throws {
        let report = build.report(seconds: 0)
        let key: [Bind] = [.text(generation.projection), .int(Int64(generation.number))]
        try connection.query(
            """
            update \(generation.schema).generation set state = 'retired'
            where projection = $1 and state = 'live'
            """,
            [.text(generation.projection)]
        )
        try connection.query(
            """
            update \(generation.schema).generation
            set state = 'live', known_to_position = $3, events = $4, subscriptions = $5,
                finished_at = clock_timestamp()
            where projection = $1 and generation = $2
            """,
            key + [.int(head), .int(report.events), .int(report.streams)]
        )
        try connection.query(
            """
            insert into \(generation.schema).current (projection, generation, version, decoder, swapped_at)
            select projection, generation, version, decoder, clock_timestamp()
            from \(generation.schema).generation where projection = $1 and generation = $2
            on conflict (projection) do update
            set generation = excluded.generation, version = excluded.version,
                decoder = excluded.decoder, swapped_at = excluded.swapped_at
            """,
            key
        )
    }

    // MARK: - Folding single streams

    private func fold(
        _ keys: [SubscriptionKey],
        _ registry: AppRegistry,
        _ build: Build,
        _ connection: Connection
    ) throws {
        var rest = keys[...]
        while !rest.isEmpty {
            let batch = Array(rest.prefix(Projector.batchSize))
            rest = rest.dropFirst(batch.count)
            try connection.transaction(Projector.begin) { try apply(batch, registry, build, $0) }
            try build.add(events: 0, streams: 0)
        }
    }

    /// Brings the rows of some streams up to date in the new generations.
    private func apply(
        _ keys: [SubscriptionKey],
        _ registry: AppRegistry,
        _ build: Build,
        _ connection: Connection
    ) throws {
        let reader = LogReader(connection)
        var folder = StreamFolder(
            build.generations,
            registry,
            try Withdrawals(connection)
        )
        try reader.forEachStream(
            among: keys,
            atMost: Projector.streamEventsMax + 1
        ) { key, events in
            guard events.count <= Projector.streamEventsMax else { return build.leaveOut(key) }
            folder.add(events, of: key)
        }
        for (index, generation) in build.generations.enumerated() {
            var difference = RowDifference()
            try difference.apply(folder.rows[index], of: keys, to: generation, over: connection)
            build.add(
                difference.insertedRows,
                removed: difference.deletedRows,
                generation: index
            )
        }
    }

    private static func changedStreams(
        after first: Int64,
        upTo last: Int64,
        _ connection: Connection
    ) throws -> [SubscriptionKey] {
        guard last > first else { return [] }
        let changed = keys(
            try connection.query(
                """
                select distinct stream, app_id from ledger.event
                where position > $1 and position <= $2
                """,
                [.int(first), .int(last)]
            )
        )
        let concerned = keys(
            try Withdrawals.subscriptions(after: first, upTo: last, connection)
        )
        return concerned.isEmpty ? changed : Array(Set(changed + concerned)).sorted()
    }

    private static func streams(
        ofApp appID: Int32,
        _ connection: Connection
    ) throws -> [SubscriptionKey] {
        keys(
            try connection.query(
                "select distinct stream, app_id from ledger.fact where app_id = $1",
                [.int(Int64(appID))]
            )
        )
    }

    private static func keys(_ rows: Rows) -> [SubscriptionKey] {
        (0..<rows.count).map { row in
            SubscriptionKey(
                appID: Int32(rows.int(row, 1) ?? 0),
                stream: rows.text(row, 0) ?? ""
            )
        }
    }
}
