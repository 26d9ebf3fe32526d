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
    /// Whether it reports a purchase or renewal as it happens.
    var isReport: Bool { Trigger(self).isReport }

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
///
/// What only an interval or a charge shows is not here but in the event at `place`.
struct Period {
    var transactionID: AppleID
    var signedDate: Timestamp
    var signedAt: Timestamp
    var digest: UInt64
    /// The event that holds the version that counts.
    var position: Int64
    /// Where that event stands among those that are folded.
    var place: Int
    /// The start of the period.
    var start: Timestamp
    /// The end of the paid period as it counts; never before the start.
    var end: Timestamp
    var expiresDate: Timestamp?
    /// When it was taken back, not before it began.
    var revocation: Timestamp?

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

    var productID: Symbol?
    var reason: TransactionReason?
    var provenance: Provenance
    /// Whether there is a `purchaseDate`.
    var hasStart: Bool
    var isUpgraded: Bool
    /// Whether one of several transactions of one period (seats).
    var isAdditional: Bool
    var isCommitment: Bool

    /// Whether an event carries a transaction of an auto-renewable subscription.
    static func exists(in events: borrowing [Event], _ place: Int) -> Bool {
        guard events[place].fact.hasTransaction else { return false }
        // Older payloads lack the type.
        switch events[place].fact.storedTransaction.productType {
        case .autoRenewable: return true
        case nil: return events[place].fact.storedTransaction.expiresDate != nil
        default: return false
        }
    }

    /// Reads the transaction of an event that has one of a subscription.
    init(_ events: borrowing [Event], _ place: Int, _ head: EventHead) {
        transactionID = events[place].fact.storedTransaction.transactionID
        signedDate = events[place].fact.storedTransaction.signedDate
        digest = events[place].fact.storedTransaction.digest
        signedAt = head.signedAt
        position = head.position
        self.place = place
        start = events[place].fact.storedTransaction.purchaseDate ?? .earliest
        hasStart = events[place].fact.storedTransaction.purchaseDate != nil
        expiresDate = events[place].fact.storedTransaction.expiresDate
        end = max(start, expiresDate ?? start)
        if let revoked = events[place].fact.storedTransaction.revocationDate {
            revocation = max(revoked, start)
        }
        firstSigned = signedDate
        firstAt = head.at
        reportedAt = head.isReport ? head.at : nil
        firstEnd = expiresDate
        isUpgraded = events[place].fact.storedTransaction.isUpgraded
        upgradedAt = isUpgraded ? signedDate : nil
        productID = events[place].fact.storedTransaction.productID
        reason = events[place].fact.storedTransaction.reason
        provenance = head.provenance
        isAdditional = events[place].fact.storedTransaction.additionalReason != nil
        isCommitment = events[place].fact.storedTransaction.commitmentExpiresDate != nil
        if case .monthly = events[place].fact.storedTransaction.billingPlanType {
            isCommitment = true
        }
    }

    /// Takes another version in.
    mutating func merge(_ new: Period) -> Anomaly.Kind? {
        let isConflict =
            new.signedDate == signedDate && new.digest != digest && new.provenance == provenance
        let isFirst = new.firstSigned < self.firstSigned
        let firstSigned = min(self.firstSigned, new.firstSigned)
        let firstAt = min(self.firstAt, new.firstAt)
        let firstEnd =
            isFirst ? new.firstEnd ?? self.firstEnd : self.firstEnd ?? new.firstEnd
        let reportedAt = Self.earlier(self.reportedAt, new.reportedAt)
        let upgradedAt = Self.earlier(self.upgradedAt, new.upgradedAt)
        if EventOrder.wins(new, over: self) { self = new }
        self.firstSigned = firstSigned
        self.firstAt = firstAt
        self.firstEnd = firstEnd
        self.reportedAt = reportedAt
        self.upgradedAt = upgradedAt
        return isConflict ? .orderConflict : nil
    }

    private static func earlier(_ left: Timestamp?, _ right: Timestamp?) -> Timestamp? {
        guard let left, let right else { return left ?? right }
        return min(left, right)
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
        guard hasStart, let expiresDate else { return false }
        return start <= expiresDate
    }

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

/// Renewal info at its place in the signed history; what it says is in the event at `place`.
struct RenewalRecord {
    /// When the whole event was signed.
    var at: Timestamp
    var signedDate: Timestamp
    var signedAt: Timestamp
    /// Its `renewalDate`, which decides between two that were signed in one instant.
    var renewalDate: Timestamp
    var digest: UInt64
    var position: Int64
    var place: Int
    var provenance: Provenance
    var isInBillingRetryPeriod: Bool

    /// Reads the renewal info of an event that has one.
    init(_ events: borrowing [Event], _ place: Int, _ head: EventHead) {
        at = head.at
        signedDate = events[place].fact.storedRenewal.signedDate
        signedAt = head.signedAt
        renewalDate = events[place].fact.storedRenewal.renewalDate ?? .earliest
        digest = events[place].fact.storedRenewal.digest
        position = head.position
        self.place = place
        provenance = head.provenance
        isInBillingRetryPeriod = events[place].fact.storedRenewal.isInBillingRetryPeriod == true
    }

    func wins(over other: RenewalRecord) -> Bool { EventOrder.wins(self, over: other) }
}

extension OfferPhase {
    /// What kind of period a transaction is.
    init(_ events: borrowing [Event], _ place: Int) {
        // Field by field: handing the transaction over would copy all of it.
        if case .freeTrial = events[place].fact.storedTransaction.offerDiscountType {
            self = .trial
            return
        }
        switch events[place].fact.storedTransaction.offerType {
        case nil: self = .standard
        case 1: self = .intro
        case 2: self = .promotional
        case 3: self = .offerCode
        case 4: self = .winBack
        default: self = .unknown
        }
    }
}

extension RenewalIntent {
    /// What Apple's `autoRenewStatus` says.
    init(status: Int32?) {
        switch status {
        case 0: self = .off
        case 1: self = .on
        default: self = .unknown
        }
    }
}
