import Ledger
import Testing

@testable import AppStore

@Suite struct ReceiptElementTests {
    private typealias Sample = ReceiptSample
    private let t0 = ReceiptSample.t0
    private let day = ReceiptSample.day
    private let asOf = Timestamp(milliseconds: ReceiptSample.t0 + 10 * ReceiptSample.day)

    private func content(_ body: [UInt8]) throws -> ReceiptBody.Content {
        try ReceiptBody(body).content(asOf: asOf)
    }

    @Test func anUpgradeIsNoRefund() throws {
        let old = Sample.transaction(
            7001,
            from: t0,
            until: t0 + 30 * day,
            #","is_upgraded":"true","cancellation_date_ms":"\#(t0 + 5 * day)""#
        )
        let new = Sample.transaction(
            7002,
            product: "gold.year",
            from: t0 + 5 * day,
            until: t0 + 370 * day
        )
        let body = Sample.body(latest: "[\(new),\(old)]")
        let history = try Sample.history(body)
        #expect(history.timeline.allSatisfy { !"\($0.state)".contains("revoked") })
        #expect(Sample.at(t0 + 4 * day, history)?.productID == "gold.month")
        #expect(Sample.at(t0 + 6 * day, history)?.productID == "gold.year")
    }

    @Test func aCancelledPeriodIsTakenBack() throws {
        let item = Sample.transaction(
            7001,
            from: t0,
            until: t0 + 30 * day,
            #","cancellation_date_ms":"\#(t0 + 5 * day)","cancellation_reason":"1""#
        )
        let content = try content(Sample.body(latest: "[\(item)]"))
        #expect(content.elements.first?.fact.transaction?.revocationReason == 1)
        let history = try Sample.history(Sample.body(latest: "[\(item)]"))
        #expect(history.timeline.last?.state == .revoked(.refund))
        #expect(history.timeline.last?.from.milliseconds == t0 + 5 * day)
    }

    @Test func offersAreNamed() throws {
        let kinds: [(String, OfferPhase)] = [
            (#","is_trial_period":"true""#, .trial),
            (#","is_in_intro_offer_period":"true""#, .intro),
            (#","promotional_offer_id":"spring""#, .promotional),
            (#","offer_code_ref_name":"PARTNER""#, .offerCode), ("", .standard),
        ]
        for (more, offer) in kinds {
            let item = Sample.transaction(7001, from: t0, until: t0 + 30 * day)
                .replacing(#","is_trial_period":"false"}"#, with: "\(more)}")
            let history = try Sample.history(Sample.body(latest: "[\(item)]"))
            #expect(history.timeline.first?.offer == offer)
        }
    }

    @Test func renewalInfoOfNobodyHereIsFlaggedAndMakesNoStream() throws {
        let item = Sample.transaction(7001, from: t0, until: t0 + 30 * day)
        for id in ["37xxxxxxxxx89", "original_transaction_id_value", "7009", "app:com.example"] {
            let renewal = #"[{"original_transaction_id":"\#(id)","auto_renew_status":"0"}]"#
            let content = try content(Sample.body(latest: "[\(item)]", renewal: renewal))
            #expect(content.elements.map(\.source) == [.latest])
            #expect(content.unreadable.map(\.reason) == ["without_transaction"])
        }
    }

    @Test(arguments: [
        ("7002", "app:com.example.app"), ("7002", "mass:1"), ("abc", "7001"), ("", "7001"),
        ("7002", "123456789012345678901"), ("7002", "00"), ("-7", "7001"),
    ])
    func whatIsNoNumberOfApplesMakesNoStream(_ id: String, _ original: String) throws {
        let item =
            #"{"transaction_id":"\#(id)","original_transaction_id":"\#(original)","#
            + #""expires_date_ms":"\#(t0)"}"#
        let content = try content(Sample.body(latest: "[\(item)]"))
        #expect(content.elements == [])
        #expect(content.unreadable.count == 1)
    }

    @Test func oneBadObjectDoesNotHideTheOthers() throws {
        let good = Sample.transaction(7001, from: t0, until: t0 + 30 * day)
        let content = try content(Sample.body(latest: #"[17,{"a":1},\#(good),"x",null]"#))
        #expect(content.elements.count == 1)
        #expect(content.unreadable.map(\.number) == [1, 2, 4, 5])
    }

    @Test func theNewestPeriodsRenewalCounts() throws {
        let old = Sample.transaction(7001, from: t0 - 30 * day, until: t0)
        let new = Sample.transaction(7002, product: "gold.year", from: t0, until: t0 + 365 * day)
        let renewals =
            #"[{"original_transaction_id":"7001","product_id":"gold.year","auto_renew_status":"0"},"#
            + #"{"original_transaction_id":"7001","product_id":"gold.month","#
            + #""auto_renew_status":"1"}]"#
        let content = try content(Sample.body(latest: "[\(new),\(old)]", renewal: renewals))
        #expect(content.elements.compactMap(\.fact.renewal?.autoRenewStatus) == [0])
    }

    @Test func whatItSaysDoesNotHangOnSpellingOrOrder() throws {
        let one = Array(
            #"{"transaction_id":"1","original_transaction_id":"1","quantity":"1"}"#.utf8
        )
        let two = Array(
            #"{ "quantity" : "1", "original_transaction_id":"\u0031", "transaction_id":"1" }"#.utf8
        )
        let first = try #require(try ReceiptElement(one, source: .latest, asOf: asOf))
        let second = try #require(try ReceiptElement(two, source: .inApp, asOf: asOf))
        #expect(first.contentDigest == second.contentDigest)
        #expect(first.bytes == one)
        #expect(second.bytes == two)
    }

    @Test(arguments: [
        (
            #"{"notification_type":"DID_RENEW","unified_receipt":{"status":0}}"#,
            "version_1_notification"
        ),
        (#"{"unified_receipt":{}}"#, "version_1_notification"),
        (#"{"signedPayload":"a.b.c"}"#, "signed_text"), (#"{"status":"x"}"#, "not_a_receipt"),
        ("{}", "not_a_receipt"), ("[]", "not_a_receipt"), ("{", "bad_json"), ("", "bad_json"),
        (#"{"status":0,"status":1}"#, "bad_json"),
        (#"{"status":0,"environment":"Xcode"}"#, "environment"),
    ])
    func whatIsNoResponseIsRefusedByName(_ text: String, _ reason: String) {
        let problem = #expect(throws: ReceiptProblem.self) { try ReceiptBody(Array(text.utf8)) }
        #expect(problem?.reason.rawValue == reason)
    }
}
