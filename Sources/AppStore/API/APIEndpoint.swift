public import Ledger

/// One question to Apple, with its values.
public enum APIEndpoint: Hashable, Sendable {
    /// Get All Subscription Statuses, by any transaction id; statuses 1…5 narrow it.
    case subscriptionStatuses(id: String, statuses: [Int] = [])
    /// Get Transaction Info.
    case transactionInfo(id: String)
    /// Get Transaction History (v2), one page from a `revision` on.
    case transactionHistory(id: String, TransactionHistoryQuery, revision: String? = nil)
    /// Get Refund History (v2), one page from a `revision` on.
    case refundHistory(id: String, revision: String? = nil)
    /// Look Up Order ID; in Production only.
    case orderLookup(orderID: String)
    /// Get Notification History, one page.
    case notificationHistory(NotificationHistoryQuery, paginationToken: String? = nil)
    /// Request a Test Notification.
    case requestTestNotification
    /// Get Test Notification Status.
    case testNotificationStatus(token: String)
    /// Extend a Subscription Renewal Date.
    case extendRenewalDate(originalTransactionID: String, RenewalExtension)
    /// Extend Subscription Renewal Dates for All Active Subscribers.
    case extendRenewalDates(MassRenewalExtension)
    /// Get Status of Subscription Renewal Date Extensions.
    case extensionStatus(productID: String, requestIdentifier: UniqueID)
    /// Send Consumption Information (v2).
    case sendConsumption(transactionID: String, ConsumptionInformation)
    /// Set App Account Token.
    case setAppAccountToken(originalTransactionID: String, UniqueID)
    /// Get App Transaction Info.
    case appTransactionInfo(id: String)

    /// A stable name for logs, metrics and the log's own rows.
    public var name: String {
        switch self {
        case .subscriptionStatuses: "subscription_statuses"
        case .transactionInfo: "transaction_info"
        case .transactionHistory: "transaction_history"
        case .refundHistory: "refund_history"
        case .orderLookup: "order_lookup"
        case .notificationHistory: "notification_history"
        case .requestTestNotification: "test_notification"
        case .testNotificationStatus: "test_notification_status"
        case .extendRenewalDate: "extend_renewal_date"
        case .extendRenewalDates: "extend_renewal_dates"
        case .extensionStatus: "extension_status"
        case .sendConsumption: "send_consumption"
        case .setAppAccountToken: "set_app_account_token"
        case .appTransactionInfo: "app_transaction_info"
        }
    }

    /// How many requests Apple takes in an hour, for one app, all clients together.
    public func requestsPerHour(in environment: Environment) -> Int {
        let perSecond: Int
        switch self {
        case .subscriptionStatuses, .transactionInfo, .transactionHistory, .appTransactionInfo,
            .notificationHistory, .sendConsumption:
            perSecond = 50
        case .extendRenewalDate, .setAppAccountToken: perSecond = 20
        case .orderLookup, .refundHistory: perSecond = 10
        // Apple lists no number for the status of a mass extension: the lowest one is taken.
        case .extendRenewalDates, .requestTestNotification, .testNotificationStatus,
            .extensionStatus:
            perSecond = 1
        }
        return perSecond * (environment == .production ? 3600 : 360)
    }

    /// Whether the same request may be sent again when nobody knows what became of it.
    ///
    /// An extension may not: Apple says of mass extensions alone that it knows a request again by
    /// its `requestIdentifier`. Whoever asked reads the subscription first.
    public var isRepeatable: Bool {
        switch self {
        case .requestTestNotification, .extendRenewalDate, .extendRenewalDates: false
        default: true
        }
    }
}

/// A question as method, path, query and body.
struct APICall: Hashable, Sendable {
    var method = "GET"
    /// The path, percent-encoded; `/inApps` is case-sensitive.
    var path: String
    /// Names and values, not encoded yet.
    var query: [(name: String, value: String)] = []
    var body: [UInt8]?

    init(_ method: String = "GET", _ path: String) {
        self.method = method
        self.path = path
    }

    /// Path and query, as they follow the host.
    var target: String {
        guard !query.isEmpty else { return path }
        let pairs = query.map { "\(Self.encoded($0.name))=\(Self.encoded($0.value))" }
        return path + "?" + pairs.joined(separator: "&")
    }

    /// A text with all but the unreserved characters percent-encoded (RFC 3986).
    static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF")
        var result = ""
        for byte in text.utf8 {
            let isPlain =
                0x30...0x39 ~= byte || 0x41...0x5A ~= byte || 0x61...0x7A ~= byte
                || [0x2D, 0x2E, 0x5F, 0x7E].contains(byte)
            if isPlain {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                result += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
            }
        }
        return result
    }

    static func == (left: APICall, right: APICall) -> Bool {
        left.method == right.method && left.target == right.target && left.body == right.body
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(method)
        hasher.combine(target)
        hasher.combine(body)
    }
}

