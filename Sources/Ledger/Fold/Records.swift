// The small records that the fold works on. Facts are wide; each is read once, into these, since
// copying wide values was half of the fold's time.

/// What an event says beside its transaction and renewal info.
struct EventHead {
    var position: Int64
    var kind: EventKind
    var provenance: Provenance
    var notificationType: NotificationType?
    var subtype: Subtype?
    var status: Int32?
    var factAt: Timestamp
    /// When the envelope was signed, or the fact where there is none.
    var signedAt: Timestamp
    /// When the whole event was signed: the latest of its dates, so that the parts of one event
    /// never fall on two sides of a cut.
    var at: Timestamp

    init(_ events: borrowing [Event], _ place: Int) {
        position = events[place].position
        kind = events[place].fact.kind
        provenance = events[place].fact.provenance
        notificationType = events[place].fact.notificationType
        subtype = events[place].fact.subtype
        status = events[place].fact.status
        factAt = events[place].fact.factAt
        signedAt = events[place].fact.signedAt ?? factAt
        var at = max(factAt, signedAt)
        if events[place].fact.hasTransaction {
            at = max(at, events[place].fact.storedTransaction.signedDate)
        }
        if events[place].fact.hasRenewal {
            at = max(at, events[place].fact.storedRenewal.signedDate)
        }
        self.at = at
    }
}

/// The register of one transaction: the version that counts, and what all versions tell.
struct Period {
    var transactionID: AppleID
    var signedDate: Timestamp
    var signedAt: Timestamp
    var digest: UInt64
    var provenance: Provenance
    /// The event that holds the version that counts.
    var position: Int64
    /// Where that event stands among those that are folded.
    var place: Int
    var productID: Symbol?
    var purchaseDate: Timestamp?
    var expiresDate: Timestamp?
    var revocationDate: Timestamp?
    var revocationType: RevocationType?
    var reason: TransactionReason?
    var ownership: Ownership?
    var offer: OfferPhase
    var price: Int64?
    var currency: Symbol?
    var appAccountToken: UniqueID?
    var isUpgraded: Bool
    /// Whether one of several transactions of one period (seats).
    var isAdditional: Bool
    var isCommitment: Bool

    /// When Apple first signed any version of it.
    var firstSigned: Timestamp
    /// When the first event that carries it was signed.
    var firstAt: Timestamp
    /// When the event that reports the purchase or renewal itself was signed.
    var reportedAt: Timestamp?
    /// The end as first signed, before any extension.
    var firstEnd: Timestamp?
    /// When Apple first said that it was upgraded.
    var upgradedAt: Timestamp?
    /// The end that an unsigned answer to an extension promised.
    var provisionalEnd: Timestamp?
    var provisionalPosition: Int64 = 0

    /// Whether an event carries a transaction of an auto-renewable subscription.
    static func exists(in events: borrowing [Event], _ place: Int) -> Bool {
        guard events[place].fact.hasTransaction else { return false }
        // Older payloads lack the type.
        guard let type = events[place].fact.storedTransaction.productType else {
            return events[place].fact.storedTransaction.expiresDate != nil
        }
        return type == .autoRenewable
    }

    /// Reads the transaction of an event that has one of a subscription.
    init(_ events: borrowing [Event], _ place: Int, _ head: EventHead) {
        transactionID = events[place].fact.storedTransaction.transactionID
        signedDate = events[place].fact.storedTransaction.signedDate
        digest = events[place].fact.storedTransaction.digest
        expiresDate = events[place].fact.storedTransaction.expiresDate
        self.place = place
        signedAt = head.signedAt
        provenance = head.provenance
        position = head.position
        productID = events[place].fact.storedTransaction.productID
        purchaseDate = events[place].fact.storedTransaction.purchaseDate
        revocationDate = events[place].fact.storedTransaction.revocationDate
        revocationType = events[place].fact.storedTransaction.revocationType
        reason = events[place].fact.storedTransaction.reason
        ownership = events[place].fact.storedTransaction.ownership
        offer = OfferPhase(
            type: events[place].fact.storedTransaction.offerType,
            discount: events[place].fact.storedTransaction.offerDiscountType
        )
        price = events[place].fact.storedTransaction.price
        currency = events[place].fact.storedTransaction.currency
        appAccountToken = events[place].fact.storedTransaction.appAccountToken
        isUpgraded = events[place].fact.storedTransaction.isUpgraded
        isAdditional = events[place].fact.storedTransaction.additionalReason != nil
        isCommitment =
            events[place].fact.storedTransaction.billingPlanType == .monthly
            || events[place].fact.storedTransaction.commitmentExpiresDate != nil
        firstSigned = signedDate
        firstAt = head.at
        reportedAt = Trigger(head).isReport ? head.at : nil
        firstEnd = expiresDate
        upgradedAt = isUpgraded ? signedDate : nil
    }

