import AppStore
import AppStoreSimulator
import EventLog
import Ledger
import LedgerService
import Postgres
import Schema
import Synchronization
import TestSupport
import Testing

@Suite struct RecorderTests {
    private let reconcile: ReconcileSample
    private let recorder: ResponseRecorder
    private let client: AppStoreClient
    private let id: String
    private let path: String

    init() throws {
        reconcile = try ReconcileSample()
        recorder = try reconcile.recorder()
        client = try reconcile.clients().accounts[0].client
        id = reconcile.sample.chain(1).originalTransactionID
        path = "/inApps/v1/subscriptions/\(id)"
    }

    private func read(_ body: String) throws -> RecordedResponse {
        reconcile.apple.state.withLock { $0.bodies[path] = body }
        let response = try client.send(.subscriptionStatuses(id: id))
        return try recorder.record(response, about: id)
    }

    @Test func anAnswerBecomesOneEventForEachFactAndOneThatIsTheBody() throws {
        let body = reconcile.statuses(1, at: 1_700_100_000_000, status: 4)
        #expect(try read(body).appended == 3)
        let rows = try reconcile.sample.database.connect().query(
            """
            select kind, provenance, stream, correlation, position from ledger.event
            order by position
            """
        )
        try #require(rows.count == 4)
        let kinds = (0..<4).map { "\(rows.text($0, 0) ?? "") \(rows.text($0, 1) ?? "")" }
        #expect(
            kinds == [
                "transaction jws", "renewal_info jws", "subscription_status tls",
                "api_response tls",
            ]
        )
        #expect((0..<3).allSatisfy { rows.text($0, 2) == id })
        #expect(rows.text(3, 2) == "api:test")
        #expect(Set((0..<4).map { rows.text($0, 3) ?? "" }).count == 1)
        // The body comes back byte for byte, and it is stored taken apart.
        let reader = LogReader(try reconcile.sample.database.connect())
        let evidence = try #require(try reader.evidence(at: rows.int(3, 4) ?? 0))
        #expect(evidence.received == Array(body.utf8))
        #expect(evidence.codec == .response && evidence.layers.count == 2)
        #expect(try LogAudit(reconcile.sample.database.connect()).run().difference == nil)
        // The status is folded with the rest, and decoded from its evidence as from its row.
        let key = try #require(try reader.keys(ofStream: id).first)
        let facts = try reader.facts(of: key)
        #expect(facts.map(\.fact.status) == [nil, nil, 4])
        let other = FactSource(version: 99, fact: FactSource.current.fact)
        let decoded = try LogReader(reconcile.sample.database.connect(), source: other)
            .facts(of: key)
        #expect(decoded == facts)
    }

    @Test func anUnchangedAnswerAppendsNothingAndIsNoted() throws {
        _ = try read(reconcile.statuses(1, at: 1_700_100_000_000))
        let again = try read(reconcile.statuses(1, at: 1_700_200_000_000))
        #expect(again.appended == 0 && again.unchanged == 3)
        #expect(try reconcile.count("select count(*) from ledger.event") == 4)
        let poll = try reconcile.sample.database.connect().query(
            "select polls, unchanged, outcome from ledger.poll where source = 'subscription_statuses'"
        )
        #expect(poll.int(0, 0) == 2 && poll.int(0, 1) == 3 && poll.text(0, 2) == "ok")
    }

    @Test func whatANotificationSaidAlreadyIsUnchanged() throws {
        _ = try reconcile.sample.ingest([reconcile.sample.purchase(1)])
        let answer = try read(reconcile.statuses(1, at: 1_700_200_000_000))
        #expect(answer.appended == 0 && answer.unchanged == 3)
    }

    @Test func aStateThatComesBackIsAThirdEventAndAFourth() throws {
        func revoked(_ isRevoked: Bool, _ day: Int64) throws -> Int {
            let at = 1_700_100_000_000 + day * 86_400_000
            let body = reconcile.statuses(1, at: at) { payload in
                if isRevoked { payload["revocationDate"] = .integer(1_700_050_000_000) }
            }
            return try read(body).appended
        }
        #expect(try revoked(false, 0) == 3)
        #expect(try revoked(true, 1) == 1)
        #expect(try revoked(false, 2) == 1)
        #expect(try revoked(true, 3) == 1)
        #expect(try revoked(true, 4) == 0)
        #expect(
            try reconcile.count("select count(*) from ledger.event where kind = 'transaction'") == 4
        )
        // An answer that was saved before and comes late has its own place: it is no news.
        #expect(try revoked(true, 1) == 0)
    }

    @Test func aForeignTextInAnAnswerIsRefusedAndTheBodyKept() throws {
        let foreign = reconcile.statuses(1, at: 1_700_100_000_000) {
            $0["bundleId"] = .string("com.example.other")
        }
        let answer = try read(foreign)
        #expect(answer.rejected.map(\.reason) == [.bundleID])
        // The renewal info and the status that it vouches for are ours.
        #expect(answer.appended == 2)
        #expect(try reconcile.count("select count(*) from ledger.event") == 3)
    }

    @Test func aStatusWithoutASignedTextOfItsOwnIsNotBelieved() throws {
        let other = reconcile.sample.chain(2).originalTransactionID
        let body = reconcile.statuses(1, at: 1_700_100_000_000)
            .replacing(
                "\"originalTransactionId\":\"\(id)\"",
                with: "\"originalTransactionId\":\"\(other)\""
            )
        #expect(try read(body).appended == 2)
        let statuses = "select count(*) from ledger.event where kind = 'subscription_status'"
        #expect(try reconcile.count(statuses) == 0)
    }
}
