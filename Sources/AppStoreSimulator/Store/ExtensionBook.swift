/// The fake App Store's own books of extensions: what was asked for, by whom, and what came of it.
///
/// They are written from the script and the requests alone, so that an audit trail can be compared
/// with them.
public struct ExtensionEntry: Hashable, Sendable {
    /// Where an extension comes from.
    public enum Source: String, Hashable, Sendable {
        /// A request for this subscription.
        case request
        /// A mass request.
        case mass
        /// The script: somebody else's doing.
        case script
        /// It followed the extension of the purchaser.
        case followed
    }

    /// Where it comes from.
    public var source: Source
    /// The simulated instant, ms since 1970.
    public var at: Int64
    /// The id of the key that asked; nil for what is the script's.
    public var keyID: String?
    /// Apple's `requestIdentifier`.
    public var requestIdentifier: String?
    /// The subscription, as far as it was named.
    public var originalTransactionID: String
    /// Its product, where it is known.
    public var productID: String?
    /// How many days.
    public var days: Int64?
    /// Apple's `extendReasonCode`.
    public var reasonCode: Int64?
    /// What was answered; nil for what was no request of its own.
    public var status: Int?
    /// Apple's error, where it was refused.
    public var errorCode: Int64?
    /// The end before.
    public var expiresBefore: Int64?
    /// The end from then on; nil where nothing was extended.
    public var effectiveDate: Int64?
    /// The identifier had been answered before, and nothing was extended again.
    public var isRepeat = false
    /// The answer was lost or was an error although something was extended.
    public var isAnswerLost = false
    /// The `notificationUUID` of the news.
    public var notificationUUID: String?

    init(_ source: Source, at: Int64, originalTransactionID: String) {
        self.source = source
        self.at = at
        self.originalTransactionID = originalTransactionID
    }

    /// The entry as the control endpoint shows it.
    public var wireValue: WireValue {
        var members: [WireMember] = []
        func add(_ name: String, _ value: WireValue?) {
            members.append(WireMember(name, value ?? .null))
        }
        add("source", .string(source.rawValue))
        add("at", .integer(at))
        add("keyId", keyID.map { .string($0) })
        add("requestIdentifier", requestIdentifier.map { .string($0) })
        add("originalTransactionId", .string(originalTransactionID))
        add("productId", productID.map { .string($0) })
        add("extendByDays", days.map { .integer($0) })
        add("extendReasonCode", reasonCode.map { .integer($0) })
        add("status", status.map { .integer(Int64($0)) })
        add("errorCode", errorCode.map { .integer($0) })
        add("expiresBefore", expiresBefore.map { .integer($0) })
        add("effectiveDate", effectiveDate.map { .integer($0) })
        add("isRepeat", .bool(isRepeat))
        add("isAnswerLost", .bool(isAnswerLost))
        add("notificationUUID", notificationUUID.map { .string($0) })
        return .object(members)
    }
}
