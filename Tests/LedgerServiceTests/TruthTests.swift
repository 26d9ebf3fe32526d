import AppStore
import AppStoreSimulator
import Benchmarks
import EventLog
import Ledger
import LedgerService
import Postgres
import TestSupport
import Testing

/// The main proof: what is answered equals what the simulator knows of what it delivered.
@Suite struct TruthTests {
    private static let subscriptions = 1600
    /// Every row of the catalogue of notifications must come by.
    private static let rareFactor = 4.0
    private static let seed: UInt64 = 20_261_130

    private let database: TestDatabase
    private let folder: ScratchFolder

    init() throws {
        database = try TestDatabase.create(template: "ledger with read models") {
            try Migrator($0, extra: ReadModels.migrations).migrate()
        }
        folder = try ScratchFolder()
    }

    @Test func everyAnswerAtAnyInstantEqualsTheDeliveredTruth() throws {
        var options = Simulation.Options(subscriptions: Self.subscriptions, seed: Self.seed)
        options.rareFactor = Self.rareFactor
        let simulation = Simulation(options)
        var truth: [String: TruthRow] = [:]
        var lines: [UInt8] = []
        let statistics = simulation.run(
            truth: { truth[$0.originalTransactionID] = $0 },
            delivery: { lines += $0 + [0x0A] }
        )
        try check(statistics, truth)

        let report = try ingest(lines, simulation)
        #expect(report.rejected == 0)
        #expect(report.quarantined == 0)
        #expect(report.conflict == 0)
        #expect(report.appended + report.duplicate == statistics.deliveries)

        let connection = try database.connect()
        try checkRareKinds(simulation, statistics, report, connection)
        try Projector(connection).project()
        try compare(truth, connection, simulation, "projected live")
        let first = try rebuild()
        try compare(truth, connection, simulation, "rebuilt")
        #expect(try rebuild().readModels.map(\.digest) == first.readModels.map(\.digest))
        try compareWithWindows(connection)
    }

    /// The same intervals once more, folded by the database with window functions.
    private func compareWithWindows(_ connection: Connection) throws {
        try connection.execute("begin")
        let windows = try WindowFold(comparingIn: connection)
        try connection.execute("rollback")
        for state in TruthCondition.State.allCases {
            #expect(windows.intervals[state.rawValue, default: 0] >= 30, "\(state)")
        }
        #expect(windows.differing == 0, "seed \(Self.seed): \(windows.differences)")

        // The comparison can fail: a bound moved by a millisecond shows, on both sides of it.
        try connection.execute("begin")
        try connection.execute(
            """
            update read_model.entitlement_interval
            set valid_from = valid_from - interval '1 ms'
            where (stream, valid_from) in (
                select stream, max(valid_from) from read_model.entitlement_interval
                where state = 'grace_period' group by stream order by stream limit 1)
            """
        )
        let moved = try WindowFold(comparingIn: connection)
        try connection.execute("rollback")
        #expect(moved.differing >= 2, "a moved bound is seen")
    }

    /// What is rare survives the whole way too: nothing is refused, what is unknown is kept and
    /// counted, and what is about no subscription has a stream of its own.
    private func checkRareKinds(
        _ simulation: Simulation,
        _ statistics: SimulationStatistics,
        _ report: IngestReport,
        _ connection: Connection
    ) throws {
        var sent: [String: Int] = [:]
        for number in 0..<Self.subscriptions {
            for notice in simulation.life(number).notices {
                let type = notice.form == .answer ? "answer" : notice.type
                sent["\(type)/\(notice.subtype ?? "-")", default: 0] += 1
            }
        }
        #expect(sent.count >= 48)
        let rows = try connection.query(
            """
            select case when kind = 'notification' then notification_type else 'answer' end
                    || '/' || coalesce(subtype, '-'),
                count(*)
            from ledger.event group by 1
            """
        )
        var stored: [String: Int] = [:]
        for row in 0..<rows.count { stored[rows.text(row, 0) ?? ""] = Int(rows.int(row, 1) ?? 0) }
        for (row, count) in sent where count >= 4 {
            let kept = stored[row, default: 0]
            #expect(kept > 0 && kept <= count, "\(row): \(kept) of \(count)")
        }
        #expect(Set(stored.keys).isSubset(of: sent.keys))
        // What we ask for ourselves always arrives, and is kept where it says something new.
        let unchanged = sent["answer/-", default: 0] - stored["answer/-", default: 0]
        #expect(unchanged > 0)
        #expect(stored["answer/-", default: 0] > 100)
        #expect(report.duplicate == statistics.duplicates + unchanged)

        let unknown = try connection.query(
            """
            select count(*) from ledger.fact
            where notification_type = 'LOYALTY_CREDIT' or subtype = 'SIDEGRADE'
                or status not between 1 and 5 or in_app_ownership_type = 'ORGANIZATION'
                or consumption_request_reason = 'GIFT_NOT_WANTED'
            """
        ).int(0, 0)
        #expect(report.unrecognised > 200)
        #expect(unknown == Int64(report.unrecognised))

        // Neither a purchase of another kind nor what is about the app has a timeline.
        let apart = try connection.query(
            """
            select count(distinct stream) filter (where notification_type = 'ONE_TIME_CHARGE'),
                count(*) filter (where stream like 'mass:%'),
                count(*) filter (where stream = 'app:com.example.subledger')
            from ledger.event
            """
        )
        #expect((0..<3).allSatisfy { apart.int(0, $0) ?? 0 > 20 })
    }

