/// A genuine document that cannot become an event, with what is known of it.
public struct QuarantinedDocument: Hashable, Sendable {
    /// The bytes as received.
    public var received: [UInt8]
    /// Why it is here, by a stable name.
    public var reason: String
    /// The app that it was for, where known.
    public var app: AppKey?
    /// The stream that it names, where it could be read.
    public var stream: String?
    /// The key that it would have had.
    public var eventKey: String?

    /// Makes a document to keep.
    public init(
        received: [UInt8],
        reason: String,
        app: AppKey? = nil,
        stream: String? = nil,
        eventKey: String? = nil
    ) {
        self.received = received
        self.reason = reason
        self.app = app
        self.stream = stream
        self.eventKey = eventKey
    }
}
