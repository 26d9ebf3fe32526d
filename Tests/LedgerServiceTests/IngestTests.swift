import AppStoreSimulator
import Foundation
import Ledger
import LedgerService
import Postgres
import Synchronization
import TestSupport
import Testing

@Suite struct IngestTests {
    private let sample: IngestSample

    init() throws { sample = try IngestSample() }

    /// Checks that every line that was read is counted once.
    private func expectWhole(_ report: IngestReport) {
        let sum =
            report.appended + report.duplicate + report.conflict + report.rejected
            + report.quarantined
        #expect(sum == report.read)
    }

    @Test func aFileReadTwiceGivesDuplicatesAndChangesNothing() throws {
        let lines = (1...50).map { NoticeSigner.line(sample.purchase($0)) }
        let first = try sample.ingest(lines)
        #expect(first.report.appended == 50)
        #expect(first.refused == [])
        let head = try sample.database.connect().query("select position, link from ledger.head")
        let second = try sample.ingest(lines)
        #expect(second.report.appended == 0)
        #expect(second.report.duplicate == 50)
        let after = try sample.database.connect().query("select position, link from ledger.head")
        #expect(head.int(0, 0) == 50)
        #expect(after.int(0, 0) == 50)
        #expect(after.bytes(0, 1) == head.bytes(0, 1))
        expectWhole(second.report)
    }

    @Test func aRepeatWithinOneFileIsADuplicate() throws {
        let line = sample.purchase(1)
        let (report, _) = try sample.ingest([line, NoticeSigner.line(line), line])
        #expect(report.appended == 1)
        #expect(report.duplicate == 2)
    }

    @Test func eventsKeepTheOrderOfTheLines() throws {
        let numbers = Array((1...400).reversed())
        _ = try sample.ingest(numbers.map { sample.purchase($0) })
        let rows = try sample.database.connect().query(
            "select event_key from ledger.event order by position"
        )
        #expect((0..<rows.count).map { rows.text($0, 0) } == numbers.map { "n:\(sample.uuid($0))" })
    }

    @Test func eachUnusableLineIsNamedByNumberAndReason() throws {
        var flipped = sample.purchase(1)
        flipped[flipped.count - 5] ^= 1
        let other = sample.purchase(2, bundleID: "com.example.other")
        let long = [UInt8](repeating: UInt8(ascii: "x"), count: LineReader.lineSizeMaxBytes + 1)
        let lines: [[UInt8]] = [
            sample.purchase(3), [], flipped, Array("   ".utf8), other, long,
            Array("{\"signedPayload\": \"abc".utf8), Array("{\"other\": 1}".utf8),
            Array("a.b".utf8), [0xFF, 0xFE, 0x00],
        ]
        let (report, refused) = try sample.ingest(lines)
        expectWhole(report)
        #expect(report.read == 8)
        #expect(report.appended == 1)
        #expect(report.rejected == 7)
        let named = refused.map { "\($0.line) \($0.reason)" }
        #expect(named[1] == "5 bundle_id")
        #expect(named[2] == "6 too_large")
        #expect(named[3] == "7 bad_json")
        #expect(named[4] == "8 malformed_jws")
        #expect(named[5] == "9 malformed_jws")
        #expect(refused.map(\.line) == [3, 5, 6, 7, 8, 9, 10])
        #expect(refused.allSatisfy { $0.outcome == .rejected })
        // Nothing of another app's document is kept.
        #expect(try sample.count("select count(*) from ledger.quarantine") == 0)
    }

