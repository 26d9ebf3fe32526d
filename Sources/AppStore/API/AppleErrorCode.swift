/// One of Apple's numbers for what is wrong with a request; unknown numbers are kept.
public struct AppleErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// Apple's `errorCode`; its first three digits are the HTTP status.
    public var rawValue: Int64

    /// Takes any number.
    public init(rawValue: Int64) { self.rawValue = rawValue }

    /// Takes any number.
    public init(_ number: Int64) { rawValue = number }

    /// When the same request may be sent again.
    public enum Retry: Hashable, Sendable {
        /// Never: the request is to be changed, or the answer accepted.
        case never
        /// Soon: Apple lists it among the errors to retry.
        case soon
        /// Later: a limit is used up or the server has a fault.
        case later
    }

    /// Apple's name for it, without `Error` at its end; nil for an unknown number.
    public var name: String? { Self.names[rawValue] }

    /// The HTTP status that belongs to it.
    public var status: Int { Int(rawValue / 10_000) }

    /// When the same request may be sent again.
    ///
    /// An unknown number is judged by its HTTP status.
    public var retry: Retry {
        if Self.retryable.contains(rawValue) { return .soon }
        return status == 429 || status >= 500 ? .later : .never
    }

    /// Number and name.
    public var description: String { name.map { "\(rawValue) \($0)" } ?? "\(rawValue)" }

    /// Apple's group "errors to retry".
    private static let retryable: Set<Int64> = [
        4_040_002, 4_040_004, 4_040_006, 5_000_001,
    ]

    /// Every number that is known.
    public static var known: [AppleErrorCode] { names.keys.sorted().map { AppleErrorCode($0) } }

    private static let names: [Int64: String] = [
        4_000_000: "GeneralBadRequest",
        4_000_002: "InvalidAppIdentifier",
        4_000_004: "InvalidLimit",
        4_000_005: "InvalidRequestRevision",
        4_000_006: "InvalidTransactionId",
        4_000_008: "InvalidOriginalTransactionId",
        4_000_009: "InvalidExtendByDays",
        4_000_010: "InvalidExtendReasonCode",
        4_000_011: "InvalidRequestIdentifier",
        4_000_012: "StartDateTooFarInPast",
        4_000_013: "StartDateAfterEndDate",
        4_000_014: "InvalidPaginationToken",
        4_000_015: "InvalidStartDate",
        4_000_016: "InvalidEndDate",
        4_000_017: "PaginationTokenExpired",
        4_000_018: "InvalidNotificationType",
        4_000_019: "MultipleFiltersSupplied",
        4_000_020: "InvalidTestNotificationToken",
        4_000_021: "InvalidSort",
        4_000_022: "InvalidProductType",
        4_000_023: "InvalidProductId",
        4_000_024: "InvalidSubscriptionGroupIdentifier",
        4_000_025: "InvalidExcludeRevoked",
        4_000_026: "InvalidInAppOwnershipType",
        4_000_027: "InvalidEmptyStorefrontCountryCodeList",
        4_000_028: "InvalidStorefrontCountryCode",
        4_000_030: "InvalidRevoked",
        4_000_031: "InvalidStatus",
        4_000_032: "InvalidAccountTenure",
        4_000_033: "InvalidAppAccountToken",
        4_000_034: "InvalidConsumptionStatus",
        4_000_035: "InvalidCustomerConsented",
        4_000_036: "InvalidDeliveryStatus",
        4_000_037: "InvalidLifetimeDollarsPurchased",
        4_000_038: "InvalidLifetimeDollarsRefunded",
        4_000_039: "InvalidPlatform",
        4_000_040: "InvalidPlayTime",
        4_000_041: "InvalidSampleContentProvided",
        4_000_042: "InvalidUserStatus",
        4_000_043: "InvalidTransactionNotConsumable",
        4_000_044: "InvalidRefundPreference",
        4_000_047: "InvalidTransactionTypeNotSupported",
        4_000_048: "AppTransactionIdNotSupported",
        4_000_183: "InvalidAppAccountTokenUUID",
        4_000_185: "FamilyTransactionNotSupported",
        4_000_187: "TransactionIdIsNotOriginalTransactionId",
        4_000_209: "ConsumptionPercentageAutoRenewableSubscription",
        4_000_225: "InvalidGroupId",
        4_000_227: "InvalidAssignedTransactionNotSupported",
        4_030_004: "SubscriptionExtensionIneligible",
        4_030_005: "SubscriptionMaxExtension",
        4_030_007: "FamilySharedSubscriptionExtensionIneligible",
        4_030_028: "AssignedSubscriptionExtensionIneligible",
        4_040_001: "AccountNotFound",
        4_040_002: "AccountNotFoundRetryable",
        4_040_003: "AppNotFound",
        4_040_004: "AppNotFoundRetryable",
        4_040_005: "OriginalTransactionIdNotFound",
        4_040_006: "OriginalTransactionIdNotFoundRetryable",
        4_040_007: "ServerNotificationURLNotFound",
        4_040_008: "TestNotificationNotFound",
        4_040_009: "StatusRequestNotFound",
        4_040_010: "TransactionIdNotFound",
        4_040_019: "AppTransactionDoesNotExist",
        4_040_022: "GroupNotFound",
        4_290_000: "RateLimitExceeded",
        5_000_000: "GeneralInternal",
        5_000_001: "GeneralInternalRetryable",
    ]
}

extension AppleErrorCode {
    /// The page token of Get Notification History died; the window is to be begun again.
    public static let paginationTokenExpired = AppleErrorCode(4_000_017)
    /// A stored `revision` that Apple does not take.
    public static let invalidRequestRevision = AppleErrorCode(4_000_005)
    /// No such transaction in this environment.
    public static let transactionIDNotFound = AppleErrorCode(4_040_010)
    /// No such subscription in this environment or app.
    public static let originalTransactionIDNotFound = AppleErrorCode(4_040_005)
    /// No URL for notifications is set up in App Store Connect.
    public static let serverNotificationURLNotFound = AppleErrorCode(4_040_007)
    /// No test of that token, or none yet.
    public static let testNotificationNotFound = AppleErrorCode(4_040_008)
    /// Too many requests in this hour.
    public static let rateLimitExceeded = AppleErrorCode(4_290_000)
}
