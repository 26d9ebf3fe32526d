import AppStore
import AppStoreSimulator
import EventLog
import Ledger
import Postgres
import TestSupport
import Testing

@testable import LedgerService

/// Responses of verifyReceipt in the log: once each, byte for byte, below every signature.
@Suite struct ReceiptImportTests {
    private static let t0: Int64 = 1_760_000_000_000
    private static let day: Int64 = 86_400_000
    private let sample: IngestSample

    init() throws { sample = try IngestSample() }

    private static func item(
        _ id: Int64,
        of original: Int64 = 7001,
        from: Int64 = t0,
        _ more: String = ""
    ) -> String {
        #"{"transaction_id":"\#(id)","original_transaction_id":"\#(original)","#
            + #""product_id":"gold.month","purchase_date_ms":"\#(from)","#
            + #""expires_date_ms":"\#(from + 30 * day)"\#(more)}"#
    }

    private static func body(
        _ items: [String],
        renewal: String = "[]",
        bundleID: String = IngestSample.bundleID,
        environment: String = "Sandbox",
        requested: Int64 = t0 + 5 * day
    ) -> String {
        #"{"status":0,"environment":"\#(environment)","receipt":{"bundle_id":"\#(bundleID)","#
            + #""request_date_ms":"\#(requested)","in_app":[]},"#
            + #""latest_receipt_info":[\#(items.joined(separator: ","))],"latest_receipt":"MIIT","#
            + #""pending_renewal_info":\#(renewal)}"#
    }

    private func take(
        _ text: String,
        changing change: (ReceiptImport) -> Void = { _ in }
    ) throws -> (report: ReceiptReport, refused: [RefusedLine]) {
        let folder = try ScratchFolder()
        let reader = try LineReader(
            path: folder.file("receipts", Array(text.utf8)),
            limitBytes: ReceiptDocuments.sizeMaxBytes
        )
        let database = sample.database
        let receipts = ReceiptImport(
            apps: [
                AcceptedApp(
                    bundleID: IngestSample.bundleID,
                    appAppleID: nil,
                    environments: [.sandbox]
                )
            ]
        ) { try database.connect() }
        change(receipts)
        var refused: [RefusedLine] = []
        var listener = ReceiptImport.Listener()
        listener.refused = { refused.append($0) }
        let report = try receipts.run(
            ReceiptDocuments(reader),
            now: IngestSample.now,
            listener: listener
        )
        return (report, refused)
    }

    @Test func aFileReadTwiceAppendsOnce() throws {
        let renewal = #"[{"original_transaction_id":"7001","auto_renew_status":"1"}]"#
        let file = Self.body([Self.item(7001), Self.item(7002, of: 7002)], renewal: renewal)
        let first = try take(file)
        #expect(first.refused == [])
        #expect(first.report.appended == 3)
        let head = try sample.count("select position from ledger.head")
        #expect(head == 4)
        // Spelled over many lines it is the same, and the same twice in one file.
        let second = try take(file.replacing(",", with: ",\n") + "\n\n" + file)
        #expect(second.report.bodies == 2)
        #expect(second.report.appended == 0)
        #expect(second.report.duplicate == 6)
        #expect(try sample.count("select position from ledger.head") == head)
    }

    @Test func askedAgainLaterItAppendsOnlyWhatChanged() throws {
        _ = try take(Self.body([Self.item(7001)]))
        let later = try take(
            Self.body(
                [Self.item(7001), Self.item(7002, from: Self.t0 + 30 * Self.day)],
                requested: Self.t0 + 40 * Self.day
            )
        )
        #expect(later.report.appended == 1)
        #expect(later.report.duplicate == 1)
        // An older response read afterwards changes nothing of it, and is known when read again.
        let cancelled = Self.item(7001, #","cancellation_date_ms":"\#(Self.t0)""#)
        let old = Self.body([cancelled], requested: Self.t0 + 2 * Self.day)
        #expect(try take(old).report.appended == 1)
        #expect(try take(old).report.appended == 0)
        #expect(try take(Self.body([Self.item(7001)])).report.appended == 0)
    }

    @Test func theResponseIsKeptByteForByteAndItsFactsNameIt() throws {
        let body = Self.body([Self.item(7001)]).replacing(",", with: " ,\n\t")
        _ = try take(body)
        let reader = LogReader(try sample.database.connect())
        let whole = try #require(try reader.evidence(at: 1))
        #expect(whole.received == Array(body.utf8))
        #expect(whole.event.provenance == .receipt)
        #expect(whole.event.kind == .apiResponse)
        let part = try #require(try reader.evidence(at: 2))
        #expect(part.event.provenance == .receipt)
        #expect(part.event.correlation == whole.event.correlation)
        let reading = try #require(try ReceiptReading(evidence: part.received))
        #expect(reading.app.environment == .sandbox)
        #expect(body.contains(String(decoding: reading.element.bytes, as: UTF8.self)))
    }

    @Test func eachResponseThatCannotBeUsedIsNamed() throws {
        let lines = [
            Self.body([Self.item(7001)]), #"{"notification_type":"CANCEL","unified_receipt":{}}"#,
            #"{"status":21007}"#, Self.body([Self.item(7003, of: 7003)], bundleID: "com.other"),
            Self.body([Self.item(7003, of: 7003)], environment: "Production"), "{\"status\":0",
            Self.body([], bundleID: "com.other"),
            Self.body([Self.item(7003, of: 7003)], requested: 1_900_000_000_000),
            #"{"status":0,"receipt":{"bundle_id":"x","in_app":[{"transaction_id":"a"}]}}"#,
            Self.body([Self.item(7004, of: 7004), "{}"]),
        ]
        let (report, refused) = try take(lines.joined(separator: "\n"))
        #expect(report.bodies == 10)
        #expect(report.empty == 1)
        #expect(report.rejected == 7)
        #expect(report.appended == 2)
        #expect(report.flagged == 1)
        #expect(
            Set(refused.map { "\($0.line) \($0.outcome) \($0.reason)" }) == [
                "2 rejected version_1_notification", "3 rejected status", "4 rejected bundle_id",
                "5 rejected environment", "6 rejected bad_json", "8 rejected in_the_future",
                "9 rejected bundle_id", "10 flagged original_transaction_id",
            ]
        )
        let kept = try sample.count(
            "select count(*) from ledger.evidence_text where payload like '%com.other%'"
        )
        #expect(kept == 0)
    }

