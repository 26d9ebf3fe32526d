import Ledger
import Testing

@testable import AppStore

/// Class G of the public bug reports, and what else published responses look like.
@Suite struct ReceiptBodyTests {
    private typealias Sample = ReceiptSample
    private let t0 = ReceiptSample.t0
    private let day = ReceiptSample.day

    // MARK: G01

    @Test(arguments: [[60, 90, 30], [30, 60, 90], [90, 60, 30], [60, 30, 90]])
    func theOrderOfAListMeansNothing(_ ends: [Int64]) throws {
        let items = ends.map {
            Sample.transaction(7000 + $0, from: t0 + ($0 - 30) * day, until: t0 + $0 * day)
        }
        let body = Sample.body(latest: "[\(items.joined(separator: ","))]")
        let history = try Sample.history(body)
        #expect(Sample.at(t0 + 80 * day, history)?.state == .active)
        #expect(Sample.at(t0 + 80 * day, history)?.entitledApple == true)
        #expect(history.timeline.first { $0.state != .active }?.from.milliseconds == t0 + 90 * day)
    }

    /// Two objects of one transaction that contradict each other: the one that gives less counts,
    /// wherever it stands, and that is told.
    @Test func whatContradictsItselfIsToldAndGivesLess() throws {
        let short = Sample.transaction(7001, from: t0, until: t0 + 30 * day)
        let long = Sample.transaction(7001, from: t0, until: t0 + 300 * day)
        let cancelled = Sample.transaction(
            7001,
            from: t0,
            until: t0 + 400 * day,
            #","cancellation_date_ms":"\#(t0 + 3 * day)""#,
        )
        func content(_ list: [String]) throws -> ReceiptBody.Content {
            let body = Sample.body(latest: "[\(list.joined(separator: ","))]")
            return try ReceiptBody(body).content(asOf: Timestamp(milliseconds: t0 + 50 * day))
        }
        for list in [[short, long], [long, short], [short, short, long]] {
            let content = try content(list)
            #expect(content.elements.count == 1)
            let end = content.elements.first?.fact.transaction?.expiresDate
            #expect(end?.milliseconds == t0 + 30 * day)
            #expect(content.unreadable.map(\.reason) == ["contradicted"])
            #expect(content.unreadable.first?.number == (list.firstIndex(of: long) ?? 9) + 1)
        }
        let all = [[cancelled, short, long], [long, cancelled, short], [short, long, cancelled]]
        for list in all {
            let content = try content(list)
            #expect(content.elements.first?.fact.transaction?.revocationDate != nil)
            #expect(content.unreadable.count == 2)
        }
        #expect(try content([short, short]).unreadable == [], "the same twice is no contradiction")
    }

    // MARK: G02

