/// Apple's `status` of a verifyReceipt response: what became of the receipt, never of the
/// subscription.
///
/// Apple: appstorereceipts/status.
public struct ReceiptStatus: Hashable, Sendable {
    /// The number.
    public var code: Int64
    /// Apple's `is_retryable`, which stands only beside 21100 to 21199.
    public var isMarkedRetryable: Bool

    /// Makes a status.
    public init(_ code: Int64, isMarkedRetryable: Bool = false) {
        self.code = code
        self.isMarkedRetryable = isMarkedRetryable
    }

    /// Whether the response tells of a receipt that Apple made.
    ///
    /// 21006 is what receipts of iOS 6 and before get whose subscription is over: as good as 0.
    public var isValid: Bool { code == 0 || code == 21_006 }

    /// Whether asking again may help.
    public var isRetryable: Bool {
        switch code {
        case 21_002, 21_005, 21_009: true
        case 21_100...21_199: isMarkedRetryable
        default: false
        }
    }

    /// The environment that is to be asked instead, if any.
    public var belongsElsewhere: Bool { code == 21_007 || code == 21_008 }

    /// What it means, for people.
    public var meaning: String {
        switch code {
        case 0: "the receipt is valid"
        case 21_000: "the request was no POST"
        case 21_001: "a status that Apple no longer sends"
        case 21_002: "the receipt is malformed, or a fault that passes"
        case 21_003: "the receipt is not one that Apple made"
        case 21_004: "the shared secret is not that of the app"
        case 21_005: "the receipt server was not available: ask again"
        case 21_006: "the receipt is valid and its subscription over"
        case 21_007: "it is a Sandbox receipt that was sent to Production: ask the Sandbox"
        case 21_008: "it is a Production receipt that was sent to the Sandbox: ask Production"
        case 21_009: "a fault of Apple's: ask again"
        case 21_010: "the account is not there or was deleted"
        case 21_100...21_199:
            "a fault of Apple's: " + (isRetryable ? "ask again" : "asking again does not help")
        default: "a status that this program does not know"
        }
    }
}
