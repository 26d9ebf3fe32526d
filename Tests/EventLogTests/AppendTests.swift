import EventLog
import Ledger
import Postgres
import Schema
import Testing

struct AppendTests {
    @Test func newEventsGetDensePositionsInOrder() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let outcomes = try log.appender().append(Sample.notifications(450))
        #expect(outcomes == (1...450).map { .appended(position: $0) })
        #expect(try log.problems() == [])
    }

    @Test func aSecondDeliveryChangesNothing() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let appender = try log.appender()
        let events = Sample.notifications(250)
        _ = try appender.append(events)
        let head = try LogReader(log.connect()).head()
        let again = try appender.append(events)
        #expect(again == (1...250).map { .duplicate(position: $0) })
        #expect(try LogReader(log.connect()).head() == head)
        #expect(try log.count("select count(*) from ledger.batch") == 2)
    }

    @Test func aRepeatWithinOneBatchIsOneEvent() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let event = Sample.notification(stream: "1", uuid: "a")
        let other = Sample.notification(stream: "1", uuid: "b")
        let outcomes = try log.appender().append([event, event, other, event])
        #expect(
            outcomes == [
                .appended(position: 1), .duplicate(position: 1), .appended(position: 2),
                .duplicate(position: 1),
            ]
        )
        #expect(try log.problems() == [])
    }

    @Test func anotherContentUnderAKeyKeepsTheFirstAndItsOwnBytes() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let appender = try log.appender()
        let first = Sample.notification(stream: "1", uuid: "a", content: "A")
        let second = Sample.notification(stream: "1", uuid: "a", content: "B")
        #expect(try appender.append([first]) == [.appended(position: 1)])
        #expect(try appender.append([second]) == [.conflict(position: 1)])
        #expect(
            try appender.append([second, first]) == [
                .conflict(position: 1), .duplicate(position: 1),
            ]
        )
        let rows = try log.connect().query("select received, kept_position from ledger.conflict")
        #expect(rows.count == 1)
        #expect(rows.bytes(0, 0) == second.received)
        #expect(rows.int(0, 1) == 1)
        #expect(try LogReader(log.connect()).evidence(at: 1)?.received == first.received)
        #expect(try log.problems() == [])
    }

    @Test func aConflictWithinOneBatchKeepsTheFirst() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let first = Sample.notification(stream: "1", uuid: "a", content: "A")
        let second = Sample.notification(stream: "1", uuid: "a", content: "B")
        let outcomes = try log.appender().append([first, second, first])
        #expect(
            outcomes == [.appended(position: 1), .conflict(position: 1), .duplicate(position: 1)]
        )
        #expect(try log.count("select count(*) from ledger.conflict") == 1)
    }

    /// A state that comes back is a fact of its own: its key names what it follows.
    @Test func aStateThatReturnsIsAThirdEvent() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let events = ["A", "B", "A"].enumerated().map { index, content in
            Sample.event(
                stream: "1",
                key: "t:\(content):after:\(index)",
                received: Array(Sample.jws(#"{"state":"\#(content)"}"#).utf8),
                content: content
            )
        }
        var positions: [Int64?] = []
        for event in events { positions += try log.appender().append([event]).map(\.position) }
        #expect(positions == [1, 2, 3])
    }

    @Test func twoAppsMayShareAStreamAndAKey() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let production = AppKey(bundleID: "com.example.app", environment: .production)
        let events = [
            Sample.notification(stream: "1", uuid: "a"),
            Sample.notification(stream: "1", uuid: "a", app: production),
        ]
        let outcomes = try log.appender().append(events)
        #expect(outcomes == [.appended(position: 1), .appended(position: 2)])
        let reader = LogReader(try log.connect())
        let keys = try reader.keys(ofStream: "1")
        #expect(keys.count == 2)
        for key in keys { #expect(try reader.facts(of: key).count == 1) }
    }

    @Test func everyAppendToAFoldableStreamLeavesAMark() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let appender = try log.appender()
        _ = try appender.append(Sample.notifications(10))
        _ = try appender.append([Sample.notification(stream: "700", uuid: "later")])
        var test = Sample.notification(stream: "app:1", uuid: "test")
        test.fact = nil
        _ = try appender.append([test])
        let reader = LogReader(try log.connect())
        #expect(try reader.markedStreams() == 5)
        let mark = try reader.marks(limit: 10).first { $0.key.stream == "700" }
        #expect(mark?.position == 11)
    }

    @Test func timesOfRecordingNeverGoBackwards() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        try log.connect().execute("update ledger.head set recorded_at = '2999-01-01'")
        _ = try log.appender().append([Sample.notification(stream: "1", uuid: "a")])
        let event = try LogReader(log.connect()).event(at: 1)
        #expect(event?.recordedAt.description == "2999-01-01T00:00:00.000Z")
    }

    @Test func whatWasKnownAtAnInstantIsAPrefix() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        let appender = try log.appender()
        _ = try appender.append(Sample.notifications(5))
        let reader = LogReader(try log.connect())
        let then = try reader.head().recordedAt
        try log.connect().execute(
            "update ledger.head set recorded_at = recorded_at + interval '1 hour'"
        )
        _ = try appender.append(Sample.notifications(5, prefix: "80"))
        #expect(try reader.position(knownAt: then) == 5)
        #expect(try reader.position(knownAt: then.adding(.hours(2))) == 10)
        #expect(try reader.position(knownAt: .earliest) == 0)
    }

    @Test func everyColumnIsReadBackAsItWasWritten() throws {
        let log = try LogDatabase()
        defer { log.stayAlive() }
        var event = Sample.notification(stream: "1", uuid: "a")
        event.subtype = "BILLING_RECOVERY"
        event.correlation = "run 7"
        event.operator = "Zoë"
        event.ticket = "T-1"
        event.provenance = .operator
        _ = try log.appender().append([event])
        let stored = try #require(try LogReader(log.connect()).event(at: 1))
        #expect(stored.key.stream == "1")
        #expect(stored.eventKey == "n:a")
        #expect(stored.kind == .notification)
        #expect(stored.notificationType == "DID_RENEW")
        #expect(stored.subtype == "BILLING_RECOVERY")
        #expect(stored.correlation == "run 7")
        #expect(stored.operator == "Zoë")
        #expect(stored.ticket == "T-1")
        #expect(stored.provenance == .operator)
        #expect(stored.signedAt == event.signedAt)
        #expect(stored.contentDigest == event.contentDigest)
        #expect(try log.problems() == [])
    }
}
