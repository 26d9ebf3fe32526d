import AppStore
import AppStoreSimulator
import EventLog
import Ledger
import LedgerService
import Postgres
import Schema
import TestSupport
import Testing

@Suite struct SavedAnswerTests {
    private let reconcile: ReconcileSample

    init() throws { reconcile = try ReconcileSample() }

    private func line(_ text: String) -> [UInt8] { Array(text.replacing("\n", with: "").utf8) }

    @Test func bareTextsAreKeyedByWhatTheyFollow() throws {
        func revoked(_ isRevoked: Bool, _ day: Int64) -> [UInt8] {
            let at = 1_700_100_000_000 + day * 86_400_000
            let text = reconcile.transaction(1, at: at) { payload in
                if isRevoked { payload["revocationDate"] = .integer(1_700_050_000_000) }
            }
            return Array(text.utf8)
        }
        // All in one batch, an unchanged re-reading among them.
        let lines = [revoked(false, 0), revoked(false, 1), revoked(true, 2), revoked(false, 3)]
        let first = try reconcile.sample.ingest(lines)
        #expect(first.report.appended == 3 && first.report.duplicate == 1)
        #expect(first.report.conflict == 0 && first.refused == [])
        let second = try reconcile.sample.ingest(lines + [revoked(true, 4)])
        #expect(second.report.appended == 1 && second.report.duplicate == 4)
        #expect(try reconcile.count("select count(*) from ledger.event") == 4)
    }

    @Test func savedAnswersOfEveryKindAreRead() throws {
        let at: Int64 = 1_700_100_000_000
        let notification = String(decoding: reconcile.sample.purchase(5), as: UTF8.self)
        let lines = [
            line(reconcile.statuses(1, at: at)),
            line(
                reconcile.history([2, 3].map { reconcile.transaction($0, at: at) }, revision: "r")
            ),
            line(#"{"hasMore":false,"revision":"x","signedTransactions":[]}"#),
            line(
                #"{"notificationHistory":[{"signedPayload":"\#(notification)","sendAttempts":[]}],"#
                    + #""hasMore":false}"#
            ),
            line(#"{"signedTransactionInfo":"\#(reconcile.transaction(4, at: at))"}"#),
        ]
        let first = try reconcile.sample.ingest(lines)
        // Three of the statuses, two of the history, a notification and a transaction.
        #expect(first.report.appended == 7 && first.refused == [])
        let bodies = "select count(*) from ledger.event where kind = 'api_response'"
        #expect(try reconcile.count(bodies) == 3)
        let second = try reconcile.sample.ingest(lines)
        #expect(second.report.appended == 0 && second.report.duplicate == 7)
        #expect(try reconcile.count(bodies) == 3)
    }

    @Test func eachTextOfABodyThatIsNotOursIsNamed() throws {
        let body = reconcile.history(
            [
                reconcile.transaction(2, at: 1_700_100_000_000),
                reconcile.transaction(3, at: 1_700_100_000_000) { $0["bundleId"] = .string("x") },
                "e30.e30.e30",
            ],
            revision: "r"
        )
        let (report, refused) = try reconcile.sample.ingest([line(body)])
        #expect(report.read == 3 && report.appended == 1 && report.rejected == 2)
        #expect(refused.map(\.reason) == ["bundle_id", "malformed_jws"])
    }
}
