internal import Ledger
internal import Postgres

/// Reads rows of `ledger.fact` in the order of `FactColumns.read`.
///
/// One reader lives as long as one reading: it remembers what each text means, so that no text
/// that was seen before is made into a `String` again.
struct FactReader {
    /// What one row said.
    struct Row {
        var key: SubscriptionKey
        var position: Int64
        var decoder: Int16
        /// Nil where the event is never folded.
        var fact: Fact?
    }

    private var stream: (bytes: [UInt8], text: String) = ([], "")
    private var symbols = ByteCache<Symbol>()
    private var kinds = ByteCache<EventKind>(countMax: 64)
    private var provenances = ByteCache<Provenance?>(countMax: 16)
    private var types = ByteCache<NotificationType>(countMax: 256)
    private var subtypes = ByteCache<Subtype>(countMax: 256)
    private var refundReasons = ByteCache<ConsumptionRequestReason>(countMax: 64)
    private var productTypes = ByteCache<ProductType>(countMax: 64)
    private var ownerships = ByteCache<Ownership>(countMax: 64)
    private var reasons = ByteCache<TransactionReason>(countMax: 64)
    private var revocations = ByteCache<RevocationType>(countMax: 64)
    private var discounts = ByteCache<OfferDiscountType>(countMax: 64)
    private var plans = ByteCache<BillingPlanType>(countMax: 64)

    /// Reads one row.
    ///
    /// A row of another decoder is read to its decoder only.
    mutating func row(_ row: inout BinaryRow, decoder version: Int16) -> Row {
        let position = row.int() ?? 0
        let text = streamText(&row)
        let appID = Int32(truncatingIfNeeded: row.int() ?? 0)
        let decoder = Int16(truncatingIfNeeded: row.int() ?? 0)
        let key = SubscriptionKey(appID: appID, stream: text)
        guard decoder == version, let factAt = instant(&row) else {
            return Row(key: key, position: position, decoder: decoder, fact: nil)
        }
        let kind = cached(&row, &kinds) { EventKind($0) }
        let provenance = cached(&row, &provenances) { Provenance(text: $0) } ?? nil
        var fact = Fact(
            kind: kind ?? .unknown(""),
            provenance: provenance ?? .operator,
            factAt: factAt
        )
        fact.notificationType = cached(&row, &types) { NotificationType($0) }
        fact.subtype = cached(&row, &subtypes) { Subtype($0) }
        fact.signedAt = instant(&row)
        fact.status = int32(&row)
        let success = row.bool()
        let effectiveDate = instant(&row)
        fact.extensionAnswer = success.map {
            ExtensionAnswer(success: $0, effectiveDate: effectiveDate)
        }
        fact.linkedOwner = uuid(&row)
        let request = uuid(&row)
        let detail = int32(&row)
        fact.extensionStep = request.map {
            ExtensionStep(
                request: $0,
                detail: detail ?? 0,
                until: success == nil ? effectiveDate : nil
            )
        }
        if let reason = cached(&row, &refundReasons, { ConsumptionRequestReason($0) }) {
            fact.consumptionRequestReason = reason
        }
        fact.transaction = transaction(&row)
        fact.renewal = renewal(&row)
        return Row(key: key, position: position, decoder: decoder, fact: fact)
    }

    private mutating func transaction(_ row: inout BinaryRow) -> TransactionFact? {
        let id = appleID(&row)
        let signedDate = instant(&row)
        let digest = row.int()
        guard let id, let signedDate else {
            for _ in 0..<31 { row.skip() }
            return nil
        }
        var fact = TransactionFact(
            transactionID: id,
            signedDate: signedDate,
            digest: UInt64(bitPattern: digest ?? 0)
        )
        fact.webOrderLineItemID = appleID(&row)
        fact.productID = symbol(&row)
        fact.subscriptionGroupID = symbol(&row)
        fact.productType = cached(&row, &productTypes) { ProductType($0) }
        fact.purchaseDate = instant(&row)
        fact.originalPurchaseDate = instant(&row)
        fact.expiresDate = instant(&row)
        fact.quantity = int32(&row)
        fact.ownership = cached(&row, &ownerships) { Ownership($0) }
        fact.reason = cached(&row, &reasons) { TransactionReason($0) }
        fact.additionalReason = symbol(&row)
        fact.isUpgraded = row.bool() ?? false
        fact.revocationDate = instant(&row)
        fact.revocationReason = int32(&row)
        fact.revocationType = cached(&row, &revocations) { RevocationType($0) }
        fact.revocationPercentage = int32(&row)
        fact.revokedSeatQuantity = int32(&row)
        fact.offerType = int32(&row)
        fact.offerIdentifier = symbol(&row)
        fact.offerDiscountType = cached(&row, &discounts) { OfferDiscountType($0) }
        fact.offerPeriod = symbol(&row)
        fact.price = row.int()
        fact.currency = symbol(&row)
        fact.storefront = symbol(&row)
        fact.appAccountToken = uuid(&row)
        fact.appTransactionID = appleID(&row)
        fact.billingPlanType = cached(&row, &plans) { BillingPlanType($0) }
        fact.commitmentExpiresDate = instant(&row)
        fact.billingPeriodNumber = int32(&row)
        fact.totalBillingPeriods = int32(&row)
        fact.previousOriginalTransactionID = appleID(&row)
        return fact
    }

