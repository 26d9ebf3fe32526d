import AppStoreSimulator
import Crypto
import EventLog
import HTTP
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// Other people's public reports of class E, each with the outcome that is right.
@Suite struct ProjectionCaseTests {
    private struct Killed: Error {}

    /// A renewal of a stream, signed that many days after T0.
    private static func renewal(_ log: LogFixture, _ stream: Int, _ number: Int) -> NewEvent {
        log.event(
            "\(stream)",
            "\(stream)-\(number)",
            .didRenew,
            at: LogFixture.day(Double(number)),
            LogFixture.month(UInt64(stream * 10_000 + number), Double(number))
        )
    }

    private static func wait(_ isDone: () throws -> Bool) rethrows -> Bool {
        let end = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < end {
            if try isDone() { return true }
            pause()
        }
        return false
    }

    private static func pause() { _ = MonotonicSemaphore().wait(within: .milliseconds(20)) }

    @Test func e01WhatManyWritersAppendAtOnceIsAllProjected() throws {
        let log = try LogFixture()
        let (writers, each, streams) = (10, 20, 7)
        let projection = LiveProjection(connect: log.connect)
        let failures = Atomic<Int>(0)
        let connect = log.connect
        let events = (0..<writers * each).map { Self.renewal(log, 1 + $0 % streams, $0) }
        onThreads(writers) { writer in
            do {
                let appender = try Appender(connect())
                for event in events[writer * each..<(writer + 1) * each] {
                    _ = try appender.append([event])
                    projection.wake()
                }
            } catch {
                failures.add(1, ordering: .relaxed)
            }
        }
        #expect(failures.load(ordering: .relaxed) == 0)
        #expect(try Self.wait { try log.count("ledger.mark") == 0 })
        projection.stop()
        #expect(try log.head() == Int64(writers * each))
        #expect(try log.liveDigests() == log.digests(foldingUpTo: log.head()))
        let known = try log.connection.query(
            "select max(known_to_position), count(*) from read_model.subscription_live"
        )
        #expect(known.int(0, 0) == Int64(writers * each))
        #expect(known.int(0, 1) == Int64(streams))
    }

    @Test func e02AnAppendThatIsRolledBackLeavesNoHole() throws {
        let log = try LogFixture()
        try log.append([Self.renewal(log, 1, 1)])
        // It holds the head, writes, and is ended before its COMMIT.
        let lost = try log.connect()
        try lost.execute(
            """
            begin;
            select from ledger.head for update;
            update ledger.head set position = position + 33;
            """
        )
        let pid = try lost.query("select pg_backend_pid()").int(0, 0)
        try log.connection.query("select pg_terminate_backend($1::integer)", [.int(pid)])
        try log.append([Self.renewal(log, 1, 2), Self.renewal(log, 2, 3)])
        #expect(try log.head() == 3)
        try Projector(log.connection).project()
        let stale = try Staleness(log.connection)
        #expect(stale.staleStreams == 0)
        #expect(try log.count("read_model.subscription_live") == 2)
    }

    @Test(arguments: ProjectorStep.allCases)
    func e03AProjectorThatIsKilledInBetweenCountsNothingTwice(_ step: ProjectorStep) throws {
        let log = try LogFixture()
        try log.appendLives(5)
        do {
            let session = try log.connect()
            let pid = try session.query("select pg_backend_pid()").int(0, 0)
            let killed = Projector(session)
            killed.step = { reached in
                guard reached == step else { return }
                // Its session goes with it.
                let sql = "select pg_terminate_backend($1::integer, 60000)"
                try log.connection.query(sql, [.int(pid)])
                throw Killed()
            }
            #expect(throws: (any Error).self) { try killed.project() }
        }
        #expect(try log.count("ledger.mark") > 0)
        #expect(try log.count("read_model.subscription_live") == 0)
        try Projector(log.connection).project()
        #expect(try log.count("ledger.mark") == 0)
        #expect(try log.liveDigests() == log.digests(foldingUpTo: log.head()))
    }

    @Test func e04WhatIsShownIsKnownByThePositionAndNotByACount() throws {
        let log = try LogFixture()
        // Many of another stream come first, so that no count is a position.
        try log.append((1...40).map { Self.renewal(log, 9, $0) })
        try log.append([Self.renewal(log, 1, 1)])
        try Projector(log.connection).project()
        let known = try log.connection.query(
            "select known_to_position from read_model.subscription_live where stream = '1'"
        )
        #expect(known.int(0, 0) == 41)
        // Nothing is folded again without news.
        #expect(try Projector(log.connection).project().streams == 0)
        try log.append([Self.renewal(log, 1, 2)])
        #expect(try Projector(log.connection).project().streams == 1)
    }

