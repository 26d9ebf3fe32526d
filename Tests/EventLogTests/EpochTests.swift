import EventLog
import Ledger
import Postgres
import Schema
import Testing

/// A log that came to another server is not written before somebody has opened a new epoch.
@Suite struct EpochTests {
    private static let now = Timestamp(milliseconds: 1_796_000_000_123)

    /// Makes it look as if the present epoch had been opened elsewhere.
    private func move(_ log: LogDatabase, timeline: Int64, identifier: String? = nil) throws {
        let connection = try log.connect()
        try connection.execute("alter table ledger.epoch disable trigger all")
        try connection.query(
            """
            update ledger.epoch set timeline = $1,
                server_identifier = coalesce($2, server_identifier)
            where epoch = (select max(epoch) from ledger.epoch)
            """,
            [.int(timeline), .text(identifier)]
        )
        try connection.execute("alter table ledger.epoch enable always trigger refuse_row")
        try connection.execute("alter table ledger.epoch enable always trigger refuse_statement")
    }

    private func code(_ body: () throws(EventLogError) -> Void) -> EventLogError.Code? {
        do throws(EventLogError) { try body() } catch { return error.code }
        return nil
    }

    @Test func aLogIsBornInItsFirstEpochOnItsServer() throws {
        let log = try LogDatabase()
        let book = EpochBook(try log.connect())
        let epochs = try book.all()
        #expect(epochs.map(\.number) == [1])
        #expect(epochs.first?.cutPosition == 0)
        #expect(try epochs.first?.server == book.server())
        try book.check()
        // Who appends may look as well.
        try EpochBook(log.connect(as: LogDatabase.roles.appender)).check()
    }

    @Test(arguments: [Int64(7), 1])
    func anotherServerOrTimelineIsRefusedUntilAnEpochIsOpened(_ timeline: Int64) throws {
        let log = try LogDatabase()
        _ = try log.appender().append([
            Sample.notification(stream: "1", uuid: "a"),
            Sample.notification(stream: "2", uuid: "b"),
        ])
        try move(log, timeline: timeline, identifier: timeline == 1 ? "42" : nil)
        let book = EpochBook(try log.connect())
        #expect(code { () throws(EventLogError) in try book.check() } == .restored)

        let appender = EpochBook(try log.connect(as: LogDatabase.roles.appender))
        let opened = try appender.open(by: "olga", why: "the disk died", now: Self.now)
        #expect(opened.number == Self.now.milliseconds / 1000)
        #expect(opened.cutPosition == 2)
        #expect(opened.operatorName == "olga" && opened.why == "the disk died")
        try book.check()
        let outcome = try log.appender().append([Sample.notification(stream: "3", uuid: "c")])
        #expect(outcome == [.appended(position: 3)])
        #expect(try log.problems() == [])

        // A second one in the same second has a number of its own.
        let next = try appender.open(by: "olga", why: "again", now: Self.now)
        #expect(next.number == opened.number + 1 && next.cutPosition == 3)
        log.stayAlive()
    }

    /// What a restore of several servers can leave: the head's row is older than the rest.
    @Test func aHeadThatIsBehindIsSetToTheLastEvent() throws {
        let log = try LogDatabase()
        _ = try log.appender().append([Sample.notification(stream: "1", uuid: "a")])
        let old = try log.connect().query("select position, link, recorded_at from ledger.head")
        _ = try log.appender().append([Sample.notification(stream: "2", uuid: "b")])
        try log.connect().query(
            "update ledger.head set position = $1, link = $2, recorded_at = $3",
            [
                .int(old.int(0, 0)), .bytes(old.bytes(0, 1) ?? []),
                .instant(milliseconds: old.instant(0, 2) ?? 0),
            ]
        )
        #expect(try log.problems() != [])
        let opened = try EpochBook(log.connect()).open(by: "olga", why: "x", now: Self.now)
        #expect(opened.cutPosition == 2)
        #expect(try log.problems() == [])
        _ = try log.appender().append([Sample.notification(stream: "3", uuid: "c")])
        #expect(try log.problems() == [])
    }

    @Test(arguments: ["event where position = 2", "batch where last_position = 3"])
    func aBackupThatIsNotWholeOpensNone(_ lost: String) throws {
        let log = try LogDatabase()
        for number in 1...3 {
            _ = try log.appender().append([
                Sample.notification(stream: "\(number)", uuid: "\(number)")
            ])
        }
        let connection = try log.connect()
        let table = lost.hasPrefix("event") ? "event" : "batch"
        let parts = try connection.query(
            "select relation::text from ledger.parts('ledger.\(table)')"
        )
        for row in 0..<parts.count {
            try connection.execute("alter table \(parts.text(row, 0) ?? "") disable trigger all")
        }
        try connection.execute("delete from ledger.\(lost)")
        let book = EpochBook(connection)
        let found = code { () throws(EventLogError) in
            _ = try book.open(by: "olga", why: "x", now: Self.now)
        }
        #expect(found == .corrupt)
        #expect(try book.all().map(\.number) == [1])
        log.stayAlive()
    }
}