    private mutating func renewal(_ row: inout BinaryRow) -> RenewalFact? {
        let signedDate = instant(&row)
        let digest = row.int()
        guard let signedDate else {
            for _ in 0..<21 { row.skip() }
            return nil
        }
        var fact = RenewalFact(
            signedDate: signedDate,
            digest: UInt64(bitPattern: digest ?? 0)
        )
        fact.productID = symbol(&row)
        fact.autoRenewProductID = symbol(&row)
        fact.autoRenewStatus = int32(&row)
        fact.expirationIntent = int32(&row)
        fact.isInBillingRetryPeriod = row.bool()
        fact.gracePeriodExpiresDate = instant(&row)
        fact.priceIncreaseStatus = int32(&row)
        fact.renewalDate = instant(&row)
        fact.renewalPrice = row.int()
        fact.currency = symbol(&row)
        fact.recentSubscriptionStartDate = instant(&row)
        fact.offerType = int32(&row)
        fact.offerIdentifier = symbol(&row)
        fact.offerDiscountType = cached(&row, &discounts) { OfferDiscountType($0) }
        fact.appAccountToken = uuid(&row)
        fact.appTransactionID = appleID(&row)
        fact.billingPlanType = cached(&row, &plans) { BillingPlanType($0) }
        fact.commitmentAutoRenewStatus = int32(&row)
        fact.commitmentAutoRenewProductID = symbol(&row)
        fact.commitmentRenewalDate = instant(&row)
        fact.renewalQuantity = int32(&row)
        return fact
    }
}

extension FactReader {
    /// The stream's name; rows come sorted, so it is mostly the last one again.
    private mutating func streamText(_ row: inout BinaryRow) -> String {
        let last = stream
        let read = unsafe row.withBytes { bytes in
            if unsafe last.bytes.elementsEqual(bytes) { return last }
            return unsafe (Array(bytes), String(decoding: bytes, as: UTF8.self))
        }
        stream = read ?? ([], "")
        return stream.text
    }

    private mutating func symbol(_ row: inout BinaryRow) -> Symbol? {
        unsafe row.withBytes { unsafe symbols.value($0) { Symbol($0) } }
    }

    private func instant(_ row: inout BinaryRow) -> Timestamp? {
        row.instant().map { Timestamp(milliseconds: $0) }
    }

    private func int32(_ row: inout BinaryRow) -> Int32? {
        row.int().map { Int32(truncatingIfNeeded: $0) }
    }

    private func uuid(_ row: inout BinaryRow) -> UniqueID? {
        row.uuid().map { UniqueID(bits: $0) }
    }

    /// An identifier; canonical decimals are read without making a `String`.
    private func appleID(_ row: inout BinaryRow) -> AppleID? {
        unsafe row.withBytes { bytes in
            var number: UInt64 = 0
            let isPlain = unsafe (1...18).contains(bytes.count) && bytes[0] != 0x30
            guard isPlain else {
                return unsafe AppleID(String(decoding: bytes, as: UTF8.self))
            }
            for index in 0..<bytes.count {
                let byte = unsafe bytes[index]
                guard byte >= 0x30, byte <= 0x39 else {
                    return unsafe AppleID(String(decoding: bytes, as: UTF8.self))
                }
                number = number * 10 + UInt64(byte - 0x30)
            }
            return AppleID(number)
        }
    }
}

/// What a text stands for, or nil where the field is null.
private func cached<Value>(
    _ row: inout BinaryRow,
    _ cache: inout ByteCache<Value>,
    _ make: (String) -> Value
) -> Value? {
    unsafe row.withBytes { unsafe cache.value($0, make) }
}
