import AppStore
import Ledger

/// Writes verifyReceipt responses as tests tell them.
enum ReceiptSample {
    /// T0 of the cases.
    static let t0: Int64 = 1_760_000_000_000
    static let day: Int64 = 86_400_000

    /// A transaction in Apple's spelling; `more` is appended as it is.
    static func transaction(
        _ id: Int64,
        of original: Int64 = 7001,
        product: String = "gold.month",
        from: Int64,
        until: Int64?,
        _ more: String = ""
    ) -> String {
        let end = until.map { #","expires_date_ms":"\#($0)""# } ?? ""
        return #"{"transaction_id":"\#(id)","original_transaction_id":"\#(original)","#
            + #""product_id":"\#(product)","quantity":"1","purchase_date_ms":"\#(from)"\#(end)"#
            + #","is_trial_period":"false"\#(more)}"#
    }

    /// A response; `more` stands behind its members.
    static func body(
        status: String = "0",
        latest: String? = nil,
        inApp: String = "[]",
        renewal: String? = nil,
        environment: String = #","environment":"Production""#,
        requested: Int64? = t0 + 10 * day,
        _ more: String = ""
    ) -> [UInt8] {
        var text = #"{"status":\#(status)\#(environment),"receipt":{"bundle_id":"com.example.app""#
        if let requested { text += #","request_date_ms":"\#(requested)""# }
        text += #","in_app":\#(inApp)}"#
        if let latest { text += #","latest_receipt_info":\#(latest)"# }
        if let renewal { text += #","pending_renewal_info":\#(renewal)"# }
        return Array((text + "\(more)}").utf8)
    }

    /// What the facts of a response fold to.
    static func history(
        _ body: [UInt8],
        of original: String = "7001",
        asOf: Int64? = nil
    ) throws -> History {
        let receipt = try ReceiptBody(body)
        let instant = asOf.map { Timestamp(milliseconds: $0) } ?? receipt.requestDate
        let content = receipt.content(asOf: instant ?? receipt.lastInstant ?? .earliest)
        let events = content.elements.filter { $0.originalTransactionID == original }
            .enumerated().map { Event(position: Int64($0.offset + 1), fact: $0.element.fact) }
        var fold = SubscriptionFold(rules: AppRules(environment: .production))
        return fold.history(of: events)
    }

    /// The interval of a history at an instant.
    static func at(_ instant: Int64, _ history: History) -> Interval? {
        history.timeline.first { $0.contains(Timestamp(milliseconds: instant)) }
    }
}
