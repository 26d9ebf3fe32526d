public import Ledger

/// A body of Apple's, read: the signed texts in it and what stands beside them.
///
/// It is read leniently, as payloads are: what is missing or odd is left out, and the signed texts
/// speak for themselves. Nothing of it is verified yet.
public struct APIAnswer: Sendable {
    /// Which of Apple's responses a body is.
    public enum Form: String, Hashable, Sendable, CaseIterable {
        /// StatusResponse.
        case statuses
        /// NotificationHistoryResponse.
        case notificationHistory = "notification_history"
        /// HistoryResponse, RefundHistoryResponse or OrderLookupResponse.
        case transactions
        /// CheckTestNotificationResponse.
        case testNotificationStatus = "test_notification_status"
        /// TransactionInfoResponse.
        case transactionInfo = "transaction_info"
        /// AppTransactionInfoResponse.
        case appTransactionInfo = "app_transaction_info"
        /// Anything else.
        case other
    }

    /// One try of Apple's to send a notification.
    public struct SendAttempt: Hashable, Sendable {
        /// When.
        public var date: Timestamp?
        /// How it ended, in Apple's word, such as `SUCCESS` or `TIMED_OUT`.
        public var result: String
    }

    /// A signed text with what stands beside it.
    public struct Item: Sendable {
        /// The signed text.
        public var text: [UInt8]
        /// The member that holds it, such as `signedTransactionInfo`.
        public var field: String
        /// Of a notification: how Apple tried to send it.
        public var sendAttempts: [SendAttempt] = []
    }

    /// One subscription of a StatusResponse.
    public struct Subscription: Sendable {
        /// Its chain of transactions.
        public var originalTransactionID: String?
        /// Apple's status; it stands outside of every signature.
        public var status: Int32?
        /// Which of `items` are its own.
        public var items: Range<Int>
    }

    /// The body.
    public let document: JSONDocument
    /// Which response it is.
    public let form: Form
    /// Every signed text, in the order of the body.
    public private(set) var items: [Item] = []
    /// The subscriptions of a StatusResponse.
    public private(set) var subscriptions: [Subscription] = []

    /// Reads a body.
    ///
    /// - Throws: `AppStoreError` for what is no JSON object.
    public init(_ body: [UInt8]) throws(AppStoreError) {
        document = try JSONDocument(body)
        guard document.root.kind == .object else {
            throw AppStoreError(code: .syntax, message: "this is no object")
        }
        form = Self.form(of: document)
        switch form {
        case .statuses: readStatuses()
        case .notificationHistory:
            for item in document["notificationHistory"]?.elements ?? [] {
                append(item, "signedPayload", attempts: item["sendAttempts"])
            }
        case .transactions:
            for value in document["signedTransactions"]?.elements ?? [] {
                guard let text = value.textBytes else { continue }
                items.append(Item(text: text, field: "signedTransactions"))
            }
        case .testNotificationStatus:
            append(document.root, "signedPayload", attempts: document["sendAttempts"])
        case .transactionInfo: append(document.root, "signedTransactionInfo")
        case .appTransactionInfo: append(document.root, "signedAppTransactionInfo")
        case .other: break
        }
    }

    /// Whether there is more to ask for.
    public var hasMore: Bool { document["hasMore"]?.bool ?? false }
    /// From where to ask on in a list of transactions.
    public var revision: String? { nonEmpty("revision") }
    /// With what to ask for the next page of notifications.
    public var paginationToken: String? { nonEmpty("paginationToken") }
    /// What a test notification is asked for by.
    public var testNotificationToken: String? { nonEmpty("testNotificationToken") }
    /// The app that the body names.
    public var bundleID: String? { Lenient.text(document["bundleId"]) }
    /// The environment that the body names.
    public var environment: Environment? {
        Lenient.text(document["environment"]).map { Environment($0) }
    }

    private func nonEmpty(_ name: String) -> String? {
        Lenient.text(document[name]).flatMap { $0.isEmpty ? nil : $0 }
    }

    private static func form(of document: JSONDocument) -> Form {
        if document["notificationHistory"]?.kind == .array { return .notificationHistory }
        if document["signedTransactions"]?.kind == .array { return .transactions }
        if document["data"]?.kind == .array { return .statuses }
        if document["signedPayload"]?.kind == .string,
            document["sendAttempts"]?.kind == .array
        {
            return .testNotificationStatus
        }
        if document["signedTransactionInfo"]?.kind == .string { return .transactionInfo }
        if document["signedAppTransactionInfo"]?.kind == .string { return .appTransactionInfo }
        return .other
    }

    private mutating func readStatuses() {
        for group in document["data"]?.elements ?? [] {
            for last in group["lastTransactions"]?.elements ?? [] {
                let start = items.count
                append(last, "signedTransactionInfo")
                append(last, "signedRenewalInfo")
                subscriptions.append(
                    Subscription(
                        originalTransactionID: Lenient.text(last["originalTransactionId"]),
                        status: Lenient.integer(last["status"]).flatMap { Int32(exactly: $0) },
                        items: start..<items.count
                    )
                )
            }
        }
    }

    private mutating func append(
        _ object: JSONValue,
        _ field: String,
        attempts: JSONValue? = nil
    ) {
        guard let text = object[field]?.textBytes else { return }
        var item = Item(text: text, field: field)
        for attempt in attempts?.elements ?? [] {
            let date = Lenient.integer(attempt["attemptDate"]).map { Timestamp(milliseconds: $0) }
            guard let result = Lenient.text(attempt["sendAttemptResult"]) else { continue }
            item.sendAttempts.append(SendAttempt(date: date, result: result))
        }
        items.append(item)
    }
}
