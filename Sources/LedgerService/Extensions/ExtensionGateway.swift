public import EventLog
public import Ledger

/// What reaches Apple's server for extensions.
///
/// It asks once and never again by itself: a request whose answer was lost is sent again by
/// `Extensions` alone, which reads the subscription first.
public protocol ExtensionGateway: Sendable {
    /// The number of the key that signs the requests about an app, for the audit.
    func keyID(of app: AppKey) -> String?

    /// Asks Get All Subscription Statuses and appends what Apple signed.
    ///
    /// - Throws: `ExtensionGatewayFailure` where there is no usable answer.
    func refreshStatuses(of id: String, in app: AppKey) throws

    /// Asks Get Transaction Info and appends what Apple signed.
    ///
    /// - Throws: `ExtensionGatewayFailure` where there is no usable answer.
    func refreshTransaction(_ id: String, in app: AppKey) throws

    /// Extend a Subscription Renewal Date.
    func extend(_ id: String, _ order: ExtensionOrder, in app: AppKey) -> ExtensionReply

    /// Extend Subscription Renewal Dates for All Active Subscribers.
    func extendAll(
        of product: String,
        storefronts: [String],
        _ order: ExtensionOrder,
        in app: AppKey
    ) -> ExtensionReply

    /// Get Status of Subscription Renewal Date Extensions.
    func massStatus(of product: String, request: UniqueID, in app: AppKey) -> ExtensionReply
}

/// Apple could not be asked, or gave no usable answer.
public struct ExtensionGatewayFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// What happened, in words.
    public var description: String

    /// Says what happened.
    public init(_ description: String) { self.description = description }
}

/// What is sent to Apple to extend.
public struct ExtensionOrder: Hashable, Sendable {
    /// `extendByDays`.
    public var days: Int
    /// `extendReasonCode`.
    public var reason: ExtensionReason
    /// `requestIdentifier`.
    public var request: UniqueID

    /// Makes an order.
    public init(days: Int, reason: ExtensionReason, request: UniqueID) {
        self.days = days
        self.reason = reason
        self.request = request
    }
}

/// Apple's `extendReasonCode`.
public enum ExtensionReason: Int, Hashable, Sendable, CaseIterable {
    /// No reason is declared.
    case undeclared = 0
    /// Customer satisfaction.
    case customerSatisfaction = 1
    /// Another reason.
    case other = 2
    /// A service issue or outage.
    case serviceIssue = 3

    /// The word that commands and answers use.
    public var name: String {
        switch self {
        case .undeclared: "undeclared"
        case .customerSatisfaction: "customer-satisfaction"
        case .other: "other"
        case .serviceIssue: "service-issue"
        }
    }

    /// The reason of a word.
    public init?(name: String) {
        guard let match = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = match
    }

    /// Whether the reason says so little that a justification must say more.
    public var needsJustification: Bool { self == .undeclared || self == .other }
}

/// What came back for one request, or that nothing did.
public struct ExtensionReply: Hashable, Sendable {
    /// Apple's HTTP status; nil where no answer arrived.
    public var httpStatus: Int?
    /// Apple's body as received.
    public var body: [UInt8]
    /// Why there is no answer, in words, or what to do about the one there is.
    public var failure: String?
    /// Whether it is sure that nothing was sent.
    public var wasNotSent: Bool
    /// How long it took.
    public var latency: Milliseconds

    /// Makes a reply.
    public init(
        httpStatus: Int?,
        body: [UInt8] = [],
        failure: String? = nil,
        wasNotSent: Bool = false,
        latency: Milliseconds = Milliseconds(rawValue: 0)
    ) {
        self.httpStatus = httpStatus
        self.body = body
        self.failure = failure
        self.wasNotSent = wasNotSent
        self.latency = latency
    }
}
