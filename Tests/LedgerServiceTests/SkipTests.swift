import AppStore
import Crypto
import EventLog
import Ledger
import Postgres
import TestSupport
import Testing

@testable import LedgerService

/// One event that cannot be read stops what needs it, until an operator has it passed over.
@Suite struct SkipTests {
    private static let stream = "2000000000000001"

    /// Three purchases, and in the first one's stream an event that nobody can read.
    private static func unreadable() throws -> (sample: IngestSample, position: Int64) {
        let sample = try IngestSample()
        _ = try sample.ingest((1...3).map { sample.purchase($0) })
        let connection = try sample.database.connect()
        let received = Array("not what it should be".utf8)
        let outcome = try Appender(sample.database.connect()).append([
            NewEvent(
                app: AppKey(bundleID: IngestSample.bundleID, environment: .sandbox),
                stream: stream,
                eventKey: "n:unreadable",
                kind: .notification,
                received: received,
                form: .raw,
                contentDigest: SHA256.digest(received)
            )
        ]).first
        guard case .appended(let position)? = outcome else {
            throw ReadModelError(.database, "the event was not appended")
        }
        // Another decoder filled the stream's rows, so that this one goes to the evidence.
        try connection.execute("update ledger.fact set decoder = 99 where stream = '\(stream)'")
        return (sample, position)
    }

    private static func skip(
        _ position: Int64,
        _ sample: IngestSample,
        why: String = "torn by a disk"
    ) throws -> EventSkipping.Outcome {
        try EventSkipping(sample.database.connect()).skip(
            position,
            operator: "olga",
            ticket: "SUP-9",
            why: why,
            now: IngestSample.now
        )
    }

    @Test func rebuildAndProjectorStopAtItAndGoOnOnceItIsPassedOver() throws {
        let (sample, position) = try Self.unreadable()
        let connection = try sample.database.connect()
        let connect = sample.connect
        let stopped = #expect(throws: ReadModelError.self) {
            try Rebuild(connect: connect).run()
        }
        #expect(stopped?.code == .unreadableEvent)
        #expect(stopped?.message.contains("event \(position) of") == true)
        let projected = try Projector(connection).project()
        #expect(projected.parked.map(\.key.stream) == [Self.stream])

        guard case .skipped(let skipped) = try Self.skip(position, sample) else {
            Issue.record("nothing was recorded")
            return
        }
        #expect(try Projector(connection).project().parked.isEmpty)
        #expect(try sample.count("select count(*) from read_model.parked") == 0)
        let report = try Rebuild(connect: connect).run()
        #expect(report.streams == 3)
        #expect(try sample.count("select count(*) from read_model.subscription_live") == 3)
        let audit = try LedgerAudit(connection).run()
        #expect(audit.difference == nil, "\(String(describing: audit.difference))")

        // Before it was said nobody could read the stream, and so it stays of then.
        let query = EntitlementQuery(at: IngestSample.now, subscription: Self.stream)
        let before = #expect(throws: ReadModelError.self) {
            try query.known(.position(skipped - 1), connection)
        }
        #expect(before?.code == .unreadableEvent)
        #expect(try query.known(.position(skipped), connection).answers.count == 1)
    }

    @Test func itIsAnEventOfTheStreamWithWhoAndWhy() throws {
        let (sample, position) = try Self.unreadable()
        guard case .skipped(let skipped) = try Self.skip(position, sample) else {
            Issue.record("nothing was recorded")
            return
        }
        #expect(try Self.skip(position, sample) == .repeated(position: skipped))
        #expect(try Self.skip(position, sample, why: "another") == .repeated(position: skipped))
        let connection = try sample.database.connect()
        let reader = LogReader(connection)
        let evidence = try #require(try reader.evidence(at: skipped))
        #expect(evidence.event.kind == .eventSkipped)
        #expect(evidence.event.key.stream == Self.stream)
        #expect(evidence.event.operator == "olga")
        #expect(evidence.event.ticket == "SUP-9")
        let text = String(decoding: evidence.received, as: UTF8.self)
        #expect(text.contains("\"position\":\(position),\"skippedAt\":1800000000000"))
        #expect(text.contains("\"why\":\"torn by a disk\""))
        #expect(try reader.skippedPositions() == [position])
    }

    @Test func whatCanBeReadIsNeverPassedOver() throws {
        let (sample, position) = try Self.unreadable()
        #expect(throws: EventSkipping.Refusal.readable(1)) { try Self.skip(1, sample) }
        #expect(throws: EventSkipping.Refusal.unknownEvent(999)) { try Self.skip(999, sample) }
        #expect(throws: OwnerLinking.Refusal.unusable(field: "--why")) {
            try Self.skip(position, sample, why: " ")
        }
        #expect(
            try sample.count("select count(*) from ledger.event where kind = 'event_skipped'") == 0
        )
    }
}

extension IngestSample {
    /// Opens a session of one's own to the same database.
    var connect: @Sendable () throws -> Connection {
        { [database] in try database.connect() }
    }
}
