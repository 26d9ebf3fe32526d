extension Chain {
    /// The payload of a signed transaction, with Apple's names in Apple's order.
    public func payload(_ transaction: NoticeTransaction) -> WireValue {
        let oneTime = transaction.oneTime
        var out = Members()
        out.add("transactionId", transaction.transactionID)
        out.add("originalTransactionId", oneTime?.originalTransactionID ?? originalTransactionID)
        out.add("webOrderLineItemId", oneTime == nil ? transaction.webOrderLineItemID : nil)
        out.add("bundleId", bundleID)
        out.add("productId", transaction.productID)
        out.add("subscriptionGroupIdentifier", oneTime == nil ? groupID : nil)
        out.add("purchaseDate", transaction.purchaseDate)
        out.add(
            "originalPurchaseDate",
            oneTime == nil ? originalPurchaseDate : transaction.purchaseDate
        )
        out.add("expiresDate", oneTime == nil ? transaction.expiresDate : nil)
        out.add("quantity", Int64(transaction.quantity))
        out.add("type", oneTime?.type ?? "Auto-Renewable Subscription")
        out.add("appAccountToken", transaction.appAccountToken ?? appAccountToken)
        out.add("inAppOwnershipType", ownership)
        out.add("signedDate", transaction.signedDate)
        if let revocation = transaction.revocation {
            out.add("revocationReason", Int64(revocation.reason))
            out.add("revocationDate", revocation.date)
            out.add("revocationType", revocation.type)
            out.add("revocationPercentage", revocation.percentage.map(Int64.init))
        }
        if transaction.isUpgraded { out.add("isUpgraded", .bool(true)) }
        out.add(transaction.offer)
        out.add("environment", environment)
        out.add("transactionReason", transaction.reason.rawValue)
        out.add("storefront", storefront.code)
        out.add("storefrontId", storefront.id)
        out.add("price", transaction.price)
        out.add("currency", transaction.price == nil ? nil : storefront.currency)
        out.add("appTransactionId", appTransactionID)
        if let seats = transaction.seats { out.add(seats, transaction) }
        if let commitment = transaction.commitment {
            out.add("billingPlanType", "MONTHLY")
            out.add(
                "commitmentInfo",
                [
                    "billingPeriodNumber": .integer(Int64(commitment.number)),
                    "totalBillingPeriods": .integer(Int64(commitment.total)),
                    "commitmentExpiresDate": .integer(commitment.expires),
                    "commitmentPrice": .integer(commitment.price),
                ]
            )
        }
        out.add("previousOriginalTransactionId", previousOriginalTransactionID)
        out.add(transaction.advancedCommerce)
        return .object(out.members)
    }

    /// The payload of a signed renewal info.
    public func payload(_ renewal: NoticeRenewal) -> WireValue {
        var out = Members()
        out.add("expirationIntent", renewal.expirationIntent.map(Int64.init))
        out.add("originalTransactionId", originalTransactionID)
        out.add("autoRenewProductId", renewal.autoRenewProductID)
        out.add("productId", renewal.productID)
        out.add("autoRenewStatus", Int64(renewal.autoRenewStatus))
        if let isRetrying = renewal.isInBillingRetryPeriod {
            out.add("isInBillingRetryPeriod", .bool(isRetrying))
        }
        out.add("priceIncreaseStatus", renewal.priceIncreaseStatus.map(Int64.init))
        out.add("gracePeriodExpiresDate", renewal.gracePeriodExpiresDate)
        out.add(renewal.offer)
        if let offers = renewal.winBackOffers {
            out.add("eligibleWinBackOfferIds", .array(offers.map { .string($0) }))
        }
        out.add("renewalPrice", renewal.renewalPrice)
        out.add("currency", storefront.currency)
        out.add("renewalQuantity", renewal.quantity.map(Int64.init))
        out.add("signedDate", renewal.signedDate)
        out.add("environment", environment)
        out.add("recentSubscriptionStartDate", renewal.recentSubscriptionStartDate)
        out.add("renewalDate", renewal.renewalDate)
        out.add("appAccountToken", renewal.appAccountToken ?? appAccountToken)
        out.add("appTransactionId", appTransactionID)
        if let commitment = renewal.commitment {
            out.add("renewalBillingPlanType", "MONTHLY")
            out.add(
                "commitmentInfo",
                [
                    "commitmentAutoRenewProductId": .string(commitment.autoRenewProductID),
                    "commitmentAutoRenewStatus": .integer(Int64(commitment.autoRenewStatus)),
                    "commitmentRenewalBillingPlanType": "MONTHLY",
                    "commitmentRenewalDate": .integer(commitment.renewalDate),
                    "commitmentRenewalPrice": .integer(commitment.renewalPrice),
                ]
            )
        }
        out.add(renewal.advancedCommerce)
        return .object(out.members)
    }

    /// The payload of a notification around its nested JWS.
    public func payload(
        _ notice: Notice,
        signedTransactionInfo: WireValue? = nil,
        signedRenewalInfo: WireValue? = nil,
        signedAppTransactionInfo: WireValue? = nil
    ) -> WireValue {
        var subject = Members()
        if case .summary(let mass) = notice.form {
            subject.add("requestIdentifier", mass.requestIdentifier)
            subject.add("environment", environment)
            subject.add("appAppleId", appAppleID)
            subject.add("bundleId", bundleID)
            subject.add("productId", mass.productID)
            if let storefronts = mass.storefronts {
                subject.add(
                    "storefrontCountryCodes",
                    .array(storefronts.map { .string($0) })
                )
            }
            subject.add("succeededCount", Int64(mass.succeeded))
            subject.add("failedCount", Int64(mass.failed))
        } else if case .externalPurchaseToken(let token) = notice.form {
            subject.add("externalPurchaseId", token.id)
            subject.add("tokenCreationDate", token.created)
            subject.add("appAppleId", appAppleID)
            subject.add("bundleId", bundleID)
            subject.add("tokenExpirationDate", token.expires)
            subject.add("tokenType", token.type)
        } else {
            subject.add("appAppleId", appAppleID)
            subject.add("bundleId", bundleID)
            if notice.form == .data { subject.add("bundleVersion", "4102") }
            subject.add("environment", environment)
            subject.add("signedTransactionInfo", signedTransactionInfo)
            subject.add("signedRenewalInfo", signedRenewalInfo)
            subject.add("signedAppTransactionInfo", signedAppTransactionInfo)
            if case .unclaimInfo(let ids) = notice.form {
                subject.add("unclaimSeatIds", .array(ids.map { .string($0) }))
            }
            subject.add("status", notice.status.map(Int64.init))
            subject.add("consumptionRequestReason", notice.consumptionRequestReason)
        }
        var out = Members()
        out.add("notificationType", notice.type)
        out.add("subtype", notice.subtype)
        out.add("notificationUUID", notice.uuid)
        out.add(notice.form.memberName, .object(subject.members))
        out.add("version", "2.0")
        out.add("signedDate", notice.signedDate)
        return .object(out.members)
    }

    /// The payload of a signed app transaction.
    func appTransaction(signedDate: Int64) -> WireValue {
        var out = Members()
        out.add("receiptType", environment)
        out.add("appAppleId", appAppleID)
        out.add("bundleId", bundleID)
        out.add("applicationVersion", "4102")
        out.add("receiptCreationDate", signedDate)
        out.add("originalPurchaseDate", originalPurchaseDate)
        out.add("originalApplicationVersion", "3000")
        out.add("appTransactionId", appTransactionID)
        out.add("originalPlatform", "iOS")
        return .object(out.members)
    }
}

