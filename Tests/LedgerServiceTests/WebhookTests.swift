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

/// What is answered to a delivery, and what is there afterwards; without HTTP around it.
@Suite struct WebhookTests {
    private let sample: IngestSample
    private let committer: Committer
    private let refusals: RefusalBook

    init() throws {
        sample = try IngestSample()
        let database = sample.database
        committer = Committer { try database.connect() }
        refusals = RefusalBook { try database.connect() }
    }

    private func webhook(
        now: Timestamp = IngestSample.now,
        committer other: Committer? = nil
    ) throws -> Webhook {
        Webhook(
            verifier: try sample.verifier(),
            committer: other ?? committer,
            refusals: refusals,
            now: { now }
        )
    }

    private static func body(_ signedPayload: [UInt8]) -> [UInt8] {
        Array("{\"signedPayload\":\"".utf8) + signedPayload + Array("\"}".utf8)
    }

    /// Delivers bodies at once and waits for all answers.
    private func deliver(_ bodies: [[UInt8]], to webhook: Webhook) -> [Webhook.Answer?] {
        let answers = Mutex([Webhook.Answer?](repeating: nil, count: bodies.count))
        let answered = DispatchSemaphore(value: 0)
        for (place, body) in bodies.enumerated() {
            webhook.receive(body, from: "192.0.2.1") { answer in
                answers.withLock { $0[place] = answer }
                answered.signal()
            }
        }
        for _ in bodies { answered.wait() }
        return answers.withLock { $0 }
    }

    private func count(_ sql: String) throws -> Int64 {
        try sample.count("select count(*) from \(sql)") ?? -1
    }

    @Test func whatIsAnsweredWith200IsInTheLog() throws {
        let webhook = try webhook()
        let unknown = sample.purchase(2) { $0["notificationType"] = "FUTURE_TYPE" }
        let answers = deliver(
            [Self.body(sample.purchase(1)), Self.body(unknown), Self.body(sample.purchase(1))],
            to: webhook
        )
        #expect(answers.map { $0?.status } == [200, 200, 200])
        #expect(answers.map { $0?.reason } == ["stored", "stored", "duplicate"])
        #expect(answers[2]?.position == answers[0]?.position)
        #expect(try count("ledger.event") == 2)
        #expect(webhook.measures.value(of: "stored") == 2)
        #expect(webhook.measures.unrecognised.value == 1)
        #expect(try count("ledger.refusal") == 0)
    }

    @Test func whereProductionComesTooSandboxIsVerifiedAside() throws {
        let lane = VerificationLane(threads: 1)
        defer { lane.stop() }
        let webhook = Webhook(
            verifier: try sample.verifier(),
            committer: committer,
            refusals: refusals,
            lane: lane,
            now: { IngestSample.now }
        )
        // Without Production nothing is put aside.
        let isBusy = DispatchSemaphore(value: 0)
        let isFree = DispatchSemaphore(value: 0)
        #expect(
            lane.submit {
                isBusy.signal()
                isFree.wait()
            }
        )
        isBusy.wait()
        #expect(deliver([Self.body(sample.purchase(1))], to: webhook).first??.status == 200)

