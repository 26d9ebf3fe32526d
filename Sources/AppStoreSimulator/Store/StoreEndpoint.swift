/// Which of Apple's environments a fake App Store is.
public enum StoreEnvironment: String, Hashable, Sendable, CaseIterable {
    /// Real purchases.
    case production = "Production"
    /// Test purchases, and those of TestFlight.
    case sandbox = "Sandbox"

    /// How far back notifications can be asked for.
    var historySpan: Int64 { (self == .production ? 180 : 30) * Span.day }

    /// How often a notification is tried at most; the sandbox tries once.
    var attemptsMax: Int { self == .production ? 6 : 1 }
}

/// The endpoints that are there, by the names that fault plans and statistics use.
public enum StoreEndpoint: String, Hashable, Sendable, CaseIterable {
    /// Get All Subscription Statuses.
    case statuses
    /// Get Transaction Info.
    case transaction
    /// Get Transaction History, v2.
    case history
    /// Get Refund History.
    case refunds
    /// Look Up Order ID.
    case order
    /// Extend a Subscription Renewal Date.
    case extend
    /// Extend Subscription Renewal Dates for All Active Subscribers.
    case massExtend
    /// Get Status of Subscription Renewal Date Extensions.
    case massStatus
    /// Request a Test Notification.
    case testRequest
    /// Get Test Notification Status.
    case testStatus
    /// Get Notification History.
    case notifications
    /// Send Consumption Information, v2.
    case consumption
    /// Set App Account Token.
    case accountToken
    /// Get App Transaction Info.
    case appTransaction

    /// How many requests an hour production answers; the sandbox a tenth of it.
    ///
    /// That of the status of a mass extension is not known; it gets that of its neighbours.
    var hourlyLimit: Int {
        switch self {
        case .statuses, .transaction, .history, .notifications, .consumption, .appTransaction:
            180_000
        case .extend, .accountToken: 72_000
        case .order, .refunds: 36_000
        case .massExtend, .massStatus, .testRequest, .testStatus: 3_600
        }
    }

    /// The methods and paths of all endpoints; `*` is an id.
    public static var routes: [(method: String, path: [String])] {
        templates.map { ($0.1, $0.2) }
    }

    /// Finds the endpoint of a request, and what its path names.
    ///
    /// - Returns: nil where nothing has that method and path.
    static func find(_ method: String, _ path: [String]) -> (StoreEndpoint, [String])? {
        for (endpoint, itsMethod, template) in templates where itsMethod == method {
            guard template.count == path.count else { continue }
            let isMatch = zip(template, path).allSatisfy { $0 == "*" ? !$1.isEmpty : $0 == $1 }
            guard isMatch else { continue }
            return (endpoint, zip(template, path).compactMap { $0 == "*" ? $1 : nil })
        }
        return nil
    }

    /// Paths without parameters first: an original transaction id is never `mass`.
    private static let templates: [(StoreEndpoint, String, [String])] = [
        (.statuses, "GET", "inApps/v1/subscriptions/*"),
        (.transaction, "GET", "inApps/v1/transactions/*"),
        (.history, "GET", "inApps/v2/history/*"),
        (.refunds, "GET", "inApps/v2/refund/lookup/*"),
        (.order, "GET", "inApps/v1/lookup/*"),
        (.massExtend, "POST", "inApps/v1/subscriptions/extend/mass"),
        (.extend, "PUT", "inApps/v1/subscriptions/extend/*"),
        (.massStatus, "GET", "inApps/v1/subscriptions/extend/mass/*/*"),
        (.testRequest, "POST", "inApps/v1/notifications/test"),
        (.testStatus, "GET", "inApps/v1/notifications/test/*"),
        (.notifications, "POST", "inApps/v1/notifications/history"),
        (.consumption, "PUT", "inApps/v2/transactions/consumption/*"),
        (.accountToken, "PUT", "inApps/v1/transactions/*/appAccountToken"),
        (.appTransaction, "GET", "inApps/v1/transactions/appTransactions/*"),
    ].map { ($0, $1, $2.split(separator: "/").map(String.init)) }
}
