internal import AppStoreSimulator
internal import Ledger

extension Fact {
    /// A simulated notification as the decoder would hand it over, without the cost of signing.
    init(_ notice: Notice) {
        let signed = Timestamp(milliseconds: notice.signedDate)
        let inner = notice.transaction?.signedDate ?? notice.renewal?.signedDate
        self.init(
            kind: .notification,
            provenance: .jws,
            factAt: inner.map { Timestamp(milliseconds: $0) } ?? signed
        )
        notificationType = NotificationType(notice.type)
        subtype = notice.subtype.map { Subtype($0) }
        signedAt = signed
        status = notice.status.map { Int32($0) }
        transaction = notice.transaction.map { TransactionFact($0) }
        renewal = notice.renewal.map { RenewalFact($0) }
    }
}

extension TransactionFact {
    fileprivate init(_ notice: NoticeTransaction) {
        var unsigned = notice
        unsigned.signedDate = 0
        self.init(
            transactionID: AppleID(notice.transactionID),
            signedDate: Timestamp(milliseconds: notice.signedDate),
            digest: fnv1a("\(unsigned)")
        )
        productType = .autoRenewable
        productID = Symbol(notice.productID)
        purchaseDate = Timestamp(milliseconds: notice.purchaseDate)
        expiresDate = Timestamp(milliseconds: notice.expiresDate)
        reason = TransactionReason(notice.reason.rawValue)
        ownership = .purchased
        isUpgraded = notice.isUpgraded
        price = notice.price
        if let revocation = notice.revocation {
            revocationDate = Timestamp(milliseconds: revocation.date)
            revocationReason = Int32(revocation.reason)
            revocationType = RevocationType(revocation.type)
        }
    }
}

extension RenewalFact {
    fileprivate init(_ notice: NoticeRenewal) {
        var unsigned = notice
        unsigned.signedDate = 0
        self.init(
            signedDate: Timestamp(milliseconds: notice.signedDate),
            digest: fnv1a("\(unsigned)")
        )
        productID = Symbol(notice.productID)
        autoRenewProductID = Symbol(notice.autoRenewProductID)
        autoRenewStatus = Int32(notice.autoRenewStatus)
        expirationIntent = notice.expirationIntent.map { Int32($0) }
        isInBillingRetryPeriod = notice.isInBillingRetryPeriod
        gracePeriodExpiresDate = notice.gracePeriodExpiresDate
            .map { Timestamp(milliseconds: $0) }
        renewalDate = Timestamp(milliseconds: notice.renewalDate)
    }
}

/// The FNV-1a hash; equal texts give equal digests in every run.
private func fnv1a(_ text: String) -> UInt64 {
    var hash: UInt64 = 14_695_981_039_346_656_037
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 1_099_511_628_211 }
    return hash
}
