internal import Benchmarks
internal import EventLog
internal import LedgerService
internal import Postgres

/// `subledger bench …`: measurements against bounds taken in the same run.
enum BenchCommands {
    static let ingest = Command(
        name: "bench ingest",
        summary: "Measure ingest against verification alone and raw COPY.",
        options: [
            .value("--subscriptions", "N", "how many are simulated (default 2000)")
        ],
        details: "It works in a database of its own on the embedded server and drops it.",
        run: { arguments in
            _ = try arguments.operands()
            let count = try arguments.integer("--subscriptions", in: 1...1_000_000) ?? 2000
            try inScratchDatabase { sessions, output in
                let result = try IngestBenchmark { try sessions.open() }
                    .run(subscriptions: Int(count)) { say($0) }
                try output.write(IngestBenchmark.text(result))
            }
            return .done
        }
    )

    static let verify = Command(
        name: "bench verify",
        summary: "Measure verification against openssl speed.",
        options: [
            .value("--seconds", "N", "how long each figure is measured (default 1)"), .json,
        ],
        details: "On one core, with made-up certificates; no database is needed.",
        run: { arguments in
            _ = try arguments.operands()
            let seconds = try arguments.integer("--seconds", in: 1...60) ?? 1
            say("verifying")
            let output = Output.standard()
            let lines = VerifyBenchmark.run(seconds: Double(seconds))
            if arguments.has("--json") {
                try output.line(json(lines))
            } else {
                for line in lines { try output.line(line.text) }
            }
            try output.flush()
            return .done
        }
    )

    static let fold = Command(
        name: "bench fold",
        summary: "Measure the fold and compare it with the simulator's evaluator.",
        options: [
            .value("--subscriptions", "N", "how many are compared (default 10000)"),
            .value("--seed", "S", "equal seeds compare equal lives (default 1)"),
            .value("--seconds", "N", "how long each figure is measured (default 1)"),
        ],
        details: "On one core; no database is needed. Exit code 5 where the two disagree.",
        run: { arguments in
            _ = try arguments.operands()
            let count = try arguments.integer("--subscriptions", in: 1...10_000_000) ?? 10_000
            let seed = try arguments.integer("--seed", in: 0...Int64.max) ?? 1
            let seconds = try arguments.integer("--seconds", in: 1...60) ?? 1
            let output = Output.standard()
            say("folding")
            for line in FoldBenchmark.run(seconds: Double(seconds)) { try output.line(line.text) }
            say("comparing")
            let comparison = FoldComparison(subscriptions: Int(count), seed: UInt64(seed))
            try output.line(
                "compared \(comparison.subscriptions) subscriptions, \(comparison.events) events,"
                    + " \(comparison.lost) lost: \(comparison.differing) differ"
            )
            for difference in comparison.differences { try output.line("  " + difference) }
            try output.flush()
            return comparison.differing == 0 ? .done : .integrity
        }
    )

    static let kills = Command(
        name: "bench rebuild-kills",
        summary: "Kill rebuilds at random moments, with readers and appends all the while.",
        options: [
            .value("--kills", "N", "how many (default 200)"),
            .value("--subscriptions", "N", "with ten events each (default 2000)"),
            .value("--seed", "S", "equal seeds draw equal moments (default 1)"),
        ],
        details: """
            It works in a database of its own on the embedded server and drops it. Readers must see
            one whole generation at any time, also in one long transaction; the next rebuild begins
            clean, and its rows are right. Exit code 5 and the broken promises otherwise.
            """,
        run: { arguments in
            _ = try arguments.operands()
            let kills = Int(try arguments.integer("--kills", in: 1...100_000) ?? 200)
            let count = Int(try arguments.integer("--subscriptions", in: 10...1_000_000) ?? 2000)
            let seed = UInt64(try arguments.integer("--seed", in: 0...Int64.max) ?? 1)
            var isKept = true
            try inScratchDatabase { sessions, output in
                var options = RebuildKills.Options(
                    kills: kills,
                    seed: seed,
                    program: ChaosCommand.program(),
                    conninfo: sessions.conninfo,
                    folder: "/"
                )
                options.subscriptions = count
                let report = try RebuildKills(options) { try sessions.open() }.run { say($0) }
                for violation in Set(report.violations).sorted() {
                    try output.line("VIOLATED: \(violation)")
                }
                try output.line(
                    "\(report.killed) rebuilds killed, \(report.finished) were quicker; "
                        + "\(grouped(report.answers)) whole answers, \(grouped(report.lookUps)) "
                        + "look-ups, the longest \(fixed(report.stallMilliseconds, 1)) ms"
                )
                isKept = report.violations.isEmpty
            }
            return isKept ? .done : .integrity
        }
    )

