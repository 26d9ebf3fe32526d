/// What identifies a subscription: the app with its environment, and the stream.
///
/// Two apps or environments never mix, even if an id repeats.
public struct SubscriptionKey: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The number of the bundle id and environment in `ledger.app`.
    public var appID: Int32
    /// The `originalTransactionId`; another name where the events belong to no subscription.
    public var stream: String

    /// Makes a key.
    public init(appID: Int32, stream: String) {
        self.appID = appID
        self.stream = stream
    }

    /// By stream, then app, as the log's keys are ordered.
    public static func < (left: SubscriptionKey, right: SubscriptionKey) -> Bool {
        left.stream == right.stream
            ? left.appID < right.appID
            : left.stream.utf8.lexicographicallyPrecedes(right.stream.utf8)
    }

    /// The stream and the app, for messages.
    public var description: String { "\(stream) of app \(appID)" }
}