    /// The comparison proves something only where there is something to compare.
    private func check(_ statistics: SimulationStatistics, _ truth: [String: TruthRow]) throws {
        #expect(statistics.duplicates > 500)
        #expect(statistics.lost > 200)
        #expect(statistics.disorderedWithinSubscription > 500)
        #expect(statistics.differingStates > 20, "what was lost must matter")
        var states: [String: Int] = [:]
        for row in truth.values {
            for interval in row.delivered {
                states[interval.condition.state.rawValue, default: 0] += 1
            }
        }
        for state in TruthCondition.State.allCases {
            #expect(states[state.rawValue, default: 0] >= 30, "\(state)")
        }
    }

    private func ingest(_ lines: [UInt8], _ simulation: Simulation) throws -> IngestReport {
        var anchors = TrustAnchors()
        try anchors.add(simulation.authority.rootDER, name: "test root")
        let verifier = Verifier(
            anchors: anchors,
            apps: [
                AcceptedApp(
                    bundleID: "com.example.subledger",
                    appAppleID: nil,
                    environments: [.sandbox]
                )
            ]
        )
        let path = try folder.file("deliveries.ndjson", lines)
        let ingest = Ingest(verifier: verifier) { [database] in try database.connect() }
        return try ingest.run(
            LineReader(path: path),
            now: Timestamp(milliseconds: simulation.options.until)
        )
    }

    private func rebuild() throws -> Rebuild.Report {
        try Rebuild([], workers: 2) { [database] in try database.connect() }.run()
    }

    private func compare(
        _ truth: [String: TruthRow],
        _ connection: Connection,
        _ simulation: Simulation,
        _ what: String
    ) throws {
        var random = SplitMix(state: Self.seed)
        var instants = [simulation.options.until - 1, simulation.options.until + 400 * 86_400_000]
        // Bounds of intervals, and the milliseconds beside them, are where answers go wrong.
        let rows = truth.values.sorted { $0.originalTransactionID < $1.originalTransactionID }
        for _ in 0..<12 {
            let row = rows[Int(random.next() % UInt64(rows.count))]
            guard let interval = row.delivered.last else { continue }
            instants += [interval.from - 1, interval.from]
            let span = UInt64(simulation.options.until - simulation.options.from)
            instants.append(simulation.options.from + Int64(random.next() % span))
        }
        for instant in instants {
            let answers = try EntitlementQuery(at: Timestamp(milliseconds: instant))
                .answers(connection)
            var answered: [String: EntitlementAnswer] = [:]
            for answer in answers { answered[answer.originalTransactionID] = answer }
            var wrong: [String] = []
            for row in rows {
                let expected = row.at(instant)
                let answer = answered[row.originalTransactionID]
                let isEqual =
                    answer?.state == expected?.state && answer?.productID == expected?.productID
                    && answer?.entitledApple == expected?.entitledApple
                    && answer?.stateUntil?.milliseconds == expected?.until
                if !isEqual {
                    wrong.append(
                        "\(row.originalTransactionID): \(answer?.state ?? "none")"
                            + " until \(answer?.stateUntil?.milliseconds ?? 0), right:"
                            + " \(expected?.state ?? "none") until \(expected?.until ?? 0)"
                    )
                }
            }
            #expect(
                wrong.isEmpty,
                "\(what), at \(instant), seed \(Self.seed): \(wrong.count) wrong, \(wrong.prefix(5))"
            )
        }
    }

    private struct SplitMix {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }
}
