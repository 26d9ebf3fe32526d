public import Ledger

/// What narrows a transaction history; nothing by default.
public struct TransactionHistoryQuery: Hashable, Sendable {
    /// What is sold, in the words of the query, which are not those of a payload.
    public enum ProductType: String, Hashable, Sendable, CaseIterable {
        /// A subscription that renews itself.
        case autoRenewable = "AUTO_RENEWABLE"
        /// A subscription that does not.
        case nonRenewable = "NON_RENEWABLE"
        /// Bought again and again.
        case consumable = "CONSUMABLE"
        /// Bought once.
        case nonConsumable = "NON_CONSUMABLE"
    }

    /// Purchases at or after this instant.
    public var startDate: Timestamp?
    /// Purchases before this instant; it may lie in the future.
    public var endDate: Timestamp?
    /// Any of these products.
    public var productIDs: [String] = []
    /// Any of these types.
    public var productTypes: [ProductType] = []
    /// Any of these groups.
    public var subscriptionGroupIDs: [String] = []
    /// Only those with this ownership.
    public var ownership: Ownership?
    /// True for revoked ones only, false for the others only.
    public var revoked: Bool?

    /// Asks for everything.
    public init() {}

    /// Names and values; always ascending, since a `revision` can be continued from only then.
    func parameters() throws(APIRefusal) -> [(name: String, value: String)] {
        var result: [(name: String, value: String)] = [("sort", "ASCENDING")]
        if let startDate, let endDate, startDate >= endDate {
            throw APIRefusal(
                AppleErrorCode(4_000_013),
                "the end \(endDate) is not later than the start \(startDate)"
            )
        }
        if let startDate { result.append(("startDate", "\(startDate.milliseconds)")) }
        if let endDate { result.append(("endDate", "\(endDate.milliseconds)")) }
        // An empty value is none: Apple refuses it where a missing one means "any".
        for id in productIDs where !id.isEmpty { result.append(("productId", id)) }
        for type in productTypes { result.append(("productType", type.rawValue)) }
        for id in subscriptionGroupIDs where !id.isEmpty {
            result.append(("subscriptionGroupIdentifier", id))
        }
        if let ownership { result.append(("inAppOwnershipType", "\(ownership)")) }
        if let revoked { result.append(("revoked", "\(revoked)")) }
        return result
    }
}

/// A window of Get Notification History, and what narrows it.
public struct NotificationHistoryQuery: Hashable, Sendable {
    /// The first instant.
    public var startDate: Timestamp
    /// The end, not within; Apple takes a later one than now for now.
    public var endDate: Timestamp
    /// Only this type.
    public var notificationType: String?
    /// Only this subtype of the type.
    public var notificationSubtype: String?
    /// Only this transaction's.
    public var transactionID: String?
    /// Only what did not reach our server, or is still being sent again.
    public var onlyFailures = false

    /// Asks for everything in a window.
    public init(from startDate: Timestamp, to endDate: Timestamp) {
        self.startDate = startDate
        self.endDate = endDate
    }

    /// How far back Apple remembers.
    public static func reach(in environment: Environment) -> Milliseconds {
        .days(environment == .production ? 180 : 30)
    }

    /// The earliest start that is asked for: an hour later than Apple allows, since every page
    /// repeats the start and the last one may be read much later than the first.
    public static func earliestStart(in environment: Environment, now: Timestamp) -> Timestamp {
        now.adding(
            Milliseconds(rawValue: Milliseconds.hours(1).rawValue - reach(in: environment).rawValue)
        )
    }

    /// The body; the same for every page.
    func body(in environment: Environment, now: Timestamp) throws(APIRefusal) -> [UInt8] {
        guard startDate < endDate else {
            throw APIRefusal(
                AppleErrorCode(4_000_013),
                "the end \(endDate) is not later than the start \(startDate)"
            )
        }
        let reach = Self.reach(in: environment)
        guard startDate >= now.adding(Milliseconds(rawValue: -reach.rawValue)) else {
            throw APIRefusal(
                AppleErrorCode(4_000_012),
                "\(startDate) is more than \(reach.rawValue / 86_400_000) days ago; Apple keeps "
                    + "\(environment) notifications no longer, but transaction history goes back"
                    + " to the first purchase"
            )
        }
        let type = notificationType.flatMap { $0.isEmpty ? nil : $0 }
        let subtype = notificationSubtype.flatMap { $0.isEmpty ? nil : $0 }
        let transaction = transactionID.flatMap { $0.isEmpty ? nil : $0 }
        guard subtype == nil || type != nil else {
            throw APIRefusal(
                AppleErrorCode(4_000_018),
                "a subtype is asked for without its type"
            )
        }
        guard type == nil || transaction == nil else {
            throw APIRefusal(
                AppleErrorCode(4_000_019),
                "a transaction id and a notification type exclude each other"
            )
        }
        var json =
            "{\"startDate\":\(startDate.milliseconds),\"endDate\":\(endDate.milliseconds)"
        if let type { json += ",\"notificationType\":\(JSONQuoting.quoted(type))" }
        if let subtype { json += ",\"notificationSubtype\":\(JSONQuoting.quoted(subtype))" }
        if let transaction { json += ",\"transactionId\":\(JSONQuoting.quoted(transaction))" }
        if onlyFailures { json += ",\"onlyFailures\":true" }
        return Array((json + "}").utf8)
    }
}
