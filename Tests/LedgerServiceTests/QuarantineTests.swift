import AppStore
import AppStoreSimulator
import Dispatch
import EventLog
import Ledger
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import LedgerService

/// What becomes of genuine documents that could not become events.
@Suite struct QuarantineTests {
    private let sample: IngestSample
    private let connection: Connection
    private let quarantine: Quarantine

    init() throws {
        sample = try IngestSample()
        connection = try sample.database.connect()
        quarantine = Quarantine(connection)
    }

    private func keep(_ received: [UInt8], reason: String) throws {
        let document = QuarantinedDocument(received: received, reason: reason)
        _ = try Appender(sample.database.connect()).quarantine(document)
    }

    private func replay(_ entry: Quarantine.Entry) throws -> QuarantineReplay.Outcome {
        let session = try sample.database.connect()
        let replay = try QuarantineReplay(
            verifier: sample.verifier(),
            now: IngestSample.now,
            session
        )
        return try replay.replay(entry, by: "me", ticket: "OPS-1")
    }

    /// A genuine text whose content contradicts itself.
    private func contradiction(_ number: Int) -> [UInt8] {
        sample.sign(
            .raw(
                "{\"notificationType\":\"TEST\",\"notificationType\":\"TEST\","
                    + "\"notificationUUID\":\"\(sample.uuid(number))\","
                    + "\"signedDate\":1700000000000,"
                    + "\"data\":{\"bundleId\":\"\(IngestSample.bundleID)\","
                    + "\"environment\":\"Sandbox\"}}"
            )
        )
    }

    @Test func whatCanBecomeAnEventNowDoesSoOnceAndTheListForgetsIt() throws {
        let received = sample.purchase(1)
        try keep(received, reason: "sqlstate_22P05")
        let entry = try #require(try quarantine.entries(includingResolved: false, limit: 9).first)
        #expect(entry.reason == "sqlstate_22P05")
        #expect(entry.sizeBytes == received.count)
        #expect(try quarantine.entries(named: String(entry.digest.prefix(8))) == [entry])
        #expect(try quarantine.received(entry) == received)

        #expect(try replay(entry) == .resolved(.appended, position: 1))
        #expect(try sample.count("select count(*) from ledger.mark") == 1)
        #expect(try quarantine.entries(includingResolved: false, limit: 9) == [])
        #expect(try quarantine.unresolvedCount() == 0)
        let dealtWith = try quarantine.entries(includingResolved: true, limit: 9)
        let resolution = try #require(dealtWith.first?.resolution)
        #expect(resolution.outcome == .appended)
        #expect(resolution.position == 1)
        #expect(resolution.operatorName == "me")
        #expect(resolution.ticket == "OPS-1")

        // A replay killed before its note finds the event there.
        #expect(try replay(entry) == .resolvedBefore)
        #expect(try sample.count("select count(*) from ledger.event") == 1)
        #expect(try LogAudit(connection).run().difference == nil)
    }

    @Test func whatWasDeliveredAgainMeanwhileIsADuplicate() throws {
        try keep(sample.purchase(1), reason: "sqlstate_22P05")
        #expect(try sample.ingest([sample.purchase(1)]).report.appended == 1)
        let entry = try #require(try quarantine.entries(includingResolved: false, limit: 9).first)
        #expect(try replay(entry) == .resolved(.duplicate, position: 1))
    }

    @Test func whatStillCannotBecomeAnEventStays() throws {
        try keep(contradiction(1), reason: "duplicate_key")
        let entry = try #require(try quarantine.entries(includingResolved: false, limit: 9).first)
        guard case .remains("duplicate_key", _) = try replay(entry) else {
            Issue.record("a text with a key twice cannot be an event")
            return
        }
        #expect(try quarantine.unresolvedCount() == 1)
        #expect(try sample.count("select count(*) from ledger.event") == 0)

        // Somebody may decide that nothing is to follow from it, once.
        #expect(try quarantine.resolve(entry, as: .dismissed, by: "me"))
        #expect(try !quarantine.resolve(entry, as: .dismissed, by: "you"))
        #expect(try quarantine.unresolvedCount() == 0)
        let names = try quarantine.entries(includingResolved: true, limit: 9)
        #expect(names.map { $0.resolution?.operatorName } == ["me"])
    }

