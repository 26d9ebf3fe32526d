public import Ledger

/// What kind of signed text something is.
public enum DocumentKind: String, Hashable, CaseIterable, Sendable {
    /// An App Store Server Notification V2.
    case notification
    /// A transaction.
    case transaction
    /// A renewal info.
    case renewalInfo = "renewal_info"
    /// An app transaction.
    case appTransaction = "app_transaction"

    /// The kind of event that a text of this kind becomes.
    public var eventKind: EventKind {
        switch self {
        case .notification: .notification
        case .transaction: .transaction
        case .renewalInfo: .renewalInfo
        case .appTransaction: .appTransaction
        }
    }

    /// The kind of a payload, by the members that only that kind has.
    init(of payload: JSONDocument) {
        if payload["notificationType"] != nil || payload["notificationUUID"] != nil {
            self = .notification
        } else if payload["receiptType"] != nil || payload["receiptCreationDate"] != nil {
            self = .appTransaction
        } else if payload["transactionId"] != nil {
            self = .transaction
        } else if payload["originalTransactionId"] != nil {
            self = .renewalInfo
        } else {
            self = .notification
        }
    }

    /// The members of a notification's objects that are signed texts of their own.
    static let nestedFields: [(field: String, kind: DocumentKind)] = [
        ("signedTransactionInfo", .transaction),
        ("signedRenewalInfo", .renewalInfo),
        ("signedAppTransactionInfo", .appTransaction),
    ]
}

/// Which object of a notification says what it is about.
enum EnvelopeForm: String, CaseIterable, Sendable {
    case data
    case summary
    case externalPurchaseToken
    case appData
    case unclaimInfo
}