    @Test func aGenuineDocumentWithoutWhatItNeedsIsKeptInQuarantine() throws {
        let withoutUUID = sample.purchase(1) { $0["notificationUUID"] = nil }
        let withoutTransaction = sample.purchase(2) { envelope in
            envelope["data"]?["signedTransactionInfo"] = nil
            envelope["data"]?["signedRenewalInfo"] = nil
        }
        let twice = sample.sign(
            .raw(
                "{\"notificationType\":\"TEST\",\"notificationType\":\"TEST\","
                    + "\"notificationUUID\":\"\(sample.uuid(3))\",\"signedDate\":1700000000000,"
                    + "\"data\":{\"bundleId\":\"\(IngestSample.bundleID)\","
                    + "\"environment\":\"Sandbox\"}}"
            )
        )
        let documents = [withoutUUID, withoutTransaction, twice]
        let (report, refused) = try sample.ingest(documents)
        expectWhole(report)
        #expect(report.quarantined == 3)
        #expect(refused.allSatisfy { $0.outcome == .quarantined })
        #expect(
            refused.map(\.reason) == [
                "notification_uuid_missing", "transaction_missing", "duplicate_key",
            ]
        )
        let rows = try sample.database.connect().query("select received from ledger.quarantine")
        let kept = Set((0..<rows.count).compactMap { rows.bytes($0, 0) })
        #expect(kept == Set(documents))
        // The same bytes again are kept once.
        _ = try sample.ingest(documents)
        #expect(try sample.count("select count(*) from ledger.quarantine") == 3)
    }

    @Test func aTypeThatNobodyKnowsIsStoredAndCounted() throws {
        let (report, refused) = try sample.ingest([
            sample.purchase(1) { $0["notificationType"] = "FUTURE_TYPE" }
        ])
        #expect(refused == [])
        #expect(report.appended == 1)
        #expect(report.unrecognised == 1)
    }

    @Test func whatBelongsToNoSubscriptionHasAStreamOfItsOwn() throws {
        let test: WireValue = [
            "notificationType": "TEST", "notificationUUID": .string(sample.uuid(1)),
            "data": ["bundleId": .string(IngestSample.bundleID), "environment": "Sandbox"],
            "signedDate": 1_700_000_000_000,
        ]
        let summary: WireValue = [
            "notificationType": "RENEWAL_EXTENSION", "subtype": "SUMMARY",
            "notificationUUID": .string(sample.uuid(2)),
            "summary": [
                "requestIdentifier": "11111111-0000-4000-8000-000000000001",
                "environment": "Sandbox", "bundleId": .string(IngestSample.bundleID),
                "productId": "gold.month", "succeededCount": 97, "failedCount": 3,
            ],
            "signedDate": 1_700_000_000_000,
        ]
        let (report, refused) = try sample.ingest([sample.sign(test), sample.sign(summary)])
        #expect(refused == [])
        #expect(report.appended == 2)
        let rows = try sample.database.connect().query(
            "select stream from ledger.event order by position"
        )
        #expect(rows.text(0, 0) == "app:\(IngestSample.bundleID)")
        #expect(rows.text(1, 0) == "mass:11111111-0000-4000-8000-000000000001")
    }

    @Test func aSecondDocumentUnderTheSameKeyIsAConflictAndBothAreKept() throws {
        let first = sample.purchase(1)
        let second = sample.purchase(1) { $0["data"]?["status"] = 2 }
        let (report, refused) = try sample.ingest([first, second])
        #expect(report.appended == 1)
        #expect(report.conflict == 1)
        #expect(refused.map(\.line) == [2])
        #expect(try sample.count("select count(*) from ledger.conflict") == 1)
    }

    @Test func bareTransactionsAreFactsOfTheirStreamWhateverTheySignedDate() throws {
        let chain = sample.chain(1)
        let notice = Notice.initialBuy(of: chain)
        var transaction = try #require(notice.transaction)
        let first = sample.sign(chain.payload(transaction))
        transaction.signedDate += 60_000
        let again = sample.sign(chain.payload(transaction))
        transaction.expiresDate += 86_400_000
        let changed = sample.sign(chain.payload(transaction))
        let (report, refused) = try sample.ingest([first, again, changed])
        #expect(refused == [])
        #expect(report.appended == 2)
        #expect(report.duplicate == 1)
        #expect(
            try sample.count(
                "select count(*) from ledger.event where stream = '\(chain.originalTransactionID)'"
                    + " and kind = 'transaction'"
            ) == 2
        )
    }

    @Test func aRenewalInfoBelongsToTheAppThatHasItsSubscription() throws {
        let chain = sample.chain(1)
        let renewal = try #require(Notice.initialBuy(of: chain).renewal)
        let bare = sample.sign(chain.payload(renewal))
        let (unknown, refused) = try sample.ingest([bare])
        #expect(unknown.quarantined == 1)
        #expect(refused.map(\.reason) == ["app_unknown"])
        // It says what the purchase says, whichever batch either is in; a changed one is an event.
        let (known, none) = try sample.ingest([sample.purchase(1), bare])
        #expect(none == [])
        #expect(known.appended == 1 && known.duplicate == 1)
        var changed = renewal
        changed.autoRenewStatus = 0
        let (news, nothing) = try sample.ingest([bare, sample.sign(chain.payload(changed))])
        #expect(nothing == [])
        #expect(news.appended == 1 && news.duplicate == 1)
        #expect(try sample.count("select count(distinct app_id) from ledger.event") == 1)
    }

    @Test func aLostSessionIsOpenedAnewAndNothingIsLost() throws {
        let lines = (1...30).map { sample.purchase($0) }
        let database = sample.database
        var sessions = 0
        let (report, _) = try sample.ingest(lines) {
            sessions += 1
            let connection = try database.connect()
            // The first session is gone before it is used.
            if sessions == 1 {
                let process = try connection.query("select pg_backend_pid()").int(0, 0) ?? 0
                try database.connect().query(
                    "select pg_terminate_backend($1::integer, 5000)",
                    [.int(process)]
                )
            }
            return connection
        }
        #expect(sessions == 2)
        #expect(report.appended == 30)
    }

    @Test func aListenerThatStopsKeepsWhatWasAppendedAndLeavesTheRest() throws {
        let lines = (1...3000).map { _ in sample.purchase(1) }
        let folder = try ScratchFolder()
        let path = try folder.file("lines", lines.joined(separator: [UInt8(ascii: "\n")]))
        let database = sample.database
        let ingest = Ingest(verifier: try sample.verifier()) { try database.connect() }
        var listener = Ingest.Listener()
        var isAppending = false
        listener.progress = { _ in isAppending = true }
        listener.shouldStop = { isAppending }
        let report = try ingest.run(
            try LineReader(path: path),
            now: IngestSample.now,
            listener: listener
        )
        #expect(report.isStopped)
        #expect(report.read > 0 && report.read < 3000)
        expectWhole(report)
    }

    @Test func whatASlowWriterHasSentIsAppendedBeforeItSendsMore() throws {
        let pipe = Pipe()
        let descriptor = dup(pipe.fileHandleForReading.fileDescriptor)
        let first = sample.purchase(1) + [0x0A]
        let second = sample.purchase(2) + [0x0A]
        let verifier = try sample.verifier()
        let database = sample.database
        let isOver = DispatchSemaphore(value: 0)
        let appended = Mutex(0)
        DispatchQueue.global().async {
            let ingest = Ingest(verifier: verifier) { try database.connect() }
            let reader = try? LineReader(descriptor: descriptor, name: "pipe")
            let report = try? reader.map { try ingest.run($0, now: IngestSample.now) }
            appended.withLock { $0 = report?.appended ?? -1 }
            isOver.signal()
        }
        let writer = pipe.fileHandleForWriting
        writer.write(Data(first))
        var tries = 0
        while try sample.count("select position from ledger.head") == 0, tries < 600 {
            usleep(50_000)
            tries += 1
        }
        #expect(try sample.count("select position from ledger.head") == 1)
        writer.write(Data(second))
        try writer.close()
        isOver.wait()
        #expect(appended.withLock { $0 } == 2)
    }
}
