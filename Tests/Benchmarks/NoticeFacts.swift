internal import AppStoreSimulator
internal import Ledger

extension Fact {
    /// What a simulated notice says of its chain's subscription, as the decoder would hand it over,
    /// without the cost of signing; nil where it says nothing of it.
    init?(_ notice: Notice, of chain: Chain) {
        guard notice.isOfSubscription else { return nil }
        let signed = Timestamp(milliseconds: notice.signedDate)
        let inner = notice.transaction?.signedDate ?? notice.renewal?.signedDate
        let kind: EventKind =
            notice.form == .data
            ? .notification : notice.transaction == nil ? .renewalInfo : .transaction
        self.init(
            kind: kind,
            provenance: .jws,
            factAt: inner.map { Timestamp(milliseconds: $0) } ?? signed
        )
        if notice.form == .data {
            notificationType = NotificationType(notice.type)
            subtype = notice.subtype.map { Subtype($0) }
            consumptionRequestReason = notice.consumptionRequestReason.map {
                ConsumptionRequestReason($0)
            }
        }
        signedAt = signed
        status = notice.status.map { Int32($0) }
        transaction = notice.transaction.map { TransactionFact($0, chain) }
        renewal = notice.renewal.map { RenewalFact($0, chain) }
    }
}

extension TransactionFact {
    fileprivate init(_ notice: NoticeTransaction, _ chain: Chain) {
        var unsigned = notice
        unsigned.signedDate = 0
        self.init(
            transactionID: AppleID(notice.transactionID),
            signedDate: Timestamp(milliseconds: notice.signedDate),
            digest: fnv1a("\(unsigned)")
        )
        webOrderLineItemID = AppleID(notice.webOrderLineItemID)
        subscriptionGroupID = Symbol(chain.groupID)
        productType = .autoRenewable
        productID = Symbol(notice.productID)
        purchaseDate = Timestamp(milliseconds: notice.purchaseDate)
        originalPurchaseDate = Timestamp(milliseconds: chain.originalPurchaseDate)
        expiresDate = Timestamp(milliseconds: notice.expiresDate)
        quantity = Int32(notice.quantity)
        reason = TransactionReason(notice.reason.rawValue)
        additionalReason = notice.seats?.additionalReason.map { Symbol($0) }
        ownership = Ownership(chain.ownership)
        isUpgraded = notice.isUpgraded
        price = notice.price
        currency = notice.price == nil ? nil : Symbol(chain.storefront.currency)
        storefront = Symbol(chain.storefront.code)
        appAccountToken = (notice.appAccountToken ?? chain.appAccountToken).flatMap { UniqueID($0) }
        appTransactionID = AppleID(chain.appTransactionID)
        previousOriginalTransactionID = chain.previousOriginalTransactionID.map { AppleID($0) }
        revokedSeatQuantity = notice.seats?.revoked.map { Int32($0) }
        if let revocation = notice.revocation {
            revocationDate = Timestamp(milliseconds: revocation.date)
            revocationReason = Int32(revocation.reason)
            revocationType = RevocationType(revocation.type)
            revocationPercentage = revocation.percentage.map { Int32($0) }
        }
        if let offer = notice.offer {
            offerType = Int32(offer.type)
            offerIdentifier = offer.identifier.map { Symbol($0) }
            offerDiscountType = OfferDiscountType(offer.discountType)
            offerPeriod = Symbol(offer.period)
        }
        if let commitment = notice.commitment {
            billingPlanType = .monthly
            commitmentExpiresDate = Timestamp(milliseconds: commitment.expires)
            billingPeriodNumber = Int32(commitment.number)
            totalBillingPeriods = Int32(commitment.total)
        }
    }
}

extension RenewalFact {
    fileprivate init(_ notice: NoticeRenewal, _ chain: Chain) {
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
        priceIncreaseStatus = notice.priceIncreaseStatus.map { Int32($0) }
        renewalDate = Timestamp(milliseconds: notice.renewalDate)
        renewalPrice = notice.renewalPrice
        currency = Symbol(chain.storefront.currency)
        recentSubscriptionStartDate = Timestamp(
            milliseconds: notice.recentSubscriptionStartDate
        )
        appAccountToken = (notice.appAccountToken ?? chain.appAccountToken).flatMap { UniqueID($0) }
        appTransactionID = AppleID(chain.appTransactionID)
        renewalQuantity = notice.quantity.map { Int32($0) }
        if let offer = notice.offer {
            offerType = Int32(offer.type)
            offerIdentifier = offer.identifier.map { Symbol($0) }
            offerDiscountType = OfferDiscountType(offer.discountType)
        }
        if let commitment = notice.commitment {
            billingPlanType = .monthly
            commitmentAutoRenewStatus = Int32(commitment.autoRenewStatus)
            commitmentAutoRenewProductID = Symbol(commitment.autoRenewProductID)
            commitmentRenewalDate = Timestamp(milliseconds: commitment.renewalDate)
        }
    }
}

/// The FNV-1a hash; equal texts give equal digests in every run.
private func fnv1a(_ text: String) -> UInt64 {
    var hash: UInt64 = 14_695_981_039_346_656_037
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 1_099_511_628_211 }
    return hash
}