    @Test func theEnvironmentIsThatOfTheResponse() throws {
        let sandbox = Sample.body(environment: #","environment":"Sandbox""#)
        #expect(try ReceiptBody(sandbox).environment == .sandbox)
        let implied = Array(
            #"{"status":0,"receipt":{"receipt_type":"ProductionSandbox","in_app":[]}}"#.utf8
        )
        #expect(try ReceiptBody(implied).environment == .sandbox)
        let volume = Array(#"{"status":0,"receipt":{"receipt_type":"ProductionVPP"}}"#.utf8)
        #expect(try ReceiptBody(volume).environment == .production)
        let unsaid = Array(#"{"status":0,"receipt":{"bid":"com.example.app"}}"#.utf8)
        #expect(try ReceiptBody(unsaid).environment == nil)
        #expect(try ReceiptBody(unsaid).bundleID == "com.example.app")
        let torn = Array(
            #"{"status":0,"environment":"Production","receipt":{"receipt_type":"Sandbox"}}"#.utf8
        )
        #expect(throws: ReceiptProblem.self) { try ReceiptBody(torn) }
    }

    // MARK: G03

    @Test func aValidReceiptMayHaveNothingInIt() throws {
        let receipt = try ReceiptBody(Sample.body(inApp: "[]"))
        #expect(receipt.status.isValid)
        let content = receipt.content(asOf: .earliest)
        #expect(content.elements == [])
        #expect(content.unreadable == [])
        let nulls = Sample.body(latest: "null", inApp: "null", renewal: "null")
        #expect(try ReceiptBody(nulls).content(asOf: .earliest).unreadable == [])
    }

    @Test func anEmptyLatestListLeavesTheReceiptsOwn() throws {
        let item = Sample.transaction(7001, from: t0, until: t0 + 30 * day)
        let history = try Sample.history(Sample.body(latest: "[]", inApp: "[\(item)]"))
        #expect(Sample.at(t0 + 20 * day, history)?.state == .active)
    }

    @Test func aTransactionInBothListsIsTakenFromTheLatest() throws {
        let old = Sample.transaction(7001, from: t0, until: t0 + 30 * day)
        let new = Sample.transaction(
            7001,
            from: t0,
            until: t0 + 30 * day,
            #","cancellation_date_ms":"\#(t0 + 3 * day)""#
        )
        let body = Sample.body(latest: "[\(new)]", inApp: "[\(old)]")
        let content = try ReceiptBody(body).content(asOf: Timestamp(milliseconds: t0 + 10 * day))
        #expect(content.elements.map(\.source) == [.latest])
        #expect(Sample.at(t0 + 4 * day, try Sample.history(body))?.state.isRevokedForTest == true)
    }

    @Test func whatTheReceiptHoldsIsAsOldAsTheReceipt() throws {
        let item = Sample.transaction(7001, from: t0, until: t0 + 30 * day)
        let text =
            #"{"status":0,"environment":"Production","receipt":{"#
            + #""bundle_id":"com.example.app","request_date_ms":"\#(t0 + 90 * day)","#
            + #""receipt_creation_date_ms":"\#(t0 + 2 * day)","in_app":[\#(item)]}}"#
        let receipt = try ReceiptBody(Array(text.utf8))
        let content = receipt.content(asOf: try #require(receipt.requestDate))
        #expect(content.elements.map(\.asOf.milliseconds) == [t0 + 2 * day])
    }

    // MARK: G04

    @Test func anExpiredReceiptOfIOS6TellsItsHistory() throws {
        let body = Array(
            """
            {"status":21006,"auto_renew_status":0,"expiration_intent":"1",
             "receipt":{"bid":"com.example.app","transaction_id":"7001",
              "original_transaction_id":"7001","product_id":"gold.month",
              "purchase_date":"2025-10-09 08:53:20 Etc/GMT","expires_date":"1762592000000",
              "expires_date_formatted":"2025-11-08 08:53:20 Etc/GMT"},
             "latest_expired_receipt_info":{"transaction_id":"7002",
              "original_transaction_id":"7001","product_id":"gold.month",
              "purchase_date_ms":"1762592000000","expires_date":"1765184000000"}}
            """.utf8
        )
        let receipt = try ReceiptBody(body)
        #expect(receipt.status.isValid)
        #expect(receipt.requestDate == nil)
        #expect(receipt.lastInstant?.milliseconds == 1_765_184_000_000)
        let history = try Sample.history(body)
        #expect(Sample.at(t0 + 40 * day, history)?.state == .active)
        #expect(history.timeline.last?.state == .expired(.voluntary))
        #expect(history.timeline.last?.entitled == false)
        #expect(history.timeline.last?.confidence == .provisional)
    }

    @Test(arguments: [
        (0, true, false), (21_000, false, false), (21_001, false, false), (21_002, false, true),
        (21_003, false, false), (21_004, false, false), (21_005, false, true),
        (21_006, true, false), (21_007, false, false), (21_008, false, false),
        (21_009, false, true), (21_010, false, false), (21_150, false, false),
        (42, false, false),
    ])
    func eachStatusSaysWhetherItIsGoodAndWhetherToAskAgain(
        _ code: Int64,
        _ isValid: Bool,
        _ isRetryable: Bool
    ) throws {
        for text in ["\(code)", "\"\(code)\""] {
            let status = try ReceiptBody(Array("{\"status\":\(text)}".utf8)).status
            #expect(status.code == code)
            #expect(status.isValid == isValid)
            #expect(status.isRetryable == isRetryable)
            #expect(!status.meaning.isEmpty)
        }
        let meanings = [21_002, 21_003, 21_004, 21_005, 21_007, 21_008, 21_010].map {
            ReceiptStatus($0).meaning
        }
        #expect(Set(meanings).count == meanings.count)
    }

    @Test(arguments: ["1", "true", "\"1\"", "\"true\""])
    func aFaultOfApplesIsRetryableWhereItSaysSo(_ flag: String) throws {
        let body = Array("{\"status\":21199,\"is_retryable\":\(flag)}".utf8)
        #expect(try ReceiptBody(body).status.isRetryable)
    }

    // MARK: G05

    @Test(arguments: [
        #""expires_date_ms":"1762592000000""#, #""expires_date_ms":1762592000000"#,
        #""expires_date":"1762592000000""#, #""expires_date":1762592000000"#,
        #""expires_date":"2025-11-08 08:53:20 Etc/GMT""#,
        #""expires_date":"2025-11-08T08:53:20Z""#,
        #""expires_date":"soon","expires_date_ms":"1762592000000""#,
        #""expires_date_formatted":"2025-11-08 08:53:20 Etc/GMT""#,
    ])
    func everyFormOfAnInstantIsTheSameOne(_ end: String) throws {
        let item = Sample.transaction(7001, from: t0, until: nil, ",\(end)")
        let content = try ReceiptBody(Sample.body(latest: item))
            .content(asOf: Timestamp(milliseconds: t0))
        let transaction = try #require(content.elements.first?.fact.transaction)
        #expect(transaction.expiresDate?.milliseconds == 1_762_592_000_000)
        #expect(content.elements.first?.anomalies == [])
    }

    @Test(arguments: [
        #""expires_date":"1762592000""#, #""expires_date_ms":"1762592000000000""#,
        #""expires_date":"2025-11-08 00:53:20 America/Los_Angeles""#,
        #""expires_date_pst":"2025-11-08 00:53:20 America/Los_Angeles""#,
        #""expires_date":"next week""#, #""expires_date_ms":"2025-02-30""#,
    ])
    func anInstantOfAnotherFormIsFlaggedAndNeverGuessed(_ end: String) throws {
        let item = Sample.transaction(7001, from: t0, until: nil, ",\(end)")
        let content = try ReceiptBody(Sample.body(latest: item))
            .content(asOf: Timestamp(milliseconds: t0))
        let element = try #require(content.elements.first)
        #expect(element.fact.transaction?.expiresDate == nil)
        #expect(element.anomalies == ["expires_date:not_an_instant"])
    }

    @Test(arguments: [
        ("\"1\"", 1), ("1", 1), ("\"true\"", 1), ("true", 1), ("\"0\"", 0), ("0", 0),
        ("\"false\"", 0), ("false", 0),
    ])
    func everyFormOfAFlagIsTheSame(_ text: String, _ value: Int32) throws {
        let item = Sample.transaction(
            7001,
            from: t0,
            until: t0 + 30 * day,
            ",\"is_upgraded\":\(text)"
        )
        let renewal =
            #"{"original_transaction_id":"7001","product_id":"gold.month","#
            + #""auto_renew_status":\#(text),"is_in_billing_retry_period":\#(text)}"#
        for list in [(item, renewal), ("[\(item)]", "[\(renewal)]")] {
            let content = try ReceiptBody(Sample.body(latest: list.0, renewal: list.1))
                .content(asOf: Timestamp(milliseconds: t0))
            #expect(content.elements.map(\.source) == [.latest, .renewal])
            #expect(content.elements.first?.fact.transaction?.isUpgraded == (value == 1))
            #expect(content.elements.last?.fact.renewal?.autoRenewStatus == value)
            #expect(
                content.elements.last?.fact.renewal?.isInBillingRetryPeriod == (value == 1)
            )
        }
    }

    @Test func numbersMayBeNumbers() throws {
        let item =
            #"{"transaction_id":7002,"original_transaction_id":7001,"product_id":"gold.month","#
            + #""quantity":1,"purchase_date_ms":\#(t0),"expires_date_ms":\#(t0 + 30 * day),"#
            + #""is_trial_period":true,"web_order_line_item_id":9001}"#
        let content = try ReceiptBody(Sample.body(latest: "[\(item)]"))
            .content(asOf: Timestamp(milliseconds: t0))
        let element = try #require(content.elements.first)
        #expect(element.originalTransactionID == "7001")
        #expect(element.fact.transaction?.transactionID == AppleID("7002"))
        #expect(element.fact.transaction?.offerDiscountType == .freeTrial)
        #expect(element.fact.transaction?.webOrderLineItemID == AppleID("9001"))
        #expect(element.anomalies == [])
    }
}

extension SubscriptionState {
    fileprivate var isRevokedForTest: Bool {
        if case .revoked = self { true } else { false }
    }
}