        // A test authority does not vouch for Production: it is refused, and at once.
        let production = sample.purchase(2) { envelope in
            envelope["data"]?["environment"] = "Production"
        }
        #expect(deliver([Self.body(production)], to: webhook).first??.status == 400)
        let answer = Mutex<Webhook.Answer?>(nil)
        let isAnswered = DispatchSemaphore(value: 0)
        webhook.receive(Self.body(sample.purchase(3)), from: "192.0.2.1") { given in
            answer.withLock { $0 = given }
            isAnswered.signal()
        }
        #expect(deliver([Self.body(production)], to: webhook).first??.status == 400)
        #expect(answer.withLock { $0 } == nil, "it waits for the lane")
        isFree.signal()
        isAnswered.wait()
        #expect(answer.withLock { $0?.reason } == "stored")
    }

    @Test func aNotificationOfAnyShapeThatBelongsToNoSubscriptionIsStored() throws {
        let app: [WireMember] = [
            WireMember("bundleId", .string(IngestSample.bundleID)),
            WireMember("environment", "Sandbox"),
        ]
        let shapes: [(String, String, WireValue)] = [
            ("TEST", "data", .object(app)),
            (
                "RENEWAL_EXTENSION", "summary",
                .object(app + [WireMember("requestIdentifier", "r"), WireMember("failedCount", 0)])
            ),
            ("RESCIND_CONSENT", "appData", .object(app)),
            (
                "EXTERNAL_PURCHASE_TOKEN", "externalPurchaseToken",
                .object([
                    WireMember("externalPurchaseId", "SANDBOX_1"),
                    WireMember("bundleId", .string(IngestSample.bundleID)),
                ])
            ),
        ]
        let bodies = shapes.enumerated().map { number, shape in
            let payload: WireValue = [
                "notificationType": .string(shape.0),
                "notificationUUID": .string(sample.uuid(number)),
                shape.1: shape.2, "signedDate": 1_700_000_000_000,
            ]
            return Self.body(sample.sign(payload))
        }
        let answers = deliver(bodies, to: try webhook())
        #expect(answers.map { $0?.reason } == Array(repeating: "stored", count: 4))
    }

    @Test func whatCanNeverBeValidIsRefusedAndRemembered() throws {
        let webhook = try webhook()
        let other = sample.purchase(1, bundleID: "com.example.other")
        var forged = sample.purchase(2)
        forged[forged.count - 8] = forged[forged.count - 8] == 65 ? 66 : 65
        let transaction = sample.sign([
            "transactionId": "1", "originalTransactionId": "1", "type": "Consumable",
            "bundleId": .string(IngestSample.bundleID), "environment": "Sandbox",
            "signedDate": 1_700_000_000_000,
        ])
        let bodies = [
            Self.body(other), Self.body(forged), Self.body(transaction), [], Array("{}".utf8),
            Array("{\"signedPayload\":1}".utf8), Array("{\"signedPayload\":\"a.b.c\"}".utf8),
            Array("{\"latest_receipt\":\"x\"}".utf8),
            Array("{\"signedPayload\":\"a\",\"signedPayload\":\"b\"}".utf8), [0xFF, 0x00],
        ]
        let answers = deliver(bodies, to: webhook)
        #expect(answers.allSatisfy { $0?.status == 400 && $0?.retryAfterSeconds == nil })
        #expect(
            answers.compactMap { $0?.reason } == [
                "bundle_id", "bad_signature", "malformed_jws", "bad_json", "malformed_jws",
                "malformed_jws", "bad_base64url", "malformed_jws", "duplicate_key", "bad_json",
            ]
        )
        refusals.drain()
        #expect(try count("ledger.refusal") == 10)
        #expect(try count("ledger.event") == 0)
        // Another app's text is not kept: anyone can obtain such signatures.
        #expect(try count("ledger.quarantine") == 0)
        let latest = try RefusedDelivery.latest(10, sample.database.connect())
        let foreign = latest.first { $0.reason == "bundle_id" }
        #expect(foreign?.bundleID == "com.example.other")
        #expect(foreign?.notificationType == "SUBSCRIBED")
        #expect(foreign?.peer == "192.0.2.1")
        #expect(foreign?.digest?.count == 32)
    }

    @Test func whatAppleSignedForUsButCannotBeUsedIsKeptAside() throws {
        let twice = sample.sign(
            .raw(
                "{\"notificationType\":\"TEST\",\"notificationType\":\"TEST\","
                    + "\"notificationUUID\":\"\(sample.uuid(3))\",\"signedDate\":1700000000000,"
                    + "\"data\":{\"bundleId\":\"\(IngestSample.bundleID)\","
                    + "\"environment\":\"Sandbox\"}}"
            )
        )
        let answers = deliver([Self.body(twice), Self.body(twice)], to: try webhook())
        #expect(answers.map { $0?.status } == [200, 200])
        #expect(answers.map { $0?.reason } == ["quarantined", "quarantined"])
        #expect(try count("ledger.quarantine") == 1)
        #expect(try count("ledger.refusal") == 0)
    }

    @Test func whatMayBeValidLaterIsToBeSentAgain() throws {
        // Our clock is a day behind.
        let early = try webhook(now: Timestamp(milliseconds: 1_600_000_000_000))
        let answer = deliver([Self.body(sample.purchase(1))], to: early)[0]
        #expect(answer?.status == 503)
        #expect(answer?.reason == "signed_date_future")
        #expect(answer?.retryAfterSeconds == 30)
        #expect(try count("ledger.event") == 0)
    }

    @Test func withoutADatabaseNothingIsAcknowledged() throws {
        let isAway = Atomic<Bool>(true)
        let database = sample.database
        var limits = Committer.Limits()
        limits.patience = .milliseconds(20)
        let committer = Committer(limits: limits) {
            if isAway.load(ordering: .relaxed) {
                throw PostgresError(code: .connection, message: "refused by host secret.example")
            }
            return try database.connect()
        }
        let webhook = try webhook(committer: committer)
        let answer = deliver([Self.body(sample.purchase(1))], to: webhook)[0]
        #expect(answer?.status == 503)
        #expect(answer?.reason == "database_unavailable")
        #expect((answer?.retryAfterSeconds ?? 0) > 0)
        #expect(answer?.detail.contains("secret") == false, "a stranger learns nothing")
        isAway.store(false, ordering: .relaxed)
        let again = deliver([Self.body(sample.purchase(1))], to: webhook)[0]
        #expect(again?.reason == "stored")
        committer.stop()
    }

    @Test func ofRefusalsOnlyTheLatestAreKept() throws {
        let database = sample.database
        let book = RefusalBook(keptMax: 5) { try database.connect() }
        for number in 1...20 {
            let at = Timestamp(milliseconds: Int64(number))
            book.add(RefusedDelivery(at: at, reason: "bad_json", sizeBytes: number))
            book.drain()
        }
        let latest = try RefusedDelivery.latest(100, database.connect())
        #expect(latest.map(\.sizeBytes) == [20, 19, 18, 17, 16])
        #expect(book.lost.value == 0)
    }
}
