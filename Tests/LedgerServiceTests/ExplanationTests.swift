import EventLog
import Ledger
import Testing

@testable import LedgerService

@Suite struct ExplanationTests {
    private static func refunded() throws -> LogFixture {
        let log = try LogFixture()
        var refund = LogFixture.month(1)
        refund.revocationDate = LogFixture.day(9)
        refund.revocationReason = 0
        refund.digest = 99
        try log.append([
            log.event(
                "7001",
                "a",
                .subscribed,
                .initialBuy,
                at: LogFixture.t0,
                LogFixture.month(1)
            ),
            log.event("7001", "b", .refund, at: LogFixture.day(9), refund),
        ])
        try Projector(log.connection).project()
        return log
    }

    @Test func itNamesTheEventsThatDecidedEachStretch() throws {
        let log = try Self.refunded()
        let all = try Explanation.explanations(of: "7001", log.connection)
        let explanation = try #require(all.first)
        #expect(explanation.timeline.map(\.state) == ["active", "revoked"])
        #expect(explanation.timeline.last?.positions.contains(2) == true)
        let text = explanation.text
        #expect(text.contains("revoked (refund), gold.month: no access"))
        #expect(text.contains("because of #2 REFUND, signed 2025-10-18T08:53:20.000Z"))
        #expect(text.contains("  #1 SUBSCRIBED / INITIAL_BUY"))
        #expect(text.contains("* #2 REFUND"))
    }

    @Test func anInstantIsAnsweredFirst() throws {
        let log = try Self.refunded()
        let explanation = try #require(
            try Explanation.explanations(of: "7001", at: LogFixture.day(3), log.connection).first
        )
        #expect(explanation.answer?.state == "active")
        #expect(
            explanation.text.contains("At 2025-10-12T08:53:20.000Z: active, gold.month: access")
        )
        #expect(explanation.text.contains("▶ 2025-10-09T08:53:20.000Z"))
        var json = JSONWriter()
        explanation.write(to: &json)
        #expect(json.text.contains(#""answer":{"original_transaction_id":"7001""#))
    }

    @Test func aWishForARefundIsToldWithWhatBecameOfIt() throws {
        let log = try LogFixture()
        let month = LogFixture.month(1)
        func asked(_ day: Double, _ type: NotificationType, _ uuid: String) -> NewEvent {
            log.event("7001", uuid, type, at: LogFixture.day(day), month)
        }
        try log.append([
            log.event("7001", "a", .subscribed, .initialBuy, at: LogFixture.t0, month),
            asked(9, .consumptionRequest, "b"), asked(9.5, .consumptionRequest, "c"),
        ])
        try Projector(log.connection).project()
        let open = try #require(try Explanation.explanations(of: "7001", log.connection).first)
        #expect(open.refund?.requestedAt == LogFixture.day(9))
        #expect(open.refund?.answerBy == LogFixture.day(10))
        #expect(open.refund?.decision == nil)
        #expect(open.text.contains("an answer is of use until 2025-10-19T08:53:20.000Z."))
        try log.append([asked(12, .refundDeclined, "d")])
        try Projector(log.connection).project()
        let closed = try #require(try Explanation.explanations(of: "7001", log.connection).first)
        #expect(closed.refund?.decision == "declined")
        #expect(closed.text.contains("about a refund; it was declined."))
        var json = JSONWriter()
        closed.write(to: &json)
        #expect(
            json.text.contains(
                #""refund_request":{"requested_at":"2025-10-18T08:53:20.000Z","#
                    + #""answer_by":"2025-10-19T08:53:20.000Z","decision":"declined","#
                    + #""reason":null}"#
            )
        )
        // What was known before the decision came.
        let then = try Explanation.explanations(
            of: "7001",
            known: Knowledge.position(3),
            log.connection
        )
        #expect(then.first?.refund == open.refund)
        #expect(then.first?.timeline.first?.state == "active")
    }

    @Test func aStreamWithoutSubscriptionIsToldApartFromAnUnknownOne() throws {
        let log = try LogFixture()
        var coins = TransactionFact(
            transactionID: AppleID(7009),
            signedDate: LogFixture.t0,
            digest: 1
        )
        coins.productType = .consumable
        try log.append([log.event("7009", "c", .oneTimeCharge, at: LogFixture.t0, coins)])
        try Projector(log.connection).project()
        let found = try Explanation.explanations(of: "7009", log.connection)
        #expect(found.first?.text.contains("no auto-renewable subscription") == true)
        #expect(try Explanation.explanations(of: "7010", log.connection).isEmpty)
    }

    @Test func whatWaitsToBeFoldedIsSaid() throws {
        let log = try Self.refunded()
        try log.append([
            log.event("7001", "c", .didRenew, at: LogFixture.day(30), LogFixture.month(2, 30))
        ])
        let stale = try #require(
            try Explanation.explanations(of: "7001", log.connection).first
        )
        #expect(stale.isStale)
        #expect(stale.events.count == 3)
        #expect(stale.text.contains("wait to be folded"))
    }

    @Test func eventsAreListedForEveryAppThatHasTheStream() throws {
        let log = try Self.refunded()
        let streams = try EventQuery(stream: "7001").streams(log.connection)
        #expect(streams.map(\.app.bundleID) == ["com.example.app"])
        #expect(streams.first?.events.map(\.title) == ["SUBSCRIBED / INITIAL_BUY", "REFUND"])
        var json = JSONWriter()
        json.beginArray()
        streams.first?.write(to: &json)
        json.endArray()
        #expect(json.text.contains(#""position":2,"stream":"7001","kind":"notification""#))
        let evidence = try EventQuery.evidence(at: 1, log.connection)
        #expect(
            evidence.map { String(decoding: $0.received, as: UTF8.self) } == "7001 a SUBSCRIBED"
        )
    }
}