extension APIEndpoint {
    /// The request of the question.
    ///
    /// - Throws: `APIRefusal` for what Apple would refuse, under Apple's name for the rule.
    func call(in environment: Environment, now: Timestamp) throws(APIRefusal) -> APICall {
        switch self {
        case .subscriptionStatuses(let id, let statuses):
            var call = APICall("GET", "/inApps/v1/subscriptions/" + (try Self.transaction(id)))
            for status in statuses {
                guard (1...5).contains(status) else {
                    throw APIRefusal(AppleErrorCode(4_000_031), "\(status); wanted is 1 to 5")
                }
                call.query.append(("status", "\(status)"))
            }
            return call
        case .transactionInfo(let id):
            return APICall("GET", "/inApps/v1/transactions/" + (try Self.transaction(id)))
        case .transactionHistory(let id, let query, let revision):
            var call = APICall("GET", "/inApps/v2/history/" + (try Self.transaction(id)))
            call.query = try query.parameters()
            if let revision { call.query.append(("revision", revision)) }
            return call
        case .refundHistory(let id, let revision):
            var call = APICall("GET", "/inApps/v2/refund/lookup/" + (try Self.transaction(id)))
            if let revision { call.query.append(("revision", revision)) }
            return call
        case .orderLookup(let orderID):
            guard environment == .production else {
                throw APIRefusal(
                    AppleErrorCode(4_000_000),
                    "orders can be looked up in Production only"
                )
            }
            let id = try Self.segment(orderID, AppleErrorCode(4_000_000), "an order id")
            return APICall("GET", "/inApps/v1/lookup/" + id)
        case .notificationHistory(let query, let token):
            var call = APICall("POST", "/inApps/v1/notifications/history")
            if let token { call.query.append(("paginationToken", token)) }
            call.body = try query.body(in: environment, now: now)
            return call
        case .requestTestNotification:
            return APICall("POST", "/inApps/v1/notifications/test")
        case .testNotificationStatus(let token):
            let rule = AppleErrorCode(4_000_020)
            let segment = try Self.segment(token, rule, "a test notification's token")
            return APICall("GET", "/inApps/v1/notifications/test/" + segment)
        case .appTransactionInfo(let id):
            let segment = try Self.transaction(id)
            return APICall("GET", "/inApps/v1/transactions/appTransactions/" + segment)
        default: return try changingCall()
        }
    }

    /// The request of a question that changes something at Apple's.
    private func changingCall() throws(APIRefusal) -> APICall {
        switch self {
        case .extendRenewalDate(let id, let values):
            let rule = AppleErrorCode(4_000_008)
            let segment = try Self.segment(id, rule, "an original transaction id")
            var call = APICall("PUT", "/inApps/v1/subscriptions/extend/" + segment)
            call.body = try values.body()
            return call
        case .extendRenewalDates(let values):
            var call = APICall("POST", "/inApps/v1/subscriptions/extend/mass")
            call.body = try values.body()
            return call
        case .extensionStatus(let productID, let requestIdentifier):
            let product = try Self.segment(productID, AppleErrorCode(4_000_023), "a product id")
            return APICall(
                "GET",
                "/inApps/v1/subscriptions/extend/mass/\(product)/\(requestIdentifier)"
            )
        case .sendConsumption(let id, let values):
            let segment = try Self.transaction(id)
            var call = APICall("PUT", "/inApps/v2/transactions/consumption/" + segment)
            call.body = try values.body()
            return call
        case .setAppAccountToken(let id, let token):
            let rule = AppleErrorCode(4_000_006)
            let segment = try Self.segment(id, rule, "an original transaction id")
            var call = APICall("PUT", "/inApps/v1/transactions/\(segment)/appAccountToken")
            call.body = Array("{\"appAccountToken\":\"\(token)\"}".utf8)
            return call
        default: preconditionFailure("\(name) changes nothing")
        }
    }

    private static func transaction(_ id: String) throws(APIRefusal) -> String {
        try segment(id, AppleErrorCode(4_000_006), "a transaction id")
    }

    /// An identifier as one segment of a path; no text can become another path.
    private static func segment(
        _ text: String,
        _ rule: AppleErrorCode,
        _ what: String
    ) throws(APIRefusal) -> String {
        guard !text.isEmpty else { throw APIRefusal(rule, "empty; wanted is \(what)") }
        guard text.utf8.count <= 255, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            text != ".", text != ".."
        else { throw APIRefusal(rule, "this is not \(what)") }
        return APICall.encoded(text)
    }
}