    /// Takes another version in.
    mutating func merge(_ new: Period) -> Anomaly.Kind? {
        let isConflict =
            new.signedDate == signedDate && new.digest != digest && new.provenance == provenance
        var merged = EventOrder.wins(new, over: self) ? new : self
        merged.firstAt = min(firstAt, new.firstAt)
        merged.reportedAt =
            if let mine = reportedAt, let other = new.reportedAt { min(mine, other) } else {
                reportedAt ?? new.reportedAt
            }
        merged.firstSigned = min(firstSigned, new.firstSigned)
        merged.firstEnd =
            new.firstSigned < firstSigned ? new.firstEnd ?? firstEnd : firstEnd ?? new.firstEnd
        if let upgraded = new.upgradedAt {
            merged.upgradedAt = upgradedAt.map { min($0, upgraded) } ?? upgraded
        } else {
            merged.upgradedAt = upgradedAt
        }
        self = merged
        return isConflict ? .orderConflict : nil
    }

    /// Up to when what renewal info told counts from the period's start on.
    ///
    /// That is so for the event that reports the purchase, signed a little after it. A notice
    /// that came first later on tells nothing of the time before it.
    var knownFromStart: Timestamp {
        guard let reportedAt, reportedAt <= firstAt else { return start }
        return reportedAt
    }

    /// Whether the dates of a period are there and in order.
    var hasDates: Bool {
        guard let purchaseDate, let expiresDate else { return false }
        return purchaseDate <= expiresDate
    }

    /// The start of the period.
    var start: Timestamp { purchaseDate ?? .earliest }

    /// The end of the paid period as it counts; never before the start.
    var end: Timestamp { max(start, provisionalEnd ?? expiresDate ?? start) }

    /// When it was taken back, not before it began.
    var revocation: Timestamp? { revocationDate.map { max($0, start) } }

    /// The length of the period before any extension.
    var length: Milliseconds {
        Milliseconds(
            rawValue: max(0, (firstEnd ?? start).milliseconds - start.milliseconds)
        )
    }

    static func precedes(_ left: Period, _ right: Period) -> Bool {
        if left.start != right.start { return left.start < right.start }
        if left.end != right.end { return left.end < right.end }
        return left.digest < right.digest
    }
}

/// Renewal info at its place in the signed history.
struct RenewalRecord {
    var signedDate: Timestamp
    var signedAt: Timestamp
    /// When the whole event was signed.
    var at: Timestamp
    var digest: UInt64
    var provenance: Provenance
    var position: Int64
    var place: Int
    var autoRenewStatus: Int32?
    var autoRenewProductID: Symbol?
    var expirationIntent: Int32?
    var isInBillingRetryPeriod: Bool
    var priceIncreaseStatus: Int32?
    var gracePeriodExpiresDate: Timestamp?
    var renewalDate: Timestamp?

    /// Reads the renewal info of an event that has one.
    init(_ events: borrowing [Event], _ place: Int, _ head: EventHead) {
        signedDate = events[place].fact.storedRenewal.signedDate
        digest = events[place].fact.storedRenewal.digest
        self.place = place
        signedAt = head.signedAt
        at = head.at
        provenance = head.provenance
        position = head.position
        autoRenewStatus = events[place].fact.storedRenewal.autoRenewStatus
        autoRenewProductID = events[place].fact.storedRenewal.autoRenewProductID
        expirationIntent = events[place].fact.storedRenewal.expirationIntent
        isInBillingRetryPeriod = events[place].fact.storedRenewal.isInBillingRetryPeriod == true
        priceIncreaseStatus = events[place].fact.storedRenewal.priceIncreaseStatus
        gracePeriodExpiresDate = events[place].fact.storedRenewal.gracePeriodExpiresDate
        renewalDate = events[place].fact.storedRenewal.renewalDate
    }

    func wins(over other: RenewalRecord) -> Bool { EventOrder.wins(self, over: other) }
}

extension OfferPhase {
    /// What kind of period a transaction is.
    init(type: Int32?, discount: OfferDiscountType?) {
        if discount == .freeTrial {
            self = .trial
            return
        }
        switch type {
        case nil: self = .standard
        case 1: self = .intro
        case 2: self = .promotional
        case 3: self = .offerCode
        case 4: self = .winBack
        default: self = .unknown
        }
    }
}