    @Test func e05OneBadEventStopsARebuildAndIsNamed() throws {
        let sample = try IngestSample()
        _ = try sample.ingest((1...20).map { sample.purchase($0) })
        let connection = try sample.database.connect()
        try Projector(connection).project()
        let before = try ReadModels.names.map { try Digest(ofLive: $0, connection) }
        let received = Array("not what it should be".utf8)
        let outcome = try Appender(sample.database.connect()).append([
            NewEvent(
                app: AppKey(bundleID: IngestSample.bundleID, environment: .sandbox),
                stream: "2000000000000010",
                eventKey: "n:unreadable",
                kind: .notification,
                notificationType: "DID_RENEW",
                received: received,
                form: .raw,
                contentDigest: SHA256.digest(received)
            )
        ])
        #expect(outcome == [.appended(position: 21)])
        try connection.execute("update ledger.fact set decoder = 99 where position = 21")
        let connect = sample.connect
        let stopped = #expect(throws: ReadModelError.self) {
            try Rebuild(connect: connect).run()
        }
        #expect(stopped?.code == .unreadableEvent)
        let message = stopped?.message ?? ""
        #expect(message.contains("event 21 of"), "\(message)")
        #expect(message.contains("2000000000000010"), "\(message)")
        #expect(try ReadModels.names.map { try Digest(ofLive: $0, connection) } == before)
    }

    @Test func e06ARebuildOfNothingIsAnErrorAndOneOfSomethingSaysOfWhat() throws {
        let log = try LogFixture()
        try log.appendLives(3)
        let error = #expect(throws: ReadModelError.self) {
            _ = try Rebuild(["entitlment"], connect: log.connect)
        }
        #expect(error?.code == .unknownProjection)
        for name in ReadModels.names { #expect(error?.message.contains(name) == true) }
        let report = try Rebuild(connect: log.connect).run()
        #expect(report.events == (try log.head()))
        #expect(report.streams == 3)
        #expect(Set(report.readModels.map(\.name)) == Set(ReadModels.names))
        #expect(report.readModels.reduce(0) { $0 + $1.digest.rows } > 3)
    }

    @Test func e07SessionsThatBreakAndNobodyWakesItAgain() throws {
        let log = try LogFixture()
        try log.append([Self.renewal(log, 1, 1)])
        let projection = LiveProjection(connect: log.connect)
        defer { projection.stop() }
        #expect(try Self.wait { try log.count("ledger.mark") == 0 })
        try log.connection.execute(
            """
            select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()
            """
        )
        let appender = try Appender(log.connect())
        _ = try appender.append((2...4).map { Self.renewal(log, $0, 1) })
        #expect(try Self.wait { try log.count("ledger.mark") == 0 })
        #expect(try log.count("read_model.subscription_live") == 4)
    }

    @Test func e08ARebuildOfAnotherDayGivesTheSameBytes() throws {
        let log = try LogFixture()
        try log.appendLives(12)
        let first = try Rebuild(connect: log.connect).run().readModels.map(\.digest)
        let second = try Rebuild(connect: log.connect).run().readModels.map(\.digest)
        #expect(first == second)
        #expect(first.contains { $0.rows > 0 })
        // Nothing of the server's clock can come in: no column fills itself.
        let generations = try log.connection.query(
            """
            select c.relname::text || '.' || a.attname::text
            from pg_class c
            join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
            join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
            where c.relnamespace = 'read_model'::regnamespace and c.relkind = 'p'
            """
        )
        #expect((0..<generations.count).compactMap { generations.text($0, 0) } == [])
    }

    @Test func e09ARebuildForwardsNothing() throws {
        let bench = try DeliveryBench()
        let database = bench.sample.database
        let consumer = try Consumer()
        var destination = ForwardDestination(url: try HTTPURL(consumer.url), name: "one")
        destination.startPosition = 1
        var timing = Forwarder.Timing()
        timing.lease = .seconds(90)
        timing.poll = .milliseconds(20)
        timing.request = .seconds(60)
        let forwarder = try Forwarder(destination, timing: timing) { try database.connect() }
        defer {
            forwarder.finish()
            forwarder.stop()
        }
        for number in 1...5 { #expect(bench.deliver(bench.sample.purchase(number))?.status == 200) }
        let lag = { try ForwardStanding.all(database.connect()).first?.lagEvents }
        #expect(try Self.wait { try lag() == 0 })
        let sent = consumer.taken.count
        #expect(sent >= 5)
        _ = try Rebuild { try database.connect() }.run()
        try Projector(database.connect()).project()
        // It looks many times meanwhile.
        for _ in 0..<20 { Self.pause() }
        #expect(consumer.taken.count == sent)
        #expect(try lag() == 0)
    }

    /// How much memory there is changes how often rows are written, not which.
    @Test func e10ARebuildHoldsOneSubscriptionAndALittle() throws {
        let log = try LogFixture()
        try log.appendLives(200)
        let wide = try Rebuild(connect: log.connect).run()
        let narrow = try Rebuild(workers: 2, memoryBytes: 1 << 12, connect: log.connect).run()
        #expect(narrow.readModels.map(\.digest) == wide.readModels.map(\.digest))
        #expect(narrow.readModels.reduce(0) { $0 + $1.digest.rows } > 1000)
    }

    @Test func e11OfTwoAtOnceForOneSubscriptionBothAreStored() throws {
        let log = try LogFixture()
        try log.append((1...4).map { Self.renewal(log, 7030, $0) })
        let app = try #require(try LogReader(log.connection).apps().keys.min())
        let key = SubscriptionKey(appID: app, stream: "7030")
        _ = try Appender(log.connect()).append([Self.renewal(log, 7030, 5)], expecting: [key: 4])
        let lost = #expect(throws: EventLogError.self) {
            try Appender(log.connect())
                .append([Self.renewal(log, 7030, 6)], expecting: [key: 4])
        }
        #expect(lost?.code == .stale)
        #expect(lost?.message.contains("7030") == true, "the stream is named")
        let again = try Appender(log.connect())
            .append([Self.renewal(log, 7030, 6)], expecting: [key: 5])
        #expect(again == [.appended(position: 6)])

        // Notifications expect nothing: both are answered with 200.
        let bench = try DeliveryBench()
        let chain = bench.sample.chain(1)
        let texts = (1...2).map { number in
            bench.sample.signer.sign(
                .initialBuy(of: chain, uuid: bench.sample.uuid(number)),
                of: chain
            )
        }
        let answers = Mutex<[Int]>([])
        onThreads(2) { number in
            let status = bench.deliver(texts[number])?.status ?? 0
            answers.withLock { $0.append(status) }
        }
        #expect(answers.withLock { $0 } == [200, 200])
        #expect(try bench.count("ledger.event") == 2)
    }
}
