import AppStore
import AppStoreSimulator
import EventLog
import Ledger
import LedgerService
import Postgres
import TestSupport
import Testing

/// Why a customer wishes for a refund, from Apple's signed text to where an operator looks.
@Suite struct RefundReasonTests {
    /// A purchase, and requests about its refund with the given reasons, an hour apart.
    private static func told(_ reasons: [WireValue?]) throws -> IngestSample {
        let sample = try IngestSample()
        let chain = sample.chain(1)
        var lines = [sample.purchase(1)]
        for (place, reason) in reasons.enumerated() {
            var notice = Notice.initialBuy(of: chain, uuid: sample.uuid(10 + place))
            notice.type = "CONSUMPTION_REQUEST"
            notice.subtype = nil
            notice.signedDate += Int64(place + 1) * 3_600_000
            notice.transaction?.signedDate = notice.signedDate - 20
            notice.renewal?.signedDate = notice.signedDate - 30
            lines.append(
                sample.signer.sign(
                    notice,
                    of: chain,
                    changingEnvelope: { $0["data"]?["consumptionRequestReason"] = reason }
                )
            )
        }
        let (report, refused) = try sample.ingest(lines)
        #expect(report.appended == Int64(lines.count) && refused.isEmpty)
        return sample
    }

    private static func column(_ sample: IngestSample) throws -> [String?] {
        let rows = try sample.database.connect().query(
            "select consumption_request_reason from ledger.fact order by position"
        )
        return (0..<rows.count).map { rows.text($0, 0) }
    }

    private static func row(_ sample: IngestSample) throws -> String? {
        let rows = try sample.database.connect().query(
            """
            select refund_request_reason from read_model.subscription
            where generation = (
                select generation from read_model.current where projection = 'entitlement')
            """
        )
        #expect(rows.count == 1)
        return rows.text(0, 0)
    }

    private static func explanation(
        _ sample: IngestSample,
        known: Knowledge? = nil
    ) throws -> Explanation {
        try #require(
            try Explanation.explanations(
                of: sample.chain(1).originalTransactionID,
                known: known,
                sample.database.connect()
            ).first
        )
    }

    private static func json(_ explanation: Explanation) -> String {
        var json = JSONWriter()
        explanation.write(to: &json)
        return json.text
    }

    @Test func theLastReasonIsWhereAnOperatorLooks() throws {
        let sample = try Self.told(["LEGAL", "GIFT_NOT_WANTED", nil])
        #expect(try Self.column(sample) == [nil, "LEGAL", "GIFT_NOT_WANTED", nil])
        try Projector(sample.database.connect()).project()
        #expect(try Self.row(sample) == "GIFT_NOT_WANTED")
        let explanation = try Self.explanation(sample)
        #expect(explanation.refund?.reason == "GIFT_NOT_WANTED")
        #expect(explanation.text.contains("about a refund, for the reason GIFT_NOT_WANTED; an an"))
        #expect(explanation.anomalies.contains("unknown_value"))
        #expect(Self.json(explanation).contains(#""decision":null,"reason":"GIFT_NOT_WANTED"}"#))
        // What was known when the first request had come.
        let then = try Self.explanation(sample, known: .position(2))
        #expect(then.refund?.reason == "LEGAL")
        #expect(then.anomalies.isEmpty)
        // A rebuild folds the rows of the log to the same.
        _ = try Rebuild(["entitlement"], connect: sample.connect).run()
        #expect(try Self.row(sample) == "GIFT_NOT_WANTED")
    }

    @Test func withoutAReasonNoneIsTold() throws {
        let sample = try Self.told([nil])
        try Projector(sample.database.connect()).project()
        #expect(try Self.row(sample) == nil)
        let explanation = try Self.explanation(sample)
        #expect(explanation.refund != nil && explanation.refund?.reason == nil)
        #expect(explanation.text.contains("about a refund; an answer is of use until"))
        #expect(Self.json(explanation).contains(#""decision":null,"reason":null}"#))
    }

    /// Apple's words are anybody's words to a terminal: they neither steer it nor make lines.
    @Test func aReasonCannotPretendToBeALineOfItsOwn() throws {
        let sample = try Self.told(["NEW\u{1B}[2J\u{9B}1m\u{202E}\nAt 2026-01-01: access"])
        try Projector(sample.database.connect()).project()
        let text = try Self.explanation(sample).text
        #expect(
            text.contains("NEW\u{FFFD}[2J\u{FFFD}1m\u{FFFD}\u{FFFD}At 2026-01-01: access;")
        )
        #expect(!text.split(separator: "\n").contains { $0.hasPrefix("At 2026") })
        #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || $0.value >= 0x20 })
    }

    /// As a ledger of an older program is: its rows have no reason, and say which decoder made them.
    @Test func rowsOfAnOlderDecoderAreReadFromTheirEvidence() throws {
        let sample = try Self.told(["FULFILLMENT_ISSUE"])
        let connection = try sample.database.connect()
        try connection.execute(
            "update ledger.fact set decoder = 1, consumption_request_reason = null"
        )
        try Projector(connection).project()
        #expect(try Self.row(sample) == "FULFILLMENT_ISSUE")
        #expect(try LedgerAudit(connection).run().difference == nil)
        #expect(try Redecode(connect: sample.connect).run().rows == 2)
        #expect(try Self.column(sample) == [nil, "FULFILLMENT_ISSUE"])
        #expect(try connection.query("select 1 from ledger.fact where decoder = 1").count == 0)
        #expect(try Self.explanation(sample).refund?.reason == "FULFILLMENT_ISSUE")
    }

    @Test(arguments: ["'OTHER'", "null", "'NEW'"])
    func aChangedReasonIsNamedByTheAudit(_ value: String) throws {
        let sample = try Self.told(["LEGAL"])
        let connection = try sample.database.connect()
        #expect(try LedgerAudit(connection).run().difference == nil)
        try connection.execute(
            "update ledger.fact set consumption_request_reason = \(value) where position = 2"
        )
        #expect(try LedgerAudit(connection).run().difference != nil)
    }
}
