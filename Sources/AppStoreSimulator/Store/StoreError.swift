/// An error of Apple's, by its number.
public struct StoreError: Error, Hashable, Sendable {
    /// Apple's `errorCode`; its first three digits are the HTTP status.
    public var code: Int64

    /// Makes an error.
    public init(_ code: Int64) { self.code = code }

    /// The HTTP status.
    public var status: Int { Int(code / 10_000) }

    /// Apple's name of it, without `Error`; nil for a number that Apple does not list.
    public var name: String? { Self.names[code] }

    /// Apple's `errorMessage`, in words of our own: its texts are not promised to stay.
    public var message: String {
        guard let name else { return "An error that was asked for." }
        var words = ""
        for letter in name {
            if letter.isUppercase, !words.isEmpty {
                words += " " + letter.lowercased()
            } else {
                words.append(letter)
            }
        }
        return words + "."
    }

    /// All numbers that an endpoint here can give, also the ones that only a fault plan gives.
    public static let names: [Int64: String] = [
        4_000_000: "GeneralBadRequest",
        4_000_002: "InvalidAppIdentifier",
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
        4_000_035: "InvalidCustomerConsented",
        4_000_036: "InvalidDeliveryStatus",
        4_000_041: "InvalidSampleContentProvided",
        4_000_044: "InvalidRefundPreference",
        4_000_048: "AppTransactionIdNotSupported",
        4_000_183: "InvalidAppAccountTokenUUID",
        4_000_185: "FamilyTransactionNotSupported",
        4_000_187: "TransactionIdIsNotOriginalTransactionId",
        4_000_209: "ConsumptionPercentageAutoRenewableSubscription",
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
        4_290_000: "RateLimitExceeded",
        5_000_000: "GeneralInternal",
        5_000_001: "GeneralInternalRetryable",
    ]

    static let transactionNotFound = StoreError(4_040_010)
    static let invalidTransactionID = StoreError(4_000_006)
    static let rateLimitExceeded = StoreError(4_290_000)
}