    static let webhook = Command(
        name: "bench webhook",
        summary: "Measure deliveries verified, committed and answered, against verifying alone.",
        options: [
            .value("--deliveries", "N", "for each number of connections (default 10000)"),
            .list("--connections", "N", "how many at once; repeats (default 1, 64 and 256)"),
            .value("--visible", "SECONDS", "how long the read models are watched (default 10)"),
        ],
        details: """
            It works in a database of its own on the embedded server and drops it. Sender, service
            and PostgreSQL share the cores; their processor time says what a quiet machine could do.
            """,
        run: { arguments in
            _ = try arguments.operands()
            let count = try arguments.integer("--deliveries", in: 100...1_000_000) ?? 10_000
            var connections: [Int] = []
            for text in arguments.values("--connections") {
                let number = try Arguments.integer(text, of: "--connections", in: 1...1000)
                connections.append(Int(number))
            }
            if connections.isEmpty { connections = [1, 64, 256] }
            let visible = try arguments.integer("--visible", in: 0...3600) ?? 10
            try inScratchDatabase { sessions, output in
                let measured = try WebhookBenchmark { try sessions.open() }
                    .run(
                        deliveries: Int(count),
                        connections: connections,
                        visibleSeconds: Int(visible)
                    ) { say($0) }
                try output.line(
                    BenchmarkLine("verified alone, all cores", measured.verified, "/s").text
                )
                try output.line(
                    BenchmarkLine("rows committed one by one", measured.commits, "/s").text
                )
                for result in measured.results {
                    try output.line(
                        BenchmarkLine(
                            "delivered over \(result.connections) connections",
                            result.perSecond,
                            "/s",
                            ratio: result.perSecond / measured.verified,
                            of: "verified alone"
                        ).text
                    )
                    try output.line(
                        "  p50 \(fixed(result.medianMs, 1)) ms, p99 \(fixed(result.p99Ms, 1)) ms, "
                            + "\(result.failures) not answered with 200"
                    )
                    try output.line(
                        "  processor time each: service \(fixed(result.serviceMicroseconds, 0)) µs, "
                            + "PostgreSQL \(fixed(result.serverMicroseconds, 0)) µs, sender "
                            + "\(fixed(result.senderMicroseconds, 0)) µs: "
                            + "\(fixed(result.perSecond(onCores: 2), 0))/s on two idle cores"
                    )
                }
                if let visible = measured.visibility {
                    try output.line(
                        "visible after the acknowledgement, \(visible.perSecond)/s: p50 "
                            + "\(fixed(visible.medianMs, 1)) ms, p99 \(fixed(visible.p99Ms, 1)) ms; "
                            + "delivery p99 \(fixed(visible.deliveryP99Ms, 1)) ms"
                    )
                }
            }
            return .done
        }
    )

    static let queries = Command(
        name: "bench queries",
        summary: "Measure looking entitlements up among many subscriptions, by SQL and HTTP.",
        options: [
            .value("--subscriptions", "N", "how many there are (default 1000000)"),
            .value("--questions", "N", "how many are asked, each way (default 2000)"),
        ],
        details: """
            The rows are made up in the read model's tables, in a database of its own on the
            embedded server, which is dropped afterwards.
            """,
        run: { arguments in
            _ = try arguments.operands()
            let count = try arguments.integer("--subscriptions", in: 2...20_000_000) ?? 1_000_000
            let questions = try arguments.integer("--questions", in: 100...1_000_000) ?? 2000
            try inScratchDatabase { sessions, output in
                let results = try QueryBenchmark { try sessions.open() }
                    .run(subscriptions: Int(count), questions: Int(questions)) { say($0) }
                for result in results {
                    try output.line(
                        "an owner's entitlements, \(result.name): p50 "
                            + "\(fixed(result.quantile(0.5), 2)) ms, p99 "
                            + "\(fixed(result.quantile(0.99), 2)) ms"
                    )
                }
            }
            return .done
        }
    )

    private static func json(_ lines: [BenchmarkLine]) -> String {
        var json = JSONWriter(pretty: true)
        json.beginArray()
        for line in lines {
            json.beginObject()
            json.member("name", line.name)
            json.key("value")
            json.raw(fixed(line.value, 2).utf8)
            json.member("unit", line.unit)
            json.key("ratio")
            if let ratio = line.ratio { json.raw(fixed(ratio, 3).utf8) } else { json.null() }
            json.member("bound", line.bound)
            json.endObject()
        }
        json.endArray()
        return json.text
    }

    /// Says what is done next.
    static func say(_ step: String) { printError("bench: \(step)", isDimmed: true) }

    /// Runs `body` with an empty, migrated database on the embedded server.
    static func inScratchDatabase(_ body: (Sessions, Output) throws -> Void) throws {
        let server = try Database.embedded(directory: EmbeddedServer.defaultDirectory)
        defer { server.close() }
        let maintenance = try Connection(server.conninfo(database: "postgres"))
        // Roles belong to the whole server and are named after the database: one name, one set.
        let name = "\(EmbeddedServer.database)_bench"
        try maintenance.execute("drop database if exists \(name) with (force)")
        try maintenance.execute("create database \(name) template template0")
        defer { try? maintenance.execute("drop database \(name) with (force)") }
        let conninfo = server.conninfo(database: name)
        try Migrator(Connection(conninfo), extra: ReadModels.migrations).migrate()
        let output = Output.standard()
        try body(Sessions(conninfo: conninfo, role: nil), output)
        try output.flush()
    }
}
