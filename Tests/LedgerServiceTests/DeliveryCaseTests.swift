import AppStoreSimulator
import EventLog
import Foundation
import Ledger
import LedgerService
import Postgres
import TestSupport
import Testing

/// Class C of the public bug reports, how notifications come in: from the signed text to the rows.
@Suite struct DeliveryCaseTests {
    private let sample: IngestSample

    init() throws { sample = try IngestSample() }

    private func project() throws -> Projector.Report {
        try Projector(sample.database.connect()).project()
    }

    /// The states of a chain's timeline as they are projected.
    private func states(_ chain: Chain) throws -> [String] {
        let rows = try sample.database.connect().query(
            """
            select state || coalesce(' ' || cause, '') || ' ' || state_from
            from read_model.entitlement_interval
            where stream = $1 order by valid_from
            """,
            [.text(chain.originalTransactionID)]
        )
        return (0..<rows.count).compactMap { rows.text($0, 0) }
    }

    /// A refund of a chain's first purchase, so many milliseconds after it.
    private func refund(of chain: Chain, _ uuid: Int, after: Int64) -> [UInt8] {
        var notice = Notice.initialBuy(of: chain, uuid: sample.uuid(uuid))
        let date = chain.originalPurchaseDate + after
        notice.type = "REFUND"
        notice.subtype = nil
        notice.signedDate = date
        notice.transaction?.signedDate = date - 40
        notice.renewal?.signedDate = date - 60
        notice.transaction?.revocation = NoticeTransaction.Revocation(date: date)
        return sample.signer.sign(notice, of: chain)
    }