    /// A renewal info names no app; its subscription may become known later.
    @Test func whatNamesNoAppIsAttributedOnceItsSubscriptionIsKnown() throws {
        let chain = sample.chain(1)
        let renewal = sample.sign([
            "originalTransactionId": .string(chain.originalTransactionID),
            "autoRenewProductId": "gold.month", "productId": "gold.month", "autoRenewStatus": 1,
            "environment": "Sandbox", "signedDate": 1_700_000_000_000,
        ])
        let (report, refused) = try sample.ingest([renewal])
        #expect(report.quarantined == 1, "\(refused)")
        let entry = try #require(try quarantine.entries(includingResolved: false, limit: 9).first)
        guard case .remains("app_unknown", _) = try replay(entry) else {
            Issue.record("nobody knows whose it is")
            return
        }
        _ = try sample.ingest([sample.purchase(1)])
        #expect(try replay(entry) == .resolved(.appended, position: 2))
    }

    @Test func aResolutionNeverChanges() throws {
        try keep(contradiction(1), reason: "duplicate_key")
        let entry = try #require(try quarantine.entries(includingResolved: false, limit: 9).first)
        #expect(try quarantine.resolve(entry, as: .dismissed, by: "me"))
        for sql in [
            "update ledger.quarantine_resolution set operator = 'x'",
            "delete from ledger.quarantine_resolution",
            "truncate ledger.quarantine_resolution",
            "update ledger.quarantine set reason = 'x'",
        ] {
            let error = #expect(throws: PostgresError.self) { try connection.execute(sql) }
            #expect(error?.sqlState == "2F002", "\(sql)")
        }
    }

    /// At the limit of a day a sender is to come again; events go on.
    @Test func onlySoMuchIsQuarantinedInADay() throws {
        let first = contradiction(1)
        let second = contradiction(2)
        let database = sample.database
        let full = Atomic<Int>(0)
        var limits = Committer.Limits()
        limits.quarantineBytesPerDay = Int64(first.count + second.count - 1)
        let committer = Committer(
            limits: limits,
            connect: { try database.connect() },
            quarantineIsFull: { _ in full.add(1, ordering: .relaxed) }
        )
        let webhook = Webhook(
            verifier: try sample.verifier(),
            committer: committer,
            refusals: RefusalBook { try database.connect() },
            now: { IngestSample.now }
        )
        func deliver(_ text: [UInt8]) -> Webhook.Answer? {
            let answer = Mutex<Webhook.Answer?>(nil)
            let isDone = DispatchSemaphore(value: 0)
            let body = Array("{\"signedPayload\":\"".utf8) + text + Array("\"}".utf8)
            webhook.receive(body, from: "192.0.2.1") { given in
                answer.withLock { $0 = given }
                isDone.signal()
            }
            isDone.wait()
            return answer.withLock { $0 }
        }
        #expect(deliver(first)?.reason == "quarantined")
        let refused = deliver(second)
        #expect(refused?.status == 503)
        #expect(refused?.reason == "quarantine_full")
        #expect(refused?.retryAfterSeconds == 3600)
        #expect(full.load(ordering: .relaxed) == 1)
        #expect(deliver(first)?.status == 200, "what is kept already needs no room")
        #expect(deliver(sample.purchase(3))?.reason == "stored")
        #expect(try sample.count("select count(*) from ledger.quarantine") == 1)
        #expect(webhook.measures.value(of: "quarantine_full") == 1)
        committer.stop()
    }
}
