/// How an attempt to deliver a notification went, by Apple's names.
public enum SendAttemptResult: String, Hashable, Sendable, CaseIterable {
    /// The server answered 200 to 206.
    case success = "SUCCESS"
    /// It redirected in a circle.
    case circularRedirect = "CIRCULAR_REDIRECT"
    /// Its answer could not be read.
    case invalidResponse = "INVALID_RESPONSE"
    /// It did not answer.
    case noResponse = "NO_RESPONSE"
    /// Anything else.
    case other = "OTHER"
    /// It closed the connection before the answer was whole.
    case prematureClose = "PREMATURE_CLOSE"
    /// There was no connection.
    case socketIssue = "SOCKET_ISSUE"
    /// It took too long.
    case timedOut = "TIMED_OUT"
    /// There was no TLS session, or its certificate is not trusted.
    case tlsIssue = "TLS_ISSUE"
    /// It answered with another status.
    case unsuccessfulCode = "UNSUCCESSFUL_HTTP_RESPONSE_CODE"
    /// Its answer is in a charset that is not known.
    case unsupportedCharset = "UNSUPPORTED_CHARSET"
}

/// One attempt to deliver a notification.
public struct SendAttempt: Hashable, Sendable {
    /// Apple's `attemptDate`, ms since 1970.
    public var date: Int64
    /// Apple's `sendAttemptResult`.
    public var result: SendAttemptResult

    var wireValue: WireValue {
        ["attemptDate": .integer(date), "sendAttemptResult": .string(result.rawValue)]
    }
}

/// A notification that is to be posted now.
public struct Dispatch: Hashable, Sendable {
    /// Which notification, in the order of sending.
    public var id: Int
    /// Which attempt, from 1.
    public var attempt: Int
    /// A copy that the network made: its fate is not recorded.
    public var isCopy: Bool
    /// What is posted.
    public var body: [UInt8]
}

/// What is to become of the deliveries of one notification.
struct DeliveryFate: Hashable, Sendable {
    /// So many attempts are never posted.
    var failures = 0
    /// What is recorded of those.
    var failure = SendAttemptResult.timedOut
    /// The first attempt arrives, but its answer gets lost.
    var losesAnswer = false
    /// How long it is held up on the way, in milliseconds.
    var delay: Int64 = 0

    /// It never arrives.
    var isLost: Bool { failures == .max }
}
