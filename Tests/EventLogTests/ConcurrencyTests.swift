import Ledger
import Postgres
import Schema
import Synchronization
import TestSupport
import Testing

@testable import EventLog

struct ConcurrencyTests {
    /// Writers with sessions of their own, which partly send the same events.
    @Test func manyWritersGiveDensePositionsAndLoseNothing() throws {
        let log = try LogDatabase(on: .durable)
        defer { log.stayAlive() }
        let failures = Mutex<[String]>([])
        let appended = Mutex<[Int64]>([])
        onThreads(6) { writer in
            do {
                let appender = try log.appender()
                for round in 0..<6 {
                    var events = Sample.notifications(10, prefix: "w\(writer)-\(round)-")
                    events += Sample.notifications(60, prefix: "shared-\(round)-")
                    for outcome in try appender.append(events) {
                        if case .appended(let position) = outcome {
                            appended.withLock { $0.append(position) }
                        }
                    }
                }
            } catch {
                failures.withLock { $0.append("\(error)") }
            }
        }
        #expect(failures.withLock(\.self) == [])
        let total = 6 * 6 * 10 + 6 * 60
        #expect(appended.withLock { $0.sorted() } == (1...Int64(total)).map(\.self))
        #expect(try log.problems() == [])
    }

    /// A long batch's keys are looked up before the head is locked; another writer is faster.
    @Test func whatAnotherWriterAddedMeanwhileIsSeenUnderTheLock() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let events = Sample.notifications(80)
        let appender = try log.appender()
        var isFirst = true
        appender.step = { step in
            guard step == .keysForeseen, isFirst else { return }
            isFirst = false
            _ = try log.appender().append(Array(events[..<30]))
        }
        let outcomes = try appender.append(events)
        #expect(outcomes[..<30] == (1...30).map { .duplicate(position: $0) }[...])
        #expect(outcomes[30...] == (31...80).map { .appended(position: $0) }[...])
        #expect(try log.problems() == [])
    }

    /// Two numbers picked at once would be one app, or one header, under two numbers.
    @Test func referenceRowsAreNumberedOnceByManyWriters() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let failures = Mutex<[String]>([])
        onThreads(6) { writer in
            do {
                let appender = try log.appender()
                for number in 0..<10 {
                    let app = AppKey(bundleID: "com.example.\(number)", environment: .sandbox)
                    let event = Sample.notification(
                        stream: "\(writer)",
                        uuid: "\(writer)-\(number)",
                        app: app
                    )
                    _ = try appender.append([event])
                }
            } catch {
                failures.withLock { $0.append("\(error)") }
            }
        }
        #expect(failures.withLock(\.self) == [])
        #expect(try log.count("select count(*) from ledger.app") == 10)
        #expect(try log.count("select max(app_id) from ledger.app") == 10)
        #expect(try log.count("select count(*) from ledger.jws_header") == 2)
    }

    /// Whoever wrote without the head's lock is found out, not numbered over.
    @Test func aDeadlockIsTriedAgainFromTheStart() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let appender = try log.appender()
        var failures = 3
        appender.step = { step in
            guard step == .factsInserted, failures > 0 else { return }
            failures -= 1
            throw PostgresError(code: .server, sqlState: "40P01", message: "deadlock detected")
        }
        let outcomes = try appender.append(Sample.notifications(10))
        #expect(outcomes == (1...10).map { .appended(position: $0) })
        #expect(failures == 0)
        #expect(try log.problems() == [])
    }

    @Test func aDeadlockThatStaysIsTemporary() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let appender = try log.appender()
        appender.step = { step in
            guard step == .factsInserted else { return }
            throw PostgresError(code: .server, sqlState: "40001", message: "could not serialize")
        }
        let error = #expect(throws: EventLogError.self) {
            try appender.append(Sample.notifications(10))
        }
        #expect(error?.code == .temporary)
        #expect(try log.count("select count(*) from ledger.event") == 0)
    }

    @Test func aBrokenUniqueKeyIsNamedAsCorruption() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let appender = try log.appender()
        _ = try appender.append([Sample.notification(stream: "1", uuid: "a")])
        // A head that was set back would number an event twice.
        try log.connect().execute("update ledger.head set position = 0")
        let error = #expect(throws: EventLogError.self) {
            try appender.append([Sample.notification(stream: "1", uuid: "b")])
        }
        #expect(error?.code == .corrupt)
        #expect(error?.sqlState == "23505")
        #expect(try log.count("select count(*) from ledger.quarantine") == 0)
    }

    /// Somebody wrote an event without the head's lock, between our look-up and our insert.
    @Test func anEventThatSlippedPastTheHeadIsSeenOnTheSecondTry() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let appender = try log.appender()
        _ = try appender.append([Sample.notification(stream: "1", uuid: "a")])
        let event = Sample.notification(stream: "1", uuid: "b")
        var isFirst = true
        appender.step = { step in
            guard step == .keysLookedUp, isFirst else { return }
            isFirst = false
            try log.connect().query(
                """
                insert into ledger.event
                select 1000, signed_at, recorded_at, app_id, stream, 'n:b', kind,
                    notification_type, subtype, provenance, correlation, $1, sealed_digest
                from ledger.event
                """,
                [.bytes(event.contentDigest)]
            )
        }
        #expect(try appender.append([event]) == [.duplicate(position: 1000)])
        #expect(try log.count("select count(*) from ledger.event") == 2)
        #expect(try log.count("select count(*) from ledger.evidence") == 1)
    }

    @Test func aHeadThatStaysLockedIsTemporary() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let holder = try log.connect()
        try holder.execute("begin")
        try holder.query("select from ledger.head for update")
        let appender = try log.appender()
        let error = #expect(throws: EventLogError.self) {
            try appender.append([Sample.notification(stream: "1", uuid: "a")])
        }
        #expect(error?.code == .temporary)
        #expect(error?.sqlState == "55P03")
        try holder.execute("rollback")
        #expect(
            try appender.append([Sample.notification(stream: "1", uuid: "a")])
                == [.appended(position: 1)]
        )
    }

    /// A session or a server that trades durability for speed does not lower what append says.
    @Test func aBatchIsCommittedToTheDiskWhateverTheSessionSays() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let connection = try log.connect(as: LogDatabase.roles.appender)
        try connection.execute("set synchronous_commit = off")
        let appender = try Appender(connection)
        var settings: [String?] = []
        appender.step = { step in
            guard step == .headUpdated else { return }
            settings.append(try connection.query("show synchronous_commit").text(0, 0))
        }
        _ = try appender.append([Sample.notification(stream: "1", uuid: "a")])
        #expect(settings == ["on"])
    }

    @Test func aFormerPrimaryIsTemporary() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let connection = try log.connect(as: LogDatabase.roles.appender)
        let appender = try Appender(connection)
        _ = try appender.append([Sample.notification(stream: "1", uuid: "a")])
        try connection.execute("set default_transaction_read_only = on")
        let error = #expect(throws: EventLogError.self) {
            try appender.append([Sample.notification(stream: "1", uuid: "b")])
        }
        #expect(error?.code == .temporary)
        #expect(error?.sqlState == "25006")
    }
}