    @Test func aResponseThatNamesNoAppTakesTheOneThatIsGiven() throws {
        let body =
            #"{"status":0,"receipt":{"transaction_id":"7001","original_transaction_id":"7001","#
            + #""product_id":"gold.month","purchase_date":"2025-10-09 08:53:20 Etc/GMT","#
            + #""expires_date":"1762592000000"}}"#
        #expect(try take(body).refused.map(\.reason) == ["bundle_id"])
        let given = try take(body) {
            $0.bundleID = IngestSample.bundleID
            $0.environment = .sandbox
        }
        #expect(given.report.appended == 1)
        let factAt = try sample.count(
            "select (extract(epoch from fact_at) * 1000)::bigint from ledger.fact "
                + "where kind = 'receipt'"
        )
        #expect(factAt == 1_760_000_000_000)
    }

    @Test func anAuditOfReceiptsSaysThatNobodySignedThem() throws {
        _ = try sample.ingest([sample.purchase(1)])
        _ = try take(Self.body([Self.item(7001)]))
        let connection = try sample.database.connect()
        let report = try LedgerAudit(connection).run()
        #expect(report.difference == nil)
        #expect(report.signatures == 1)
        #expect(report.unsigned == 2)
        #expect(report.receipts == 1)
        // What was decoded is compared with the evidence all the same.
        try connection.execute(
            "set session_replication_role = replica; update ledger.fact "
                + "set expires_date = expires_date + interval '1 day' where kind = 'receipt'"
        )
        let changed = try LedgerAudit(connection).run()
        #expect(changed.difference?.position == 3)
    }

    @Test func anotherDecoderReadsTheSameFromTheEvidence() throws {
        let renewal = #"[{"original_transaction_id":"7001","auto_renew_status":"0"}]"#
        _ = try take(Self.body([Self.item(7001)], renewal: renewal))
        let connection = try sample.database.connect()
        let reader = LogReader(connection)
        let key = try #require(try reader.keys(ofStream: "7001").first)
        let before = try reader.facts(of: key)
        try connection.execute(
            "set session_replication_role = replica; update ledger.fact set decoder = 0"
        )
        #expect(before.count == 2)
        #expect(try reader.facts(of: key) == before)
    }

    @Test func aSignedTransactionOutranksItInTheReadModelAndExplainShowsBoth() throws {
        let chain = sample.chain(1)
        let original = try #require(Int64(chain.originalTransactionID))
        let claim = Self.item(
            original,
            of: original,
            from: chain.originalPurchaseDate,
            #","cancellation_date_ms":"\#(chain.originalPurchaseDate + 1000)""#
        )
        _ = try take(Self.body([claim], requested: 1_700_500_000_000))
        let connection = try sample.database.connect()
        _ = try Projector(connection).project()
        let alone = try #require(
            try Explanation.explanations(of: "\(original)", connection).first
        )
        #expect(alone.timeline.last?.state == "revoked")
        #expect(alone.timeline.last?.confidence == "provisional")
        _ = try sample.ingest([sample.purchase(1)])
        _ = try Projector(connection).project()
        let both = try #require(
            try Explanation.explanations(of: "\(original)", connection).first
        )
        #expect(!both.timeline.contains { $0.state == "revoked" })
        #expect(both.timeline.first?.confidence == "confirmed")
        #expect(both.text.contains("receipt (unsigned, from a receipt)"))
    }
}