extension NoticeForm {
    /// The name of the payload's object.
    fileprivate var memberName: String {
        switch self {
        case .data, .answer: "data"
        case .summary: "summary"
        case .externalPurchaseToken: "externalPurchaseToken"
        case .appData: "appData"
        case .unclaimInfo: "unclaimInfo"
        }
    }
}

/// Collects the members that are there; an absent value is left out, as Apple does.
private struct Members {
    var members: [WireMember] = []

    init() { members.reserveCapacity(28) }

    mutating func add(_ name: String, _ text: String?) {
        if let text { members.append(WireMember(name, .string(text))) }
    }

    mutating func add(_ name: String, _ number: Int64?) {
        if let number { members.append(WireMember(name, .integer(number))) }
    }

    mutating func add(_ name: String, _ value: WireValue?) {
        if let value { members.append(WireMember(name, value)) }
    }

    mutating func add(_ offer: NoticeOffer?) {
        guard let offer else { return }
        add("offerType", Int64(offer.type))
        add("offerIdentifier", offer.identifier)
        add("offerDiscountType", offer.discountType)
        add("offerPeriod", offer.period)
    }

    /// Where Apple nests these is not documented; StoreKit has them in one object.
    mutating func add(_ seats: NoticeSeats, _ transaction: NoticeTransaction) {
        add("additionalTransactionReason", seats.additionalReason)
        add("revokedSeatQuantity", seats.revoked.map(Int64.init))
        let tier: WireValue = [
            "price": .integer(transaction.price ?? 0),
            "quantity": .integer(Int64(transaction.quantity)),
        ]
        add(
            "multiSeatInfo",
            [
                "priceTiers": .array([tier]),
                "invitationManagement": .string(seats.invitationManagement),
            ]
        )
    }

    mutating func add(_ item: NoticeItem?) {
        guard let item else { return }
        add(
            "advancedCommerceInfo",
            [
                "items": .array([
                    [
                        "SKU": .string(item.sku),
                        "description": .string(item.displayName),
                        "displayName": .string(item.displayName),
                        "price": .integer(item.price),
                    ]
                ]),
                "period": "P1M",
                "taxCode": "C003-00-2",
            ]
        )
    }
}