    @Test func c01TheSameNoticeDeliveredAgainCountsOnce() throws {
        let notice = sample.purchase(1)
        let first = try sample.ingest([notice, notice])
        #expect(first.report.appended == 1)
        #expect(first.report.duplicate == 1)
        _ = try project()
        let moments = "select count(*) from read_model.lifecycle_moment"
        let before = try sample.count(moments)
        #expect(before ?? 0 > 0)
        // An hour later, in another run.
        let again = try sample.ingest([NoticeSigner.line(notice)])
        #expect(again.report.duplicate == 1)
        #expect(again.refused == [], "Apple is told that it was received")
        _ = try project()
        #expect(try sample.count("select count(*) from ledger.event") == 1)
        #expect(try sample.count(moments) == before)
        #expect(
            try sample.count("\(moments) where kind = 'new_paid'") == 1,
            "what was paid once is counted once"
        )
    }

    @Test func c02WhatIsNotStoredIsNotAcknowledged() throws {
        struct Gone: Error {}
        let lines = (1...3).map { sample.purchase($0) }
        #expect(throws: Gone.self) { try sample.ingest(lines) { throw Gone() } }
        #expect(try sample.count("select count(*) from ledger.event") == 0)
        // What was not acknowledged is delivered again.
        let later = try sample.ingest(lines)
        #expect(later.report.appended == 3)
        #expect(try sample.count("select count(*) from ledger.event") == 3)
    }

    @Test func c03ATestNoticeIsStoredAndChangesNothing() throws {
        let test: WireValue = [
            "notificationType": "TEST", "notificationUUID": .string(sample.uuid(1)),
            "data": ["bundleId": .string(IngestSample.bundleID), "environment": "Sandbox"],
            "signedDate": 1_700_000_000_000,
        ]
        let (report, refused) = try sample.ingest([sample.sign(test)])
        #expect(report.appended == 1)
        #expect(refused == [])
        _ = try project()
        #expect(
            try sample.count(
                "select count(*) from ledger.event where notification_type = 'TEST'"
            ) == 1
        )
        #expect(try sample.count("select count(*) from read_model.subscription") == 0)
    }

    @Test func c04ASummaryWithoutDataIsStoredAndTouchesNoSubscription() throws {
        let request = "11111111-0000-4000-8000-000000000001"
        let summary: WireValue = [
            "notificationType": "RENEWAL_EXTENSION", "subtype": "SUMMARY",
            "notificationUUID": .string(sample.uuid(2)),
            "summary": [
                "requestIdentifier": .string(request), "environment": "Sandbox",
                "bundleId": .string(IngestSample.bundleID), "productId": "gold.month",
                "succeededCount": 97, "failedCount": 3,
            ],
            "signedDate": 1_700_000_000_000,
        ]
        _ = try sample.ingest([sample.purchase(1)])
        _ = try project()
        let before = try states(sample.chain(1))
        let (report, refused) = try sample.ingest([sample.sign(summary)])
        #expect(report.appended == 1)
        #expect(refused == [])
        _ = try project()
        #expect(try states(sample.chain(1)) == before)
        #expect(try sample.count("select count(*) from read_model.subscription") == 1)
        // What it says is there to read.
        let kept = try sample.database.connect().query(
            "select payload from ledger.evidence_text where stream = $1",
            [.text("mass:\(request)")]
        )
        #expect(kept.text(0, 0)?.contains("\"succeededCount\":97") == true)
    }

    /// Each payload that has no `data`: the shape is looked at before anything in it.
    @Test func s35_everyShapeWithoutDataIsStoredAndFoldsNothing() throws {
        let app: WireValue = [
            "bundleId": .string(IngestSample.bundleID), "environment": "Sandbox",
        ]
        var consent = app
        consent["signedAppTransactionInfo"] = .string(
            String(
                decoding: sample.sign([
                    "receiptType": "Sandbox", "bundleId": .string(IngestSample.bundleID),
                    "receiptCreationDate": 1_700_000_000_000,
                    "appTransactionId": "704000000000000001",
                    "environment": "Sandbox", "signedDate": 1_700_000_000_000,
                ]),
                as: UTF8.self
            )
        )
        var seats = app
        seats["unclaimSeatIds"] = ["5e09dcfc-205e-4ea1-9883-96676f394992"]
        let token: WireValue = [
            "externalPurchaseId": "SANDBOX_1f0b", "tokenCreationDate": 1_700_000_000_000,
            "bundleId": .string(IngestSample.bundleID),
        ]
        let shapes: [(type: String, subtype: String?, form: String, value: WireValue)] = [
            ("EXTERNAL_PURCHASE_TOKEN", "CREATED", "externalPurchaseToken", token),
            ("EXTERNAL_PURCHASE_TOKEN", "UNREPORTED", "externalPurchaseToken", token),
            ("RESCIND_CONSENT", nil, "appData", consent),
            ("UNCLAIM_SEATS", nil, "unclaimInfo", seats),
            ("FUTURE_TYPE", nil, "futureInfo", app),
        ]
        let lines = shapes.enumerated().map { number, shape in
            var envelope: WireValue = [
                "notificationType": .string(shape.type),
                "notificationUUID": .string(sample.uuid(number)),
                "signedDate": 1_700_000_000_000,
            ]
            envelope["subtype"] = shape.subtype.map { .string($0) }
            envelope[shape.form] = shape.value
            return sample.sign(envelope)
        }
        let (report, refused) = try sample.ingest(lines)
        #expect(refused == [])
        #expect(report.appended == shapes.count)
        #expect(report.unrecognised == 1)
        _ = try project()
        #expect(try sample.count("select count(*) from read_model.subscription") == 0)
        #expect(
            try sample.count(
                "select count(*) from ledger.event where stream = 'app:\(IngestSample.bundleID)'"
            ) == Int64(shapes.count)
        )
    }

    /// The query is the document's, word for word.
    @Test func aWithdrawnConsentIsShownWithWhatTheCustomerHolds() throws {
        let consent = sample.sign([
            "receiptType": "Sandbox", "bundleId": .string(IngestSample.bundleID),
            "receiptCreationDate": 1_700_000_000_000, "environment": "Sandbox",
            "appTransactionId": .string(sample.chain(1).appTransactionID),
            "signedDate": 1_700_000_000_000,
        ])
        let notice: WireValue = [
            "notificationType": "RESCIND_CONSENT", "notificationUUID": .string(sample.uuid(9)),
            "appData": [
                "bundleId": .string(IngestSample.bundleID), "environment": "Sandbox",
                "signedAppTransactionInfo": .string(String(decoding: consent, as: UTF8.self)),
            ],
            "signedDate": 1_700_000_000_000,
        ]
        let (report, refused) = try sample.ingest([sample.purchase(1), sample.sign(notice)])
        #expect(refused == [])
        #expect(report.appended == 2)
        _ = try project()
        // It is no billing fact, but nobody is served from then on.
        #expect(try states(sample.chain(1)).first?.hasPrefix("active") == true)
        #expect(
            try sample.count(
                """
                select count(*) from read_model.entitlement_interval
                where entitled and valid_until > to_timestamp(1700000000)
                """
            ) == 0
        )
        let root = URL(filePath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(
            contentsOf: root.appending(path: "docs/state-machine.md"),
            encoding: .utf8
        )
        let sql = try #require(text.split(separator: "```sql").last?.split(separator: "```").first)
        let rows = try sample.database.connect().query(
            "select * from (\(sql.split(separator: ";")[0])) as concerned"
        )
        #expect(rows.count == 1)
        #expect(rows.text(0, 1) == sample.chain(1).originalTransactionID)
    }

    @Test func c05AnOlderRenewalThatComesAfterItsRefundGrantsNothing() throws {
        let (first, second) = (sample.chain(1), sample.chain(2))
        _ = try sample.ingest([
            sample.purchase(1), refund(of: first, 11, after: 7_200_000),
        ])
        _ = try project()
        // The same two the other way round, projected in between.
        _ = try sample.ingest([refund(of: second, 12, after: 7_200_000)])
        _ = try project()
        _ = try sample.ingest([sample.purchase(2)])
        _ = try project()
        let inOrder = try states(first).map { String($0.prefix(14)) }
        #expect(try states(second).map { String($0.prefix(14)) } == inOrder)
        #expect(inOrder.last == "revoked refund")
        #expect(try sample.count("select count(*) from ledger.event") == 4)
    }

    @Test func c06NumbersAndTextsSayTheSame() throws {
        let chain = sample.chain(1)
        let notice = Notice.initialBuy(of: chain, uuid: sample.uuid(1))
        let odd = sample.signer.sign(
            notice,
            of: chain,
            changingTransaction: { payload in
                for name in ["transactionId", "originalTransactionId", "webOrderLineItemId"] {
                    guard case .string(let text)? = payload[name], let number = Int64(text)
                    else { continue }
                    payload[name] = .integer(number)
                }
                payload["expiresDate"] = .string("\(notice.transaction?.expiresDate ?? 0)")
                payload["price"] = "9990"
                payload["isUpgraded"] = "false"
            },
            changingRenewal: {
                $0["originalTransactionId"] = .integer(Int64(chain.originalTransactionID) ?? 0)
                $0["autoRenewStatus"] = "1"
            }
        )
        let (report, refused) = try sample.ingest([odd, sample.purchase(2)])
        #expect(refused == [])
        #expect(report.appended == 2)
        _ = try project()
        let rows = try sample.database.connect().query(
            """
            select product_id, price, currency, expires_date - purchase_date, anomalies
            from read_model.subscription order by stream
            """
        )
        #expect(rows.count == 2)
        for column in 0..<5 { #expect(rows.text(0, column) == rows.text(1, column)) }
        #expect(rows.int(0, 1) == 9990)
    }

    @Test func c07WhatWasStoredBeforeACrashIsProjectedAfterIt() throws {
        // Stored; the process is gone before it projected, and nothing else ever comes.
        _ = try sample.ingest([sample.purchase(1)])
        #expect(try states(sample.chain(1)) == [])
        let report = try project()
        #expect(report.streams == 1)
        #expect(try states(sample.chain(1)).first?.hasPrefix("active") == true)
        #expect(try project().streams == 0)
    }

    @Test func c08OnlyWhatHasAPlaceIsAnEventAndTheRestIsKept() throws {
        let unknown = sample.purchase(1) { $0["notificationType"] = "FUTURE_TYPE" }
        let nameless = sample.purchase(2) { $0["notificationUUID"] = nil }
        let empty = sample.purchase(3) { envelope in
            envelope["data"]?["signedTransactionInfo"] = nil
            envelope["data"]?["signedRenewalInfo"] = nil
        }
        let (report, refused) = try sample.ingest([unknown, nameless, empty])
        #expect(report.appended == 1)
        #expect(report.unrecognised == 1)
        #expect(report.quarantined == 2)
        #expect(refused.map(\.reason) == ["notification_uuid_missing", "transaction_missing"])
        // Byte for byte, so that a later program can read them again.
        let kept = try sample.database.connect().query(
            "select received from ledger.quarantine order by received"
        )
        let received = (0..<kept.count).compactMap { kept.bytes($0, 0) }
        #expect(Set(received) == [nameless, empty])
        let replayed = try sample.ingest(received)
        #expect(replayed.report.quarantined == 2)
        #expect(try sample.count("select count(*) from ledger.quarantine") == 2)
    }

    @Test func c09APriceBeyondThirtyTwoBitsIsWhole() throws {
        let chain = sample.chain(1)
        var notice = Notice.initialBuy(of: chain, uuid: sample.uuid(1))
        notice.transaction?.price = 4_999_000_000
        let line = sample.signer.sign(
            notice,
            of: chain,
            changingTransaction: { $0["currency"] = "VND" }
        )
        let (report, refused) = try sample.ingest([line])
        #expect(refused == [])
        #expect(report.appended == 1)
        _ = try project()
        for table in ["subscription", "entitlement_interval"] {
            #expect(
                try sample.count("select max(price) from read_model.\(table)") == 4_999_000_000
            )
        }
        // Ten thousand of them add up without an overflow.
        #expect(
            try sample.count(
                """
                select sum(price_milliunits)::bigint
                from read_model.lifecycle_moment cross join generate_series(1, 10000)
                where kind = 'new_paid'
                """
            ) == 49_990_000_000_000
        )
    }
}
