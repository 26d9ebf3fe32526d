/// Why nothing of a verifyReceipt response can be used; `detail` is safe to log.
public struct ReceiptProblem: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reasons, with stable names.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// It is longer than is read.
        case tooLarge = "too_large"
        /// It is no JSON.
        case badJSON = "bad_json"
        /// It is JSON, and no response of verifyReceipt.
        case notAReceipt = "not_a_receipt"
        /// It is a notification of the retired version 1.
        case versionOneNotification = "version_1_notification"
        /// It is signed, so that `ingest` takes it.
        case signedText = "signed_text"
        /// Apple did not accept the receipt.
        case status
        /// It belongs to an app that is not accepted here, or names none.
        case bundleID = "bundle_id"
        /// It is of an environment that is not accepted for the app, or names none.
        case environment
        /// Nothing in it says when it was so.
        case instantMissing = "instant_missing"
        /// It says that it was made in the future.
        case inTheFuture = "in_the_future"
    }

    /// The reason.
    public var reason: Reason
    /// What exactly.
    public var detail: String

    /// Makes a problem.
    public init(_ reason: Reason, _ detail: String) {
        self.reason = reason
        self.detail = detail
    }

    /// Reason and detail.
    public var description: String { "\(reason.rawValue): \(detail)" }
}
