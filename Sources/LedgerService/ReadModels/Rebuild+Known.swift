public import EventLog
internal import Postgres
internal import Schema

extension Rebuild {
    /// Makes the read models as they were known, in a schema of their own.
    ///
    /// The live rows and everything that reads them are left alone. Killed at any moment it leaves a
    /// schema that `generations list` shows as unfinished, and that the next try of the same name
    /// replaces.
    ///
    /// - Parameters:
    ///   - knowledge: up to where the log is read.
    ///   - name: the schema's name.
    ///   - shouldStop: asked now and then from any of the workers' threads.
    ///   - progress: told now and then, by one thread at a time.
    /// - Returns: what was done, and the prefix that was folded.
    /// - Throws: `.question` for a name that is taken or cannot be one, `.notKnown` for a position
    ///   that the log has not come to, `.rebuildRuns` while the same name is being made.
    public func run(
        known knowledge: Knowledge,
        into name: String,
        shouldStop: @escaping @Sendable () -> Bool = { false },
        progress: @escaping @Sendable (Progress) -> Void = { _ in }
    ) throws(ReadModelError) -> (report: Report, prefix: LogPrefix) {
        guard KeptSchema.isUsable(name) else {
            throw ReadModelError(
                .question,
                "\(name) cannot be the schema's name: a letter, then letters, digits and _, all of "
                    + "them small, at most 40"
            )
        }
        return try readModels("rebuild into \(name)") {
            let watch = ContinuousClock.now
            let connection = try connect()
            let prefix = try LogPrefix(knowledge, connection)
            let lock = try RebuildLock([RebuildLock.into(name)], connect())
            try Self.makeRoom(for: name, connection)
            do {
                try KeptSchema.make(name, prefix, connection)
                let schema = Roles.quoted(name)
                let build = Build(
                    generations: try start(from: prefix.position, in: schema, connection),
                    registry: try AppRegistry(recordedBy: prefix.rulesRecordedBy, connection),
                    upTo: prefix.position,
                    eventsTotal: prefix.position,
                    start: watch,
                    shouldStop: shouldStop,
                    progress: progress
                )
                try fold(build, connection)
                try buildKeys(build)
                let report = build.report(seconds: (ContinuousClock.now - watch).seconds)
                try finish(name, report, prefix, build, connection)
                lock.release()
                return (report, prefix)
            } catch {
                if cleansUp { _ = try? KeptSchema.remove(name, connect()) }
                throw error
            }
        }
    }

    /// Removes what a rebuild that was killed has left under the name; refuses what is not ours.
    private static func makeRoom(for name: String, _ connection: Connection) throws {
        let kept = try KeptSchema.all(connection).first { $0.name == name }
        if let kept, kept.finishedAt == nil {
            _ = try KeptSchema.remove(name, connection)
            return
        }
        let there = try connection.query(
            "select from pg_namespace where nspname = $1",
            [.text(name)]
        )
        guard there.count == 0 else {
            throw ReadModelError(
                .question,
                kept == nil
                    ? "there is a schema \(name) that no rebuild made; take another name"
                    : "\(name) is there already; subledger generations drop \(name) removes it"
            )
        }
    }

    private func finish(
        _ name: String,
        _ report: Report,
        _ prefix: LogPrefix,
        _ build: Build,
        _ connection: Connection
    ) throws {
        try connection.transaction { connection in
            for generation in build.generations {
                try Self.show(generation, head: prefix.position, build, connection)
            }
            try connection.query(
                """
                update read_model.kept
                set finished_at = clock_timestamp(), events = $2, subscriptions = $3
                where name = $1
                """,
                [.text(name), .int(report.events), .int(report.streams)]
            )
        }
        // The empty generation that the tables came with.
        for projection in projections {
            let empty = Generation(projection, 1, in: Roles.quoted(name))
            _ = try? empty.dropTables(connection)
        }
    }
}
