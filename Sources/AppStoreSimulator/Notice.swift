/// One App Store Server Notification before it is signed: what Apple says, and when.
///
/// Instants are milliseconds since 1970. What never changes within a chain stands in `Chain`.
/// What App Store Server API answers say stands here too, as a `form` of its own.
public struct Notice: Hashable, Sendable {
    /// Apple's `notificationUUID`.
    public var uuid: String
    /// Apple's `notificationType`.
    public var type: String
    /// Apple's `subtype`.
    public var subtype: String?
    /// When the envelope is signed.
    public var signedDate: Int64
    /// Apple's `status`, 1…5.
    public var status: Int?
    /// Apple's `consumptionRequestReason`.
    public var consumptionRequestReason: String?
    /// What becomes `signedTransactionInfo`.
    public var transaction: NoticeTransaction?
    /// What becomes `signedRenewalInfo`.
    public var renewal: NoticeRenewal?
    /// Which object of the payload speaks.
    public var form = NoticeForm.data

    /// Whether it says something of the chain's subscription.
    public var isOfSubscription: Bool {
        (transaction != nil || renewal != nil) && transaction?.oneTime == nil
    }

    /// Makes a notice.
    public init(
        uuid: String,
        type: String,
        subtype: String? = nil,
        signedDate: Int64,
        status: Int? = nil,
        transaction: NoticeTransaction? = nil,
        renewal: NoticeRenewal? = nil
    ) {
        self.uuid = uuid
        self.type = type
        self.subtype = subtype
        self.signedDate = signedDate
        self.status = status
        self.transaction = transaction
        self.renewal = renewal
    }
}
